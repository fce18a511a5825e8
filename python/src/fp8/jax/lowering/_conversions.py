# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions to integers and to FP8, and arithmetic of FP8, with the results that XLA gives them.

Jaxlib lowers them to the dialect arith, where the result of a number outside of an integer type is any, and where
fp8-compile lets casts to FP8 saturate, as recipes need it. XLA gives integers the end that is nearer, NaN 0, and FP8 an
infinity or NaN. The compiler computes with f16, bf16 and wider types; operations on FP8 are computed in f32 and rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

#: Comparisons of arith.cmpf.
_EQUAL_OR_LARGER, _LARGER, _EQUAL_OR_SMALLER, _LESS, _UNORDERED = 3, 2, 5, 4, 14
#: Bits of the narrowest type that is computed with as it is.
_COMPUTED = 16
_TO_INTEGER = ("arith.fptosi", "arith.fptoui")
#: Operations of the compiler on FP8 numbers as they are; casts to them are treated apart.
_ON_BYTES = ("arith.constant", "arith.select", "arith.bitcast", "arith.extf", "arith.truncf")
#: Operations with a body of arithmetic that is written out.
_WITH_BODY = ("linalg.generic", "linalg.reduce", "linalg.map")


def as_xla(module: ir.Module) -> None:
    """Gives conversions in the module XLA's results, and widens arithmetic of FP8; call it with the module's context entered."""
    found: list[Any] = []

    def collect(op: Any) -> ir.WalkResult:
        if op.name.startswith(("arith.", "math.")) and (_is_on_fp8(op) or op.name in _TO_INTEGER) and not _is_implied(op):
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for op in found:
        if op.name == "arith.truncf":
            _overflow(op)
        elif op.name not in _ON_BYTES:
            _widen(op)


def _is_fp8(type: Any) -> bool:
    return isinstance(type, ir.FloatType) and type.width < _COMPUTED


def _is_on_fp8(op: Any) -> bool:
    return any(_is_fp8(value.type) for value in (*op.operands, *op.results))


def _is_implied(op: Any) -> bool:
    """Whether the operation is in the body of one, such as linalg.matmul, whose body is not written out."""
    return op.parent.name.startswith("linalg.") and op.parent.name not in _WITH_BODY


class _Builder:
    """Creates operations of arith at the location of `op`: before it, or after it for its result."""

    def __init__(self, op: Any, after: bool = False) -> None:
        self._location = op.location
        block = [inner.operation for inner in op.block.operations]
        self._at = ir.InsertionPoint(block[block.index(op) + 1] if after else op)  # A terminator follows.

    def create(self, name: str, type: ir.Type, operands: Sequence[Any], **attributes: Any) -> Any:
        return ir.Operation.create(name, [type], operands, attributes, loc=self._location, ip=self._at).results[0]

    def constant(self, type: Any, value: Any) -> Any:
        make = ir.FloatAttr if isinstance(type, ir.FloatType) else ir.IntegerAttr
        more = dict(loc=self._location) if make is ir.FloatAttr else {}
        return self.create("arith.constant", type, [], value=make.get(type, value, **more))

    def choose(self, number: Any, predicate: int, other: Any, chosen: Any, otherwise: Any) -> Any:
        """`chosen` where the number compares so with the other, else `otherwise`."""
        kind = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
        condition = self.create("arith.cmpf", ir.IntegerType.get_signless(1), [number, other], predicate=kind)
        return self.create("arith.select", otherwise.type, [condition, self.constant(otherwise.type, chosen), otherwise])

    def bound(self, number: Any, value: float) -> Any:
        """A bound for a number in its type, in which f16 has no more than 65504."""
        if number.type == ir.F16Type.get() and abs(value) > 65504:
            value = math.copysign(math.inf, value)
        return self.constant(number.type, value)


def _widen(op: Any) -> None:
    """Computes an operation on FP8 in f32, which has all numbers of FP8, and rounds its result; one to integers gets all results."""
    for place, number in enumerate(op.operands):
        if _is_fp8(number.type):
            op.operands[place] = _Builder(op).create("arith.extf", ir.F32Type.get(), [number])
    if op.name in _TO_INTEGER:
        _saturate(op, op.name == "arith.fptosi")
    elif _is_fp8(op.results[0].type):
        build = _Builder(op)
        attributes = {name: op.attributes[name] for name in op.attributes}
        wide = build.create(op.name, ir.F32Type.get(), list(op.operands), **attributes)
        rounded = build.create("arith.truncf", op.results[0].type, [wide])
        op.results[0].replace_all_uses_with(rounded)
        op.erase()
        _overflow(rounded.owner.operation)


def _saturate(op: Any, is_signed: bool) -> None:
    """Gives a conversion to integers a result for all numbers."""
    number, converted = op.operands[0], op.results[0]
    width = ir.IntegerType(converted.type).width
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1)) if is_signed else (0, 2**width)
    all_ones = high - 1 if is_signed else -1
    build = _Builder(op, after=True)
    uses = _uses(converted)
    result = build.choose(number, _UNORDERED, number, 0, converted)
    result = build.choose(number, _LESS, build.bound(number, low), low, result)
    _redirect(uses, build.choose(number, _EQUAL_OR_LARGER, build.bound(number, high), all_ones, result))


def _overflow(op: Any) -> None:
    """Gives a cast to FP8, which saturates, XLA's result for what rounds to more than the largest number."""
    number, cast = op.operands[0], op.results[0]
    if cast.type == ir.Float8E4M3FNType.get():  # 464 is halfway to 480, and becomes the even 448.
        above, below, limit, beyond = _LARGER, _LESS, 464, math.nan
    elif cast.type == ir.Float8E5M2Type.get():  # Halfway to 65536, which is even.
        above, below, limit, beyond = _EQUAL_OR_LARGER, _EQUAL_OR_SMALLER, 61440, math.inf
    else:
        return
    build = _Builder(op, after=True)
    uses = _uses(cast)
    result = build.choose(number, above, build.bound(number, limit), beyond, cast)
    _redirect(uses, build.choose(number, below, build.bound(number, -limit), -beyond, result))


def _uses(value: Any) -> list[tuple[Any, int]]:
    return [(use.owner, use.operand_number) for use in value.uses]


def _redirect(uses: list[tuple[Any, int]], value: Any) -> None:
    for owner, place in uses:
        owner.operands[place] = value
