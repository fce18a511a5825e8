# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of torch.nn.functional and torch whose gradients have no decomposition, written out: autograd finds them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._decomp.decompositions import grid_sampler_2d

from .._halves import HALVES, in_f32

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(x: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Any:
    if mode not in _MODES or padding_mode not in _PADDINGS:
        return NotImplemented
    return grid_sampler(x, grid, _MODES.index(mode), _PADDINGS.index(padding_mode), bool(align_corners))


def grid_sampler(x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Any:
    if x.dim() == 4:
        return grid_sampler_2d(x, grid, mode, padding, align_corners)
    if x.dim() != 5 or mode > 1:
        return NotImplemented
    places = [_place(grid[..., 2 - d], x.shape[2 + d], padding, align_corners) for d in range(3)]
    corners = itertools.product((0, 1), repeat=3)
    if mode == 1:
        return _at(x, [place.round() for place in places]).movedim(-1, 1)
    terms = []
    for corner in corners:
        at = [place.floor() + step for place, step in zip(places, corner)]
        weight = functools.reduce(torch.mul, [1 - (place - neighbour).abs() for place, neighbour in zip(places, at)])
        terms.append(_at(x, at) * weight.unsqueeze(-1))
    return functools.reduce(torch.add, terms).movedim(-1, 1)


def _at(x: Tensor, places: Sequence[Tensor]) -> Tensor:
    """The elements at places along the last three dimensions, with channels last; 0 for places outside."""
    inside = functools.reduce(torch.logical_and, [(place >= 0) & (place < size) for place, size in zip(places, x.shape[2:])])
    batch = torch.arange(x.shape[0]).reshape(-1, 1, 1, 1)
    values = x.movedim(1, -1)[(batch, *[torch.where(inside, place, 0).long() for place in places])]
    return torch.where(inside.unsqueeze(-1), values, 0)


def _place(coordinate: Tensor, size: int, padding: int, align_corners: bool) -> Tensor:
    """A coordinate from -1 to 1 in elements, moved inside where the padding says so."""
    place = (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2
    if padding == 2:
        low, span = (0.0, size - 1) if align_corners else (-0.5, size)
        if not span:
            return torch.zeros_like(place)
        distance = (place - low).abs()
        flips, rest = (distance / span).floor(), distance.fmod(span)
        place = torch.where(flips % 2 == 0, rest + low, span - rest + low)
    return place.clamp(0, size - 1) if padding else place


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
    if rows.dtype in HALVES:
        rows = rows.float()
    if mode == "max":
        found = _maxima(rows, counts) if tokens.dim() == 2 else _maxima(*_by_bag(rows, counts, offsets, include_last_offset))
        return found.to(weight.dtype)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    rows = torch.where(counts.unsqueeze(-1), rows, 0)
    if tokens.dim() == 2:
        sums, numbers = rows.sum(1), counts.sum(1)
    else:
        bag, bags = _bags(tokens.shape[0], offsets, include_last_offset)
        sums = rows.new_zeros(bags, rows.shape[-1]).index_add(0, bag, rows)
        numbers = torch.zeros(bags, dtype=torch.int64).index_add(0, bag, counts.long())
    means = sums if mode == "sum" else sums / numbers.clamp(min=1).unsqueeze(-1).to(sums.dtype)
    return means.to(weight.dtype)


def _bags(count: int, offsets: Tensor | None, include_last_offset: bool) -> tuple[Tensor, int]:
    """The bag of each token, and how many there are."""
    assert offsets is not None
    bags = offsets.shape[0] - include_last_offset
    return torch.searchsorted(offsets[:bags].contiguous(), torch.arange(count), right=True) - 1, bags


def _by_bag(rows: Tensor, counts: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Tensor, Tensor]:
    """All rows for each bag, and which of them are in it."""
    bag, bags = _bags(rows.shape[0], offsets, include_last_offset)
    return rows.expand(bags, *rows.shape), counts & (bag == torch.arange(bags)[:, None])


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


#: The numbers that PyTorch begins a segment with.
_BEGIN = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


def segment_reduce(
    x: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    """Reductions of all elements for each segment, with those of other segments left out."""
    if indices is not None or (lengths is None) == (offsets is None):
        return NotImplemented
    begins, ends = (offsets[..., :-1], offsets[..., 1:]) if offsets is not None else (lengths.cumsum(-1) - lengths, lengths.cumsum(-1))  # type: ignore[union-attr]
    number = torch.arange(x.shape[axis])
    inside = (begins.unsqueeze(-1) <= number) & (number < ends.unsqueeze(-1))
    inside = inside.reshape(*inside.shape, *[1] * (x.dim() - axis - 1))
    begin = _BEGIN[reduce] if initial is None else float(initial)
    neutral = 0.0 if reduce in ("sum", "mean") else _BEGIN[reduce]
    values = torch.where(inside, x.unsqueeze(axis), neutral)
    if reduce in ("max", "min"):
        found = values.amax(axis + 1) if reduce == "max" else values.amin(axis + 1)
        return found.clamp(min=begin) if reduce == "max" else found.clamp(max=begin)
    if reduce == "prod":
        return values.prod(axis + 1) * begin
    sums = values.sum(axis + 1) + begin
    count = inside.sum(axis + 1)
    # A segment without elements has no mean, unless it begins with a number.
    return sums if reduce == "sum" else torch.where((count == 0) & (initial is not None), sums, sums / count)


def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """A choice between a tensor and x, whose gradient has a form."""
    if not isinstance(value, Tensor) or x.dim() == 0:
        return NotImplemented
    chosen = torch.zeros(x.shape[dim], dtype=torch.bool).index_fill(0, index.reshape(-1), True)
    return torch.where(chosen.reshape([-1 if d == dim % x.dim() else 1 for d in range(x.dim())]), value.to(x.dtype), x)


#: By the function that users call; each returns NotImplemented for what it leaves to PyTorch.
RULES: dict[Any, Callable[..., Any]] = {
    F.grid_sample: grid_sample,
    **{function: grid_sampler for function in (torch.grid_sampler, torch.grid_sampler_2d, torch.grid_sampler_3d)},
    torch.segment_reduce: in_f32(segment_reduce),
    **{function: index_fill for function in (torch.index_fill, Tensor.index_fill)},
    F.embedding_bag: embedding_bag,
    torch.cdist: cdist,
    F.pdist: pdist,
    torch.masked_scatter: masked_scatter,
    Tensor.masked_scatter: masked_scatter,
}
