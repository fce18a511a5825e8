# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of orthogonal polynomials whose degree is a tensor, in f64 and rounded once.

Chebyshev's are cosines of multiples of an angle, for large arguments hyperbolic ones; Hermite's have a largest degree
in PyTorch, and so many steps here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: The largest degrees of Hermite's polynomials, above which PyTorch has NaN.
_LARGEST = {torch.float64: 512}
_LARGEST_OTHERWISE = 128


def _of_tensors(rule: Callable[[Tensor, Tensor, int], Tensor]) -> Callable[..., Tensor]:
    """The rule for f64 and whole degrees, as one for arguments and degrees that are tensors or numbers."""

    @functools.wraps(rule)
    def wide(x: Any, n: Any) -> Tensor:
        dtype = torch.result_type(x, n)
        dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
        wide_x, wide_n = (v.double() if isinstance(v, Tensor) else torch.full((), float(v), dtype=torch.float64) for v in (x, n))
        wide_n = wide_n.trunc()
        result = rule(wide_x, wide_n, _LARGEST.get(dtype, _LARGEST_OTHERWISE))
        # Negative degrees have 0, and so have those that are no number of 64 bits: PyTorch converts them to the lowest one.
        is_degree = (wide_n >= 0) & (wide_n < 2.0**63)
        return torch.where(is_degree, result, torch.zeros_like(result)).to(dtype)

    return wide


def _sign(n: Tensor) -> Tensor:
    """(-1)^n."""
    return 1 - 2 * (n - 2 * (n / 2).floor())


def _angle(x: Tensor) -> Tensor:
    """The arc cosine of 0 <= x <= 1."""
    return torch.atan2(((1 - x) * (1 + x)).clamp(min=0).sqrt(), x)


def _hyperbolic_angle(x: Tensor) -> Tensor:
    """The inverse of cosh for x >= 1."""
    return torch.log1p((x - 1) + ((x - 1) * (x + 1)).sqrt())


def _chebyshev(kind: str, is_shifted: bool, x: Tensor, n: Tensor, largest: int) -> Tensor:
    x = 2 * x - 1 if is_shifted else x
    # Of -x the third and the fourth kind change places.
    size, ones = x.abs(), torch.ones_like(x)
    odd = _sign(n)
    if kind in "VW":
        other = "W" if kind == "V" else "V"
        of_negative = _chebyshev_of_size(other, size, n)
    else:
        of_negative = _chebyshev_of_size(kind, size, n)
    result = torch.where(x < 0, odd * of_negative, _chebyshev_of_size(kind, size, n) if kind in "VW" else of_negative)
    result = torch.where(n == 0, ones, result)
    return torch.where(x.isnan() & (n > 0), x, result)


def _chebyshev_of_size(kind: str, x: Tensor, n: Tensor) -> Tensor:
    """Of x >= 0."""
    inside = x <= 1
    angle = _angle(torch.where(inside, x, torch.ones_like(x)))
    hyperbolic = _hyperbolic_angle(torch.where(inside, torch.ones_like(x), x))
    if kind == "T":
        return torch.where(inside, (n * angle).cos(), _cosh(n * hyperbolic))
    if kind == "V":
        return torch.where(inside, ((n + 0.5) * angle).cos() / (0.5 * angle).cos(), _cosh((n + 0.5) * hyperbolic) / _cosh(0.5 * hyperbolic))
    factor, divisor = (n + 1, 1.0) if kind == "U" else (n + 0.5, 0.5)
    of_angle = (factor * angle).sin() / (divisor * angle).sin()
    of_large = _sinh(factor * hyperbolic) / _sinh(divisor * hyperbolic)
    return torch.where(x == 1, factor / divisor, torch.where(inside, of_angle, of_large))


def _cosh(x: Tensor) -> Tensor:
    return (x.exp() + (-x).exp()) / 2


def _sinh(x: Tensor) -> Tensor:
    small = torch.expm1(x)
    return (small + small / (small + 1)) / 2


def _hermite(factor: int, x: Tensor, n: Tensor, largest: int) -> Tensor:
    """Each is the one before times factor x, less the one before it times factor k."""
    before, here = torch.ones_like(x), factor * x
    before, here, n = torch.broadcast_tensors(before, here, n)
    result = torch.where(n == 0, before, here)
    for k in range(1, largest):
        before, here = here, factor * (x * here - k * before)
        result = torch.where(n == k + 1, here, result)
    return torch.where(n > largest, torch.full_like(result, math.nan), result)


_CHEBYSHEV = {
    aten.special_chebyshev_polynomial_t: ("T", False), aten.special_shifted_chebyshev_polynomial_t: ("T", True),
    aten.special_chebyshev_polynomial_u: ("U", False), aten.special_shifted_chebyshev_polynomial_u: ("U", True),
    aten.special_chebyshev_polynomial_v: ("V", False), aten.special_shifted_chebyshev_polynomial_v: ("V", True),
    aten.special_chebyshev_polynomial_w: ("W", False), aten.special_shifted_chebyshev_polynomial_w: ("W", True),
}  # fmt: skip
_HERMITE = {aten.special_hermite_polynomial_h: 2, aten.special_hermite_polynomial_he: 1}

_FUNCTIONS: dict[Any, Callable[[Tensor, Tensor, int], Tensor]] = {
    **{op: functools.partial(_chebyshev, *kind) for op, kind in _CHEBYSHEV.items()},
    **{op: functools.partial(_hermite, factor) for op, factor in _HERMITE.items()},
}
RULES: dict[Any, Callable[..., Any]] = {overload: _of_tensors(f) for op, f in _FUNCTIONS.items() for overload in (op.default, op.x_scalar, op.n_scalar)}
