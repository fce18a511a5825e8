# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions, distances, and operations on signs, through torch.compile."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch_compare import check, in_halves, normal

EDGES = torch.tensor([0.0, -0.0, 1e-30, -1e-30, 1e-4, 0.5, 1.0, 1.0000001, 2.0, 3.5, 9.9, 25.0, 1e6, 1e30, -0.5, -1.5, -3.25, -9.75, math.inf, math.nan])
POSITIVE = EDGES[(EDGES > 0) | EDGES.isnan()]


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
    for function, x in ((torch.erfc, EDGES), (torch.lgamma, EDGES), (torch.erfinv, EDGES / 2), (torch.digamma, POSITIVE)):
        x = x.to(dtype)
        wide = function(x.double()).to(dtype)
        # Half a unit in the last place, and what PyTorch's own value in f64 is rounded by.
        check_values(function, x, wide, rtol=4 * unit if function is not torch.lgamma else 16 * unit)


def check_values(function, x, expected, rtol):
    import fp8.torch

    torch._dynamo.reset()
    found = torch.compile(function, backend=fp8.torch.backend("none"))(x)
    torch.testing.assert_close(found, expected, rtol=rtol, atol=1e-12, equal_nan=True)


def test_polygamma_of_higher_orders():
    x = torch.cat([normal(20).abs().double() + 0.05, -normal(9).abs().double() - 0.3])
    for n in (1, 2, 3, 5):
        check_values(lambda x, n=n: torch.polygamma(n, x), x, torch.polygamma(n, x), rtol=1e-9)


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
