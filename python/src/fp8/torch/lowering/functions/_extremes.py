# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of the places of extremes, where NaN counts as the extreme, and of extremes so far.

torch-mlir's forms of places pass over NaN, and it has none of `cummax` and `cummin`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _place_of(extreme: Callable[..., Tensor]) -> Callable[..., Any]:
    def rule(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        if not x.is_floating_point() or x.dim() == 0 or x.numel() == 0:
            return NotImplemented
        if dim is None:
            place = rule(x.reshape(-1), 0)
            return place.reshape([1] * x.dim()) if keepdim else place
        size = x.shape[dim]
        # Where there is NaN the extreme is NaN, which equals nothing.
        found = (x == extreme(x, dim, True)) | x.isnan()
        places = torch.where(found, _places(x, dim), torch.full((), size, dtype=torch.int64))
        return torch.amin(places, dim, keepdim)

    return rule


def _extreme_with_place(extreme: Callable[..., Tensor], place_of: Callable[..., Any]) -> Callable[..., Any]:
    def rule(x: Tensor, dim: int, keepdim: bool = False) -> Any:
        place = place_of(x, dim, keepdim)
        return place if place is NotImplemented else (extreme(x, dim, keepdim), place)

    return rule


def _extreme_so_far(goes_on: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    """In steps of 1, 2, 4, …: after each one an element has the extreme of twice as many. Of equal elements the last one's place counts."""

    def rule(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if x.dim() == 0:
            return x.clone(), torch.zeros((), dtype=torch.int64)
        size = x.shape[dim]
        values, places = x.clone(), _places(x, dim).expand(x.shape).clone()
        step = 1
        while step < size:
            before, here = values.narrow(dim, 0, size - step), values.narrow(dim, step, size - step)
            kept = goes_on(here, before) | here.isnan() if x.is_floating_point() else goes_on(here, before)
            place = torch.where(kept, places.narrow(dim, step, size - step), places.narrow(dim, 0, size - step))
            values = torch.cat([values.narrow(dim, 0, step), torch.where(kept, here, before)], dim)
            places = torch.cat([places.narrow(dim, 0, step), place], dim)
            step *= 2
        return values, places

    return rule


def _places(x: Tensor, dim: int) -> Tensor:
    """The place of each element along a dimension, with size 1 along the others."""
    return torch.arange(x.shape[dim]).reshape([-1 if d == dim % x.dim() else 1 for d in range(x.dim())])


_argmax, _argmin = _place_of(torch.amax), _place_of(torch.amin)

RULES: dict[Any, Callable[..., Any]] = {
    aten.argmax.default: _argmax,
    aten.argmin.default: _argmin,
    aten.max.dim: _extreme_with_place(torch.amax, _argmax),
    aten.min.dim: _extreme_with_place(torch.amin, _argmin),
    aten.cummax.default: _extreme_so_far(torch.ge),
    aten.cummin.default: _extreme_so_far(torch.le),
}
