# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of exact operations on numbers: common divisors, and exponents and neighbours of floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _gcd(x: Tensor, y: Tensor) -> Tensor:
    """Euclid's algorithm, with as many steps as numbers of the type need at most."""
    dtype = torch.result_type(x, y)
    x, y = x.to(dtype).abs(), y.to(dtype).abs()
    # Neighbours in Fibonacci's sequence need the most.
    for _ in range(math.ceil(torch.iinfo(dtype).bits / math.log2((1 + math.sqrt(5)) / 2)) + 1):
        is_last = y == 0
        left = torch.remainder(x, torch.where(is_last, torch.ones_like(y), y))
        x, y = torch.where(is_last, x, y), torch.where(is_last, torch.zeros_like(y), left)
    return x


def _lcm(x: Tensor, y: Tensor) -> Tensor:
    dtype = torch.result_type(x, y)
    divisor = _gcd(x, y)
    whole = torch.div(x.to(dtype), torch.where(divisor == 0, torch.ones_like(divisor), divisor), rounding_mode="trunc")
    return torch.where(divisor == 0, torch.zeros_like(divisor), whole * y.to(dtype)).abs()


#: Of f64, whose products with powers of two are exact for numbers of other types.
_POWERS = [2**k for k in reversed(range(10))]


def _mantissa_and_exponent(x: Tensor) -> tuple[Tensor, Tensor]:
    """Of numbers in f64: 0.5 <= |mantissa| < 1, and the exponent, both 0 for 0; other numbers than finite ones are their mantissa."""
    is_plain = x.isfinite() & (x != 0)
    size, exponent = torch.where(is_plain, x.abs(), torch.full_like(x, 0.5)), torch.zeros_like(x)
    for power in _POWERS:
        is_large = size >= 2.0**power
        size, exponent = torch.where(is_large, size * 2.0**-power, size), torch.where(is_large, exponent + power, exponent)
        is_small = size < 2.0 ** (1 - power)
        size, exponent = torch.where(is_small, size * 2.0**power, size), torch.where(is_small, exponent - power, exponent)
    is_one = size >= 1
    size, exponent = torch.where(is_one, size / 2, size), torch.where(is_one, exponent + 1, exponent)
    return torch.where(is_plain, torch.where(x < 0, -size, size), x), exponent


def _frexp(x: Tensor) -> Any:
    if x.dtype == torch.float64:
        return NotImplemented
    mantissa, exponent = _mantissa_and_exponent(x.double())
    return mantissa.to(x.dtype), exponent.to(torch.int32)


def _nextafter(x: Tensor, y: Tensor) -> Any:
    """x and the unit of its last place, which is smaller below a power of two, added in f64."""
    dtype = torch.result_type(x, y)
    if dtype == torch.float64:
        return NotImplemented
    info = torch.finfo(dtype)
    x, y = torch.broadcast_tensors(x.to(dtype).double(), y.to(dtype).double())
    mantissa, exponent = _mantissa_and_exponent(x)
    grows = (y > x) == (x > 0)
    bits = round(-math.log2(info.eps))
    exponent = exponent - torch.where((mantissa.abs() == 0.5) & ~grows, 2 + bits, 1 + bits)
    smallest = round(math.log2(info.smallest_normal)) - bits
    unit = torch.exp2(exponent.clamp(min=smallest))
    unit = torch.where(x == 0, torch.full_like(x, 2.0**smallest), unit)
    limit = torch.full_like(x, info.max)
    # From an infinity to the largest number, and back.
    of_infinity = torch.where(x.isinf(), torch.where(x > 0, limit, -limit), torch.where(y > x, x + unit, x - unit))
    result = torch.where(of_infinity.abs() > limit, torch.where(x > 0, torch.full_like(x, math.inf), torch.full_like(x, -math.inf)), of_infinity)
    result = torch.where((result == 0) & (x < 0), torch.full_like(x, -0.0), result)
    result = torch.where(x == y, y, result)
    return torch.where(x.isnan() | y.isnan(), x + y, result).to(dtype)


RULES: dict[Any, Callable[..., Any]] = {
    aten.gcd.default: _gcd,
    aten.lcm.default: _lcm,
    aten.frexp.Tensor: _frexp,
    aten.nextafter.default: _nextafter,
}
