# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of special functions, in f64 and rounded once to the type of the result.

Errors are a few units in the last place of f64, but for lgamma next to its zeros, and so below half a unit of f32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from . import _bessel, _polynomials

aten = torch.ops.aten

#: Chebyshev coefficients, in 2t - 1, of log(erfcx(x) / t) with t = 2 / (2 + x), interpolated in 28 nodes.
_ERFCX = (
    -0.6513268598908547, 0.6419697923564902, 0.019476473204185836, -0.009561514786808632, -0.0009465953444820369, 0.00036683949785276145,
    4.252332480690777e-05, -2.0278578112534242e-05, -1.6242900046470256e-06, 1.3036558355805232e-06, 1.5626441722066142e-08,
    -8.523809591492654e-08, 6.5290544390988515e-09, 5.0593434955514685e-09, -9.913641564930322e-10, -2.2736512229318417e-10,
    9.646791102014962e-11, 2.394038083065756e-12, -6.886027526536277e-12, 8.944879271730368e-13, 3.130921408127142e-13,
    -1.1270822525221733e-13, 3.8108713588528985e-16, 7.106125536922576e-15, -1.5230878975373303e-15, -9.464871412184462e-17,
    1.218683266906788e-16, -3.0494735135424696e-17,
)  # fmt: skip

#: Bernoulli's numbers of even index, from the second on.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)

#: Series in 1 / x hold for arguments from here on; smaller ones are moved there.
_LARGE = 10


def _in_f64(rule: Callable[..., Tensor], operand: int = 0) -> Callable[..., Tensor]:
    """The rule for f64, as one for all types; integers give f32."""

    @functools.wraps(rule)
    def wide(*arguments: Any) -> Tensor:
        x = arguments[operand]
        result = rule(*arguments[:operand], x.double(), *arguments[operand + 1 :])
        return result.to(x.dtype if x.is_floating_point() else torch.get_default_dtype())

    return wide


def _log_erfcx(x: Tensor) -> tuple[Tensor, Tensor]:
    """t, and log(erfcx(x) / t), for x >= 0."""
    t = 2 / (2 + x)
    twice, b1, b2 = 4 * t - 2, torch.zeros_like(x), torch.zeros_like(x)
    for coefficient in reversed(_ERFCX[1:]):
        b1, b2 = twice * b1 - b2 + coefficient, b1
    return t, twice / 2 * b1 - b2 + _ERFCX[0]


def _erfc(x: Tensor) -> Tensor:
    size = x.abs()
    t, logarithm = _log_erfcx(size)
    of_size = t * (logarithm - size * size).exp()
    return torch.where(x < 0, 2 - of_size, of_size)


def _erfcx(x: Tensor) -> Tensor:
    t, logarithm = _log_erfcx(x.abs())
    of_size = t * logarithm.exp()
    return torch.where(x < 0, 2 * (x * x).exp() - of_size, of_size)


def _erfinv(x: Tensor) -> Tensor:
    """Halley's steps from Winitzki's approximation."""
    size = x.abs()
    logarithm = (1 - size * size).log()
    half = 2 / (math.pi * 0.147) + logarithm / 2
    y = ((half * half - logarithm / 0.147).sqrt() - half).clamp(min=0).sqrt()
    for _ in range(3):
        # Near 1 the difference to 1 has the digits.
        error = torch.where(size < 0.5, torch.erf(y) - size, (1 - size) - _erfc(y)) / (2 / math.sqrt(math.pi) * (-y * y).exp())
        y = y - error / (1 + y * error)
    y = torch.where(size == 1, torch.full((), math.inf, dtype=torch.float64), y)
    return torch.where(x < 0, -y, torch.where(x == 0, x, y))


def _ndtri(p: Tensor) -> Tensor:
    """Newton's steps for the logarithm of the smaller tail, from Winitzki's approximation."""
    tail = torch.minimum(p, 1 - p)
    logarithm = (4 * tail * (1 - tail)).log()
    half = 2 / (math.pi * 0.147) + logarithm / 2
    y = ((half * half - logarithm / 0.147).sqrt() - half).clamp(min=0).sqrt()
    for _ in range(4):
        t, of_y = _log_erfcx(y)
        error = t.log() + of_y - y * y - (2 * tail).log()
        y = y + error * t * of_y.exp() / (2 / math.sqrt(math.pi))
    y = torch.where(tail == 0, torch.full_like(y, math.inf), math.sqrt(2) * y)
    y = torch.where(p == 0.5, torch.zeros_like(y), torch.where(p < 0.5, -y, y))
    return torch.where((p < 0) | (p > 1), torch.full_like(y, math.nan), y)


def _zeta(x: Tensor, q: Tensor) -> Tensor:
    """Of negative q from sums over the arguments on both sides of zero, which are three of positive q."""
    steps = (-q).ceil().clamp(min=0)
    first = q + steps
    odd = 1 - 2 * (x - 2 * (x / 2).floor())
    of_negative = _zeta_of_positive(x, first) + odd * (_zeta_of_positive(x, 1 - first) - _zeta_of_positive(x, 1 - torch.where(q < 0, q, first)))
    result = torch.where(q < 0, torch.where(x == x.floor(), of_negative, torch.full_like(x, math.nan)), _zeta_of_positive(x, q))
    result = torch.where((q <= 0) & (q == q.floor()) | (x == 1), torch.full_like(x, math.inf), result)
    return torch.where((x < 1) | q.isposinf() & (x != 1), torch.full_like(x, math.nan), result)


def _zeta_of_positive(x: Tensor, q: Tensor) -> Tensor:
    y = q + _LARGE
    power = y**-x
    result = functools.reduce(torch.add, [(q + k) ** -x for k in range(_LARGE)]) + power * (y / (x - 1) + 0.5)
    factor = x / y
    for k, number in enumerate(_BERNOULLI, 1):
        term = number / math.factorial(2 * k) * factor * power
        # Where the power is 0 the factor may be infinite.
        result = result + torch.where(power == 0, torch.zeros_like(term), term)
        factor = factor * (x + 2 * k - 1) / y * (x + 2 * k) / y
    return result


def _zeta_of_any(x: Any, q: Any) -> Tensor:
    dtype = torch.result_type(x, q)
    wide = (v.double() if isinstance(v, Tensor) else torch.full((), float(v), dtype=torch.float64) for v in (x, q))
    return _zeta(*torch.broadcast_tensors(*wide)).to(dtype if dtype.is_floating_point else torch.get_default_dtype())


def _from_integer(x: Tensor) -> Tensor:
    """The distance, with its sign, to the nearest integer: sin(pi x) and tan(pi x) need no more."""
    return x - x.round()


def _moved(x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """x where it is large, else x + _LARGE, and all x + k that lie between; 1 for large ones."""
    is_large = x >= _LARGE
    between = torch.where(is_large, torch.ones_like(x), x)
    return torch.where(is_large, x, x + _LARGE), [torch.where(is_large, between, between + k) for k in range(_LARGE)]


def _lgamma(x: Tensor) -> Tensor:
    positive = torch.where(x < 0, 1 - x, x)
    y, between = _moved(positive)
    series = (y - 0.5) * y.log() - y + 0.5 * math.log(2 * math.pi)
    for k, number in enumerate(_BERNOULLI[:8], 1):
        series = series + number / (2 * k * (2 * k - 1)) / y ** (2 * k - 1)
    of_positive = series - _product(between).log()
    of_negative = math.log(math.pi) - (_from_integer(x).abs() * math.pi).sin().log() - of_positive
    infinite = torch.full((), math.inf, dtype=torch.float64)
    return torch.where(x.isinf(), infinite, torch.where(x < 0, of_negative, of_positive))


def _product(factors: Sequence[Tensor]) -> Tensor:
    return functools.reduce(torch.mul, factors)


def _digamma(x: Tensor) -> Tensor:
    return _polygamma(0, x)


def _polygamma(n: int, x: Tensor) -> Tensor:
    """Of negative numbers by reflection."""
    of_positive = _polygamma_of_positive(n, torch.where(x < 0, 1 - x, x))
    angle = _from_integer(x) * math.pi
    cotangent = angle.cos() / angle.sin()
    # The derivatives of cot are polynomials in it.
    polynomial = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(polynomial)][1:]
        polynomial = [-a - b for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope])]
    derivative = torch.zeros_like(x)
    for coefficient in reversed(polynomial):
        derivative = derivative * cotangent + coefficient
    of_negative = (-1) ** n * of_positive - math.pi ** (n + 1) * derivative
    at_poles = torch.full((), math.nan if n == 0 else (-1) ** (n + 1) * math.inf, dtype=torch.float64)
    result = torch.where(x < 0, torch.where(angle == 0, at_poles, of_negative), of_positive)
    if n < 2:
        return result
    # As Hurwitz' zeta function of infinity in PyTorch.
    return torch.where(x.isinf(), torch.where(x < 0, at_poles, torch.full_like(x, math.nan)), result)


def _polygamma_of_positive(n: int, x: Tensor) -> Tensor:
    """n = 0 is the derivative of lgamma; others are multiples of Hurwitz' zeta function of n + 1."""
    y = x + _LARGE
    power = n + 1
    # -0 + 0 is 0, and digamma's pole at -0 has another sign than that at 0.
    first = x if n == 0 else x.abs()
    terms = functools.reduce(torch.add, [1 / (x + k if k else first) ** power for k in range(_LARGE)])
    if n == 0:
        series = y.log() - 0.5 / y - terms
        for k, number in enumerate(_BERNOULLI, 1):
            series = series - number / (2 * k) / y ** (2 * k)
        return series
    series = terms + 1 / (n * y**n) + 0.5 / y**power
    factor = 1.0
    for k, number in enumerate(_BERNOULLI, 1):
        factor *= power if k == 1 else (power + 2 * k - 3) * (power + 2 * k - 2)
        series = series + number * factor / math.factorial(2 * k) / y ** (power + 2 * k - 1)
    return (-1) ** (n + 1) * math.factorial(n) * series


def _reciprocal(x: Tensor) -> Tensor:
    """A quotient: torch-mlir's form stops at 0."""
    x = x if x.is_floating_point() or x.is_complex() else x.to(torch.get_default_dtype())
    return torch.ones((), dtype=x.dtype) / x


def _angle(x: Tensor) -> Any:
    if x.is_complex():
        return NotImplemented
    x = x if x.is_floating_point() else x.float()
    value = torch.where(x < 0, torch.full((), math.pi, dtype=x.dtype), torch.zeros((), dtype=x.dtype))
    return torch.where(x.isnan(), x, value)


# torch-mlir has trunc as a product with the sign, and takes the sign of a constant as 0.


def _sign(x: Tensor) -> Tensor:
    if x.dtype == torch.bool:
        return x.clone()
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


def _trunc(x: Tensor) -> Tensor:
    return torch.where(x < 0, x.ceil(), x.floor()) if x.is_floating_point() else x.clone()


def _signbit(x: Tensor) -> Tensor:
    """By the inverse of zeros; a NaN's sign cannot be seen."""
    return (x < 0) | ((x == 0) & (1 / x < 0)) if x.is_floating_point() else x < 0


def _copysign(x: Tensor, y: Tensor) -> Tensor:
    dtype = torch.promote_types(x.dtype, y.dtype)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    size = x.to(dtype).abs()
    return torch.where(_signbit(y), -size, size)


def _copysign_of_number(x: Tensor, y: float) -> Tensor:
    size = (x if x.is_floating_point() else x.to(torch.get_default_dtype())).abs()
    return -size if math.copysign(1, y) < 0 else size


def _smaller_number(x: Tensor, y: Tensor) -> Tensor:
    """The other operand in place of NaN; torch-mlir's form does not broadcast."""
    return torch.where(y.isnan() | (x <= y), x, y) if y.is_floating_point() else torch.minimum(x, y)


def _larger_number(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(y.isnan() | (x >= y), x, y) if y.is_floating_point() else torch.maximum(x, y)


RULES: dict[Any, Callable[..., Any]] = {
    aten.erfc.default: _in_f64(_erfc),
    aten.special_erfcx.default: _in_f64(_erfcx),
    aten.erfinv.default: _in_f64(_erfinv),
    aten.lgamma.default: _in_f64(_lgamma),
    aten.digamma.default: _in_f64(_digamma),
    aten.polygamma.default: _in_f64(_polygamma, 1),
    aten.special_ndtri.default: _in_f64(_ndtri),
    **{op: _zeta_of_any for op in (aten.special_zeta.default, aten.special_zeta.self_scalar, aten.special_zeta.other_scalar)},
    **{op: _in_f64(function) for op, function in _bessel.FUNCTIONS.items()},
    **_polynomials.RULES,
    aten.reciprocal.default: _reciprocal,
    aten.angle.default: _angle,
    aten.signbit.default: _signbit,
    aten.sign.default: _sign,
    aten.trunc.default: _trunc,
    aten.copysign.Tensor: _copysign,
    aten.copysign.Scalar: _copysign_of_number,
    aten.fmin.default: _smaller_number,
    aten.fmax.default: _larger_number,
}
