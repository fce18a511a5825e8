# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend for torch.compile: forward and backward of every graph as a pair in one library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

from .. import state as _state
from .._errors import StateError, warn
from .._report import Report
from . import _capture
from ._choices import Choices
from ._devices import check_options, memory_of
from ._graph import Graph
from ._memory import Memory
from ._state import State, States, described, from_arrays
from .lowering import _decompose, _import

_SCALE, _HISTORY = "scale", _state.HISTORY


def backend(recipe: Any = "current", **options: Any) -> Backend:
    """A backend for torch.compile whose matrix products run in FP8.

        model = torch.compile(model, backend=fp8.torch.backend(recipe="delayed", keep="head"))

    The options are those of `fp8.compile`. Errors of the compiler reach the user as the
    `inner_exception` of torch's BackendCompilerFailed.
    """
    return Backend(recipe, **options)


class Backend:
    """The function that torch.compile calls with every graph that it captures.

    `graphs` are the graphs compiled so far. Training graphs are pairs of forward and backward;
    under `torch.no_grad()` a graph is one function that reads the state of training and never
    writes it.
    """

    def __init__(self, recipe: Any = "current", **options: Any) -> None:
        check_options("the backend", {"recipe": recipe, **options})
        self.recipe = recipe
        self.options = options
        self.graphs: list[Graph] = []
        self.states = States()
        self.choices = Choices()

    def __call__(self, module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        self.choices.is_broken |= bool(getattr(getattr(module, "compile_subgraph_reason", None), "graph_break", False))
        names = _capture.input_names(module)
        numbers = _capture.number_inputs(module)
        memory = memory_of(_capture.named_tensors(module, names), self.options)
        if any(numbers):
            return _Numbers(self, module, names, numbers, memory)
        return self.build(module, inputs, names, memory)

    def build(self, module: GraphModule, inputs: Sequence[Any], names: Sequence[str], memory: Memory) -> Callable[..., Any]:
        """Captures forward and backward of a graph of static shapes, and returns what runs it."""
        graph = Graph(self, names, memory)
        compiler = aot_autograd(
            fw_compiler=graph.compile_forward,
            bw_compiler=graph.compile_backward,
            inference_compiler=graph.compile_inference,
            partition_fn=graph.partition,
            decompositions=_decompose.table(),
        )
        with _capture.tracing(memory.device):
            run = compiler(module, inputs)
        direct = graph.pair.direct(graph.metadata, inputs) if graph.pair is not None and graph.metadata is not None else None
        return direct or run

    def report(self) -> Report:
        """The products of all graphs in one report; the entry points of several graphs are `graph 0: forward` and so on.

        Memory is the sum of all, options are those that all graphs have. Raises RuntimeError before the first call.
        """
        if not self.graphs:
            raise RuntimeError(
                "no graph is compiled: call the model first; if you did, torch.compile left all of it to eager PyTorch (TORCH_LOGS=graph_breaks says why)"
            )
        self.choices.warn()
        reports = [graph.report for graph in self.graphs]
        if len(reports) == 1:
            return reports[0]
        return Report(self._merged(reports), "\n".join(f"graph {i}\n{report}" for i, report in enumerate(reports)))

    def _merged(self, reports: Sequence[Report]) -> dict[str, Any]:
        """The contents of a report of several graphs."""
        sites: list[dict[str, Any]] = []
        memory: dict[str, Any] = {"traffic": []}
        for i, report in enumerate(reports):
            sites += [{**vars(s), "entry": _entry(i, s.entry)} for s in report.sites]
            memory["traffic"] += [{**t, "entry": _entry(i, t["entry"])} for t in report.memory.get("traffic", [])]
            for name, value in report.memory.items():
                if isinstance(value, int):
                    memory[name] = memory.get(name, 0) + value
        # Graphs share states, and have one for each model that is alike.
        memory["state_bytes"] = sum(value.nbytes for value in self.state.values())
        options = {name: value for name, value in reports[0].options.items() if all(r.options.get(name) == value for r in reports)}
        return {"sites": sites, "memory": memory, "options": options}

    @property
    def state(self) -> dict[str, Tensor]:
        """Scales and amax histories of all graphs side by side, with the columns that `columns` says; empty before training.

        A dict of arrays that is assigned is copied into them. Raises StateError for other shapes.
        """
        states = self._scaled()
        return {name: torch.cat([state[name] for state in states], -1) for name in (_SCALE, _HISTORY)} if states else {}

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        states, given = self._scaled(), from_arrays({name: state[name] for name in (_SCALE, _HISTORY) if name in state})
        widths = [len(own[_SCALE]) for own in states]
        if len(given) < 2 or any(tensor.dim() == 0 or tensor.shape[-1] != sum(widths) for tensor in given.values()):
            raise StateError(f"the FP8 state of these graphs is {_SCALE} and {_HISTORY} of {sum(widths)} columns")
        for own, scale, history in zip(states, given[_SCALE].split(widths), given[_HISTORY].split(widths, -1)):
            own.load({**own, _SCALE: scale, _HISTORY: history})

    def _scaled(self) -> list[State]:
        """The states that have scales: with stochastic rounding others have the numbers for it alone."""
        return [state for state in self.states.children() if _SCALE in state.keys()]

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of `state`: dicts with index, tensor, format and sites. Models that share a graph have the same sites."""
        return described(*self.states.children())

    def state_dict(self) -> dict[str, Tensor]:
        """The FP8 state of all graphs, with keys as `0.scale`."""
        return dict(self.states.state_dict())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Loads what `state_dict` gave; graphs that are not compiled yet get theirs when they are. Raises StateError."""
        self.states.load_state_dict(state)

    def attach(self, module: nn.Module) -> None:
        """Makes the FP8 state part of the module's `state_dict`, with keys as `fp8_state.<graph>.scale`.

        Scales then also stay with the names of the module's parameters, as load_state_dict(assign=True) replaces the
        parameters by others; without, they are of the parameters as objects.
        """
        module = getattr(module, "_orig_mod", module)
        self.states.attach_to(module)
        self.states.belong_to(module)

    def __deepcopy__(self, memo: dict[int, Any]) -> Backend:
        """A copy of a compiled model has the same backend, in which its weights have states of their own."""
        return self

    def __getstate__(self) -> tuple[Any, ...]:
        return self.recipe, self.options, self.states

    def __setstate__(self, saved: tuple[Any, ...]) -> None:
        """Graphs are not pickled: they are compiled again."""
        recipe, options, states = saved
        Backend.__init__(self, recipe, **options)
        self.states = states
        states.wait()

    def __repr__(self) -> str:
        return f"<fp8.torch.Backend {self.recipe}: {len(self.graphs)} compiled>"


def _entry(graph: int, name: str) -> str:
    """The name of an entry point among those of several graphs."""
    return f"graph {graph}" if name == "main" else f"graph {graph}: {name}"


#: So many compilations for other floats are worth a warning.
_MANY = 8


class _Numbers:
    """A graph that PyTorch captured with sizes or floats that change: one library per combination of them."""

    def __init__(self, owner: Backend, module: GraphModule, names: Sequence[str], numbers: Sequence[bool], memory: Memory) -> None:
        self._owner, self._module, self._names, self._numbers, self._memory = owner, module, names, numbers, memory
        self._built: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._floats: set[tuple[str, ...]] = set()

    def __call__(self, *arguments: Any) -> Any:
        # Symbols of sizes may come as numbers or, within other graphs, as symbols.
        values = [a.item() if is_number and isinstance(a, Tensor) else a for a, is_number in zip(arguments, self._numbers)]
        floats = tuple(value.hex() for value in values if isinstance(value, float))
        sizes = tuple(value if isinstance(value, int) else tuple(value.shape) for value in values if not isinstance(value, float))
        key = (sizes, floats, torch.is_grad_enabled())
        run = self._built.get(key)
        if run is None:
            self._note(floats, values)
            module, tensors = _capture.with_numbers(self._module, values)
            names = [n for n, value in zip(self._names, values) if isinstance(value, Tensor)]
            with torch._guards.tracing(None):
                run = self._built[key] = self._owner.build(module, tensors, names, self._memory)
        return run(*[value for value in values if isinstance(value, Tensor)])

    def _note(self, floats: tuple[str, ...], values: Sequence[Any]) -> None:
        """Warns of floats that change often."""
        self._floats.add(floats)
        if len(self._floats) == _MANY:
            where = _import.first_line([self._module])
            names = " or ".join(name for name, value in zip(self._names, values) if isinstance(value, float))
            warn(f"{where}: the graph was compiled {_MANY} times because the number {names} changed: give it as a tensor")


__all__ = ["Backend", "backend"]
