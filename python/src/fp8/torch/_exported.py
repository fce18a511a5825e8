# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of torch.export, compiled for inference: weights and scales stay as they are."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export._tree_utils import reorder_kwargs
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx import Node
from torch.utils import _pytree

from .. import _options
from .. import recipe as recipes
from .. import state as states
from .._errors import CompileError, Location, StateError, UnsupportedError
from .._library import Library
from .._report import Report
from . import _capture
from ._casts import Casts, pointers
from ._devices import check_options, memory_of
from ._run import Runner
from ._state import State, described, from_arrays
from .lowering import _decompose, _import

#: Inputs of one call: positional ones as a tuple, those with names as a dict; a tensor alone is the only input.
Inputs = Any


def compile_exported(program: ExportedProgram, recipe: Any = "current", calibration: Iterable[Inputs] | None = None, **options: Any) -> Exported:
    """A function that runs a program of torch.export, where its weights lie, with its matrix products in FP8.

    >>> model, batches = torch.nn.Linear(16, 8), [torch.ones(4, 16), torch.zeros(4, 16)]
    >>> program = torch.export.export(model.eval(), (batches[0],))
    >>> run = compile_exported(program, recipe="delayed", calibration=batches)
    >>> y = run(batches[0])
    >>> run.report()
    <fp8.Report: 1 products, 1 in FP8, 0 kept>

    The weights are copied, and kept in FP8 where they are multiplied in FP8. A recipe with state, as
    "delayed", takes the scales of all later calls from the inputs in `calibration`; without them
    they come from `load_state_dict`. The other options are those of `fp8.compile`.

    Raises UnsupportedError, at the line of the model, for a program that changes its inputs or
    buffers, has dynamic sizes, draws random numbers or computes gradients.
    """
    return Exported(program, recipe, calibration, **options)


class Exported:
    """The result of `compile_exported`. It is called with the inputs of the exported module; a call changes
    nothing."""

    def __init__(self, program: ExportedProgram, recipe: Any = "current", calibration: Iterable[Inputs] | None = None, **options: Any) -> None:
        if not isinstance(program, ExportedProgram):
            raise TypeError(f"the program is of type {type(program).__name__}: torch.export.export(model.eval(), inputs) makes one")
        for name in ("pair", "carry", "calibrate"):
            if name in options:
                raise ValueError(f"{name} has no use for an exported program")
        check_options("compile_exported", {"recipe": recipe, **options}, found=())
        self._graph = _Graph(program, options)
        memory = self._memory = self._graph.memory
        self._options = {"recipe": recipe, **options}
        self.library = self._compile_kept()
        self._runner = Runner(self.library, "main", self._graph.results, memory)
        self._casts = Casts(self.library, "main", memory)
        #: The library's workspace is used by one thread at a time.
        self._lock = threading.Lock()
        self._state = State(self.library, memory) if states.tensors(self.library.manifest) else None
        self._has_scales = self._state is None
        if calibration is not None:
            self.calibrate(calibration)
        elif self._has_scales:
            self._cast_weights()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Raises TypeError or ValueError for inputs of another kind than the exported ones, RunError if the call fails."""
        if not self._has_scales:
            raise StateError("the scales are not calibrated: give compile_exported calibration=[inputs, …], or load_state_dict what was saved")
        tensors = self._graph.arguments(arguments, named)
        with self._lock:
            results = self._runner(tensors, self._pointers(self._runner.state_names))
        return self._graph.unflatten(results)

    def calibrate(self, calibration: Iterable[Inputs]) -> None:
        """Finds the scales: runs the program on inputs, as training would, and takes each scale from the largest amax of all inputs."""
        if self.state is None:
            raise ValueError(f"recipe={self._options['recipe']!r} has no scales to keep in this program: leave out calibration")
        library = self._compile(calibrate=True, fp8_parameters=False, **_for_calibration(self._options))
        runner, state, count = Runner(library, "main", self._graph.results, self._memory), State(library, self._memory), 0
        largest = torch.zeros_like(state.scale)
        for inputs in calibration:
            arguments, named = _as_call(inputs)
            runner(self._graph.arguments(arguments, named), pointers(runner.state_names, state, self._casts))
            # The program's own history forgets: this one has the largest amax so far in place of the last.
            state.amax_history[1].copy_(torch.maximum(largest, state.amax_history[1], out=largest))
            count += 1
        if not count:
            raise ValueError("calibration has no inputs")
        self.state.scale.copy_(state.scale)
        self.state.amax_history[1:] = largest
        self._has_scales = True
        self._cast_weights()

    @property
    def state(self) -> State | None:
        """The FP8 state; None for a recipe without. A dict of arrays that is assigned is loaded as by load_state_dict."""
        return self._state

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self.load_state_dict(from_arrays(state))

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the state: dicts with index, tensor, format and sites; empty where there is no state."""
        return described(self._state)

    def report(self) -> Report:
        """The decision about every product."""
        return _import.report_of(self.library)

    def ir(self, stage: str) -> str:
        """The IR after a stage of the compiler."""
        return self.library.ir(stage)

    def state_dict(self) -> dict[str, Tensor]:
        """The FP8 state, for torch.save; empty for a recipe without. The weights are the exported program's."""
        return dict(self.state.state_dict()) if self.state is not None else {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Loads what `state_dict` gave, in place of calibration. Raises StateError if it is another program's."""
        if self.state is None:
            raise StateError(f"recipe={self._options['recipe']!r} has no state to load")
        self.state.load(state)
        self._has_scales = True
        self._cast_weights()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raises TypeError: a process has the library loaded."""
        raise TypeError(
            "an Exported can be neither pickled nor copied: save the program by torch.export.save and state_dict(), "
            "and give both to a new compile_exported and its load_state_dict"
        )

    def __repr__(self) -> str:
        scales = "" if self._has_scales else ", scales not calibrated"
        return f"<fp8.torch.Exported: {self.library.report.summary()}{scales}>"

    def _compile(self, **options: Any) -> Library:
        return _import.compile_text(self._graph.text, self._graph.line, {**self._options, **options, **self._memory.options})

    def _compile_kept(self) -> Library:
        """With the weights kept in FP8, where the program has one that can be."""
        if "fp8_parameters" in self._options:
            return self._compile()
        try:
            return self._compile(fp8_parameters=True)
        except (CompileError, ValueError) as error:
            if "fp8_parameters keeps" not in str(error):
                raise
            return self._compile()

    def _pointers(self, names: Sequence[str]) -> Sequence[int]:
        return pointers(names, self.state, self._casts)

    def _cast_weights(self) -> None:
        """Casts the weights that are kept in FP8, with the scales of the state."""
        self._casts.make(self._graph.arguments_of_weights(), self.state)


class _Graph:
    """An exported program as the compiler takes it: text, copies of the weights, and how inputs and results are nested."""

    def __init__(self, program: ExportedProgram, options: Mapping[str, Any]) -> None:
        _check_sizes(program)
        self.memory = memory_of(_tensors_of(program), options)
        with _capture.tracing(self.memory.device):
            program = program.run_decompositions(_decompose.table())
        _check_outputs(program)
        module = _capture.for_compiler(program.graph_module)
        self._in_spec, self._out_spec = program.call_spec.in_spec, program.call_spec.out_spec
        copies: dict[Any, Tensor] = {}
        #: Per argument of the compiled function a weight, or the place of an input.
        self._sources: list[Tensor | int] = []
        #: Per input its tensor without data, or the constant that it was exported with.
        self._inputs: list[Any] = []
        names = []
        for node, spec in zip(_capture.placeholders(module), program.graph_signature.input_specs):
            value = node.meta["val"]
            if spec.kind == InputKind.USER_INPUT:
                self._inputs.append(value if not isinstance(spec.arg, ConstantArgument) else spec.arg.value)
            if not isinstance(value, Tensor) or not node.users:
                module.graph.erase_node(node)
                continue
            if spec.kind == InputKind.USER_INPUT:
                self._sources.append(len(self._inputs) - 1)
                names.append(node.name)
            else:
                weight = _weight(program, spec.target)
                self._sources.append(copies.setdefault(weight, self.memory.put(weight.detach().clone(memory_format=torch.contiguous_format))))
                names.append(spec.target)
        module.recompile()
        self._results = _capture.values_of(program.graph_module)
        self.line = _import.first_line([module])
        self.memory.check_results(self._results, self.line)
        self.text = _import.to_linalg({"main": module}, {"main": names})

    @property
    def results(self) -> list[Any]:
        """Per result its tensor without data, or a constant."""
        return self._results

    def arguments(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> list[Tensor]:
        """The tensors of a call, in the order of the compiled function's arguments."""
        try:
            leaves, spec = _pytree.tree_flatten((tuple(arguments), reorder_kwargs(dict(named), self._in_spec)))
        except ValueError as error:
            raise TypeError(str(error)) from None
        if spec != self._in_spec:
            raise TypeError(f"the program was exported for inputs {self._in_spec}, not {spec}")
        for place, (leaf, wanted) in enumerate(zip(leaves, self._inputs)):
            _check_input(place, leaf, wanted)
        return [leaves[source] if isinstance(source, int) else source for source in self._sources]

    def arguments_of_weights(self) -> list[Tensor]:
        """As `arguments`, where inputs are not needed."""
        return [source if isinstance(source, Tensor) else torch.empty(0) for source in self._sources]

    def unflatten(self, results: list[Any]) -> Any:
        return _pytree.tree_unflatten(results, self._out_spec)


def _for_calibration(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by which scales come from the larger of two amaxes: that of a call, and one before.

    A tensor's scale is its own until its first amax is known, unless the user chose another start.

    >>> _for_calibration({"recipe": "delayed"})
    {'recipe': 'delayed', 'amax_history_len': 2, 'amax_compute_algo': 'max', 'init': 'current'}
    >>> _for_calibration({"recipe": "#fp8.delayed_scaling<margin = 1, amax_history_len = 1>"})
    {'recipe': '#fp8.delayed_scaling<margin = 1, amax_history_len = 2, amax_compute_algo = max, init = current>'}
    """
    found = {name: recipes.to_text(options[name]) for name in ("recipe", "fprop", "dgrad", "wgrad") if name in options}
    pairs = _options.site_recipes(options.get("site_recipe"))
    is_word = "delayed" in [*found.values(), *(recipe for _, recipe in pairs)]
    changed: dict[str, Any] = {name: _with_two_amaxes(text) for name, text in found.items()}
    if pairs:
        changed["site_recipe"] = [f"{pattern}={_with_two_amaxes(recipe)}" for pattern, recipe in pairs]
    return {**changed, **_TWO_AMAXES, "init": options.get("init", "current")} if is_word else changed


_TWO_AMAXES: dict[str, Any] = {"amax_history_len": 2, "amax_compute_algo": "max"}


def _with_two_amaxes(recipe: str) -> str:
    """A recipe whose attributes of delayed scaling have these fields."""

    def changed(found: re.Match[str]) -> str:
        fields = dict(re.split(" *= *", field.strip(), maxsplit=1) for field in (found[1] or "").split(",") if "=" in field)
        fields = {"init": "current", **fields, **_TWO_AMAXES}
        fields["init"] = fields.pop("init")  # The compiler's order.
        return f"#fp8.delayed_scaling<{', '.join(f'{name} = {value}' for name, value in fields.items())}>"

    return re.sub(r"#fp8\.delayed_scaling(?:<([^<>]*)>)?", changed, recipe)


def _as_call(inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and the named arguments of one entry of `calibration`."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return (inputs if isinstance(inputs, tuple) else tuple(inputs) if isinstance(inputs, list) else (inputs,)), {}


def _tensors_of(program: ExportedProgram) -> Iterator[tuple[str, Tensor, Location | None]]:
    """The program's inputs and weights, and what it makes elsewhere."""
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    for node in program.graph.nodes:
        if isinstance(value := node.meta.get("val"), Tensor):
            name = specs[node.name].target or node.name if node.name in specs else "a result of this line"
            yield name, value, _import.user_line(node)


def _weight(program: ExportedProgram, name: str) -> Tensor:
    """A parameter, buffer or constant of the program."""
    found = program.state_dict.get(name)
    return found if found is not None else program.constants[name]


def _check_input(place: int, value: Any, wanted: Any) -> None:
    if not isinstance(wanted, Tensor):
        if isinstance(value, Tensor) or value != wanted:
            raise ValueError(f"input {place} is {value!r}; the program was exported for {wanted!r}")
        return
    if not isinstance(value, Tensor):
        raise TypeError(f"input {place} is of type {type(value).__name__}, not a tensor")
    if value.shape != wanted.shape or value.dtype != wanted.dtype:
        raise ValueError(
            f"input {place} is {value.dtype} of shape {tuple(value.shape)}; the program was exported for {wanted.dtype} of shape {tuple(wanted.shape)}"
        )
    if value.device != wanted.device:
        raise ValueError(f"input {place} lies on {value.device}; the program was exported for {wanted.device}: move it there")


def _check_sizes(program: ExportedProgram) -> None:
    for node in program.graph.nodes:
        value = node.meta.get("val")
        sizes = value.shape if isinstance(value, Tensor) else [value]
        if node.op != "placeholder" and any(isinstance(size, torch.SymInt) for size in sizes):
            message = "the program has dynamic sizes: export it without dynamic_shapes, once for each size that is needed"
            raise UnsupportedError(message, _import.user_line(node))


_CHANGES = {
    OutputKind.BUFFER_MUTATION: "changes the buffer '{}': call model.eval() before torch.export.export, or return the new value",
    OutputKind.USER_INPUT_MUTATION: "changes the input '{}': let it return the new value",
    OutputKind.PARAMETER_MUTATION: "changes the parameter '{}': return the new value",
}
_GRADIENTS = {OutputKind.LOSS_OUTPUT, OutputKind.GRADIENT_TO_PARAMETER, OutputKind.GRADIENT_TO_USER_INPUT}


def _check_outputs(program: ExportedProgram) -> None:
    """Raises UnsupportedError for what inference has not: changes of tensors, gradients, random numbers."""
    for spec, value in zip(program.graph_signature.output_specs, _capture.output_of(program.graph_module).args[0]):
        line = _import.user_line(value) if isinstance(value, Node) else None
        if spec.kind in _GRADIENTS:
            raise UnsupportedError("the program computes gradients: fp8.torch.train_step and fp8.torch.backend train", line)
        if spec.kind in _CHANGES:
            raise UnsupportedError("the program " + _CHANGES[spec.kind].format(spec.target), line)
    for node in _capture.random_nodes(program.graph_module):
        message = f"'{node.target}' draws random numbers: call model.eval() before torch.export.export, or make them an input"
        raise UnsupportedError(message, _import.user_line(node))
