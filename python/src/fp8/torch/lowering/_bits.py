# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors seen as another type of the same size: `x.view(torch.uint8)` of FP8, `x.view(torch.int32)` of f32.

torch-mlir has no form for that. It gets casts, whose lines are marked, and the operations that it makes of them become
`arith.bitcast`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch
from iree.compiler import ir
from torch import Tensor
from torch.fx import Graph, Node

from ..._errors import UnsupportedError
from ._integers import cast_node

aten = torch.ops.aten

#: The annotation of a cast that stands for a view, and how its line begins.
NUMBER, _MARK = "fp8.bits", "bits of view "

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_CASTS = ("arith.fptosi", "arith.fptoui", "arith.sitofp", "arith.uitofp")


def mark_views(graph: Graph, first: int) -> int:
    """Puts marked casts in the place of views as another type of the same size. Returns how many there are, with `first` before."""
    marked: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.target is not aten.view.dtype or not isinstance(before := node.args[0].meta.get("val"), Tensor):
            continue
        after = node.meta["val"]
        if before.dtype.itemsize != after.dtype.itemsize or torch.bool in (before.dtype, after.dtype):
            continue
        result = node.args[0]
        with graph.inserting_before(node):
            for dtype in dict.fromkeys((_INTEGERS[after.dtype.itemsize], after.dtype)):
                same = (_same(result), dtype)
                if same not in marked:
                    marked[same] = cast_node(graph, result, dtype)
                    if result.meta["val"].dtype.is_floating_point or dtype.is_floating_point:
                        marked[same].meta[NUMBER] = first
                        first += 1
                result = marked[same]
        node.replace_all_uses_with(result)
        graph.erase_node(node)
    graph.eliminate_dead_code()
    return first


def _same(node: Node) -> Any:
    """A key that is equal for equal casts, of which torch-mlir would make one."""
    return (_same(node.args[0]), node.args[1]) if node.target is torch.ops.prims.convert_element_type.default else node


def mark(node: Node) -> str | None:
    """The beginning of the name of a node's line, if the node is such a cast."""
    return f"{_MARK}{node.meta[NUMBER]}" if NUMBER in node.meta else None


def take_bits(text: str, count: int) -> str:
    """The text of a module in which marked casts take the bits. Raises UnsupportedError unless all are there, once."""
    if not count:
        return text
    with ir.Context():
        module = ir.Module.parse(text)
        found: list[Any] = []

        def collect(op: Any) -> Any:
            if op.name in _CASTS and _MARK in str(op.location):
                found.append(op.operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(collect)
        numbers = sorted(_numbers(found))
        if numbers != list(range(count)):
            raise UnsupportedError("a view as another type has no form in linalg: torch-mlir has computed a cast in its place")
        for cast in found:
            with ir.InsertionPoint(cast), cast.location:
                bits = ir.Operation.create("arith.bitcast", [cast.results[0].type], list(cast.operands))
            cast.results[0].replace_all_uses_with(bits.results[0])
            cast.erase()
        return str(module.operation.get_asm(enable_debug_info=True))


def _numbers(casts: Iterable[Any]) -> list[int]:
    return [int(re.findall(rf"{_MARK}(\d+)", str(cast.location))[0]) for cast in casts]
