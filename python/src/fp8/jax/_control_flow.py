# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO operations that jaxlib's pass to linalg leaves or refuses, rewritten on jaxlib's own IR.

Loops and conditionals become operations of scf, loops that count become scf.for (which bufferizes
in place). Slices and sums of nothing become constants, sums of FP8 are taken in f32. Everything is done after inlining.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir

_EQUAL = 0  # arith.cmpi predicate eq


def rewrite(module: ir.Module) -> None:
    """Replaces every operation named in the table at the end of this file, innermost first."""
    for dialect in ("scf", "tensor", "arith"):
        module.context.dialects[dialect]  # Loads the dialect, which jaxlib does on first use.
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


class _Builder:
    """Creates operations before another one, at its location."""

    def __init__(self, op: Any, before: Any = None) -> None:
        self.location, self.point = op.location, ir.InsertionPoint(before or op)

    def op(self, name: str, types: Sequence[ir.Type], operands: Sequence[Any], **more: Any) -> Any:
        return ir.Operation.create(name, types, operands, loc=self.location, ip=self.point, **more)

    def value(self, name: str, type: ir.Type, *operands: Any, **attributes: Any) -> Any:
        return self.op(name, [type], operands, attributes=attributes).result

    def scalar(self, tensor: Any) -> Any:
        """The element of a tensor of rank 0."""
        return self.value("tensor.extract", _type(tensor).element_type, tensor)

    def index(self, tensor: Any) -> Any:
        return self.value("arith.index_cast", ir.IndexType.get(), self.scalar(tensor))

    def index_constant(self, value: int) -> Any:
        index = ir.IndexType.get()
        return self.value("arith.constant", index, value=ir.IntegerAttr.get(index, value))


def _type(value: Any) -> ir.RankedTensorType:
    return ir.RankedTensorType(value.type)


def _is_empty(value: Any) -> bool:
    return 0 in _type(value).shape


def _terminator(block: ir.Block) -> Any:
    return block.operations[len(block.operations) - 1]


def _replace(op: Any, values: Sequence[Any]) -> None:
    for result, value in zip(op.results, values):
        result.replace_all_uses_with(value)
    op.erase()


def _take_blocks(source: ir.Region, target: ir.Region) -> ir.Block:
    while len(source.blocks):
        source.blocks[0].append_to(target)
    return target.blocks[0]


def _end_with_yield(block: ir.Block) -> None:
    end = _terminator(block)
    _Builder(end).op("scf.yield", [], list(end.operands))
    end.operation.erase()


# Loops


def _while(op: Any) -> None:
    counter = _counter(op)
    if counter is None:
        _to_scf_while(op)
    else:
        _to_scf_for(op, *counter)


def _to_scf_while(op: Any) -> None:
    loop = _Builder(op).op("scf.while", [r.type for r in op.results], list(op.operands), regions=2)
    condition = _take_blocks(op.regions[0], loop.regions[0])
    end = _terminator(condition)
    build = _Builder(op, before=end)
    build.op("scf.condition", [], [build.scalar(end.operands[0]), *condition.arguments])
    end.operation.erase()
    _end_with_yield(_take_blocks(op.regions[1], loop.regions[1]))
    _replace(op, loop.results)


def _counter(op: Any) -> tuple[int, Any] | None:
    """(number of the argument that counts, its limit) of `while (i < limit) { …; yield i + 1 }`, else None.

    The limit is a value that stands before the loop, or a constant, which is copied there.
    """
    condition, body = op.regions[0].blocks[0], op.regions[1].blocks[0]
    compare = _defining(_terminator(condition).operands[0], "stablehlo.compare")
    if compare is None or "LT" not in str(compare.attributes["comparison_direction"]):
        return None
    number = _argument_number(compare.operands[0], condition)
    if number is None or not _counts_up(body, number):
        return None
    limit = _limit(op, compare.operands[1])
    return None if limit is None else (number, limit)


def _counts_up(body: ir.Block, number: int) -> bool:
    counter = body.arguments[number]
    element = _type(counter).element_type
    if not isinstance(element, ir.IntegerType) or element.is_unsigned:
        return False
    add = _defining(_terminator(body).operands[number], "stablehlo.add")
    if add is None:
        return False
    a, b = add.operands
    return (a == counter and _constant(b) == 1) or (b == counter and _constant(a) == 1)


def _limit(op: Any, limit: Any) -> Any:
    condition, body = op.regions[0].blocks[0], op.regions[1].blocks[0]
    if _constant(limit) is not None:
        return _defining(limit, "stablehlo.constant").clone(ip=ir.InsertionPoint(op)).result
    number = _argument_number(limit, condition)
    if number is None:
        owner = limit.owner
        outside = isinstance(owner, ir.Block) or owner.operation.block != condition
        return limit if outside and owner != condition else None
    if _terminator(body).operands[number] != body.arguments[number]:
        return None  # The body changes the limit.
    return op.operands[number]


def _defining(value: Any, name: str) -> Any:
    owner = value.owner
    return None if isinstance(owner, ir.Block) or owner.name != name else owner


def _constant(value: Any) -> int | None:
    op = _defining(value, "stablehlo.constant")
    if op is None:
        return None
    elements = ir.DenseIntElementsAttr(op.attributes["value"])
    return int(elements[0]) if len(elements) == 1 else None


def _argument_number(value: Any, block: ir.Block) -> int | None:
    return next((i for i, argument in enumerate(block.arguments) if argument == value), None)


def _to_scf_for(op: Any, number: int, limit: Any) -> None:
    build = _Builder(op)
    type = _type(op.operands[number])
    rest = [i for i in range(len(op.operands)) if i != number]
    carried = [op.operands[i] for i in rest]
    first, last = build.index(op.operands[number]), build.index(limit)
    bounds = [first, last, build.index_constant(1)]
    loop = build.op("scf.for", [c.type for c in carried], [*bounds, *carried], regions=1)

    types = [ir.IndexType.get(), *(c.type for c in carried)]
    block = loop.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    inside = _Builder(op)
    inside.point = ir.InsertionPoint(block)
    counter = _counter_tensor(inside, block.arguments[0], type)
    end = inside.op("scf.yield", [], [])
    old = op.regions[1].blocks[0]
    for inner in list(old.operations)[:-1]:
        inner.move_before(end)
    for i, argument in enumerate(old.arguments):
        argument.replace_all_uses_with(counter if i == number else block.arguments[1 + rest.index(i)])
    results = _terminator(old).operands
    _Builder(op, before=end).op("scf.yield", [], [results[i] for i in rest])
    end.erase()

    final = _counter_tensor(build, build.value("arith.maxsi", ir.IndexType.get(), first, last), type)
    values = list(loop.results)
    values.insert(number, final)
    _replace(op, values)


def _counter_tensor(build: _Builder, index: Any, type: ir.RankedTensorType) -> Any:
    scalar = build.value("arith.index_cast", type.element_type, index)
    return build.value("tensor.from_elements", type, scalar)


# Conditionals


def _if(op: Any) -> None:
    _to_scf_if(op, _Builder(op).scalar(op.operands[0]))


def _case(op: Any) -> None:
    """The branches 0, 1, …; any other number takes the last."""
    build = _Builder(op)
    number = build.scalar(op.operands[0])
    if len(op.regions) == 1:
        return _inline_only_branch(op)
    if len(op.regions) == 2:
        zero = build.value("arith.constant", number.type, value=ir.IntegerAttr.get(number.type, 0))
        return _to_scf_if(op, _compare(build, _EQUAL, number, zero))
    index = build.value("arith.index_cast", ir.IndexType.get(), number)
    cases = ir.DenseI64ArrayAttr.get(list(range(len(op.regions) - 1)))
    _to_branches(op, "scf.index_switch", index, [op.regions[len(op.regions) - 1], *list(op.regions)[:-1]], cases=cases)


def _inline_only_branch(op: Any) -> None:
    block = op.regions[0].blocks[0]
    values = list(_terminator(block).operands)
    for inner in list(block.operations)[:-1]:
        inner.move_before(op)
    _replace(op, values)


def _to_scf_if(op: Any, condition: Any) -> None:
    _to_branches(op, "scf.if", condition, list(op.regions))


def _to_branches(op: Any, name: str, selector: Any, regions: list[ir.Region], **attributes: Any) -> None:
    types = [r.type for r in op.results]
    new = _Builder(op).op(name, types, [selector], regions=len(regions), attributes=attributes)
    for source, target in zip(regions, new.regions):
        _end_with_yield(_take_blocks(source, target))
    _replace(op, new.results)


def _compare(build: _Builder, predicate: int, a: Any, b: Any) -> Any:
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return build.value("arith.cmpi", ir.IntegerType.get_signless(1), a, b, predicate=attribute)


# Operations on nothing, which jaxlib's passes leave or whose linalg form its verifiers refuse


def _reduce(op: Any) -> None:
    """Over no dimension: the operands. Of nothing: the initial values. Of FP8: in f32."""
    count = len(op.results)
    dimensions = ir.DenseI64ArrayAttr(op.attributes["dimensions"])
    if _is_empty(op.operands[0]):
        none = ir.DenseI64ArrayAttr.get([])
        build = _Builder(op)
        _replace(op, [build.value("stablehlo.broadcast_in_dim", r.type, op.operands[count + i], broadcast_dimensions=none) for i, r in enumerate(op.results)])
    elif len(dimensions) == 0:
        _replace(op, [op.operands[i] for i in range(count)])
    else:
        _sum_in_f32(op)


def _slice(op: Any) -> None:
    """An empty slice at the end has an offset that tensor.extract_slice refuses."""
    if _is_empty(op.results[0]):
        _replace(op, [_nothing(_Builder(op), op.results[0].type)])


def _nothing(build: _Builder, type: Any) -> Any:
    """A constant without elements. The bindings know none of complex numbers."""
    text = str(type)
    if (part := re.search(r"complex<(\w+)>", text)) is None:
        return build.value("stablehlo.constant", type, value=ir.Attribute.parse(f"dense<> : {text}"))
    parts = _nothing(build, ir.Type.parse(text.replace(part[0], part[1])))
    return build.value("stablehlo.complex", type, parts, parts)


def _concatenate(op: Any) -> None:
    parts = [o for o in op.operands if not _is_empty(o)]
    if not parts or len(parts) == len(op.operands):
        return
    if len(parts) == 1:
        return _replace(op, parts)
    type, dimension = op.results[0].type, op.attributes["dimension"]
    _replace(op, [_Builder(op).value("stablehlo.concatenate", type, *parts, dimension=dimension)])


def _pad(op: Any) -> None:
    """Nothing with elements around it: as many of the padding value."""
    if _is_empty(op.operands[0]):
        none = ir.DenseI64ArrayAttr.get([])
        _replace(op, [_Builder(op).value("stablehlo.broadcast_in_dim", op.results[0].type, op.operands[1], broadcast_dimensions=none)])


# Operations that say something about XLA only


def _forward_operands(op: Any) -> None:
    _replace(op, list(op.operands))


def _product(op: Any) -> None:
    """The compiler accumulates in f32 or better, whatever algorithm is asked for."""
    if "algorithm" in op.attributes:
        del op.attributes["algorithm"]
    _round_results(op)


# Sums of FP8, which XLA rounds once


def _sum_in_f32(op: Any) -> None:
    """A reduction or a reduction of windows of FP8, whose body computes in the type of its operands."""
    if not any(_is_fp8(value) for value in op.operands):
        return
    for number, value in enumerate(op.operands):
        if _is_fp8(value):
            op.operands[number] = _Builder(op).value("stablehlo.convert", _f32_like(value), value)
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
            cast = _Builder(op, before=block[block.index(op) + 1]).value("stablehlo.convert", narrow, result)
            for owner, number in uses:
                owner.operands[number] = cast


def _is_fp8(value: Any) -> bool:
    element = _type(value).element_type
    return isinstance(element, ir.FloatType) and element.width == 8


def _f32_like(value: Any) -> ir.Type:
    with ir.Location.unknown():
        return ir.RankedTensorType.get(_type(value).shape, ir.F32Type.get())


_REWRITES: dict[str, Callable[[Any], None]] = {
    "stablehlo.while": _while,
    "stablehlo.if": _if,
    "stablehlo.case": _case,
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
}
