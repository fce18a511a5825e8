# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO operations that jaxlib's pass to linalg leaves, refuses or lowers to what the compiler cannot do, rewritten on jaxlib's own IR.

Loops and conditionals become operations of scf. Slices and sums of nothing become constants, sums of FP8 are
taken in f32. Everything is done after inlining.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jaxlib.mlir import ir

from . import _dynamic
from ._control_flow import Builder, is_empty, replace, tensor_type, to_scf_if, to_scf_switch, to_scf_while


def load_dialects(context: ir.Context) -> None:
    """Loads the dialects of what is made here, as jaxlib does on first use."""
    for dialect in ("scf", "tensor", "arith", "cf"):
        context.dialects[dialect]


def rewrite(module: ir.Module) -> None:
    """Replaces every operation named in the table at the end of this file, innermost first."""
    found: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name in _REWRITES:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect, ir.WalkOrder.POST_ORDER)
    for op in found:
        _REWRITES[op.name](op)
    for function in module.body.operations:
        for attribute in ("arg_attrs", "res_attrs"):  # Shardings and names of results; nobody reads them.
            if attribute in function.attributes:
                del function.attributes[attribute]


# Operations on nothing, which jaxlib's passes leave or whose linalg form its verifiers refuse


def _reduce(op: Any) -> None:
    """Over no dimension: the operands. Of nothing: the initial values. Of FP8: in f32."""
    count = len(op.results)
    dimensions = ir.DenseI64ArrayAttr(op.attributes["dimensions"])
    if is_empty(op.operands[0]):
        none = ir.DenseI64ArrayAttr.get([])
        build = Builder(op)
        replace(op, [build.value("stablehlo.broadcast_in_dim", r.type, op.operands[count + i], broadcast_dimensions=none) for i, r in enumerate(op.results)])
    elif len(dimensions) == 0:
        replace(op, [op.operands[i] for i in range(count)])
    else:
        _sum_in_f32(op)


def _slice(op: Any) -> None:
    """An empty slice at the end has an offset that tensor.extract_slice refuses."""
    if is_empty(op.results[0]):
        replace(op, [_nothing(Builder(op), op.results[0].type)])


def _nothing(build: Builder, type: Any) -> Any:
    """A constant without elements. The bindings know none of complex numbers."""
    text = str(type)
    if (part := re.search(r"complex<(\w+)>", text)) is None:
        return build.value("stablehlo.constant", type, value=ir.Attribute.parse(f"dense<> : {text}"))
    parts = _nothing(build, ir.Type.parse(text.replace(part[0], part[1])))
    return build.value("stablehlo.complex", type, parts, parts)


def _concatenate(op: Any) -> None:
    parts = [o for o in op.operands if not is_empty(o)]
    if not parts or len(parts) == len(op.operands):
        return
    if len(parts) == 1:
        return replace(op, parts)
    type, dimension = op.results[0].type, op.attributes["dimension"]
    replace(op, [Builder(op).value("stablehlo.concatenate", type, *parts, dimension=dimension)])


def _pad(op: Any) -> None:
    """Nothing with elements around it: as many of the padding value."""
    if is_empty(op.operands[0]):
        none = ir.DenseI64ArrayAttr.get([])
        replace(op, [Builder(op).value("stablehlo.broadcast_in_dim", op.results[0].type, op.operands[1], broadcast_dimensions=none)])


# Operations that say something about XLA only


def _forward_operands(op: Any) -> None:
    replace(op, list(op.operands))


def _product(op: Any) -> None:
    """The compiler accumulates in f32 or better, whatever algorithm is asked for."""
    if "algorithm" in op.attributes:
        del op.attributes["algorithm"]
    _round_results(op)


def _custom_call(op: Any) -> None:
    """Where tensors lie on devices, and checks of sizes."""
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    if target in ("Sharding", "xla.sdy.FuncResultSharding") and [o.type for o in op.operands] == [r.type for r in op.results]:
        _forward_operands(op)
    elif target == "shape_assertion":
        _dynamic.assert_sizes(op)


# Comparisons by all bits


def _compare(op: Any) -> None:
    """Floats in total order: −NaN, …, −0, 0, …, NaN."""
    if "compare_type" not in op.attributes or "TOTALORDER" not in str(op.attributes["compare_type"]):
        return
    build = Builder(op)
    op.operands[0], op.operands[1] = (_in_order(build, o) for o in op.operands)
    op.attributes["compare_type"] = ir.Attribute.parse("#stablehlo<comparison_type SIGNED>")


def _in_order(build: Builder, number: Any) -> Any:
    """Integers in the order of floats. Constants are computed, since the shape may be dynamic."""
    bits = ir.IntegerType.get_signless(tensor_type(number).element_type.width)
    type = ir.RankedTensorType.get(tensor_type(number).shape, bits, loc=build.location)
    integer = build.value("stablehlo.bitcast_convert", type, number)
    zero = build.value("stablehlo.xor", type, integer, integer)
    all_ones = build.value("stablehlo.not", type, zero)
    one = build.value("stablehlo.negate", type, all_ones)
    largest = build.value("stablehlo.shift_right_logical", type, all_ones, one)
    truth = ir.RankedTensorType.get(tensor_type(number).shape, ir.IntegerType.get_signless(1), loc=build.location)
    is_negative = build.value("stablehlo.compare", truth, integer, zero, comparison_direction=ir.Attribute.parse("#stablehlo<comparison_direction LT>"))
    flipped = build.value("stablehlo.xor", type, integer, largest)
    return build.value("stablehlo.select", type, is_negative, flipped, integer)


# Sums of FP8, which XLA rounds once


def _sum_in_f32(op: Any) -> None:
    """A reduction or a reduction of windows of FP8, whose body computes in the type of its operands."""
    if not any(_is_fp8(value) for value in op.operands):
        return
    for number, value in enumerate(op.operands):
        if _is_fp8(value):
            op.operands[number] = Builder(op).value("stablehlo.convert", _f32_like(value), value)
    body = op.regions[0].blocks[0]
    for value in (*body.arguments, *(result for inner in body.operations for result in inner.operation.results)):
        if _is_fp8(value):
            value.set_type(_f32_like(value))
    _round_results(op)


def _round_results(op: Any) -> None:
    """Makes FP8 results f32, and casts them."""
    block = [inner.operation for inner in op.block.operations]
    for result in op.results:
        if _is_fp8(result):
            uses, narrow = [(use.owner, use.operand_number) for use in result.uses], result.type
            result.set_type(_f32_like(result))
            cast = Builder(op, before=block[block.index(op) + 1]).value("stablehlo.convert", narrow, result)
            for owner, number in uses:
                owner.operands[number] = cast


def _is_fp8(value: Any) -> bool:
    element = tensor_type(value).element_type
    return isinstance(element, ir.FloatType) and element.width == 8


def _f32_like(value: Any) -> ir.Type:
    with ir.Location.unknown():
        return ir.RankedTensorType.get(tensor_type(value).shape, ir.F32Type.get())


_REWRITES: dict[str, Callable[[Any], None]] = {
    "stablehlo.while": to_scf_while,
    "stablehlo.if": to_scf_if,
    "stablehlo.case": to_scf_switch,
    "stablehlo.reduce": _reduce,
    "stablehlo.slice": _slice,
    "stablehlo.pad": _pad,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.optimization_barrier": _forward_operands,
    "sdy.sharding_constraint": _forward_operands,
    "sdy.mesh": lambda op: op.erase(),
    "stablehlo.dot_general": _product,
    "stablehlo.convolution": _round_results,
    "stablehlo.reduce_window": _sum_in_f32,
    "stablehlo.compare": _compare,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.get_dimension_size": _dynamic.get_dimension_size,
    "stablehlo.dynamic_broadcast_in_dim": _dynamic.broadcast_in_dim,
    "stablehlo.dynamic_gather": _dynamic.gather,
    "stablehlo.dynamic_update_slice": _dynamic.update_slice,
    "stablehlo.dynamic_reshape": _dynamic.reshape,
}
