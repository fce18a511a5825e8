# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of Bessel functions of the orders 0 and 1, for f64.

Small arguments have power series. K is the integral of exp(-x cosh t) cosh(order t), which as a function of
u = 2 sqrt(x) sinh(t / 2) is exp(-x) / sqrt(x) times that of exp(-u²/2) g(u² / 4x); J and Y are its parts for the
argument -ix. The trapezoidal rule has all digits for them, as it has for the integral over an angle that I is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: Series in x² / 4 have so many terms, for arguments up to `_SMALL`.
_TERMS = 14
_SMALL = 2.0
#: The trapezoidal rule for integrals of exp(-u²/2) from 0 on: its step, and how many.
_STEP, _STEPS = 0.3, 31
#: For I: angles up to pi / 2, for arguments up to `_LARGE`; larger ones have a series in 1 / x.
_ANGLES = 18
_LARGE = 25.0

_HARMONIC = [sum(1 / j for j in range(1, k + 1)) for k in range(_TERMS + 1)]
_EULER = 0.57721566490153286061


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    result = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def _coefficient(order: int, k: int) -> float:
    return 1 / (math.factorial(k) * math.factorial(k + order))


def _digammas(order: int, k: int) -> float:
    """digamma(k + 1) + digamma(k + order + 1)."""
    return _HARMONIC[k] + _HARMONIC[k + order] - 2 * _EULER


def _first_kind(order: int, x: Tensor, sign: int) -> Tensor:
    """J with the sign -1, I with 1, of small arguments."""
    series = _polynomial(sign * x * x / 4, [_coefficient(order, k) for k in range(_TERMS)])
    return x / 2 * series if order else series


def _second_kind(order: int, x: Tensor, sign: int) -> Tensor:
    """pi Y with the sign -1, 2 (-1)^(order + 1) K with 1, of small arguments."""
    series = _polynomial(sign * x * x / 4, [_coefficient(order, k) * _digammas(order, k) for k in range(_TERMS)])
    series = x / 2 * series if order else series
    result = 2 * (x / 2).log() * _first_kind(order, x, sign) - series
    return result + sign * 2 / x if order else result


def _nodes() -> tuple[Tensor, Tensor]:
    """u² / 4, and weights with exp(-u²/2)."""
    number = torch.arange(_STEPS, dtype=torch.float64)
    quarters = number * number * (_STEP * _STEP / 4)
    weights = _STEP * (-2 * quarters).exp()
    return quarters, torch.where(number == 0, weights / 2, weights)


def _scaled_k(order: int, x: Tensor) -> Tensor:
    """exp(x) K of large arguments."""
    quarters, weights = _nodes()
    v = quarters / x.unsqueeze(-1)
    terms = weights / (1 + v).sqrt()
    return (terms * (1 + 2 * v) if order else terms).sum(-1) / x.sqrt()


def _hankel(order: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """J and Y of large arguments."""
    quarters, weights = _nodes()
    v = quarters / x.unsqueeze(-1)
    size = (1 + v * v).sqrt()
    # 1 / sqrt(1 + iv)
    re = weights * ((size + 1) / 2).sqrt() / size
    im = -weights * v / (2 * (size + 1)).sqrt() / size
    p, q = ((re - 2 * v * im).sum(-1), (im + 2 * v * re).sum(-1)) if order else (re.sum(-1), im.sum(-1))
    factor = 2 / (math.pi * x.sqrt())
    # Sine and cosine are of the angle x - pi / 4, less by a right angle for order 1.
    cos, sin = (x.cos() + x.sin()) / math.sqrt(2), (x.sin() - x.cos()) / math.sqrt(2)
    cos, sin = (sin, -cos) if order else (cos, sin)
    return factor * (p * cos - q * sin), factor * (p * sin + q * cos)


def _split(x: Tensor, limit: float) -> tuple[Tensor, Tensor, Tensor]:
    """Whether an argument is small; the small ones, and the large ones, with the limit in the place of others."""
    is_small = x <= limit
    at_limit = torch.full_like(x, limit)
    return is_small, torch.where(is_small, x, at_limit), torch.where(is_small, at_limit, x)


def _j(order: int, x: Tensor) -> Tensor:
    is_small, small, large = _split(x.abs(), _SMALL)
    of_size = torch.where(is_small, _first_kind(order, small, -1), _hankel(order, large)[0])
    return torch.where(x == 0, x, torch.where(x < 0, -of_size, of_size)) if order else of_size


def _y(order: int, x: Tensor) -> Tensor:
    is_small, small, large = _split(x, _SMALL)
    result = torch.where(is_small, _second_kind(order, small, -1) / math.pi, _hankel(order, large)[1])
    return _from_zero_on(x, result, -math.inf)


def _from_zero_on(x: Tensor, result: Tensor, at_zero: float) -> Tensor:
    """A result for positive arguments; NaN for negative ones."""
    result = torch.where(x == 0, torch.full_like(x, at_zero), result)
    return torch.where(x < 0, torch.full_like(x, math.nan), result)


def _k(order: int, is_scaled: bool, x: Tensor) -> Tensor:
    is_small, small, large = _split(x, _SMALL)
    of_small = _second_kind(order, small, 1) * (0.5 if order else -0.5)
    of_large = _scaled_k(order, large)
    of_small, of_large = (of_small * small.exp(), of_large) if is_scaled else (of_small, of_large * (-large).exp())
    result = torch.where(is_small, of_small, of_large)
    return _from_zero_on(x, torch.where(x == math.inf, torch.zeros_like(x), result), math.inf)


def _scaled_i(order: int, x: Tensor) -> Tensor:
    """exp(-|x|) I."""
    size = x.abs()
    is_small, small, large = _split(size, _LARGE)
    sines, scaled = ((torch.arange(_ANGLES, dtype=torch.float64) + 0.5) * (math.pi / 2 / _ANGLES)).sin(), small.unsqueeze(-1)
    up, down = (scaled * (sines - 1)).exp(), (scaled * (-sines - 1)).exp()
    of_small = ((up - down) * sines if order else up + down).sum(-1) / (2 * _ANGLES)
    # Where both nearly cancel, a power series has the digits.
    if order:
        tiny = torch.where(small < 1, small, torch.ones_like(small))
        of_small = torch.where(small < 1, _first_kind(1, tiny, 1) * (-tiny).exp(), of_small)
    terms = [1.0]
    for k in range(1, 26):
        terms.append(terms[-1] * ((2 * k - 1) ** 2 - 4 * order) / (8 * k))
    of_large = _polynomial(1 / large, terms) / (2 * math.pi * large).sqrt()
    of_size = torch.where(is_small, of_small, of_large)
    return torch.where(x < 0, -of_size, of_size) if order else of_size


def _i(order: int, x: Tensor) -> Tensor:
    # In two steps: exp(x) is infinite before the result is.
    half = (x.abs() / 2).exp()
    return half * _scaled_i(order, x) * half


def _spherical_j0(x: Tensor) -> Tensor:
    square = torch.where(x.abs() < 0.5, x * x, torch.zeros_like(x))
    series = _polynomial(-square, [1 / math.factorial(2 * k + 1) for k in range(8)])
    return torch.where(x.abs() < 0.5, series, torch.where(x.isinf(), torch.zeros_like(x), x.sin() / x))


_SCALED_K = aten.special_scaled_modified_bessel_k0, aten.special_scaled_modified_bessel_k1

#: For f64.
FUNCTIONS: dict[Any, Callable[[Tensor], Tensor]] = {
    **{op.default: functools.partial(_j, order) for order, op in enumerate((aten.special_bessel_j0, aten.special_bessel_j1))},
    **{op.default: functools.partial(_y, order) for order, op in enumerate((aten.special_bessel_y0, aten.special_bessel_y1))},
    **{op.default: functools.partial(_i, order) for order, op in enumerate((aten.special_modified_bessel_i0, aten.special_modified_bessel_i1))},
    **{op.default: functools.partial(_i, order) for order, op in enumerate((aten.i0, aten.special_i1))},
    **{op.default: functools.partial(_scaled_i, order) for order, op in enumerate((aten.special_i0e, aten.special_i1e))},
    **{op.default: functools.partial(_k, order, False) for order, op in enumerate((aten.special_modified_bessel_k0, aten.special_modified_bessel_k1))},
    **{op.default: functools.partial(_k, order, True) for order, op in enumerate(_SCALED_K)},
    aten.special_spherical_bessel_j0.default: _spherical_j0,
}
