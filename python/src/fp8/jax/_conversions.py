# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions of floating-point numbers to integers as XLA makes them: a number outside of the type becomes the end that is nearer, NaN 0.

In the dialect arith, to which jaxlib lowers them, the result of such a number is any. FP8 numbers are compared in f32, as
for conversions to bool: the compiler compares f16, bf16 and wider ones.
"""

from __future__ import annotations

import math
from typing import Any

from jaxlib.mlir import ir

#: Comparisons of arith.cmpf.
_AT_LEAST, _LESS, _UNORDERED = 3, 4, 14
#: Bits of the narrowest type that is compared as it is.
_COMPARED = 16


def saturate(module: ir.Module) -> None:
    """Gives every conversion in the module a result for all numbers, and widens comparisons; call it with the module's context entered."""
    found: list[Any] = []

    def collect(op: Any) -> ir.WalkResult:
        if op.name in ("arith.fptosi", "arith.fptoui", "arith.cmpf"):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for op in found:
        _widen(op)
        if op.name != "arith.cmpf":
            _saturate(op, op.name == "arith.fptosi")


def _widen(op: Any) -> None:
    """Makes FP8 operands f32, which has all of their numbers."""
    for place, number in enumerate(op.operands):
        if ir.FloatType(number.type).width < _COMPARED:
            wide = ir.Operation.create("arith.extf", [ir.F32Type.get()], [number], loc=op.location, ip=ir.InsertionPoint(op))
            op.operands[place] = wide.results[0]


def _saturate(op: Any, is_signed: bool) -> None:
    number, converted = op.operands[0], op.results[0]
    uses = [(use.owner, use.operand_number) for use in converted.uses]
    block = [inner.operation for inner in op.block.operations]
    at = ir.InsertionPoint(block[block.index(op) + 1])  # A terminator follows.

    def create(name: str, type: ir.Type, operands: list[Any], **attributes: Any) -> Any:
        return ir.Operation.create(name, [type], operands, attributes, loc=op.location, ip=at).results[0]

    def choose(predicate: int, other: Any, value: int, otherwise: Any) -> Any:
        """`value` where the number compares so with the other, else `otherwise`."""
        kind = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
        condition = create("arith.cmpf", ir.IntegerType.get_signless(1), [number, other], predicate=kind)
        chosen = create("arith.constant", converted.type, [], value=ir.IntegerAttr.get(converted.type, value))
        return create("arith.select", converted.type, [condition, chosen, otherwise])

    def bound(value: float) -> Any:
        if number.type == ir.F16Type.get() and abs(value) > 65504:
            value = math.copysign(math.inf, value)
        return create("arith.constant", number.type, [], value=ir.FloatAttr.get(number.type, value, loc=op.location))

    width = ir.IntegerType(converted.type).width
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1)) if is_signed else (0, 2**width)
    all_ones = high - 1 if is_signed else -1
    result = choose(_UNORDERED, number, 0, converted)
    result = choose(_LESS, bound(low), low, result)
    result = choose(_AT_LEAST, bound(high), all_ones, result)
    for owner, place in uses:
        owner.operands[place] = result
