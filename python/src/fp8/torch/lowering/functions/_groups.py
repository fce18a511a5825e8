# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups of rows (mixtures of experts), written as the compiler knows them.

Row t is of group g where start[g] <= t < end[g], and each start is the end before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _rows_of_groups(x: Tensor, ends: Tensor) -> Tensor:
    """[group, row, column], with zeros in the rows of other groups."""
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    row = torch.arange(x.shape[0], device=x.device, dtype=ends.dtype)
    mask = (starts[:, None] <= row) & (row < ends[:, None])
    return torch.where(mask[:, :, None], x, torch.zeros((), dtype=x.dtype))


def product(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """Each group's rows times its own matrix: [S, K] x [G, K, N]."""
    groups, k, n = weight.shape
    rows = _rows_of_groups(x, ends).permute(1, 0, 2).reshape(x.shape[0], groups * k)
    return rows @ weight.reshape(groups * k, n)


def product_backward(x: Tensor, weight: Tensor, ends: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    rows, gradients = _rows_of_groups(x, ends), _rows_of_groups(grad, ends)
    return product(grad, weight.transpose(1, 2), ends), torch.bmm(rows.transpose(1, 2), gradients)


def _grouped_mm(x: Tensor, weight: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: torch.dtype | None = None) -> Tensor:
    """torch.nn.functional.grouped_mm: rows in groups times matrices, or both in groups along the contracted dimension."""
    if offs is None or bias is not None or out_dtype not in (None, x.dtype):
        return NotImplemented
    if x.dim() == 2 and weight.dim() == 3:
        return product(x, weight, offs)
    if x.dim() == 2 and weight.dim() == 2:
        return torch.bmm(_rows_of_groups(x.t(), offs).transpose(1, 2), _rows_of_groups(weight, offs))
    return NotImplemented


RULES: dict[Any, Callable[..., Any]] = {torch.ops.aten._grouped_mm.default: _grouped_mm}
