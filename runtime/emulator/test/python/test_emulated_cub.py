# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cuda/cub_block.cu: CUB's primitives of blocks and warps.

import numpy
import pytest

from programs import on


def integers(count, seed=0, low=-100, high=100):
    return numpy.random.default_rng(seed).integers(low, high, count).astype(numpy.int32)


@on("cub_block")
def test_block_reduce(kernels):
    x = integers(3 * 128).reshape(3, 128)
    y = kernels.empty((3, 3), numpy.int32)
    kernels("block_reduce", 3, 128, kernels.upload(x), y)
    assert (kernels.read(y) == numpy.stack([x.sum(1), x.max(1), x[:, :77].sum(1)], 1)).all()


@on("cub_block")
def test_block_scan(kernels):
    x = integers(2 * 256).reshape(2, 256)
    y, sums = kernels.empty(x.shape, numpy.int32), kernels.empty(2, numpy.int32)
    kernels("block_scan", 2, 64, kernels.upload(x), y, sums)
    assert (kernels.read(y) == numpy.cumsum(x, 1) - x).all()
    assert (kernels.read(sums) == x.sum(1)).all()


@on("cub_block")
@pytest.mark.parametrize("n", [1, 255, 256, 700])
def test_guarded_tiles(kernels, n):
    x = integers(n)
    tiles = -(-n // 256)
    y = kernels.upload(numpy.full(tiles * 256, 12345, numpy.int32))
    kernels("guarded", tiles, 64, n, kernels.upload(x), y)
    # Loaded blocked and stored striped: thread t's item i goes from 4 t + i to 64 i + t.
    padded = numpy.full(tiles * 256, -1, numpy.int32)
    padded[:n] = x
    expected = padded.reshape(tiles, 64, 4).transpose(0, 2, 1).ravel()
    expected[n:] = 12345
    assert (kernels.read(y) == expected).all()


@on("cub_block")
def test_radix_sort_is_stable(kernels):
    keys = integers(128, low=0, high=40).astype(numpy.uint32) | 0xab0000
    a, b = kernels.upload(keys), kernels.upload(numpy.arange(128, dtype=numpy.int32))
    kernels("radix_sort", 1, 64, a, b)
    order = numpy.argsort(keys, kind="stable")
    assert (kernels.read(a) == keys[order]).all() and (kernels.read(b) == order).all()


@on("cub_block")
def test_warp_primitives(kernels):
    x, fx = integers(64), numpy.random.default_rng(1).normal(size=64).astype(numpy.float32)
    y, fy = kernels.empty((5, 64), numpy.int32), kernels.empty(64, numpy.float32)
    kernels("warp_primitives", 1, 64, kernels.upload(x), y, kernels.upload(fx), fy)
    t, warps = numpy.arange(64), x.reshape(2, 32)
    heads = (numpy.fmod(x, 5) == 0) | (t % 32 == 0)
    segment = numpy.zeros(64, numpy.int64)
    for i in numpy.flatnonzero(heads):
        end = next((j for j in range(i + 1, 64) if heads[j]), 64)
        segment[i] = x[i:end].sum()
    inclusive = numpy.maximum.accumulate(warps, 1).ravel()
    expected = [numpy.where(t % 32 == 0, numpy.repeat(warps.sum(1), 32), 0), segment, inclusive,
                numpy.where(t % 32 == 0, 0, numpy.roll(inclusive, 1)), numpy.repeat(warps[:, 7], 32)]
    assert (kernels.read(y) == numpy.stack(expected)).all()
    assert (kernels.read(fy) == numpy.where(t % 16 == 0, numpy.repeat(fx.reshape(4, 16).min(1), 16), 0)).all()
