# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The region of a scatter or scan of tm_tensor: how it makes one element of a new and an old one.

The region itself becomes the body of a `linalg.generic`, with all its operations and operands: the text of a loop has a
body that yields the new element, and `fill` puts the region in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iree.compiler import ir

from ..._errors import UnsupportedError

#: Marks the operations whose body `fill` replaces.
_MARK = "fp8.combines"


def combine(operation: Any, new: str, old: str, element: str, shape: Sequence[int]) -> tuple[str, str]:
    """The text that combines tensors `new` and `old` by the region of the operation, and the name of its result.

    Raises UnsupportedError for a region of other than plain arithmetic.
    """
    _check(operation)
    block = operation.regions[0].blocks[0]
    if _yielded(block) == block.arguments[0]:
        return "", new
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    one = f"affine_map<({dims}) -> ({dims})>"
    kinds = ", ".join('"parallel"' for _ in shape)
    tensor = f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"
    text = f"""%new = linalg.generic {{indexing_maps = [{one}, {one}], iterator_types = [{kinds}]}}
        ins({new} : {tensor}) outs({old} : {tensor}) attrs = {{{_MARK}}} {{
      ^bb0(%a: {element}, %b: {element}):
        linalg.yield %a : {element}
      }} -> {tensor}"""
    return text, "%new"


def fill(written: Any, operation: Any) -> None:
    """Gives the marked operations in a module of text that `combine` wrote the region of `operation`."""
    found: list[Any] = []

    def collect(op: Any) -> Any:
        if _MARK in op.attributes:
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    written.operation.walk(collect)
    for generic in found:
        del generic.attributes[_MARK]
        _copy(operation.regions[0].blocks[0], generic.regions[0].blocks[0])


def _check(operation: Any) -> None:
    block = operation.regions[0].blocks[0]
    inside = [*block.arguments, *(result for op in block.operations for result in op.operation.results)]
    for op in block.operations:
        name = op.operation.name
        is_plain = name.startswith(("arith.", "math.")) or name == "tm_tensor.yield"
        if not is_plain or any(value not in inside and not _is_constant(value) for value in op.operation.operands):
            raise UnsupportedError(f"'{operation.name}' combines elements by '{name}', which has no loop", notes=(str(operation.location),))


def _is_constant(value: Any) -> bool:
    return isinstance(value.owner, ir.OpView | ir.Operation) and value.owner.name == "arith.constant"


def _yielded(block: Any) -> Any:
    return list(block.operations)[-1].operation.operands[0]


def _copy(region: Any, body: Any) -> None:
    """Copies what the region computes, and constants around it that it reads, to the body, which yields the region's result."""
    end = list(body.operations)[-1].operation
    known = list(zip(region.arguments, body.arguments))

    def copied(value: Any) -> Any:
        for old, new in known:
            if old == value:
                return new
        return clone(value.owner).results[0]

    def clone(op: Any) -> Any:
        operands = [copied(operand) for operand in op.operation.operands]
        result = op.operation.clone(ip=ir.InsertionPoint(end))
        for place, operand in enumerate(operands):
            result.operands[place] = operand
        known.extend(zip(op.operation.results, result.results))
        return result

    *inside, _ = region.operations
    for op in inside:
        clone(op)
    end.operands[0] = copied(_yielded(region))
