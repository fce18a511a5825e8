# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparisons of constants with numbers of another kind.

torch-mlir computes them itself (`torch.zeros(3) == 0`), and reads the bits of a float as an integer where the number is
one, so both sides are given one kind. Comparisons of other tensors stay: beside a float it would compare in f64.
"""

from __future__ import annotations

import re

import torch
from torch import Tensor
from torch.fx import Graph, Node

from ._integers import cast_node

aten = torch.ops.aten
_COMPARISONS = {op.Scalar for op in (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge)}


def of_one_kind(graph: Graph) -> None:
    """Makes integers floats beside constants of floats, and constants of integers f32 beside floats, as PyTorch does."""
    constants: set[Node] = set()
    for node in graph.nodes:
        if _is_constant(node, constants):
            constants.add(node)
        if node.target in _COMPARISONS and node.args[0] in constants:
            _give_one_kind(graph, node)


def _is_constant(node: Node, constants: set[Node]) -> bool:
    """Whether the elements of a node depend on no argument of the graph."""
    if node.op != "call_function":
        return bool(node.op == "get_attr")
    by_size = re.search(r"_like$|^new_", getattr(getattr(node.target, "overloadpacket", None), "__name__", ""))
    return bool(by_size) or all(other in constants for other in node.all_input_nodes)


def _give_one_kind(graph: Graph, node: Node) -> None:
    tensor, number = node.args
    value = tensor.meta.get("val")
    if not isinstance(value, Tensor) or value.is_complex():
        return
    if value.is_floating_point() and isinstance(number, int):
        node.args = tensor, float(number)
    elif not value.is_floating_point() and isinstance(number, float):
        with graph.inserting_before(node):
            node.args = cast_node(graph, tensor, torch.get_default_dtype()), number
