# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of comparisons, limits and extremes of floats by what they do with NaN.

torch-mlir folds `x == x` to true, and its limits and extremes take the other operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._halves import HALVES, in_f32

aten = torch.ops.aten


def _equal(x: Tensor, y: Tensor) -> Any:
    return (x != y).logical_not() if x.is_floating_point() and y.is_floating_point() else NotImplemented


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


# Gradients at NaN: as in the vectors of PyTorch's loops. The elements that these leave over at the end of a tensor have others.


def _elu_backward(grad: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, x: Tensor) -> Tensor:
    negative = x + alpha * scale if is_result else alpha * scale * torch.exp(x * input_scale)
    return torch.where(x > 0, grad * scale, grad * input_scale * negative)


def _hardtanh_backward(grad: Tensor, x: Tensor, low: float, high: float) -> Tensor:
    x = _wide(x)
    return torch.where((x > low) & (x < high), grad, torch.zeros((), dtype=grad.dtype))


def _threshold_backward(grad: Tensor, x: Tensor, threshold: float) -> Tensor:
    return torch.where(_wide(x) <= threshold, torch.zeros((), dtype=grad.dtype), grad)


def _wide(x: Tensor) -> Tensor:
    """bf16 and f16 in f32, in which PyTorch's kernels compare them with limits."""
    return x.float() if x.dtype in HALVES else x


def _hardswish_backward(grad: Tensor, x: Tensor) -> Tensor:
    between = torch.where(x >= 3, grad, grad * (x / 3 + 0.5))
    return torch.where(x <= -3, torch.zeros((), dtype=grad.dtype), between)


def _smooth_l1_loss_backward(grad: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    """The sign of NaN is 0, and the gradient NaN."""
    difference = x - target
    scale = grad / x.numel() if reduction == 1 else grad
    slope = torch.where(difference.abs() < beta, difference / beta if beta else difference, difference.sign())
    return scale * torch.where(difference.isnan(), difference, slope)


RULES: dict[Any, Callable[..., Any]] = {
    aten.elu_backward.default: in_f32(_elu_backward),
    aten.hardtanh_backward.default: _hardtanh_backward,
    aten.threshold_backward.default: _threshold_backward,
    aten.hardswish_backward.default: in_f32(_hardswish_backward),
    aten.smooth_l1_loss_backward.default: in_f32(_smooth_l1_loss_backward),
    aten.eq.Tensor: _equal,
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
