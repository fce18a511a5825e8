# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A whole training step in one library: loss, gradients, and the update of the user's own optimizer.

Parameters, buffers and the optimizer's state stay where they are: the compiled step updates their
memory in place.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx.traceback
from torch import Tensor, nn
from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx

from .. import _compile
from .._errors import Location, StateError, UnsupportedError
from .._library import Library
from .._report import Report
from . import _capture, _decompose, _import, _optimizer
from ._casts import Casts, pointers
from ._model import Loss, Numbers
from ._run import check_devices, row_major
from ._state import State, States


def train_step(
    model: nn.Module,
    loss: Callable[..., Tensor] | None,
    optimizer: torch.optim.Optimizer,
    recipe: Any = "delayed",
    autocast: torch.dtype | None = None,
    **options: Any,
) -> TrainStep:
    """A function `step(*inputs, target) -> loss` that computes a training step and updates the model.

        step = fp8.torch.train_step(model, F.cross_entropy, optimizer, autocast=torch.bfloat16)
        for x, y in data:
            loss = step(x, y)
            scheduler.step()

    `loss(model(*inputs), target)` is a scalar; where `loss` is None the model returns it. The
    optimizer is any of torch.optim; learning rates are read at every call. The other options are
    those of `fp8.compile`.
    """
    return TrainStep(model, loss, optimizer, recipe, autocast, **options)


class TrainStep:
    """What `train_step` returns.

    A new combination of the shapes of a batch, of the optimizer's options, of the modules' modes (train, eval), of the
    model's tensors (other objects or types, frozen or not) and of the numbers and texts that are attributes of its
    modules, also in lists and dicts, is compiled when it first occurs. Other attributes are those that it had then.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[..., Tensor] | None,
        optimizer: torch.optim.Optimizer,
        recipe: Any = "delayed",
        autocast: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(f"the model is of type {type(model).__name__}: train_step takes a torch.nn.Module")
        _optimizer.check(optimizer)
        self.model, self.optimizer = model, optimizer
        self.recipe, self.options = recipe, options
        self.states = States()
        self._module = Loss(model, loss, autocast)
        self._built: dict[Any, _Compiled] = {}
        self._last: _Compiled | None = None
        self._numbers = Numbers(self._module)

    def __call__(self, *batch: Tensor) -> Tensor:
        """Raises UnsupportedError or CompileError when it compiles, RunError if the call fails."""
        options = tuple(tuple((k, _hashable(v)) for k, v in g.items() if k not in ("params", "lr")) for g in self.optimizer.param_groups)
        key = (tuple((tuple(t.shape), t.dtype) for t in batch), options, self._module.kind(), self._numbers.values())
        step = self._built.get(key)
        if step is None:
            self._numbers.note_compilation()
            check_devices([*batch, *self.model.parameters()])
            step = self._built[key] = _Compiled(self, batch)
        self._last = step
        # A scheduler looks at this mark to find that it is called after the optimizer.
        self.optimizer._opt_called = True
        return step(batch)

    @property
    def library(self) -> Library:
        """The library of the last call. Raises RuntimeError before the first."""
        if self._last is None:
            raise RuntimeError("the step is not compiled yet: call it first")
        return self._last.library

    @property
    def state(self) -> State | None:
        """The FP8 state; None for a recipe without, or before the first call."""
        return self.states._modules.get("0")  # type: ignore[no-any-return]

    def report(self) -> Report:
        """What became of every product of the last call."""
        return self.library.report

    def ir(self, stage: str) -> str:
        """The IR of the last call after a stage of the compiler."""
        return self.library.ir(stage)

    def state_dict(self) -> dict[str, Tensor]:
        """The FP8 state, with keys as `0.scale`; the model's and the optimizer's own have the rest."""
        return dict(self.states.state_dict())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Loads what `state_dict` gave, also before the first call. Raises StateError."""
        self.states.load_state_dict(state)

    def attach(self, module: nn.Module | None = None) -> None:
        """Makes the FP8 state part of the `state_dict` of the model, or of another module."""
        (module or self.model).fp8_state = self.states

    def __repr__(self) -> str:
        return f"<fp8.torch.TrainStep {type(self.model).__name__}: {len(self._built)} compiled>"

    def state_for(self, library: Library) -> State | None:
        """The state, made for the first library; another one must have the same columns."""
        new = State(library)
        if "scale" not in dict(new.named_buffers()):
            return None
        if self.state is None:
            self.states.add(new)
        elif not torch.equal(self.state.layout_hash, new.layout_hash):
            raise StateError("this combination of shapes quantizes other tensors than the first: use a train_step of its own")
        return self.state


@dataclass
class _Slot:
    """A tensor that a step updates: a parameter, a buffer, or (key) an entry of a parameter's optimizer state."""

    name: str
    tensor: Tensor
    key: str | None = None


class _Compiled:
    """The step for one combination of shapes."""

    def __init__(self, owner: TrainStep, batch: Sequence[Tensor]) -> None:
        self._optimizer = owner.optimizer
        graph, self._slots, self._constants = _capture_step(owner, batch)
        self._draws = _capture.draw_outside(graph)
        names = [slot.name for slot in self._slots] + [f"lr{i}" for i in range(len(owner.optimizer.param_groups))]
        names += [name for name, _ in self._constants] + [f"batch{i}" for i in range(len(batch))]
        names += [f"random{i}" for i in range(len(self._draws))]
        carry = {i: i for i in range(len(self._slots))}
        text = _import.to_linalg({"main": graph}, {"main": names})
        self.library = _compile.compile(text, **{**owner.options, "recipe": owner.recipe, "carry": carry})
        self._prepared = self.library.prepare("main")
        loss = _capture.values_of(graph)[len(self._slots)]
        self._loss = tuple(loss.shape), loss.dtype
        self._state = owner.state_for(self.library)
        self._state_names = [a["name"] for a in self._prepared.arguments if a["kind"] == "state"]
        self._casts = Casts(self.library, "main")

    def __call__(self, batch: Sequence[Tensor]) -> Tensor:
        state = self._optimizer.state
        # load_state_dict of a state that was saved before the first step removes all of it.
        missing = {slot.tensor for slot in self._slots if slot.key is not None and not state[slot.tensor]}
        if missing:
            _optimizer.write_state(self._optimizer, _optimizer.initial_state(self._optimizer, list(missing)))
        updated = [slot.tensor if slot.key is None else state[slot.tensor][slot.key] for slot in self._slots]
        if not all(t.is_contiguous() for t in updated):
            raise UnsupportedError("a tensor that the step updates is not contiguous: call .contiguous() for it")
        rates = [torch.as_tensor(group["lr"], dtype=torch.float32) for group in self._optimizer.param_groups]
        held = [*updated, *rates, *(row_major(t) for t in [*(t for _, t in self._constants), *batch]), *(draw() for draw in self._draws)]
        self._casts.update(held, self._state)
        arguments = [t.data_ptr() for t in held] + pointers(self._state_names, self._state, self._casts)
        loss = torch.empty(self._loss[0], dtype=self._loss[1])
        results = [loss.data_ptr() if r.get("alias") is None else 0 for r in self._prepared.results]
        try:
            self._prepared.call(arguments, results)
        finally:
            torch.autograd.graph.increment_version([*updated, *(self._state.buffers() if self._state is not None else ())])
        self._casts.note(held, self._state)
        return loss


def _capture_step(owner: TrainStep, batch: Sequence[Tensor]) -> tuple[GraphModule, list[_Slot], list[tuple[str, Tensor]]]:
    """The graph of a step, what it updates, and the parameters and buffers that it only reads."""
    with _capture.attributes_as_buffers(owner._module):
        joint = _capture_joint(owner._module, batch)
        _refuse_replaced(joint, owner._module)
        owner._numbers.warn_of_changes()
        tensors = {**dict(owner._module.named_parameters(remove_duplicate=False)), **dict(owner._module.named_buffers(remove_duplicate=False))}
    roles = [node.meta["desc"] for node in _capture.placeholders(joint)]
    results = list(_capture.output_of(joint).args[0])
    meanings = _capture.output_of(joint).meta["desc"]

    # A tied weight is an argument for each of its names, with a part of the gradient each.
    trained: dict[Tensor, str] = {}
    gradients: dict[Tensor, list[int]] = {}
    mutated = {}
    for place, (meaning, result) in enumerate(zip(meanings, results)):
        target = getattr(getattr(meaning, "grad_of", None), "target", None)
        if target is not None and isinstance(result, Node):
            trained.setdefault(tensors[target], target)
            gradients.setdefault(tensors[target], []).append(place)
        changed = getattr(getattr(meaning, "mutated_input", None), "target", None)
        if changed is not None:
            mutated[changed] = place
    loss = next(i for i, m in enumerate(meanings) if type(m).__name__ == "PlainAOTOutput")

    groups = [[p for p in group["params"] if p in trained] for group in owner.optimizer.param_groups]
    parameters = [p for group in groups for p in group]
    state = _optimizer.initial_state(owner.optimizer, parameters)
    slots = [_Slot(_short(trained[p]), p) for p in parameters]
    slots += [_Slot(f"{key}.{_short(trained[p])}", p, key) for p in parameters for key in state[p]]
    slots += [_Slot(_short(name), tensors[name]) for name in mutated]
    update = _optimizer.trace_update(owner.optimizer, groups, state)

    places = {slot.tensor: i for i, slot in enumerate(slots) if slot.key is None}
    read = {tensors[r.target]: _short(r.target) for r in roles if hasattr(r, "target") and tensors[r.target] not in places}
    constants = [(name, tensor) for tensor, name in read.items()]
    rates, first_constant = len(slots), len(slots) + len(groups)
    first_batch = first_constant + len(constants)
    places.update({tensor: first_constant + i for i, tensor in enumerate(read)})

    def step(*values: Tensor) -> list[Tensor]:
        arguments = []
        for role in roles:
            if hasattr(role, "target"):
                arguments.append(values[places[tensors[role.target]]])
            elif hasattr(role, "idx"):
                arguments.append(values[first_batch + role.idx])
            else:
                arguments.append(torch.ones((), dtype=results[loss].meta["val"].dtype))
        outputs = _KeepNames(joint).run(*arguments)
        grads = [functools.reduce(torch.add, [outputs[place] for place in gradients[p]]) for p in parameters]
        state_end = len(slots) - len(mutated)
        new = update(*values[: len(parameters)], *grads, *values[len(parameters) : state_end], *values[rates:first_constant])
        return [*new, *(outputs[place] for place in mutated.values()), outputs[loss]]

    examples = [_optimizer.example(s.tensor if s.key is None else state[s.tensor][s.key]) for s in slots]
    examples += [torch.tensor(1e-3) for _ in groups] + [_optimizer.example(t) for _, t in constants] + [_optimizer.example(t) for t in batch]
    with _optimizer.compiling(), torch.no_grad(), torch.fx.traceback.preserve_node_meta():
        graph = make_fx(step, tracing_mode="fake", decomposition_table=_decompose.table())(*examples)
    graph.graph.eliminate_dead_code()
    _optimizer.write_state(owner.optimizer, state)
    return graph, slots, constants


def _capture_joint(module: nn.Module, batch: Sequence[Tensor]) -> GraphModule:
    """Loss and gradients as one functional graph, with module paths in the nodes."""
    with (
        contextlib.ExitStack() as stack,
        _named_modules(module),
        torch.fx.traceback.preserve_node_meta(),
        _capture.tracing(),
        _capture.known_tensors(),
        _optimizer.compiling(),
    ):
        joint = aot_export_joint_with_descriptors(stack, module, tuple(batch), decompositions=_decompose.table()).graph_module
    joint.graph.set_codegen(torch.fx.graph.CodeGen())
    joint.recompile()
    return joint


def _refuse_replaced(joint: GraphModule, module: Loss) -> None:
    """Raises UnsupportedError for a buffer that forward reads and replaces: the next step would read the old one."""
    for node in _capture.placeholders(joint):
        name = getattr(node.meta["desc"], "target", None)
        if name in module.replaced and node.users:
            forward = inspect.unwrap(type(module.get_submodule(name.rpartition(".")[0])).forward)
            message = f"forward reads '{_short(name)}' and puts another tensor in its place: change it in place, by add_ or copy_"
            raise UnsupportedError(message, Location(forward.__code__.co_filename, forward.__code__.co_firstlineno, 1))


@contextlib.contextmanager
def _named_modules(root: nn.Module) -> Iterator[None]:
    """Nodes that are traced in a module's forward get its path; autograd copies it to those of the gradient."""
    modules = [(name, module, vars(module).get("forward")) for name, module in root.named_modules() if name]
    for name, module, _ in modules:
        module.forward = _annotated(module.forward, _short(name))
    try:
        yield
    finally:
        for _, module, own in modules:
            del module.forward
            if own is not None:
                module.forward = own


def _annotated(forward: Callable[..., Any], path: str) -> Callable[..., Any]:
    def under_path(*arguments: Any, **options: Any) -> Any:
        with torch.fx.traceback.annotate({"module": path}):
            return forward(*arguments, **options)

    under_path.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    return under_path


class _KeepNames(Interpreter):  # type: ignore[misc]
    """Runs a graph so that what is traced keeps the nodes' module paths and lines."""

    def run_node(self, node: Node) -> Any:
        with torch.fx.traceback.set_current_meta(node):
            return super().run_node(node)


def _short(name: str) -> str:
    """A name without the wrapper around the model."""
    return "" if name == "model" else name.removeprefix("model.")


def _hashable(value: Any) -> Any:
    if isinstance(value, Tensor):
        return weakref.ref(value)
    return tuple(value) if isinstance(value, list) else value
