# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph that torch.compile captured, compiled: a pair of forward and backward, or one function for inference."""

from __future__ import annotations

import functools
import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule
from torch.utils.checkpoint import CheckpointPolicy

from .. import _options
from .. import state as _state
from .._errors import CompileError, Location, StateError
from .._library import Library
from .._report import Report
from ..recipe import to_text
from . import _capture
from ._casts import Casts, advise, pointers
from ._choices import Choices
from ._inference import TrainedScales
from ._memory import Memory
from ._pair import Pair
from ._run import Runner
from ._state import State, States, at_line, described, from_arrays, same_layout
from .lowering import _import

#: Options of delayed scaling, which other recipes have not.
_OF_DELAYED = ("margin", "amax_history_len", "amax_compute_algo", "ignore_non_finite", "executed_mask", "init")


class Owner(Protocol):
    """The backend, as far as a graph asks it."""

    recipe: Any
    options: dict[str, Any]
    graphs: list[Graph]
    states: States
    choices: Choices


class Graph:
    """One graph that torch.compile captured, compiled: a pair, or one function where no gradient is needed."""

    def __init__(self, owner: Owner, names: Sequence[str], memory: Memory) -> None:
        self._owner = owner
        self._memory = memory
        self._names = names
        self._parts: tuple[GraphModule, GraphModule, int] | None = None
        self._library: Library | None = None
        self._line: Location | None = None
        #: A training graph's calls, and what AOT autograd knows about its inputs and outputs.
        self.pair: Pair | None = None
        self.metadata: Any = None
        self._weight: int | None = None
        self._weights: list[int] = []
        self._state: State | None = None
        #: By the address of the first weight's object, that object and the state; the state for weights that are no parameters.
        self._known: dict[int, tuple[weakref.ref[Tensor], State]] = {}
        self._shared: State | None = None
        #: Workspaces, casts and states are used by one thread at a time.
        self._lock = threading.Lock()

    @property
    def library(self) -> Library:
        assert self._library is not None
        return self._library

    @property
    def report(self) -> Report:
        """The decision about every product of this graph."""
        return _import.report_of(self.library)

    @property
    def state(self) -> State | None:
        """The state for the weights that this graph ran with last; None without state, or before the first call.

        A dict of arrays that is assigned is copied into it. Raises StateError if it is another program's.
        """
        return self._state

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        if self._state is None:
            raise StateError("this graph has no FP8 state: call the model with gradients, and choose a recipe with scales to keep, as 'delayed'")
        self._state.load(from_arrays(state))

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the state: dicts with index, tensor, format and sites; empty where there is no state."""
        return described(self._state)

    def ir(self, stage: str) -> str:
        """The IR after a stage of the compiler."""
        return self.library.ir(stage)

    def __repr__(self) -> str:
        if self._library is None:
            return "<fp8.torch.Graph: not compiled>"
        return f"<fp8.torch.Graph {', '.join(self._library.entries)}: {self._library.report.summary()}>"

    def partition(self, joint: GraphModule, inputs: Any, *, num_fwd_outputs: int, **rest: Any) -> tuple[GraphModule, GraphModule]:
        """Lets PyTorch cut the joint graph, and keeps both parts: they are compiled as one pair."""
        # Checkpoints would draw them again in backward, from the generator as it was in forward.
        for node in _capture.random_nodes(joint):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        forward, backward = min_cut_rematerialization_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **rest)
        self._parts = forward, backward, num_fwd_outputs
        return forward, backward

    def compile_forward(self, module: GraphModule, inputs: Any) -> Callable[..., Any]:
        """Compiles the pair; returns what runs forward.

        Its metadata say whether AOT autograd has to stand around the pair's calls.
        """
        assert self._parts is not None
        forward, backward, outputs = self._parts
        parts = {"forward": _capture.for_compiler(forward), "backward": _capture.for_compiler(backward)}
        draws = _capture.draw_outside(parts["forward"])
        values = _capture.values_of(forward)
        user, saved = sum(isinstance(v, Tensor) for v in values[:outputs]), len(values) - outputs
        # Where nothing is saved the parts have nothing in common, and no products.
        self._memory.check_results(values[:outputs], _import.first_line([forward]))
        self._compile(parts, **({"pair": ("forward", "backward", user)} if saved else {}))
        self._find_weights(forward)
        self.pair = Pair(self.library, self._parts, draws, self._owner.states, self._begin, self._lock, self._memory)
        context = torch._guards.TracingContext.try_get()
        self.metadata = context.fw_metadata if context is not None else None
        return _boxed(self.pair.boxed_forward)

    def compile_backward(self, module: GraphModule, inputs: Any) -> Callable[..., Any]:
        """The function that runs backward, which forward's compilation compiled."""
        assert self.pair is not None
        return _boxed(self.pair.boxed_backward)

    def compile_inference(self, module: GraphModule, inputs: Any) -> Callable[..., Any]:
        """One function; a recipe with state takes its scales from the state of training."""
        part = _capture.for_compiler(module)
        draws = _capture.draw_outside(part)
        self._compile({"main": part}, stochastic_rounding=False)  # It is for gradients alone.
        self._find_weights(module)
        values = _capture.values_of(module)
        self._memory.check_results(values, self._line)
        runner = Runner(self.library, "main", values, self._memory)
        names, casts, choices = runner.state_names, Casts(self.library, "main", self._memory), self._owner.choices
        scales = TrainedScales(self, self._owner.states, part, runner, casts, values) if self._has_state else None

        def run(*arguments: Tensor) -> list[Any]:
            arguments = (*arguments, *[draw() for draw in draws]) if draws else arguments
            with self._lock:
                if choices.doubts:
                    choices.call(self)
                if scales is not None:
                    return scales(*arguments)
                casts.update(arguments, None)
                return runner(arguments, pointers(names, None, casts) if names else ())

        return make_boxed_func(run)  # type: ignore[no-any-return]

    def _compile(self, parts: dict[str, GraphModule], **options: Any) -> None:
        self._library = self.build(parts, recipe=self._owner.recipe, **options)
        self._owner.graphs.append(self)

    def build(self, parts: dict[str, GraphModule], **options: Any) -> Library:
        """Compiles graphs with the backend's options."""
        names = {name: _capture.argument_names(part, self._names) for name, part in parts.items()}
        text = _import.to_linalg(parts, names)
        self._line = _import.first_line(parts.values())
        try:
            return self._owner.choices.compile(text, self._line, {**self._owner.options, **options, **self._memory.options})
        except CompileError as error:
            raise advise(error) from None

    def build_without_state(self, part: GraphModule) -> Library:
        """Compiles the graph for inference with current scaling wherever the options say delayed scaling."""
        owner = self._owner
        recipes = [f"{pattern}={_current_for(recipe)}" for pattern, recipe in _options.site_recipes(owner.options.get("site_recipe"))]
        options: dict[str, Any] = {"recipe": _current_for(owner.recipe), "site_recipe": recipes, "fp8_parameters": False, "stochastic_rounding": False}
        return self.build({"main": part}, **options, **dict.fromkeys(_OF_DELAYED))

    def _begin(self, arguments: Sequence[Tensor]) -> State | None:
        """The state for a call of the pair."""
        if self._owner.choices.doubts:
            self._owner.choices.call(self)
        return self._choose_state(arguments) if self._has_state else None

    @functools.cached_property
    def _has_state(self) -> bool:
        """Whether there is a state beside the weights in FP8."""
        return bool(_state.tensors(self.library.manifest))

    def _find_weights(self, module: GraphModule) -> None:
        """Finds the arguments that are weights, by their names, paths in a module."""
        indices = [_capture.input_index(node) for node in _capture.placeholders(module)]
        names = [self._names[i] if i is not None and i < len(self._names) else "" for i in indices]
        self._weights = [place for place, name in enumerate(names) if re.search(r"\.|^(weight|bias)$", name)]
        self._weight = self._weights[0] if self._weights else None

    def weights_of(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """The weights in a call that are parameters: others may be new objects in every call, and are not told apart."""
        weights = [arguments[place] for place in self._weights]
        return [weight for weight in weights if isinstance(weight, nn.Parameter)]

    def first_weight(self, arguments: Sequence[Tensor]) -> Tensor | None:
        weight = arguments[self._weight] if self._weight is not None else None
        return weight if isinstance(weight, nn.Parameter) else None

    def _choose_state(self, arguments: Sequence[Tensor]) -> State:
        """The state for the weights of this call: PyTorch runs one graph for all modules that are alike."""
        weight = arguments[self._weight] if self._weight is not None else None
        known = self._known.get(id(weight))
        if known is not None and known[0]() is weight:
            state = known[1]
        elif isinstance(weight, nn.Parameter):
            state, place = self._find_state(self.weights_of(arguments)), id(weight)
            self._known[place] = weakref.ref(weight, lambda _: self._known.pop(place)), state
        else:
            state = self._shared = self._shared or self._find_state(self.weights_of(arguments))
        if state.device != self._memory.device:
            state.move_to(self._memory)  # The model was moved, and runs here from now on.
        self._state = state
        return state

    def _find_state(self, weights: Sequence[Tensor]) -> State:
        """The state that another graph with this layout (of another batch size, say) has for these weights, or a new one."""
        states = self._owner.states
        new, place = State(self.library, self._memory), states.place_of(weights)
        for state in states.children():
            assert isinstance(state, State)
            if state.is_of(weights, place) and same_layout(state.layout_hash, new.layout_hash):
                state.take(weights, place)
                states.changes += 1
                return state
        new.take(weights, place)
        with at_line(self._line):
            states.add(new)
        return new


def _current_for(recipe: Any) -> str:
    """The recipe, or current scaling for delayed scaling."""
    text = to_text(recipe)
    return "current" if "delayed" in text else text


def _boxed(function: Callable[[list[Any]], list[Any]]) -> Callable[..., Any]:
    """A function of one list, as AOT autograd calls it."""

    def boxed(arguments: list[Any]) -> list[Any]:
        return function(arguments)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed
