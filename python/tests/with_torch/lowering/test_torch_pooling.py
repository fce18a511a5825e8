# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pooling, padding, sampling of images and bags of embeddings through torch.compile, forward and backward."""

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from torch_compare import check, in_halves, normal

IMAGES, VOLUMES = normal(2, 3, 8, 9), normal(2, 3, 5, 6, 4)
TIES = torch.randint(3, (2, 3, 5, 6, 4), generator=torch.Generator().manual_seed(0)).float()
SPECIAL = VOLUMES.clone()
SPECIAL[0, 0, 1, 2, 3], SPECIAL[1, 2, 0, 0, 0] = torch.nan, torch.inf
FUNCTIONS = {
    "adaptive_max_pool": (lambda x: [F.adaptive_max_pool1d(x[0], 4), F.adaptive_max_pool2d(x, (3, 4)), F.adaptive_max_pool2d(x, 1)], IMAGES),
    "adaptive_max_pool3d": (lambda x: F.adaptive_max_pool3d(x, (2, 3, 1), return_indices=True), VOLUMES),
    "adaptive_max_pool3d of ties": (lambda x: F.adaptive_max_pool3d(x, (2, 4, 3), return_indices=True), TIES),
    "adaptive_avg_pool3d": (lambda x: [F.adaptive_avg_pool3d(x, (2, 3, 1)), F.adaptive_avg_pool3d(x, 1), F.adaptive_avg_pool3d(x[0], (4, 4, 4))], VOLUMES),
    "max_pool3d": (lambda x: [F.max_pool3d(x, 3, 2, 1), F.max_pool3d(x, 2, 1), F.max_pool3d(x, (2, 1, 3), ceil_mode=True), F.max_pool3d(x[0], 2)], VOLUMES),
    "max_pool3d of ties": (lambda x: F.max_pool3d(x, 2, 1, return_indices=True), TIES),
    "max_pool3d of special numbers": (lambda x: [F.max_pool3d(x.detach(), 2), F.adaptive_max_pool3d(x.detach(), 2)], SPECIAL),
    "replicate": (lambda x: [F.pad(x[0], (2, 1), mode="replicate"), F.pad(x, (2, 1, 0, 3), mode="replicate")], IMAGES),
    "replicate, 3": (lambda x: F.pad(x, (2, 1, 1, 0, 1, 1), mode="replicate"), VOLUMES),
    "replicate one element": (lambda x: F.pad(x, (3, 2), mode="replicate"), normal(1, 1)),
    "replicate, cut": (lambda x: F.pad(x[0], (-2, 3), mode="replicate"), IMAGES),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_pooling_and_padding(name):
    check(*FUNCTIONS[name])


@pytest.mark.slow(one_of=3)
@pytest.mark.parametrize("name", ["adaptive_max_pool", "max_pool3d"])
def test_pooling_and_padding_in_halves(name):
    in_halves(*FUNCTIONS[name])


def bilinear(x, grid):
    grids = grid.tanh() * 1.2
    return [F.grid_sample(x, grids, padding_mode=mode, align_corners=align) for mode in ("zeros", "border", "reflection") for align in (True, False)]


def test_grid_sample():
    # Places are products of coordinates and sizes: their last bit moves a value by that of its slope.
    check(bilinear, IMAGES, normal(2, 4, 4, 2), rtol=1e-4, atol=1e-4)


@pytest.mark.slow(one_of=2)
def test_grid_sample_by_other_means():
    def others(x, grid, volume, grids):
        nearest = F.grid_sample(x, grid.detach().tanh(), mode="nearest", align_corners=False)
        cubic = F.grid_sample(x, grid.tanh(), mode="bicubic", align_corners=True)
        return nearest, cubic, *[F.grid_sample(volume, grids, align_corners=align) for align in (True, False)]

    check(others, IMAGES, normal(2, 4, 4, 2), VOLUMES, normal(2, 3, 2, 2, 3), rtol=1e-4, atol=1e-4)


SIZES = [{"size": (5, 7)}, {"size": (17, 4)}, {"size": (1, 1)}, {"scale_factor": (0.37, 1.9)}, {"scale_factor": 0.5, "recompute_scale_factor": True}]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_resizing_with_antialias(mode):
    aligned = [] if mode == "lanczos" else [{"size": (3, 20), "align_corners": True}]
    check(lambda x: [F.interpolate(x, mode=mode, antialias=True, **size) for size in SIZES + aligned], IMAGES)
    check(lambda x: F.interpolate(x, 3, mode=mode, antialias=True), normal(1, 1, 1, 1).double())


WRONG_CALLS = [
    {"size": (4, 5), "scale_factor": 2.0},
    {"size": (4, 5, 6)},
    {"size": (4, 5), "recompute_scale_factor": True},
    {"scale_factor": (2.0, 2.0, 2.0)},
    {"scale_factor": -1.0},
    {"size": 0},
    {"size": (4, 5), "mode": "lanczos", "align_corners": True},
]


@pytest.mark.parametrize("call", WRONG_CALLS, ids=str)
def test_wrong_calls_of_resizing_have_pytorchs_error(call):
    call = {"mode": "bilinear", "antialias": True, **call}
    with pytest.raises((ValueError, RuntimeError)):
        F.interpolate(IMAGES, **call)
    torch._dynamo.reset()
    # Its own error, or that of compiling the call; never a result.
    with pytest.raises((ValueError, RuntimeError, fp8.Error)):
        torch.compile(lambda x: F.interpolate(x, **call), backend=fp8.torch.backend("none"))(IMAGES)


def test_resizing_in_other_ways_is_pytorchs():
    kinds = [{"mode": "bilinear"}, {"mode": "nearest"}, {"mode": "bicubic", "align_corners": True}]
    check(lambda x: [F.interpolate(x, size=(5, 7), **kind) for kind in kinds], IMAGES)
    check(lambda x: F.interpolate(x, size=7, mode="bilinear", antialias=True), IMAGES)


TOKENS, FLAT, OFFSETS = torch.tensor([[1, 2, 1], [0, 3, 9]]), torch.tensor([1, 2, 0, 3, 4, 1]), torch.tensor([0, 2, 2, 6])


def bags(table, factors):
    of_rows = [F.embedding_bag(TOKENS, table, mode=mode, padding_idx=p) for mode in ("mean", "sum", "max") for p in (None, 1)]
    apart = [F.embedding_bag(FLAT, table, OFFSETS, mode=mode) for mode in ("mean", "sum")]
    ends = F.embedding_bag(FLAT, table, OFFSETS, include_last_offset=True)
    return [*of_rows, *apart, ends, F.embedding_bag(TOKENS, table, per_sample_weights=factors, mode="sum")]


def test_embedding_bag():
    check(bags, normal(10, 6), normal(2, 3))


def test_gradients_of_embeddings_by_frequency():
    check(lambda table: [F.embedding(TOKENS, table, scale_grad_by_freq=True), F.embedding(TOKENS, table, 1, scale_grad_by_freq=True)], normal(10, 6))


def test_gradients_of_replication_pads_in_halves():
    """PyTorch rounds every sum of a corner's gradient; here they are near those of f32."""

    def gradient(function, x, weight):
        x = x.clone().requires_grad_()
        (function(x) * weight).sum().backward()
        return x.grad

    x = normal(2, 3, 5, 4).bfloat16()
    pad = lambda x: F.pad(x, (2, 1, 0, 3), mode="replicate")  # noqa: E731 - as a user writes it
    weight = normal(2, 3, 8, 7).bfloat16()
    found = gradient(torch.compile(pad, backend=fp8.torch.backend("none")), x, weight)
    expected = gradient(pad, x.float(), weight.float())
    torch.testing.assert_close(found.float(), expected, rtol=2**-7, atol=2**-7)
