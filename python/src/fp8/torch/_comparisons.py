# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparisons of tensors with numbers of another kind.

torch-mlir computes those of constants (`torch.zeros(3) == 0`) itself, and reads the bits of a float as an integer
where the number is one, so both sides are given one kind.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Graph

from ._integers import cast_node

aten = torch.ops.aten
_COMPARISONS = {op.Scalar for op in (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge)}


def of_one_kind(graph: Graph) -> None:
    """Makes integers floats beside tensors of floats, and tensors of integers f32 beside floats, as PyTorch does."""
    for node in graph.nodes:
        if node.target not in _COMPARISONS or not isinstance(value := node.args[0].meta.get("val"), Tensor):
            continue
        tensor, number = node.args
        if value.is_floating_point() and isinstance(number, int):
            node.args = tensor, float(number)
        elif not value.is_floating_point() and not value.is_complex() and isinstance(number, float):
            with graph.inserting_before(node):
                node.args = cast_node(graph, tensor, torch.get_default_dtype()), number
