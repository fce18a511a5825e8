# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of divisions of floats that round down, and their remainders.

The quotient as floats have it may be rounded up to the next whole number (1 / 0.1 is 10, and nine times 0.1 fit), so
PyTorch divides what is left without the remainder; torch-mlir rounds the quotient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._halves import HALVES, rounded
from .._integers import wrapped

aten = torch.ops.aten


def _fmod(x: Tensor, y: Tensor) -> Tensor:
    """The remainder with the sign of x, exact for floats; torch-mlir rounds the quotient, and has no form for numbers."""
    dtype = torch.result_type(x, y)
    x, y = x.to(dtype), y.to(dtype)
    if not dtype.is_floating_point:
        return x - torch.div(x, y, rounding_mode="trunc") * y
    if dtype in HALVES:
        x, y = x.float(), y.float()
    return _remainder(x, y).to(dtype)


def _fmod_by_number(x: Tensor, y: float) -> Tensor:
    dtype = torch.result_type(x, y)
    return _fmod(x.to(dtype), torch.full((), rounded(y, dtype) if dtype in HALVES else y, dtype=dtype))


def _remainder_by_number(x: Tensor, y: float) -> Any:
    """For bf16 and f16 the number has the tensor's type."""
    return torch.remainder(x, torch.full((), rounded(y, x.dtype), dtype=x.dtype)) if x.dtype in HALVES else NotImplemented


def _remainder_of_number(x: float, y: Tensor) -> Tensor:
    dtype = torch.result_type(x, y)
    return torch.remainder(torch.full((), rounded(x, dtype) if dtype in HALVES else x, dtype=dtype), y.to(dtype))


def _remainder(x: Tensor, y: Tensor) -> Tensor:
    size = torch.remainder(x.abs(), y.abs())
    # The sign of a zero too.
    return torch.where(x < 0, -size, torch.where((x == 0) & (size == 0), x, size))


def _floor_divide(x: Any, y: Any) -> Any:
    """Of tensors and numbers."""
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return _floor_of_integers(x, y, dtype)
    # Beside one number, bf16 and f16 are rounded once.
    is_number = not isinstance(y, Tensor) or y.numel() == 1
    computed = torch.float32 if dtype in HALVES and is_number else dtype
    x, y = (v.to(computed) if isinstance(v, Tensor) else torch.full((), v, dtype=computed) for v in (x, y))
    return _floor(x, y).to(dtype)


def _floor_of_integers(x: Any, y: Any, dtype: torch.dtype) -> Any:
    """From the quotient that is cut off, which is exact; torch-mlir's goes by way of f64, which has 53 bits."""
    if dtype not in (torch.int64, torch.int32):
        return NotImplemented
    x, y = (v.to(dtype) if isinstance(v, Tensor) else torch.full((), wrapped(v, dtype), dtype=dtype) for v in (x, y))
    whole = torch.div(x, y, rounding_mode="trunc")
    left = x - whole * y
    return torch.where((left != 0) & ((left < 0) != (y < 0)), whole - 1, whole)


def _floor(x: Tensor, y: Tensor) -> Tensor:
    """In the order of PyTorch's kernel, which rounds every operation."""
    wide = torch.float32 if x.dtype in HALVES else x.dtype
    quotient, left = x / y, _remainder(x.to(wide), y.to(wide)).to(x.dtype)
    # Numbers so far apart that the quotient overflows have no remainder.
    infinity, half = (torch.full((), number, dtype=x.dtype) for number in (torch.inf, 0.5))
    overflows = (quotient.abs() == infinity) & (x.abs() != infinity)
    whole = torch.where(overflows, x, x - left) / y
    whole = torch.where((left != 0) & ((y < 0) != (left < 0)), whole - 1, whole)
    down = whole.floor()
    down = torch.where(whole - down > half, down + 1, down)
    zero = torch.where(quotient < 0, torch.full((), -0.0, dtype=x.dtype), torch.zeros((), dtype=x.dtype))
    down = torch.where(whole == 0, torch.where(quotient == 0, quotient, zero), down)
    return torch.where(y == 0, quotient, down)


def _floor_divide_or_div(x: Any, y: Any) -> Any:
    """Small integers, which have no rule here, become the division whose numbers `_integers` cuts."""
    result = _floor_divide(x, y)
    return torch.div(x, y, rounding_mode="floor") if result is NotImplemented else result


def _divide(x: Tensor, y: Any, *, rounding_mode: str | None = None) -> Any:
    return _floor_divide(x, y) if rounding_mode == "floor" else NotImplemented


RULES: dict[Any, Callable[..., Any]] = {
    aten.fmod.Tensor: _fmod,
    aten.fmod.Scalar: _fmod_by_number,
    aten.remainder.Scalar: _remainder_by_number,
    aten.remainder.Scalar_Tensor: _remainder_of_number,
    aten.floor_divide.default: _floor_divide_or_div,
    aten.floor_divide.Scalar: _floor_divide_or_div,
    aten.div.Tensor_mode: _divide,
    aten.div.Scalar_mode: _divide,
}
