# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cuda/groups.cu, clusters.cu and dependent.cu: cooperative groups, clusters, grids that
# overlap.

import numpy
import pytest
from formats import same_bits

from programs import on


def integers(count, seed=0, low=-100, high=100):
    return numpy.random.default_rng(seed).integers(low, high, count).astype(numpy.int32)


@on("groups")
def test_tiles(kernels):
    x = integers(96)
    y = kernels.empty((6, 96), numpy.int32)
    kernels("tiles", 1, 96, kernels.upload(x), y)
    warps, eights = x.reshape(3, 32), x.reshape(12, 8)
    ballots = ((eights > 0) << numpy.arange(8)).sum(1)
    exclusive = numpy.cumsum(eights, 1) - eights
    expected = [numpy.repeat(warps.sum(1), 32), numpy.repeat(eights.max(1), 8), numpy.cumsum(warps, 1).ravel(),
                exclusive.ravel(), numpy.repeat(eights[:, 7] + 100 * (numpy.arange(12) % 4) + 40000, 8),
                numpy.repeat((eights > 50).any(1) + 2 * (eights > -50).all(1) + 4 * ballots, 8)]
    actual = kernels.read(y)
    for i, row in enumerate(expected):
        assert (actual[i] == row).all(), "row %d" % i


@on("groups")
@pytest.mark.parametrize("low, high", [(-100, 100), (1, 9), (-9, 0)])
def test_coalesced_groups(kernels, low, high):
    x = integers(64, low=low, high=high)
    y = kernels.empty((3, 64), numpy.int32)
    kernels("coalesced", 1, 64, kernels.upload(x), y)
    expected = numpy.full((3, 64), -1)
    for first in (0, 32):
        members = first + numpy.flatnonzero(x[first:first + 32] > 0)
        if members.size:
            expected[0, members] = numpy.arange(members.size) + 100 * members.size
            expected[1, members], expected[2, members] = x[members].sum(), x[members[0]]
    assert (kernels.read(y) == expected).all()


@on("groups")
def test_labelled_groups(kernels):
    x = integers(64, seed=1)
    y = kernels.empty((3, 64), numpy.int32)
    kernels("labels", 1, 64, kernels.upload(x), y)
    expected = numpy.zeros((3, 64), numpy.int64)
    for first in (0, 32):
        for row, label in ((0, x & 3), (1, x & 1)):
            for value in range(4):
                members = first + numpy.flatnonzero(label[first:first + 32] == value)
                expected[row, members] = members.size + 100 * numpy.arange(members.size)
                if row == 0 and members.size:
                    expected[2, members] = numpy.bitwise_xor.reduce(x[members])
    assert (kernels.read(y) == expected).all()


@on("groups")
def test_tile_of_two_warps(kernels):
    x = numpy.random.default_rng(2).normal(size=(2, 64)).astype(numpy.float32)
    y = kernels.empty(x.shape, numpy.float32)
    kernels("large_tile", 1, 128, kernels.upload(x), y)
    same_bits(kernels.read(y), numpy.repeat(x.min(1), 64).reshape(2, 64))


@on("groups")
def test_grid_barrier(kernels):
    x, rounds = integers(500), 4
    a, b = kernels.upload(x), kernels.zeros(500, numpy.int32)
    kernels("stencil", 4, 64, x.size, rounds, a, b, cooperative=True)
    for _ in range(rounds):
        x = numpy.roll(x, 1) + x - numpy.roll(x, -1)
    assert (kernels.read(a) == x).all()


@on("clusters")
@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_histogram_over_a_cluster(kernels, blocks):
    x = integers(3000, low=0, high=blocks * 16)
    bins = kernels.zeros(blocks * 16, numpy.int32)
    kernels("cluster_histogram", 2 * blocks, 64, x.size, 16, kernels.upload(x), bins, shared=64, cluster=blocks)
    assert (kernels.read(bins) == numpy.bincount(x, minlength=blocks * 16)).all()


@on("clusters")
def test_places_in_a_cluster(kernels):
    y = kernels.empty((4, 6, 8), numpy.int32)
    kernels("cluster_places", (6, 4), 32, y)
    row, column = numpy.mgrid[0:4, 0:6]
    expected = [row % 2 * 2 + column % 2, 4 + 0 * row, column % 2, row % 2, 22 + 0 * row, column // 2, row // 2, 3 + 0 * row]
    assert (kernels.read(y) == numpy.stack(expected, -1)).all()


@on("clusters")
def test_ring_of_shared_memory(kernels):
    x = integers(8 * 64)
    y = kernels.empty(x.size, numpy.int32)
    kernels("ring", 8, 64, kernels.upload(x), y)
    blocks = x.reshape(2, 4, 64)
    assert (kernels.read(y).reshape(blocks.shape) == numpy.roll(blocks, -1, 1)[..., ::-1] + 3 * blocks).all()


@on("clusters")
def test_arrive_at_a_remote_barrier(kernels):
    x = integers(3 * 128)
    y = kernels.empty(x.size, numpy.int32)
    kernels("remote_arrive", 6, 128, kernels.upload(x), y)
    assert (kernels.read(y).reshape(3, 128) == 5 * x.reshape(3, 128)[:, ::-1]).all()


@on("clusters")
def test_asynchronous_stores(kernels):
    x = integers(6 * 64)
    y = kernels.empty(x.size, numpy.int32)
    kernels("store_async", 6, 64, kernels.upload(x), y)
    assert (kernels.read(y).reshape(3, 2, 64) == x.reshape(3, 2, 64)[:, ::-1]).all()


@on("dependent")
def test_dependent_grids(kernels):
    x = integers(8 * 64)
    y, z = kernels.empty(x.size, numpy.int32), kernels.empty(x.size, numpy.int32)
    kernels.launch("first", 8, 64, kernels.upload(x), y)
    kernels("second", 8, 64, y, z, programmatic=True)
    assert (kernels.read(z) == 3 * x[::-1] + (numpy.arange(x.size) % 32) ** 2).all()
