# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend for torch.compile: forward and backward of every graph as a pair in one library."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule
from torch.utils.weak import WeakIdKeyDictionary

from .. import _compile
from .. import state as _state
from .._errors import CompileError, Warning
from .._library import Library
from .._report import Report
from . import _capture, _decompose, _import
from ._casts import Casts, advise, pointers
from ._pair import Pair
from ._run import Runner, check_devices
from ._state import Place, State, States, columns_of, decode


def backend(recipe: Any = "current", **options: Any) -> Backend:
    """A backend for torch.compile whose matrix products run in FP8.

        model = torch.compile(model, backend=fp8.torch.backend(recipe="delayed", keep="head"))

    The options are those of `fp8.compile`. Errors of the compiler reach the user as the
    `inner_exception` of torch's BackendCompilerFailed.
    """
    return Backend(recipe, **options)


class Backend:
    """What torch.compile calls with every graph that it captures.

    `graphs` are the graphs compiled so far. Training graphs are pairs of forward and backward;
    under `torch.no_grad()` a graph is one function that reads the state of training and never
    writes it.
    """

    def __init__(self, recipe: Any = "current", **options: Any) -> None:
        for name in ("pair", "carry"):
            if name in options:
                raise ValueError(f"{name} is set by the backend itself")
        self.recipe = recipe
        self.options = options
        self.graphs: list[Graph] = []
        self.states = States()

    def __call__(self, module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        check_devices(inputs)
        names = _capture.input_names(module)
        if any(isinstance(value, (torch.SymInt, torch.SymFloat)) for value in inputs):
            return _Shapes(self, module, names)
        return self.build(module, inputs, names)

    def build(self, module: GraphModule, inputs: Sequence[Any], names: Sequence[str]) -> Callable[..., Any]:
        """Captures forward and backward of a graph of static shapes, and returns what runs it."""
        graph = Graph(self, names)
        compiler = aot_autograd(
            fw_compiler=graph.compile_forward,
            bw_compiler=graph.compile_backward,
            inference_compiler=graph.compile_inference,
            partition_fn=graph.partition,
            decompositions=_decompose.table(),
        )
        with _capture.tracing():
            run = compiler(module, inputs)
        direct = graph.pair.direct(graph.metadata, inputs) if graph.pair is not None and graph.metadata is not None else None
        return direct or run

    def report(self) -> Report:
        """The products of all graphs in one report. Raises RuntimeError before the first call."""
        if not self.graphs:
            raise RuntimeError("no graph is compiled yet: call the model first")
        reports = [graph.report for graph in self.graphs]
        sites = [{**site.__dict__, "formats": list(site.formats)} for report in reports for site in report.sites]
        return Report({"sites": sites}, "\n".join(f"graph {i}\n{report}" for i, report in enumerate(reports)))

    def state_dict(self) -> dict[str, Tensor]:
        """The FP8 state of all graphs, with keys as `0.scale`."""
        return dict(self.states.state_dict())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Loads what `state_dict` gave; graphs that are not compiled yet get theirs when they are. Raises StateError."""
        self.states.load_state_dict(state)

    def attach(self, module: nn.Module) -> None:
        """Makes the FP8 state part of the module's `state_dict`, as buffers `fp8_state.<graph>.scale` and so on.

        Scales then also stay with the names of the module's parameters, as load_state_dict(assign=True) replaces the
        parameters by others; without, they are of the parameters as objects.
        """
        module = getattr(module, "_orig_mod", module)
        if getattr(module, "fp8_state", self.states) is not self.states:
            raise ValueError("the module already has the FP8 state of another backend")
        module.fp8_state = self.states
        self.states.belong_to(module)

    def __repr__(self) -> str:
        return f"<fp8.torch.Backend {self.recipe}: {len(self.graphs)} compiled>"


class Graph:
    """One graph that torch.compile captured, compiled: a pair, or one function where no gradient is needed."""

    def __init__(self, owner: Backend, names: Sequence[str]) -> None:
        self._owner = owner
        self._names = names
        self._parts: tuple[GraphModule, GraphModule, int] | None = None
        self._library: Library | None = None
        #: A training graph's calls, and what AOT autograd knows about its inputs and outputs.
        self.pair: Pair | None = None
        self.metadata: Any = None
        self._weight: int | None = None
        self._weights: list[int] = []
        #: The number of the state of each first weight; of weights that are no parameters.
        self._numbers: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._number: int | None = None
        self._state: int | None = None
        #: Workspaces, casts and states are used by one thread at a time.
        self._lock = threading.Lock()

    @property
    def library(self) -> Library:
        assert self._library is not None
        return self._library

    @property
    def report(self) -> Report:
        """What became of every product of this graph."""
        return self.library.report

    @property
    def state(self) -> State | None:
        """The state of the weights that this graph ran with last; None without state, or before the first call."""
        return None if self._state is None else self._owner.states.get_submodule(str(self._state))

    def ir(self, stage: str) -> str:
        """The IR after a stage of the compiler."""
        return self.library.ir(stage)

    def partition(self, joint: GraphModule, inputs: Any, *, num_fwd_outputs: int, **rest: Any) -> tuple[GraphModule, GraphModule]:
        """Lets PyTorch cut the joint graph, and keeps both parts: they are compiled as one pair."""
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
        self._compile(parts, **({"pair": ("forward", "backward", user)} if saved else {}))
        self._find_weights(forward)
        choose = self._state_number if self._has_state else lambda _: None
        self.pair = Pair(self.library, self._parts, draws, self._owner.states, choose, self._lock)
        context = torch._guards.TracingContext.try_get()
        self.metadata = context.fw_metadata if context is not None else None
        return _boxed(self.pair.boxed_forward)

    def compile_backward(self, module: GraphModule, inputs: Any) -> Callable[..., Any]:
        """What runs backward, which forward's compilation compiled."""
        assert self.pair is not None
        return _boxed(self.pair.boxed_backward)

    def compile_inference(self, module: GraphModule, inputs: Any) -> Callable[..., Any]:
        """One function; a recipe with state takes its scales from the state of training."""
        part = _capture.for_compiler(module)
        draws = _capture.draw_outside(part)
        self._compile({"main": part})
        self._find_weights(module)
        values = _capture.values_of(module)
        runner = Runner(self.library, "main", values)
        names, casts = runner.state_names, Casts(self.library, "main")
        scales = _TrainedScales(self, part, runner, casts, values) if self._has_state else None

        def run(*arguments: Tensor) -> list[Any]:
            arguments = (*arguments, *[draw() for draw in draws]) if draws else arguments
            with self._lock:
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
        try:
            return _compile.compile(text, **{**self._owner.options, **options})
        except CompileError as error:
            raise advise(error) from None

    @property
    def _has_state(self) -> bool:
        """Whether there is a state beside the weights in FP8."""
        return bool(_state.tensors(self.library.manifest))

    def _find_weights(self, module: GraphModule) -> None:
        """Which arguments are weights: by their names, paths in a module."""
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

    def _state_number(self, arguments: Sequence[Tensor]) -> int:
        """The state for the weights of this call: PyTorch runs one graph for all modules that are alike."""
        weight = self.first_weight(arguments)
        number = self._number if weight is None else self._numbers.get(weight)
        if number is None:
            number = self._find_state(self.weights_of(arguments))
            if weight is None:
                self._number = number
            else:
                self._numbers[weight] = number
        self._state = number
        return number

    def _find_state(self, weights: Sequence[Tensor]) -> int:
        """The state that another graph with this layout (of another batch size, say) has for these weights, or a new one."""
        states = self._owner.states
        new, place = State(self.library), states.place_of(weights)
        for name, state in states.named_children():
            assert isinstance(state, State)
            if state.is_of(weights, place) and torch.equal(state.layout_hash, new.layout_hash):
                state.take(weights, place)
                states.changes += 1
                return int(name)
        new.take(weights, place)
        return states.add(new)


class _TrainedScales:
    """Runs an inference graph of a recipe with state, with the scales that training found.

    Columns are matched by name. Where one is missing the graph is compiled with current scaling
    instead, with a warning.
    """

    def __init__(self, graph: Graph, part: GraphModule, runner: Runner, casts: Casts, values: Sequence[Any]) -> None:
        self._graph, self._part, self._runner, self._casts, self._values = graph, part, runner, casts, values
        self._columns = columns_of(graph.library)
        # Made in the first call: compilation runs under PyTorch's mode of tensors without data.
        self._own: State | None = None
        self._sources: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._known = -1
        self._fallback: Runner | None = None

    def __call__(self, *arguments: Tensor) -> list[Any]:
        states, graph = self._graph._owner.states, self._graph
        if self._known != states.changes:
            self._known, self._sources = states.changes, WeakIdKeyDictionary()
        weight = graph.first_weight(arguments)
        key = self if weight is None else weight
        if key not in self._sources:
            self._sources[key] = self._find(graph.weights_of(arguments))
        source = self._sources[key]
        if source is None:
            return self._current()(arguments, ())
        if self._own is None:
            self._own = State(graph.library)
        torch.index_select(source[0], 0, source[1], out=self._own.scale)
        self._casts.update(arguments, self._own)
        return self._runner(arguments, pointers(self._runner.state_names, self._own, self._casts))

    def _find(self, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor] | None:
        """The scales of a state of these weights, and the place of each of our columns in them."""
        states = self._graph._owner.states
        place = states.place_of(weights)
        trained = [dict(s.named_buffers()) for s in states.children() if not weights or s.shares(weights) or _has(s.place, place)]
        for tensors in [*trained, *states.waiting.values()]:
            places = {(column[0], column[1], site): i for i, column in enumerate(decode(tensors["columns"])) for site in column[2:]}
            found = [places.get((tensor, form, sites[0])) for tensor, form, *sites in self._columns]
            if None not in found:
                return tensors["scale"], torch.tensor(found, dtype=torch.int64)
        return None

    def _current(self) -> Runner:
        if self._fallback is None:
            warnings.warn("a graph without gradients runs before training has found its scales: it uses current scaling instead", Warning, stacklevel=2)
            library = self._graph.build({"main": self._part}, recipe="current", fp8_parameters=False)
            self._fallback = Runner(library, "main", self._values)
        return self._fallback


def _boxed(function: Callable[[list[Any]], list[Any]]) -> Callable[..., Any]:
    """A function of one list, as AOT autograd calls it."""

    def boxed(arguments: list[Any]) -> list[Any]:
        return function(arguments)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def _has(place: Place | None, other: Place | None) -> bool:
    """Whether both are of one module, and have a weight in common."""
    return place is not None and other is not None and place[0] is other[0] and bool(place[1] & other[1])


class _Shapes:
    """A graph that PyTorch captured with sizes that change: one library per combination of sizes."""

    def __init__(self, owner: Backend, module: GraphModule, names: Sequence[str]) -> None:
        self._owner, self._module, self._names = owner, module, names
        self._built: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        sizes = tuple(a if isinstance(a, (int, float)) else tuple(a.shape) for a in arguments)
        key = (*sizes, torch.is_grad_enabled())
        run = self._built.get(key)
        if run is None:
            module, tensors = _capture.with_numbers(self._module, arguments)
            names = [n for n, a in zip(self._names, arguments) if isinstance(a, Tensor)]
            with torch._guards.tracing(None):
                run = self._built[key] = self._owner.build(module, tensors, names)
        return run(*[a for a in arguments if isinstance(a, Tensor)])


__all__ = ["Backend", "Graph", "backend"]
