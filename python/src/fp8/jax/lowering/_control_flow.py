# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and conditionals of StableHLO as operations of scf, on jaxlib's own IR.

Of loops that count the compiler makes scf.for (fp8-count-loops).
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


def to_scf_while(op: Any) -> None:
    loop = Builder(op).op("scf.while", [r.type for r in op.results], list(op.operands), regions=2)
    condition = _take_blocks(op.regions[0], loop.regions[0])
    end = _terminator(condition)
    build = Builder(op, before=end)
    build.op("scf.condition", [], [build.scalar(end.operands[0]), *condition.arguments])
    end.operation.erase()
    _end_with_yield(_take_blocks(op.regions[1], loop.regions[1]))
    replace(op, loop.results)


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
