# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images resized with antialias=True: a weighted sum of neighbours along the width, then one along the height.

Weights are those of PyTorch, which has them from Pillow: a filter around the place of the new element, stretched where the
image shrinks, cut off at the border and divided by its sum.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .._halves import in_f32


def _triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: Tensor) -> Tensor:
    """The cubic filter with a = -1/2."""
    x = x.abs()
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))


def _lanczos(x: Tensor) -> Tensor:
    return torch.where(x.abs() < 3, torch.sinc(x) * torch.sinc(x / 3), 0.0)


def _scale(size: int, resized: int, align_corners: bool, factor: float | None) -> float:
    """How many elements one of the result stands for."""
    if align_corners:
        return (size - 1) / (resized - 1) if resized > 1 else 0.0
    return 1 / factor if factor is not None and factor > 0 else size / resized


def _resized(x: Tensor, resized: int, scale: float, weigh: Callable[[Tensor], Tensor], width: int) -> Tensor:
    """The last dimension in `resized` elements; the filter is `width` elements wide, and 0 elsewhere."""
    size = x.shape[-1]
    support = width / 2 * max(scale, 1.0)
    # Numbers of the type that PyTorch computes weights in: rounding decides which neighbours are read.
    center = (torch.arange(resized, dtype=x.dtype, device=x.device) + 0.5) * scale
    first = (center - support + 0.5).trunc().clamp(min=0)
    last = (center + support + 0.5).trunc().clamp(max=size)
    place = first.unsqueeze(-1) + torch.arange(math.ceil(support) * 2 + 1, dtype=x.dtype, device=x.device)
    weights = weigh((place - center.unsqueeze(-1) + 0.5) / max(scale, 1.0))
    weights = torch.where(place < last.unsqueeze(-1), weights, 0.0)
    sums = weights.sum(-1, keepdim=True)
    weights = weights / torch.where(sums == 0, 1.0, sums)
    return (x[..., place.long().clamp(max=size - 1)] * weights).sum(-1)


#: The filter and its width, by the name of the mode.
_FILTERS = {"bilinear": (_triangle, 2), "bicubic": (_cubic, 4), "lanczos": (_lanczos, 6)}


def _antialiased(mode: str, x: Tensor, sizes: Sequence[int] | None, align_corners: bool, factors: Sequence[float | None] | None = None) -> Any:
    if not x.is_floating_point() or x.numel() == 0 or (sizes is None and factors is None):
        return NotImplemented
    if factors is not None and any(factor is not None and factor <= 0 for factor in factors):
        return NotImplemented
    if sizes is None:
        sizes = [math.floor(size * (factor or 1)) for size, factor in zip(x.shape[-2:], factors or (), strict=True)]
    if any(not isinstance(size, (int, torch.SymInt)) or size <= 0 for size in sizes):
        return NotImplemented
    for dim in (-1, -2):
        scale = _scale(x.shape[dim], sizes[dim], align_corners, factors[dim] if factors else None)
        x = _resized(x.movedim(dim, -1), sizes[dim], scale, *_FILTERS[mode]).movedim(-1, dim)
    return x


def interpolate(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    sizes, factors = _pair(size), _pair(scale_factor)
    are_right = (sizes is None) != (factors is None) and not (mode == "lanczos" and align_corners)
    if not antialias or mode not in _FILTERS or x.dim() != 4 or not are_right or (recompute_scale_factor and factors is None):
        return NotImplemented  # PyTorch has the error, if it is one.
    if recompute_scale_factor and factors is not None:
        sizes, factors = [math.floor(float(have) * factor) for have, factor in zip(x.shape[-2:], factors, strict=True)], None
    return in_f32(functools.partial(_antialiased, mode))(x, sizes, bool(align_corners), factors)


def _pair(value: Any) -> Any:
    """One number for each dimension, where PyTorch takes one for both; what is no pair becomes None."""
    if value is None:
        return None
    values = [v.item() if hasattr(v, "item") else v for v in (value if isinstance(value, (list, tuple)) else [value, value])]
    return values if len(values) == 2 else None


def _of_aten(
    mode: str,
    x: Tensor,
    output_size: Sequence[int] | None,
    align_corners: bool,
    scales_h: float | Sequence[float] | None = None,
    scales_w: float | None = None,
    scale_factors: Sequence[float] | None = None,
) -> Any:
    """The overload `default` has a factor for each dimension, `vec` both in one argument."""
    together = scales_h if isinstance(scales_h, Sequence) else scale_factors
    factors = [scales_h, scales_w] if together is None else together
    return in_f32(functools.partial(_antialiased, mode))(x, output_size, align_corners, factors)


_ATEN = {mode: getattr(torch.ops.aten, f"_upsample_{mode}2d_aa", None) for mode in _FILTERS}

#: By the function that users call, and the operation.
RULES: dict[Any, Callable[..., Any]] = {
    F.interpolate: interpolate,
    **{op: functools.partial(_of_aten, mode) for mode, packet in _ATEN.items() if packet is not None for op in (packet, packet.default, packet.vec)},
}
