# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of the places of extremes, where NaN counts as the extreme, and of extremes so far.

torch-mlir's forms of places pass over NaN, and it has none of `cummax` and `cummin`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        places = torch.where(found, _places(x.shape, dim), torch.full((), size, dtype=torch.int64))
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
        values, places = x.clone(), _places(x.shape, dim).expand(x.shape).clone()
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


def _places(shape: Sequence[int], dim: int) -> Tensor:
    """The place of each element along a dimension, with size 1 along the others."""
    return torch.arange(shape[dim]).reshape([-1 if d == dim % len(shape) else 1 for d in range(len(shape))])


class _Extreme(torch.autograd.Function):  # type: ignore[misc]
    """The extreme of each row and its place. Its gradient is a choice by comparison of places, which fuses; PyTorch scatters it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(function: Callable[..., Any], x: Tensor, dim: int, keepdim: bool) -> Any:
        return tuple(function(x, dim, keepdim))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, x, ctx.dim, ctx.keepdim = inputs
        ctx.shape = x.shape
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> Any:
        (place,) = ctx.saved_tensors
        if not ctx.keepdim:
            grad, place = grad.unsqueeze(ctx.dim), place.unsqueeze(ctx.dim)
        chosen = _places(ctx.shape, ctx.dim) == place
        return None, torch.where(chosen, grad, torch.zeros((), dtype=grad.dtype)), None, None


def _with_own_gradient(function: Callable[..., Any], result: Any) -> Callable[..., Any]:
    def rule(x: Tensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
        if options or not isinstance(dim, int) or not x.is_floating_point() or not x.requires_grad or x.numel() == 0 or x.dim() == 0:
            return NotImplemented
        return result(_Extreme.apply(function, x, dim, keepdim))

    return rule


_argmax, _argmin = _place_of(torch.amax), _place_of(torch.amin)

RULES: dict[Any, Callable[..., Any]] = {
    aten.argmax.default: _argmax,
    aten.argmin.default: _argmin,
    aten.max.dim: _extreme_with_place(torch.amax, _argmax),
    aten.min.dim: _extreme_with_place(torch.amin, _argmin),
    aten.cummax.default: _extreme_so_far(torch.ge),
    aten.cummin.default: _extreme_so_far(torch.le),
}

#: By the function that users call.
REWRITES: dict[Any, Callable[..., Any]] = {
    **{function: _with_own_gradient(torch.max, torch.return_types.max) for function in (torch.max, Tensor.max)},
    **{function: _with_own_gradient(torch.min, torch.return_types.min) for function in (torch.min, Tensor.min)},
}
