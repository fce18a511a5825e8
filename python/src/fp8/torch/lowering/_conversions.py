# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions of floats to integers, of numbers that the type of integers does not have too.

torch-mlir lowers them to the dialect arith, where the result of such a number is any: it would depend on the loop that
the compiler makes, and on the target. Here it is that of PyTorch on x86, everywhere: the lowest number of 32 bits for
what lies outside of them, and for NaN, of which smaller integers keep the lowest bits (300 becomes 44 as int8); the same
with 64 bits for int64, and for uint8 from f64.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from . import _bits
from ._integers import CASTS, cast_node, set_value, value_of

aten = torch.ops.aten

#: Types of integers that 32 bits are cut to, or are.
_FROM_32_BITS = (torch.int32, torch.int16, torch.int8, torch.uint8)


def define(graph: Graph) -> None:
    """Gives conversions to integers a result for all numbers."""
    for node in list(graph.nodes):
        if node.target in CASTS and _bits.NUMBER not in node.meta and _is_to_integers(node):
            _define(graph, node)


def _is_to_integers(node: Node) -> bool:
    before, after = node.args[0].meta.get("val"), node.meta["val"]
    return isinstance(before, Tensor) and before.is_floating_point() and after.dtype in (*_FROM_32_BITS, torch.int64)


def _define(graph: Graph, node: Node) -> None:
    number, dtype = node.args[0], node.meta["val"].dtype
    is_double = number.meta["val"].dtype == torch.float64
    # Numbers of f32 that 32 bits cannot hold end with eight zeros, as the lowest number of 32 bits does.
    middle = torch.int32 if dtype in _FROM_32_BITS and not (dtype == torch.uint8 and is_double) else torch.int64
    lowest = float(torch.iinfo(middle).min)

    def call(target: Any, *arguments: Any) -> Node:
        new = graph.call_function(target, arguments)
        new.meta = dict(node.meta)
        set_value(new, value_of(new))
        return new

    with graph.inserting_before(node):
        if not is_double:
            number = cast_node(graph, number, torch.float32)
        is_inside = call(aten.lt.Scalar, call(aten.abs.default, number), -lowest)
        whole = cast_node(graph, call(aten.where.ScalarOther, is_inside, number, lowest), middle)
        result = cast_node(graph, whole, dtype) if dtype != middle else whole
    node.replace_all_uses_with(result)
    graph.erase_node(node)
