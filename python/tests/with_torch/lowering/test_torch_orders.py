# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Medians, modes, histograms, exact numbers, segments and copies of views through torch.compile: the bits of eager PyTorch."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch_compare import check, normal

HALVES = (torch.bfloat16, torch.float16)
FLOATS = (torch.float32, *HALVES)
NAN = torch.tensor([[1.0, math.nan, 3.0, -2.0, math.nan], [0.5, 2.5, -0.5, 7.0, 1.0], [math.nan, math.nan, 2.0, math.nan, math.nan]])
INTEGERS = torch.tensor([[3, 1, 3, 2, 1, 3], [5, 4, 4, 4, 5, 0], [7, 7, 7, 7, 7, 7], [0, -1, -1, 0, 2, -1]])
LENGTHS, OFFSETS = torch.tensor([2, 0, 3, 2]), torch.tensor([0, 2, 2, 5, 7])


def medians(x):
    return [x.median(), *x.median(0), *x.median(1, keepdim=True), x.nanmedian(), *x.nanmedian(1), *x.mode(1), *x.kthvalue(2, 1)]


def extremes(x):
    """The gradient of each is that of one place: of equal elements, or of several NaN, the first one's."""
    return [*x.max(0), *x.min(-1, keepdim=True), *torch.max(x, dim=1), *torch.min(x, 0, keepdim=True)]


def histograms(x):
    edges = torch.tensor([-2.0, -0.5, 0.0, 0.25, 2.0])
    each = [torch.histogram(x, 4), torch.histogram(x, edges, density=True), torch.histogram(x, 3, range=(-1, 1), weight=x.abs())]
    return [*each[0], *each[1], *each[2], torch.histogramdd(x[:, :2], [3, 2]).hist]


def segments(x):
    kinds = ("sum", "mean", "max", "min", "prod")
    return [torch.segment_reduce(x, kind, **where, initial=1.5) for kind in kinds for where in ({"lengths": LENGTHS}, {"offsets": OFFSETS})]


def copies(x):
    views = [torch.permute_copy(x, (1, 0)), torch.view_copy(x, (5, 7)), *torch.unbind_copy(x, 1)[:2], torch.narrow_copy(x, 0, 1, 3)]
    places = [torch.take(x, LENGTHS), torch.roll(x, 3), torch.as_strided_copy(x, (5, 7), (7, 1)), x.unfold(0, 3, 2), x.put(OFFSETS[[0, 1, 3]], x[0, :3])]
    return [*views, *places, torch.index_fill(x, 0, LENGTHS[:2], x[1, 1]), x.all((0, 1)), x.all(1)]


FUNCTIONS = {
    "medians": (medians, normal(5, 7)),
    "an even number": (medians, normal(4, 6)),
    "extremes": (extremes, normal(5, 7)),
    "extremes of equal numbers": (extremes, INTEGERS.float()),
    "extremes of NaN": (extremes, NAN),
    "copies": (copies, normal(7, 5).reshape(5, 7)),
    "places that are not zero": (lambda x: [torch.nonzero_static(x > 0.5, size=n) for n in (3, 40)], normal(5, 7)),
    "maxima of bags": (lambda x: F.embedding_bag(INTEGERS[0], x, OFFSETS[[0, 1, 3]], mode="max"), normal(5, 7)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_eager(name):
    function, x = FUNCTIONS[name]
    check(lambda x: [v.detach() for v in torch.utils._pytree.tree_leaves(function(x))], x, rtol=0, atol=0)
    # Gradients are sums in another order.
    check(function, x, rtol=1e-6, atol=1e-6)


@pytest.mark.slow(one_of=2)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_values_in_halves_are_those_of_eager(dtype):
    check(lambda x: [v.detach() for v in [*medians(x), *copies(x)[:-3]]], normal(5, 7).to(dtype), rtol=0, atol=0)


def test_medians_of_nan():
    check(lambda x: [v.detach() for v in (x.median(), *x.median(1), x.nanmedian(), *x.nanmedian(1))], NAN, rtol=0, atol=0)


def test_modes_of_integers():
    check(lambda x: [x.mode(1).values, x.mode(0).values, x.median()], INTEGERS)


def test_histograms():
    check(lambda x: [v.detach() for v in histograms(x.detach())], normal(9, 7), rtol=1e-6, atol=0)


def test_segments():
    check(segments, normal(7, 5), rtol=1e-5, atol=1e-5)


def test_sums_of_exponentials_so_far():
    check(lambda x: [x.logcumsumexp(0), x.logcumsumexp(1), (1e4 * x).logcumsumexp(1).detach(), (x - math.inf).logcumsumexp(1).detach()], normal(5, 7))


@pytest.mark.slow(one_of=2)
@pytest.mark.parametrize("dtype", (torch.int64, torch.int32, torch.int16, torch.uint8), ids=str)
def test_common_divisors(dtype):
    x, y = torch.meshgrid(*[torch.tensor([0, 1, 6, 10, 17, 84, 96, 121, 55, 34]).to(dtype)] * 2, indexing="ij")
    signed = [-x, y * 120] if dtype.is_signed else [x, y]
    check(lambda x, y: [torch.gcd(x, y), torch.lcm(x, y), torch.gcd(*signed)], x, y)


EDGES = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.3, 2.0, -8.0, 65504.0, 3.4e38, 1e-45, -1e-40, 6e-8, 1.1754943508222875e-38, math.inf, -math.inf, math.nan])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exponents_and_neighbours(dtype):
    x, y = torch.meshgrid(*[EDGES.to(dtype)] * 2, indexing="ij")
    check(lambda x, y: [torch.nextafter(x, y).detach(), *torch.frexp(x.detach())], x, y, rtol=0, atol=0)


@pytest.mark.slow(one_of=3)
def test_three_dimensional_grids():
    x, grid = normal(2, 3, 4, 5, 6), normal(2, 3, 2, 4, 3) * 0.8
    kinds = [(mode, padding, align) for mode in ("bilinear", "nearest") for padding in ("zeros", "border", "reflection") for align in (False, True)]
    check(lambda x, grid: [F.grid_sample(x, grid, *kind) for kind in kinds], x, grid, rtol=1e-4, atol=1e-4)
