# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers of fewer than 64 bits as PyTorch computes with them.

Operations on those of 8 bits run in 32 bits: torch-mlir reads unsigned ones as signed, and fails on some. Bits that
overflow are cut off when the result is cast back, as PyTorch cuts them off. A number beside a tensor takes the
tensor's type, by cutting off bits too: for int8, `x > 150` is `x > -106`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch.fx import Graph, Node
from torch.utils import _pytree

aten = torch.ops.aten

_SMALL = (torch.uint8, torch.int8)
_CAST = torch.ops.prims.convert_element_type.default
CASTS = (_CAST, aten._to_copy.default)
#: Types of integers by their bits, those that a wider operand is cut to, and wider ones.
_BITS = {torch.uint8: 8, torch.int8: 8, torch.int16: 16, torch.int32: 32}
_WIDER = {torch.int16: 16, torch.int32: 32, torch.int64: 64}
#: Numbers beside these become the nearest one of the type.
_LIMITS = (aten.clamp.default, aten.clamp_max.default, aten.clamp_min.default)
#: Casts; and what looks at the bits.
_AS_THEY_ARE = (*CASTS, aten.view.dtype)


def cut_numbers(graph: Graph) -> None:
    """Gives numbers, and tensors of one number, the type in which PyTorch computes beside larger tensors of integers."""
    for node in list(graph.nodes):
        if isinstance(node.target, OpOverload) and torch.Tag.pointwise in node.target.tags and isinstance(node.meta.get("val"), Tensor):
            dtype = _common_type(node)
            if dtype in _BITS and not node.meta["val"].is_floating_point():
                node.args = tuple(_cut(graph, node, value, dtype) for value in node.args)


def wrapped(number: int, dtype: torch.dtype) -> int:
    """The number without the bits that a type of integers does not have."""
    limits = torch.iinfo(dtype)
    return int((number - limits.min) % (1 << limits.bits) + limits.min)


def _common_type(node: Node) -> torch.dtype | None:
    """The type that the operands of an elementwise operation are cast to."""
    values = [value.meta["val"] if isinstance(value, Node) else value for value in node.args]
    operands = [value for value in values if isinstance(value, (Tensor, int, float)) and not isinstance(value, torch.SymInt)]
    if not any(isinstance(value, Tensor) for value in operands):
        return None
    return elementwise_dtypes(*operands, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[0]


def _cut(graph: Graph, node: Node, value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        lowest, highest = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        if node.target in _LIMITS:
            return max(lowest, min(value, highest))
        return wrapped(value, dtype)
    if isinstance(value, Node) and _type(value) in _WIDER and value.meta["val"].dim() == 0 and _BITS[dtype] < _WIDER[_type(value)]:
        with graph.inserting_before(node):
            return cast_node(graph, value, dtype)
    return value


def widen(graph: Graph) -> None:
    """Lets every operation on integers of 8 bits but casts and views work on those of 32, and casts its results back."""
    for node in list(graph.nodes):
        small = [value for value in node.all_input_nodes if _type(value) in _SMALL]
        if node.op != "call_function" or not small or node.target is operator.getitem:
            continue
        if node.target not in _AS_THEY_ARE and not getattr(node.target, "is_view", False):
            _widen(graph, node, small)


def _widen(graph: Graph, node: Node, small: list[Node]) -> None:
    with graph.inserting_before(node):
        wide = {value: cast_node(graph, value, torch.int32) for value in small}
    node.args, node.kwargs = _pytree.tree_map(lambda value: wide.get(value, value) if isinstance(value, Node) else value, (node.args, node.kwargs))
    before = set_value(node, value_of(node))
    if isinstance(before, Tensor):
        cast_back(graph, node, before.dtype)
    else:
        for user in list(node.users):
            before = set_value(user, node.meta["val"][user.args[1]])
            cast_back(graph, user, before.dtype)


def cast_back(graph: Graph, node: Node, dtype: torch.dtype) -> None:
    if _type(node) != dtype:
        users = list(node.users)
        with graph.inserting_after(node):
            cast = cast_node(graph, node, dtype)
        for user in users:
            user.replace_input_with(node, cast)


def cast_node(graph: Graph, node: Node, dtype: torch.dtype) -> Node:
    cast = graph.call_function(_CAST, (node, dtype))
    cast.meta = dict(node.meta)
    set_value(cast, node.meta["val"].to(dtype))
    return cast


def set_value(node: Node, value: Any) -> Any:
    """Says what a node's results are; returns what they were."""
    before, node.meta["val"] = node.meta["val"], value
    # torch-mlir would look there first.
    node.meta.pop("tensor_meta", None)
    return before


def value_of(node: Node) -> Any:
    """The results without data of an operation on arguments without data."""
    arguments, options = _pytree.tree_map(lambda value: value.meta["val"] if isinstance(value, Node) else value, (node.args, node.kwargs))
    return node.target(*arguments, **options)


def _type(node: Node) -> torch.dtype | None:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, Tensor) else None


def _reduced(op: Any, x: Tensor, *rest: Any, dtype: torch.dtype | None = None, **options: Any) -> Any:
    """Converts to the type of the result, then reduces, bool and 8 bits in 64: for 8 torch-mlir has no form, and true + true is false there."""
    is_small = dtype in (*_SMALL, torch.bool)
    if dtype is None or dtype.is_floating_point or dtype.is_complex or not (is_small or x.is_floating_point()):
        return NotImplemented
    return op(x.to(dtype), *rest, dtype=torch.int64 if is_small else dtype, **options).to(dtype)


def _copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Any:
    """Of another type as a cast and a copy: casts are PyTorch's (_conversions, _float8)."""
    return NotImplemented if source.dtype == x.dtype else aten.copy(x, source.to(x.dtype))


_REDUCTIONS = (aten.sum.default, aten.sum.dim_IntList, aten.prod.default, aten.prod.dim_int)
RULES: dict[Any, Callable[..., Any]] = {aten.copy.default: _copy, **{op: functools.partial(_reduced, op) for op in _REDUCTIONS}}
