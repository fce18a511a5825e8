# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of medians, modes, histograms, and the places of elements that are not zero."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _median(x: Tensor) -> Tensor:
    return _median_of_dim(x.reshape(-1), 0)[0]


def _median_of_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smaller one of two in the middle; the first NaN where there is one."""
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64)
    return _at(x, dim, keepdim, lambda count, nans: torch.where(nans > 0, count - nans, (count - 1) // 2))


def _nanmedian(x: Tensor) -> Tensor:
    return _nanmedian_of_dim(x.reshape(-1), 0)[0]


def _nanmedian_of_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64)
    return _at(x, dim, keepdim, lambda count, nans: torch.div((count - 1 - nans).clamp(min=0), 2, rounding_mode="trunc"))


def _at(x: Tensor, dim: int, keepdim: bool, chosen: Callable[[int, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """The element at a place, and where it was, after a sort that has NaN at the end; the place is chosen by the number of NaN."""
    values, places = aten.sort.stable(x, stable=True, dim=dim)
    nans = x.isnan().sum(dim, keepdim=True) if x.is_floating_point() else torch.zeros_like(x.narrow(dim, 0, 1), dtype=torch.int64)
    at = chosen(x.shape[dim], nans)
    found = values.gather(dim, at), places.gather(dim, at)
    return found if keepdim else (found[0].squeeze(dim), found[1].squeeze(dim))


def _mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest of the values that most elements have, and the place of the last one that has it."""
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64)
    moved = x.movedim(dim, -1)
    counts = (moved.unsqueeze(-1) == moved.unsqueeze(-2)).sum(-1)
    is_most = counts == counts.amax(-1, keepdim=True)
    largest = moved.amax(-1, keepdim=True)
    value = torch.where(is_most, moved, largest).amin(-1, keepdim=True)
    is_value = (moved == value) | (moved.isnan() & value.isnan()) if x.is_floating_point() else moved == value
    place = torch.where(is_value, torch.arange(moved.shape[-1]), -1).amax(-1, keepdim=True)
    value, place = value.movedim(-1, dim), place.movedim(-1, dim)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def _nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Any:
    """The first places, found in the number of elements so far."""
    if x.dim() == 0 or size == 0:
        return torch.empty(size, x.dim(), dtype=torch.int64)
    so_far = (x != 0).reshape(-1).to(torch.int64).cumsum(0)
    number = torch.arange(size)
    flat = torch.searchsorted(so_far, number + 1)
    steps = [math.prod(x.shape[d + 1 :]) for d in range(x.dim())]
    places = [torch.div(flat, step, rounding_mode="floor") % count for step, count in zip(steps, x.shape)]
    return torch.where((number < so_far[-1]).unsqueeze(-1), torch.stack(places, -1), fill_value)


def _histogram(x: Tensor, edges: Tensor, *, weight: Tensor | None = None, density: bool = False) -> tuple[Tensor, Tensor]:
    return _histogramdd(x.reshape(-1, 1), [edges], weight=weight, density=density), edges


def _histogram_of_count(
    x: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,  # noqa: A002 - ATen's name
) -> tuple[Tensor, Tensor]:
    return _histogram(x, _edges(x.reshape(-1), bins, range), weight=weight, density=density)


def _edges(x: Tensor, bins: int, bounds: Sequence[float] | None) -> Tensor:
    """Bins of one width, from the smallest to the largest element where no bounds are given."""
    if bounds is not None:
        low, high = (torch.full((), float(bound), dtype=x.dtype) for bound in bounds)
    elif not x.numel():
        low, high = torch.zeros((), dtype=x.dtype), torch.ones((), dtype=x.dtype)
    else:
        low, high = x.amin(), x.amax()
    same = low == high
    low, high = torch.where(same, low - 0.5, low), torch.where(same, high + 0.5, high)
    number = torch.arange(bins + 1, dtype=x.dtype)
    step = (high - low) / bins
    # From both ends, as torch.linspace.
    return torch.where(number < (bins + 1) // 2, low + step * number, high - step * (bins - number))


def _histogramdd(x: Tensor, edges: Sequence[Tensor], *, weight: Tensor | None = None, density: bool = False) -> Tensor:
    """Sums of weights by bin, added in the order of the elements; the last bin has its right edge too."""
    x = x.reshape(-1, x.shape[-1])
    inside, place = torch.ones(x.shape[0], dtype=torch.bool), torch.zeros(x.shape[0], dtype=torch.int64)
    for d, of_dim in enumerate(edges):
        column, bins = x[:, d].contiguous(), of_dim.shape[0] - 1
        inside = inside & (column >= of_dim[0]) & (column <= of_dim[-1])
        place = place * bins + (torch.searchsorted(of_dim, column, right=True) - 1).clamp(0, bins - 1)
    weights = torch.ones(x.shape[0], dtype=x.dtype) if weight is None else weight.reshape(-1).to(x.dtype)
    shape = [of_dim.shape[0] - 1 for of_dim in edges]
    sums = torch.zeros(math.prod(shape), dtype=x.dtype).index_add(0, place, torch.where(inside, weights, 0)).reshape(shape)
    if density:
        sums = sums / sums.sum()
        for d, of_dim in enumerate(edges):
            sums = sums / (of_dim[1:] - of_dim[:-1]).reshape([-1 if d == other else 1 for other in range(len(edges))])
    return sums


def _histogramdd_edges(x: Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None, **_: Any) -> list[Tensor]:  # noqa: A002 - ATen's name
    x = x.reshape(-1, x.shape[-1])
    bounds = [list(range)[2 * d : 2 * d + 2] if range else None for d, _ in enumerate(bins)]
    return [_edges(x[:, d], count, of_dim) for d, (count, of_dim) in enumerate(zip(bins, bounds))]


def _histogramdd_of_counts(
    x: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,  # noqa: A002 - ATen's name
) -> Tensor:
    return _histogramdd(x, _histogramdd_edges(x, bins, range=range), weight=weight, density=density)


def _so_far(x: Tensor, dim: int, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """In steps of 1, 2, 4, …: after each one an element is combined with twice as many before it."""
    if x.dim() == 0:
        return x.clone()
    size, step = x.shape[dim], 1
    while step < size:
        combined = combine(x.narrow(dim, 0, size - step), x.narrow(dim, step, size - step))
        x = torch.cat([x.narrow(dim, 0, step), combined], dim)
        step *= 2
    return x


def _logcumsumexp(x: Tensor, dim: int) -> Any:
    if x.is_complex():
        return NotImplemented
    wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
    return _so_far(wide.clone(), dim, _log_of_sum).to(x.dtype)


def _log_of_sum(x: Tensor, y: Tensor) -> Tensor:
    largest = torch.maximum(x, y)
    # Infinite ones have no difference.
    return torch.where(largest.isinf(), largest, largest + (-(x - y).abs()).exp().log1p())


def _cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """Products of bf16 and f16 are taken in f32, those of small integers in i64, as in PyTorch; one element after the other."""
    result = dtype or (x.dtype if x.is_floating_point() or x.is_complex() else torch.int64)
    wide = torch.float32 if result in (torch.bfloat16, torch.float16) else result
    if dtype is None and x.dtype == wide:
        return NotImplemented
    return aten.cumprod.default(x.to(wide), dim).to(result)


def _all_of_dims(x: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    dims = sorted({d % x.dim() for d in (dim if dim is not None else range(x.dim()))}, reverse=True) if x.dim() else []
    return functools.reduce(lambda y, d: aten.all.dim(y, d, keepdim), dims, x != 0)


RULES: dict[Any, Callable[..., Any]] = {
    aten.median.default: _median,
    aten.median.dim: _median_of_dim,
    aten.nanmedian.default: _nanmedian,
    aten.nanmedian.dim: _nanmedian_of_dim,
    aten.mode.default: _mode,
    aten.nonzero_static.default: _nonzero_static,
    aten.histogram.bins_tensor: _histogram,
    aten.histogram.bin_ct: _histogram_of_count,
    aten._histogramdd_bin_edges.default: _histogramdd_edges,
    aten._histogramdd_from_bin_cts.default: _histogramdd_of_counts,
    aten._histogramdd_from_bin_tensors.default: _histogramdd,
    aten.logcumsumexp.default: _logcumsumexp,
    aten.cumprod.default: _cumprod,
    aten.all.dims: _all_of_dims,
}
