# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of limits and extremes of floats, in which NaN stays NaN: torch-mlir's forms take the other operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._halves import in_f32

aten = torch.ops.aten


def _maximum(x: Tensor, y: Tensor) -> Any:
    return torch.where((x > y) | x.isnan(), x, y) if _are_floats(x, y) else NotImplemented


def _minimum(x: Tensor, y: Tensor) -> Any:
    return torch.where((x < y) | x.isnan(), x, y) if _are_floats(x, y) else NotImplemented


def _are_floats(x: Tensor, y: Tensor) -> bool:
    return bool(x.is_floating_point() and x.dtype == y.dtype)


def _clamp(x: Tensor, low: float | None = None, high: float | None = None) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    # As tensors, so that they are rounded to the type of x, as in PyTorch.
    if low is not None:
        limit = torch.full((), low, dtype=x.dtype)
        x = torch.where(x < limit, limit, x)
    if high is not None:
        limit = torch.full((), high, dtype=x.dtype)
        x = torch.where(x > limit, limit, x)
    return x


def _clamp_max(x: Tensor, high: float) -> Any:
    return _clamp(x, None, high)


def _hardtanh(x: Tensor, low: float = -1, high: float = 1) -> Any:
    return _clamp(x, low, high)


def _clamp_by_tensors(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Any:
    for limit, extreme in ((low, torch.maximum), (high, torch.minimum)):
        x = extreme(x, limit) if limit is not None else x
    return x


def _clamp_max_by_tensor(x: Tensor, high: Tensor) -> Any:
    return torch.minimum(x, high)


def _elu_backward(grad: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, x: Tensor) -> Tensor:
    """NaN at NaN, as in the vectors of PyTorch's loops; the elements that these leave over have the gradient of positive numbers."""
    negative = x + alpha * scale if is_result else alpha * scale * torch.exp(x * input_scale)
    return torch.where(x > 0, grad * scale, grad * input_scale * negative)


RULES: dict[Any, Callable[..., Any]] = {
    aten.elu_backward.default: in_f32(_elu_backward),
    aten.maximum.default: _maximum,
    aten.minimum.default: _minimum,
    aten.clamp.default: _clamp,
    aten.clamp_min.default: _clamp,
    aten.clamp_max.default: _clamp_max,
    aten.hardtanh.default: _hardtanh,
    aten.clamp.Tensor: _clamp_by_tensors,
    aten.clamp_min.Tensor: _clamp_by_tensors,
    aten.clamp_max.Tensor: _clamp_max_by_tensor,
}
