# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graph of a whole training step: loss, gradients, and the update of the user's own optimizer."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx.traceback
from torch import Tensor, nn
from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from .._errors import Location, UnsupportedError, warn
from . import _capture, _divided, _optimizer
from ._memory import Memory
from ._model import Loss, Numbers
from .lowering import _decompose, _import


@dataclass
class Slot:
    """A tensor that a step updates: a parameter, a buffer, or (key) an entry of a parameter's optimizer state."""

    name: str
    tensor: Tensor
    key: str | None = None


@dataclass
class Captured:
    """The graphs of a step, the tensors that it updates, and the parameters and buffers that it only reads, with their names.

    `graphs` has one, "main", of slots, learning rates, constants and batch; it returns new values of the slots, and the loss.
    Where ranks have parts of parameters there are two of whole tensors, which `lowering._collectives` joins: "backward", of the
    slots that are no state, constants and batch, returns gradients, new values of buffers, and the loss; "update" takes
    parameters, gradients, state and learning rates.
    """

    graphs: dict[str, GraphModule]
    slots: list[Slot]
    constants: list[tuple[str, Tensor]]
    #: The first slots are parameters, whose gradients are computed.
    num_parameters: int


def capture_step(module: Loss, numbers: Numbers, optimizer: torch.optim.Optimizer, batch: Sequence[Tensor], memory: Memory) -> Captured:
    """Captures the loss of the module, its gradients, and the optimizer's update."""
    with _capture.attributes_as_buffers(module):
        with _divided.whole(module, _optimizer.empty):
            joint = _capture_joint(module, batch, memory)
        _refuse_replaced(joint, module)
        numbers.warn_of_changes()
        tensors = {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}
    roles = [node.meta["desc"] for node in _capture.placeholders(joint)]
    results = list(_capture.output_of(joint).args[0])
    meanings = _capture.output_of(joint).meta["desc"]

    trained, gradients, mutated = _read_meanings(meanings, results, tensors)
    loss = next(i for i, m in enumerate(meanings) if type(m).__name__ == "PlainAOTOutput")

    groups = [[p for p in group["params"] if p in trained] for group in optimizer.param_groups]
    parameters = [p for group in groups for p in group]
    if not parameters:
        warn("the step trains nothing: the optimizer's parameters are frozen (requires_grad=False), or the loss does not depend on them")
    first = _optimizer.beginning(optimizer)
    state = _optimizer.initial_state(optimizer, parameters, memory)
    slots = [Slot(_short(trained[p]), p) for p in parameters]
    slots += [Slot(f"{key}.{_short(trained[p])}", p, key) for p in parameters for key in state[p]]
    slots += [Slot(_short(name), tensors[name]) for name in mutated]
    update = _optimizer.trace_update(optimizer, groups, state, first)

    plain = [i for i, slot in enumerate(slots) if slot.key is None]
    changed = {slots[i].tensor: None for i in plain}
    read = {tensors[r.target]: _short(r.target) for r in roles if hasattr(r, "target")}
    constants = [(name, tensor) for tensor, name in read.items() if tensor not in changed]
    of_module = [*changed, *(tensor for _, tensor in constants)]
    count, state_end = len(parameters), len(slots) - len(mutated)
    rates, first_constant = len(slots), len(slots) + len(groups)

    def backward(*values: Tensor) -> list[Tensor]:
        """Gradients, new values of buffers, and the loss, from the module's tensors and the batch."""
        known, given = dict(zip(of_module, values)), values[len(of_module) :]
        arguments = []
        for role in roles:
            if hasattr(role, "target"):
                arguments.append(known[tensors[role.target]])
            elif hasattr(role, "idx"):
                arguments.append(given[role.idx])
            else:
                arguments.append(torch.ones((), dtype=results[loss].meta["val"].dtype))
        outputs = _KeepNames(joint).run(*arguments)
        grads = [functools.reduce(torch.add, [outputs[place] for place in gradients[p]]) for p in parameters]
        return [*grads, *(outputs[place] for place in mutated.values()), outputs[loss]]

    def updated(*values: Tensor) -> list[Tensor]:
        # The compiler keeps products under this name in high precision.
        with torch.fx.traceback.annotate({_import.MODULE: f"update({type(optimizer).__name__})"}):
            return update(*values)

    def step(*values: Tensor) -> list[Tensor]:
        found = backward(*(values[i] for i in plain), *values[first_constant:])
        return [*updated(*values[:count], *found[:count], *values[count:state_end], *values[rates:first_constant]), *found[count:]]

    def trace(function: Callable[..., list[Tensor]], examples: Sequence[Tensor]) -> GraphModule:
        with _optimizer.compiling(), torch.no_grad(), torch.autocast(memory.device.type, enabled=False), torch.fx.traceback.preserve_node_meta():
            graph = make_fx(function, tracing_mode="fake", decomposition_table=_decompose.table())(*examples)
        graph.graph.eliminate_dead_code()
        return graph

    held = [_optimizer.example(s.tensor if s.key is None else state[s.tensor][s.key]) for s in slots]
    speeds, given = [_optimizer.empty((), torch.float32, torch.device("cpu")) for _ in groups], [_optimizer.example(t) for t in batch]
    if any(map(_divided.is_divided, of_module)):
        graphs = {
            "backward": trace(backward, [*(_optimizer.empty(t.shape, t.dtype, t.device) for t in of_module), *given]),
            "update": trace(updated, [*held[:count], *(_optimizer.example(p) for p in parameters), *held[count:state_end], *speeds]),
        }
    else:
        graphs = {"main": trace(step, [*held, *speeds, *(_optimizer.example(t) for _, t in constants), *given])}
    _optimizer.write_state(optimizer, state)
    return Captured(graphs, slots, constants, count)


def _read_meanings(meanings: Any, results: list[Any], tensors: Mapping[str, Tensor]) -> tuple[dict[Tensor, str], dict[Tensor, list[int]], dict[str, int]]:
    """The trained tensors with their names, the places of their gradients, and those of buffers that change.

    A tied weight is an argument for each of its names, with a part of the gradient each.
    """
    trained: dict[Tensor, str] = {}
    gradients: dict[Tensor, list[int]] = {}
    mutated: dict[str, int] = {}
    for place, (meaning, result) in enumerate(zip(meanings, results)):
        target = getattr(getattr(meaning, "grad_of", None), "target", None)
        if target is not None and isinstance(result, Node):
            trained.setdefault(tensors[target], target)
            gradients.setdefault(tensors[target], []).append(place)
        changed = getattr(getattr(meaning, "mutated_input", None), "target", None)
        if changed is not None:
            mutated[changed] = place
    return trained, gradients, mutated


def _capture_joint(module: nn.Module, batch: Sequence[Tensor], memory: Memory) -> GraphModule:
    """Loss and gradients as one functional graph, with module paths in the nodes."""
    with (
        contextlib.ExitStack() as stack,
        _named_modules(module),
        torch.fx.traceback.preserve_node_meta(),
        _Lines(),
        _Parameters(module),
        _capture.tracing(memory.device),
        module.on(memory.device.type),
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
        with torch.fx.traceback.annotate({_import.MODULE: path}):
            return forward(*arguments, **options)

    under_path.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    return under_path


class _Lines(TorchFunctionMode):  # type: ignore[misc]
    """Nodes get the line of the user's that calls torch's function; autograd copies it to those of the gradient."""

    def __torch_function__(self, function: Callable[..., Any], types: Any, arguments: Any = (), options: Any = None) -> Any:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith((*_import.OWN_FOLDERS, "<")):
            frame = frame.f_back  # type: ignore[assignment]
        place = {_import.LINE: (frame.f_code.co_filename, frame.f_lineno)} if frame is not None else {}
        with torch.fx.traceback.annotate(place):
            return function(*arguments, **(options or {}))


class _Parameters(TorchFunctionMode):  # type: ignore[misc]
    """Puts the stand-in of a parameter or buffer in its place while it is traced, also where code has the tensor from elsewhere,
    such as a list."""

    def __init__(self, root: nn.Module) -> None:
        super().__init__()
        modules = [(m, tensors) for m in root.modules() for tensors in (m._parameters, m._buffers)]
        self._places = {id(tensor): (tensors, name) for m, tensors in modules for name, tensor in tensors.items() if tensor is not None}

    def __torch_function__(self, function: Callable[..., Any], types: Any, arguments: Any = (), options: Any = None) -> Any:
        arguments, options = _pytree.tree_map_only(Tensor, self._traced, (arguments, options or {}))
        return function(*arguments, **options)

    def _traced(self, tensor: Tensor) -> Tensor:
        tensors, name = self._places.get(id(tensor), ({}, ""))
        return tensors.get(name, tensor)


class _KeepNames(Interpreter):  # type: ignore[misc]
    """Runs a graph so that what is traced keeps the nodes' module paths and lines."""

    def run_node(self, node: Node) -> Any:
        with torch.fx.traceback.set_current_meta(node):
            return super().run_node(node)


def _short(name: str) -> str:
    """A name without the wrapper around the model."""
    return "" if name == "model" else name.removeprefix("model.")
