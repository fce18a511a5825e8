# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operations on bf16 and f16 as PyTorch computes them: in f32, rounded once.

torch-mlir writes some as several operations, each rounded to the tensor's type (sigmoid: exp, a sum and a quotient), and
gives a factor the type of the tensor beside it, where eager PyTorch multiplies by 0.1 and not by the nearest bf16.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, Node
from torch.utils import _pytree

from ... import _dtypes
from ._integers import cast_back, cast_node, set_value, value_of

aten = torch.ops.aten
HALVES = (torch.bfloat16, torch.float16)

#: Their results are elements of their operands, or exact; numbers get the tensor's type in eager PyTorch too.
_EXACT = {
    aten.abs, aten.clamp, aten.clamp_max, aten.clamp_min, aten.clone, aten.copy, aten.fill, aten.fmax, aten.fmin, aten.hardtanh, aten.masked_fill,
    aten.maximum, aten.minimum, aten.nan_to_num, aten.neg, aten.relu, aten.sgn, aten.sign, aten.threshold, aten.where, aten._to_copy,
    torch.ops.prims.convert_element_type,
}  # fmt: skip

#: One operation in machine code: rounded once, whatever the type.
_SINGLE = {aten.add, aten.div, aten.mul, aten.rsub, aten.sub, aten.sqrt}
#: Operations among them whose numbers stay in f32; sums round numbers to the tensor's type.
_FACTORS = {aten.div, aten.mul}


def widen(graph: Graph) -> None:
    """Lets elementwise operations whose result is bf16 or f16 work in f32, where that makes a difference, and casts their results back."""
    for node in list(graph.nodes):
        if _differs(node):
            dtype = node.meta["val"].dtype
            floats = [value for value in node.all_input_nodes if isinstance(value.meta.get("val"), Tensor) and value.meta["val"].dtype in HALVES]
            with graph.inserting_before(node):
                wide = {value: cast_node(graph, value, torch.float32) for value in floats}
            node.args, node.kwargs = _pytree.tree_map(lambda value: wide.get(value, value) if isinstance(value, Node) else value, (node.args, node.kwargs))  # noqa: B023
            if "alpha" in node.kwargs:
                node.kwargs = {**node.kwargs, "alpha": rounded(node.kwargs["alpha"], dtype)}
            set_value(node, value_of(node))
            cast_back(graph, node, dtype)


def _differs(node: Node) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, Tensor) or value.dtype not in HALVES or not isinstance(node.target, OpOverload):
        return False
    operation = node.target.overloadpacket
    if torch.Tag.pointwise not in node.target.tags or operation in _EXACT or node.target.is_view:
        return False
    finer = operation in _FACTORS and any(_is_finer(operand, value.dtype) for operand in node.args)
    return operation not in _SINGLE or finer or node.kwargs.get("alpha", 1) != 1


def _is_finer(operand: Any, dtype: torch.dtype) -> bool:
    """Whether the type of the result cannot hold a number, or has fewer bits than a tensor of one number."""
    if isinstance(operand, Node):
        value = operand.meta.get("val")
        return isinstance(value, Tensor) and value.dim() == 0 and value.dtype in (torch.float32, torch.float64)
    return isinstance(operand, (int, float)) and rounded(operand, dtype) != operand


def rounded(number: float, dtype: torch.dtype) -> float:
    """The number in the type of the tensors, as PyTorch has `alpha`; by numpy, since a tensor would become part of a graph that is captured."""
    with np.errstate(over="ignore"):
        return float(_dtypes.to_numpy("bf16" if dtype == torch.bfloat16 else "f16").type(np.float32(number)))


def in_f32(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition whose operations work in f32 on bf16 and f16, and whose results are rounded once."""

    @functools.wraps(rule)
    def wide(*arguments: Any, **options: Any) -> Any:
        found = [value for value in _pytree.tree_leaves((arguments, options)) if isinstance(value, Tensor) and value.dtype in HALVES]
        if not found:
            return rule(*arguments, **options)
        dtype = found[0].dtype
        arguments, options = _pytree.tree_map(lambda v: v.float() if isinstance(v, Tensor) and v.dtype in HALVES else v, (arguments, options))
        return _pytree.tree_map(lambda v: v.to(dtype) if isinstance(v, Tensor) and v.dtype == torch.float32 else v, rule(*arguments, **options))

    return wide
