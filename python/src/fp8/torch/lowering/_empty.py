# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors without elements, which torch-mlir's passes divide by the sizes of.

Such results become constants. An operation on such tensors alone has a constant result too (a sum of nothing is 0),
which PyTorch computes; others leave them out (a concatenation) or change nothing by them (a write at no places).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Graph, Node
from torch.utils import _pytree

aten = torch.ops.aten

#: Operations whose result is their first operand where another one has no elements.
_WRITES = {
    aten.as_strided_scatter, aten.diagonal_scatter, aten.index_add, aten.index_copy, aten.index_fill, aten.index_put, aten.index_reduce,
    aten.masked_scatter, aten.put, aten.scatter, aten.scatter_add, aten.scatter_reduce, aten.select_scatter, aten.slice_scatter,
    aten._unsafe_index_put,
}  # fmt: skip


def kept(rules: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The decompositions, which leave operations on tensors without elements alone to `fold`."""
    return {op: _kept(rule) for op, rule in rules.items()}


def _kept(rule: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def chosen(*arguments: Any, **options: Any) -> Any:
        tensors = [value for value in _pytree.tree_leaves((arguments, options)) if isinstance(value, Tensor)]
        return NotImplemented if _are_empty(tensors) else rule(*arguments, **options)

    return chosen


def _are_empty(tensors: Sequence[Tensor]) -> bool:
    return bool(tensors) and all(isinstance(size, int) for t in tensors for size in t.shape) and not any(t.numel() for t in tensors)


def fold(graph: Graph) -> None:
    """Puts constants in the place of results without elements, and of those that come from nothing else."""
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if _is_empty(node):
            _replace(graph, node, 0)
        elif isinstance(node.target, OpOverload) and any(map(_is_empty, node.all_input_nodes)):
            _without_empty(graph, node)
    graph.eliminate_dead_code()


def _without_empty(graph: Graph, node: Node) -> None:
    """An operation that has elements as its result, and an operand that has none."""
    operation = node.target.overloadpacket
    if operation is aten.cat:
        node.args = [part for part in node.args[0] if not _is_empty(part)], *node.args[1:]
    elif operation in _WRITES:
        node.replace_all_uses_with(node.args[0])
    elif all(map(_is_empty, node.all_input_nodes)):
        _compute(graph, node)
    elif operation is aten.convolution_backward and _is_empty(node.args[0]):
        for result in list(node.users):
            _replace(graph, result, 0)


def _compute(graph: Graph, node: Node) -> None:
    """Puts what PyTorch computes in the place of the results that are full of one number."""

    def without_elements(value: Any) -> Any:
        return torch.empty(value.meta["val"].shape, dtype=value.meta["val"].dtype) if isinstance(value, Node) else value

    with unset_fake_temporarily():
        arguments, options = _pytree.tree_map(without_elements, (node.args, node.kwargs))
        results = node.target(*arguments, **options)
    for place in [node] if isinstance(results, Tensor) else list(node.users):
        if _is_empty(place):
            continue  # Its turn comes.
        result = results if place is node else results[place.args[1]]
        with unset_fake_temporarily():
            number = result.reshape(-1)[0].item()
            is_full = torch.equal(result, torch.full_like(result, number)) or bool(result.isnan().all())
        if is_full:
            _replace(graph, place, number)


def _replace(graph: Graph, node: Node, number: float) -> None:
    value = node.meta["val"]
    with graph.inserting_before(node):
        # torch-mlir makes no tensor of unsigned bytes full of a number.
        arguments = (aten.full.default, (list(value.shape), number)) if value.numel() else (aten.empty.memory_format, (list(value.shape),))
        full = graph.call_function(*arguments, {"dtype": value.dtype})
    full.meta = dict(node.meta)
    node.replace_all_uses_with(full)


def _is_empty(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and _are_empty([value])
