# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts to and from FP8 that stand in the user's program, with the results of PyTorch.

PyTorch casts by way of f32, so that f64 is rounded twice, and lets E5M2 overflow to an infinity. fp8-compile rounds
once, and lets all casts to FP8 saturate, as recipes need it; in E4M3 both saturate.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from iree.compiler import ir
from torch import Tensor
from torch.fx import Graph

from . import _bits
from ._integers import CASTS, cast_node

FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
#: Comparisons of arith.cmpf.
_EQUAL_OR_LARGER, _EQUAL_OR_SMALLER = 3, 5
#: Halfway between the largest number of E5M2 and the next power of two, to which it is rounded.
_OVERFLOW = 61440.0


def through_f32(graph: Graph) -> None:
    """Lets casts to and from FP8 go by way of f32."""
    for node in graph.nodes:
        if node.target in CASTS and _bits.NUMBER not in node.meta and isinstance(value := node.args[0].meta.get("val"), Tensor):
            dtypes = value.dtype, node.meta["val"].dtype
            if any(dtype in FP8 for dtype in dtypes) and torch.float32 not in dtypes:
                with graph.inserting_before(node):
                    node.args = cast_node(graph, node.args[0], torch.float32), *node.args[1:]


def let_overflow(text: str) -> str:
    """The text of a module in which casts to E5M2 make an infinity of what is too large."""
    if "f8E5M2" not in text:
        return text
    with ir.Context():
        module = ir.Module.parse(text)
        found: list[Any] = []

        def collect(op: Any) -> Any:
            if op.name == "arith.truncf" and op.results[0].type == ir.Float8E5M2Type.get():
                found.append(op.operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(collect)
        for cast in found:
            _overflow(cast)
        return str(module.operation.get_asm(enable_debug_info=True))


def _overflow(cast: Any) -> None:
    operations = [op.operation for op in cast.block.operations]
    after = ir.InsertionPoint(operations[operations.index(cast) + 1])
    number, result = cast.operands[0], cast.results[0]
    uses = [(use.owner, use.operand_number) for use in result.uses]

    def create(name: str, type: Any, operands: list[Any], **attributes: Any) -> Any:
        return ir.Operation.create(name, [type], operands, attributes, loc=cast.location, ip=after).results[0]

    def constant(type: Any, value: float) -> Any:
        return create("arith.constant", type, [], value=ir.FloatAttr.get(type, value, loc=cast.location))

    i1, i64 = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)
    for predicate, sign in ((_EQUAL_OR_LARGER, 1), (_EQUAL_OR_SMALLER, -1)):
        limit, kind = constant(number.type, sign * _OVERFLOW), ir.IntegerAttr.get(i64, predicate)
        beyond = create("arith.cmpf", i1, [number, limit], predicate=kind)
        result = create("arith.select", result.type, [beyond, constant(result.type, sign * math.inf), result])
    for owner, place in uses:
        owner.operands[place] = result
