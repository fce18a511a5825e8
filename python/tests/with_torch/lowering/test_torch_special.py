# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions, distances, and operations on signs, through torch.compile."""

import math

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from torch_compare import check, in_halves, normal

EDGES = torch.tensor([0.0, -0.0, 1e-30, -1e-30, 1e-4, 0.5, 1.0, 1.0000001, 2.0, 3.5, 9.9, 25.0, 1e6, 1e30, -0.5, -1.5, -3.25, -9.75, math.inf, math.nan])
POSITIVE = EDGES[(EDGES > 0) | EDGES.isnan()]
ZEROS = torch.tensor([0.0, -0.0])


def around_zero(x):
    return torch.erfc(x), torch.special.erfcx(x.clamp(-5, 30)), torch.erfinv(x / (1 + x.abs()))


def gammas(x):
    return torch.lgamma(x), torch.digamma(x), torch.polygamma(1, x), torch.polygamma(2, x)


def test_error_functions():
    # PyTorch's of f32 loses some units in the last place.
    check(around_zero, torch.cat([normal(40) * 3, torch.linspace(-10, 10, 41)]), rtol=2e-5, atol=0)


def test_numbers_beside_f64_keep_their_digits():
    check(
        lambda x: [1.1447298858494002 - x, torch.rsub(x, 0.1, alpha=0.3), 0.0 - x, 0.1 / x],
        torch.tensor([-3.25, 0.3, 0.0], dtype=torch.float64),
        rtol=1e-15,
        atol=0,
    )


def test_gamma_functions():
    x = torch.cat([normal(40).abs() * 10 + 0.05, -(normal(20).abs() * 5).floor() - 0.37])
    # PyTorch computes them in f32, with some units in the last place of the largest term.
    check(lambda x: [f.detach() for f in gammas(x)], x, rtol=1e-4, atol=1e-4)
    check(lambda x: [torch.lgamma(x), torch.digamma(x), torch.mvlgamma(x + 2, 2)], x[:40], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_special_functions_of_edges(dtype):
    unit = max(torch.finfo(dtype).eps, 1e-12)
    for function, x in ((torch.erfc, EDGES), (torch.lgamma, EDGES), (torch.erfinv, EDGES / 2), (torch.digamma, POSITIVE), (torch.digamma, ZEROS)):
        x = x.to(dtype)
        wide = function(x.double()).to(dtype)
        # Half a unit in the last place, and what PyTorch's own value in f64 is rounded by.
        check_values(function, x, wide, rtol=4 * unit if function is not torch.lgamma else 16 * unit)


def check_values(function, x, expected, rtol, atol=1e-12):
    import fp8.torch

    torch._dynamo.reset()
    found = torch.compile(function, backend=fp8.torch.backend("none"))(x)
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True)


def test_trigamma_has_all_digits():
    # PyTorch's has nine (findings/torch-trigamma.sh): the values are Abramowitz and Stegun's, 6.4.2 to 6.4.5.
    x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    right = torch.tensor([math.pi**2 / 2, math.pi**2 / 6, math.pi**2 / 6 - 1], dtype=torch.float64)
    check_values(lambda x: torch.polygamma(1, x), x, right, rtol=1e-15, atol=0)
    y = x.clone().requires_grad_()
    torch.compile(torch.digamma, backend=fp8.torch.backend("none"))(y).sum().backward()
    torch.testing.assert_close(y.grad, right, rtol=1e-15, atol=0)


def test_polygamma_of_higher_orders():
    x = torch.cat([normal(20).abs().double() + 0.05, -normal(9).abs().double() - 0.3])
    for n in (1, 2, 3, 5):
        check_values(lambda x, n=n: torch.polygamma(n, x), x, torch.polygamma(n, x), rtol=1e-9)


BESSEL = {
    "J": (torch.special.bessel_j0, torch.special.bessel_j1),
    "Y": (torch.special.bessel_y0, torch.special.bessel_y1),
    "I": (torch.special.modified_bessel_i0, torch.special.modified_bessel_i1, torch.special.i0e, torch.special.i1e, torch.special.i1),
    "K": (torch.special.modified_bessel_k0, torch.special.modified_bessel_k1),
    "scaled K": (torch.special.scaled_modified_bessel_k0, torch.special.scaled_modified_bessel_k1),
    "spherical": (torch.special.spherical_bessel_j0,),
}
ARGUMENTS = torch.cat([torch.tensor([1e-30, 1e-5, 0.9, 1.99, 2.0, 2.01, 24.9, 25.1, 90.0, 300.0, 0.0, math.nan]), torch.linspace(0.1, 20, 40)])


@pytest.mark.slow(one_of=2)
@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions(name):
    x = torch.cat([ARGUMENTS, -ARGUMENTS]).double()
    # PyTorch's J and Y have seven digits in f64 too.
    atol = 1e-6 if name in "JY" else 1e-12
    check_values(lambda x: [f(x) for f in BESSEL[name]], x, [f(x) for f in BESSEL[name]], rtol=1e-11, atol=atol)
    # Of f32 half a unit in the last place.
    check_values(lambda x: [f(x) for f in BESSEL[name]], x.float(), [f(x.float().double()).float() for f in BESSEL[name]], rtol=2**-23, atol=atol)


def test_bessel_functions_of_both_kinds_have_all_digits_of_f64():
    def wronskian(x):
        return torch.special.bessel_j1(x) * torch.special.bessel_y0(x) - torch.special.bessel_j0(x) * torch.special.bessel_y1(x)

    x = torch.linspace(0.3, 50, 60).double()
    check_values(wronskian, x, 2 / (math.pi * x), rtol=1e-13)


def test_bessel_functions_have_gradients():
    check(lambda x: [torch.i0(x), torch.special.i0e(x), torch.special.i1(x), torch.special.i1e(x)], normal(5, 7) * 3, rtol=1e-4)


DEGREES = torch.tensor([[-1], [0], [1], [2], [3], [6], [7], [20]])
NO_DEGREES = torch.tensor([[math.nan], [math.inf], [-math.inf], [1e30]]).double()
POLYNOMIALS = [
    getattr(torch.special, f"{name}_polynomial_{kind}")
    for name, kinds in (("chebyshev", "tuvw"), ("shifted_chebyshev", "tuvw"), ("hermite", ["h", "he"]))
    for kind in kinds
]


@pytest.mark.slow(one_of=2)
@pytest.mark.parametrize("function", POLYNOMIALS, ids=lambda f: f.__name__)
def test_polynomials(function):
    x = torch.cat([torch.linspace(-1, 1, 11), normal(20) * 1.5, torch.tensor([math.nan])]).double()

    def values(x):
        return [function(x, DEGREES), function(x, 5), function(0.3, DEGREES.double()), function(x, NO_DEGREES)]

    check_values(values, x, values(x), rtol=1e-11)


@pytest.mark.parametrize("value", [5.0, -5.5, 0.0, -0.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_truncated_constants(value, dtype):
    """Passes of torch-mlir compute with constants, and truncate them to 0."""

    def function(x):
        constant = torch.full((), value, dtype=dtype)
        return [x * constant.trunc(), x * torch.full((2,), value, dtype=dtype).fix(), x.sign(), x.trunc()]

    x = torch.tensor([2.5, -3.5], dtype=dtype)
    check_values(function, x, function(x), rtol=0, atol=0)


def test_zeta():
    x, q = torch.tensor([[0.5], [1.0], [1.5], [2.0], [3.0], [5.0], [20.0], [60.0], [300.0]]).double(), torch.cat([normal(9) * 5, torch.arange(-2, 3)]).double()
    # PyTorch's series of negative numbers loses digits.
    check_values(lambda q: [torch.special.zeta(x, q), torch.special.zeta(2, q)], q, [torch.special.zeta(x, q), torch.special.zeta(2, q)], rtol=1e-9)


def test_quantiles_of_the_normal_distribution():
    p = torch.tensor([1e-300, 1e-30, 1e-5, 0.1, 0.3, 0.5, 0.50001, 0.9, 1 - 1e-9, 0.0, 1.0, -0.1, 1.1, math.nan]).double()
    check_values(torch.special.ndtri, p, torch.special.ndtri(p), rtol=1e-10)


SIGNS = torch.tensor([[1.0, -2.0, 0.0, -0.0, math.nan, math.inf, -math.inf]])


def signs(x, y):
    of_two = [torch.fmin(x, y), torch.fmax(x, y[:, :1]), torch.copysign(x, y), torch.copysign(x, -1.0), torch.copysign(2 * x, 0.0)]
    return [*of_two, torch.sgn(x) * x, torch.angle(x) * x, torch.angle(y), torch.signbit(x)]


def test_signs_and_smaller_numbers():
    check(signs, normal(5, 7), normal(1, 7))


def test_signs_of_special_numbers():
    check(
        lambda x, y: [r.detach() for r in (torch.fmin(x, y), torch.fmax(x, y), torch.angle(x), torch.copysign(x, y.nan_to_num(1.0)))],
        SIGNS,
        SIGNS.flip(1),
        rtol=0,
        atol=0,
    )
    check(lambda x: [torch.signbit(x), 1 / x.detach(), torch.copysign(torch.ones(4), x.detach())], SIGNS[0, :4], rtol=0, atol=0)


def distances(x, y):
    norms = [torch.dist(x, y), torch.dist(x, y, 1), F.pairwise_distance(x, y)]
    return [*norms, torch.cdist(x, y[:4]), torch.cdist(x, y, 1.0), torch.cdist(x, x), F.pdist(x), F.pdist(x, 1)]


def test_distances():
    check(distances, normal(5, 7), normal(5, 7, seed=1))


def test_products_with_vectors():
    check(
        lambda x, a, v: [torch.addmv(x, a, v, beta=0.5, alpha=2), torch.addr(a, x, v), torch.lerp(a[:, :5], a[:, :5].t(), 0.3)],
        normal(5),
        normal(5, 7),
        normal(7),
    )


@pytest.mark.slow(one_of=2)
def test_special_functions_in_halves():
    in_halves(lambda x: [torch.erfc(x), torch.lgamma(x.abs() + 0.5).detach(), torch.angle(x), torch.copysign(x, x.flip(0))], normal(5, 7))
