# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and conditionals of StableHLO as operations of scf, on jaxlib's own IR.

Loops that count become scf.for, which bufferizes in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

_EQUAL = 0  # arith.cmpi predicate eq


class Builder:
    """Creates operations before another one, at its location."""

    def __init__(self, op: Any, before: Any = None) -> None:
        self.location = op.location
        self.point: Any = op.point if isinstance(op, Builder) else ir.InsertionPoint(before or op)

    def within(self, block: ir.Block) -> Builder:
        """One that creates operations at the end of a block, at the same location."""
        builder = Builder(self)
        builder.point = ir.InsertionPoint(block)
        return builder

    def op(self, name: str, types: Sequence[ir.Type], operands: Sequence[Any], **more: Any) -> Any:
        return ir.Operation.create(name, types, operands, loc=self.location, ip=self.point, **more)

    def value(self, name: str, type: ir.Type, *operands: Any, **attributes: Any) -> Any:
        return self.op(name, [type], operands, attributes=attributes).result

    def scalar(self, tensor: Any) -> Any:
        """The element of a tensor of rank 0."""
        return self.value("tensor.extract", tensor_type(tensor).element_type, tensor)

    def index(self, tensor: Any) -> Any:
        return self.value("arith.index_cast", ir.IndexType.get(), self.scalar(tensor))

    def index_constant(self, value: int) -> Any:
        index = ir.IndexType.get()
        return self.value("arith.constant", index, value=ir.IntegerAttr.get(index, value))


def tensor_type(value: Any) -> ir.RankedTensorType:
    return ir.RankedTensorType(value.type)


def is_empty(value: Any) -> bool:
    return 0 in tensor_type(value).shape


def _terminator(block: ir.Block) -> Any:
    return block.operations[len(block.operations) - 1]


def replace(op: Any, values: Sequence[Any]) -> None:
    for result, value in zip(op.results, values):
        result.replace_all_uses_with(value)
    op.erase()


def _take_blocks(source: ir.Region, target: ir.Region) -> ir.Block:
    while len(source.blocks):
        source.blocks[0].append_to(target)
    return target.blocks[0]


def _end_with_yield(block: ir.Block) -> None:
    end = _terminator(block)
    Builder(end).op("scf.yield", [], list(end.operands))
    end.operation.erase()


# Loops


def to_scf_loop(op: Any) -> None:
    counter = _counter(op)
    if counter is None:
        _to_scf_while(op)
    else:
        _to_scf_for(op, *counter)


def _to_scf_while(op: Any) -> None:
    loop = Builder(op).op("scf.while", [r.type for r in op.results], list(op.operands), regions=2)
    condition = _take_blocks(op.regions[0], loop.regions[0])
    end = _terminator(condition)
    build = Builder(op, before=end)
    build.op("scf.condition", [], [build.scalar(end.operands[0]), *condition.arguments])
    end.operation.erase()
    _end_with_yield(_take_blocks(op.regions[1], loop.regions[1]))
    replace(op, loop.results)


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
    element = tensor_type(counter).element_type
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
    build = Builder(op)
    type = tensor_type(op.operands[number])
    rest = [i for i in range(len(op.operands)) if i != number]
    carried = [op.operands[i] for i in rest]
    first, last = build.index(op.operands[number]), build.index(limit)
    bounds = [first, last, build.index_constant(1)]
    loop = build.op("scf.for", [c.type for c in carried], [*bounds, *carried], regions=1)

    types = [ir.IndexType.get(), *(c.type for c in carried)]
    block = loop.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    inside = Builder(op)
    inside.point = ir.InsertionPoint(block)
    counter = _counter_tensor(inside, block.arguments[0], type)
    end = inside.op("scf.yield", [], [])
    old = op.regions[1].blocks[0]
    for inner in list(old.operations)[:-1]:
        inner.move_before(end)
    for i, argument in enumerate(old.arguments):
        argument.replace_all_uses_with(counter if i == number else block.arguments[1 + rest.index(i)])
    results = _terminator(old).operands
    Builder(op, before=end).op("scf.yield", [], [results[i] for i in rest])
    end.erase()

    final = _counter_tensor(build, build.value("arith.maxsi", ir.IndexType.get(), first, last), type)
    values = list(loop.results)
    values.insert(number, final)
    replace(op, values)


def _counter_tensor(build: Builder, index: Any, type: ir.RankedTensorType) -> Any:
    scalar = build.value("arith.index_cast", type.element_type, index)
    return build.value("tensor.from_elements", type, scalar)


# Conditionals


def to_scf_if(op: Any) -> None:
    _if_by(op, Builder(op).scalar(op.operands[0]))


def to_scf_switch(op: Any) -> None:
    """The branches 0, 1, …; any other number takes the last."""
    build = Builder(op)
    number = build.scalar(op.operands[0])
    if len(op.regions) == 1:
        return _inline_only_branch(op)
    if len(op.regions) == 2:
        zero = build.value("arith.constant", number.type, value=ir.IntegerAttr.get(number.type, 0))
        return _if_by(op, _compare(build, _EQUAL, number, zero))
    index = build.value("arith.index_cast", ir.IndexType.get(), number)
    cases = ir.DenseI64ArrayAttr.get(list(range(len(op.regions) - 1)))
    _to_branches(op, "scf.index_switch", index, [op.regions[len(op.regions) - 1], *list(op.regions)[:-1]], cases=cases)


def _inline_only_branch(op: Any) -> None:
    block = op.regions[0].blocks[0]
    values = list(_terminator(block).operands)
    for inner in list(block.operations)[:-1]:
        inner.move_before(op)
    replace(op, values)


def _if_by(op: Any, condition: Any) -> None:
    _to_branches(op, "scf.if", condition, list(op.regions))


def _to_branches(op: Any, name: str, selector: Any, regions: list[ir.Region], **attributes: Any) -> None:
    types = [r.type for r in op.results]
    new = Builder(op).op(name, types, [selector], regions=len(regions), attributes=attributes)
    for source, target in zip(regions, new.regions):
        _end_with_yield(_take_blocks(source, target))
    replace(op, new.results)


def _compare(build: Builder, predicate: int, a: Any, b: Any) -> Any:
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return build.value("arith.cmpi", ir.IntegerType.get_signless(1), a, b, predicate=attribute)
