# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of torch.nn.functional and torch whose gradients have no decomposition, written out: autograd finds them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._decomp.decompositions import grid_sampler_2d

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(x: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Any:
    if mode not in _MODES or padding_mode not in _PADDINGS or x.dim() not in (4, 5) or (x.dim() == 5 and (mode, padding_mode) != ("bilinear", "zeros")):
        return NotImplemented
    if x.dim() == 4:
        return grid_sampler_2d(x, grid, _MODES.index(mode), _PADDINGS.index(padding_mode), bool(align_corners))
    return _trilinear(x, grid, bool(align_corners))


def _trilinear(x: Tensor, grid: Tensor, align_corners: bool) -> Tensor:
    """The sum over the eight neighbours, with weights; those outside count as zero."""
    sizes = x.shape[2:]
    places = [_place(grid[..., 2 - d], sizes[d], align_corners) for d in range(3)]
    batch = torch.arange(x.shape[0]).reshape(-1, 1, 1, 1)
    total = None
    for corner in itertools.product((0, 1), repeat=3):
        at = [place.floor() + step for place, step in zip(places, corner)]
        weight = torch.ones((), dtype=x.dtype)
        inside = torch.ones((), dtype=torch.bool)
        for place, neighbour, size in zip(places, at, sizes):
            weight = weight * (1 - (place - neighbour).abs())
            inside = inside & (neighbour >= 0) & (neighbour < size)
        index = [torch.where(inside, neighbour, 0).long() for neighbour in at]
        # [batch, places, channels]
        values = x.movedim(1, -1)[(batch, *index)]
        term = values * torch.where(inside, weight, 0).unsqueeze(-1)
        total = term if total is None else total + term
    assert total is not None
    return total.movedim(-1, 1)


def _place(coordinate: Tensor, size: int, align_corners: bool) -> Tensor:
    """A coordinate from -1 to 1 in elements."""
    return (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2


def embedding_bag(
    tokens: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Rows of the table, then their sum, mean or maximum over each bag; an empty bag is 0."""
    if max_norm is not None or sparse or weight.dtype in (torch.uint8,):
        return NotImplemented
    counts = torch.ones(tokens.shape, dtype=torch.bool) if padding_idx is None else tokens != padding_idx % weight.shape[0]
    rows = F.embedding(tokens, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq)
    if mode == "max":
        return _maxima(rows, counts) if tokens.dim() == 2 else NotImplemented
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    rows = torch.where(counts.unsqueeze(-1), rows, 0)
    if tokens.dim() == 2:
        sums, numbers = rows.sum(1), counts.sum(1)
    else:
        assert offsets is not None
        bags = offsets.shape[0] - include_last_offset
        bag = torch.searchsorted(offsets[:bags].contiguous(), torch.arange(tokens.shape[0]), right=True) - 1
        sums = rows.new_zeros(bags, rows.shape[-1]).index_add(0, bag, rows)
        numbers = torch.zeros(bags, dtype=torch.int64).index_add(0, bag, counts.long())
    return sums if mode == "sum" else sums / numbers.clamp(min=1).unsqueeze(-1).to(sums.dtype)


def _maxima(rows: Tensor, counts: Tensor) -> Tensor:
    found = torch.where(counts.unsqueeze(-1), rows, -torch.inf).max(1).values
    return torch.where(counts.any(1, keepdim=True), found, 0)


def cdist(x: Tensor, y: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Any:
    """The norm of all differences, where PyTorch does not take a product for it."""
    product = compute_mode == "use_mm_for_euclid_dist" or (compute_mode == "use_mm_for_euclid_dist_if_necessary" and max(x.shape[-2], y.shape[-2]) > 25)
    if p == 2 and product:
        return NotImplemented
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)


def pdist(x: Tensor, p: float = 2) -> Tensor:
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1)
    return torch.linalg.vector_norm(x[first] - x[second], p, -1)


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Elements of the source in their order, where the mask is true."""
    mask, x = torch.broadcast_tensors(mask, x)
    flat = mask.reshape(-1)
    place = (flat.long().cumsum(0) - 1).clamp(min=0)
    return torch.where(mask, source.reshape(-1)[place].reshape(x.shape), x)


#: By the function that users call; each returns NotImplemented for what it leaves to PyTorch.
RULES: dict[Any, Callable[..., Any]] = {
    F.grid_sample: grid_sample,
    F.embedding_bag: embedding_bag,
    torch.cdist: cdist,
    F.pdist: pdist,
    torch.masked_scatter: masked_scatter,
    Tensor.masked_scatter: masked_scatter,
}
