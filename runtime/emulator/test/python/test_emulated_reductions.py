# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cuda/reductions.cu against numpy: shuffles, votes, barriers that count, atomic operations.

import numpy
import pytest
from formats import BF16, same_bits

from programs import on

LANES = numpy.arange(32)


def integers(count, seed=0, low=-100, high=100):
    return numpy.random.default_rng(seed).integers(low, high, count).astype(numpy.int32)


def xor_tree(x):
    """Sums along the last axis of 32 by butterflies, every step rounded: what lane 0 gets."""
    for offset in (16, 8, 4, 2, 1):
        x = x + x[..., numpy.arange(32) ^ offset]
    return x[..., 0]


@on("reductions")
def test_block_sum_keeps_its_order(kernels):
    x = numpy.random.default_rng(1).normal(size=(5, 8, 32)).astype(numpy.float32)
    sums = kernels.empty(5, numpy.float32)
    kernels("block_sum", 5, 256, kernels.upload(x), sums)
    partial = numpy.zeros((5, 32), numpy.float32)
    partial[:, :8] = xor_tree(x)
    same_bits(kernels.read(sums), xor_tree(partial))


@on("reductions")
def test_block_max(kernels):
    x = integers(7 * 256, low=-10**9, high=10**9)
    result = kernels.upload(numpy.array([-2**31], numpy.int32))
    kernels("block_max_tree", 7, 256, kernels.upload(x), result)
    assert kernels.read(result)[0] == x.max()


@on("reductions")
def test_shuffles(kernels):
    x, dx = integers(32), numpy.random.default_rng(2).normal(size=32)
    y, dy = kernels.empty((8, 32), numpy.int32), kernels.empty(32, numpy.float64)
    kernels("shuffles", 1, 32, kernels.upload(x), y, kernels.upload(dx), dy)
    within8, within16 = LANES // 8 * 8, LANES // 16 * 16
    sources = [numpy.where(LANES >= 3, LANES - 3, LANES), numpy.where(LANES + 5 < 32, LANES + 5, LANES), LANES * 7 % 32,
               LANES ^ 9, numpy.where(LANES - within8 >= 2, LANES - 2, LANES),
               numpy.where(LANES - within16 + 2 < 16, LANES + 2, LANES), LANES // 4 * 4 + (LANES + 1) % 4, LANES ^ 5]
    assert (kernels.read(y) == x[numpy.array(sources)]).all()
    same_bits(kernels.read(dy), dx[numpy.where(LANES < 31, LANES + 1, LANES)])


def mask(chosen):
    return int(sum(1 << i for i in numpy.flatnonzero(chosen)))


@on("reductions")
@pytest.mark.parametrize("low, high", [(-100, 100), (5, 9), (0, 1)])
def test_votes(kernels, low, high):
    x = integers(32, low=low, high=high)
    u = x.astype(numpy.uint32)
    y = kernels.empty((12, 32), numpy.uint32)
    kernels("votes", 1, 32, kernels.upload(x), y)
    quotient = numpy.trunc(x / 1000).astype(numpy.int64)
    equal = (quotient == quotient[0]).all()
    odd = LANES % 3 == 1
    branch = (int(x[odd].sum()) ^ mask(odd & (x & 1 == 1)) ^ mask(odd)) & 0xffffffff
    same = [mask(x == value) for value in x]
    lanes = 1 << LANES.astype(numpy.int64)
    eq, le, lt, ge, gt = lanes, 2 * lanes - 1, lanes - 1, (1 << 32) - lanes, (1 << 32) - 2 * lanes
    expected = [mask(x > 0), int((x > 100).any()) | int((x > -100).all()) << 1, same,
                (mask(numpy.ones(32)) if equal else 0) + int(equal), int(x.sum()), int(x.min()), int(u.max()),
                int(numpy.bitwise_xor.reduce(x)), int(numpy.bitwise_and.reduce(x)) + int(numpy.bitwise_or.reduce(x)),
                numpy.where(odd, branch, 0), same,
                (eq + le * 3 + lt * 5 & 0xffffffff) ^ (ge * 7 + gt * 11 & 0xffffffff)]
    actual = kernels.read(y)
    for i, row in enumerate(expected):
        assert (actual[i] == numpy.asarray(row).astype(numpy.int64) % (1 << 32)).all(), "row %d" % i


@on("reductions")
def test_barriers_that_vote(kernels):
    x = numpy.stack([integers(96, low=low, high=high) for low, high in ((-100, 100), (-40, 95), (0, 5))])
    y = kernels.empty(x.shape, numpy.int32)
    kernels("barrier_votes", 3, 96, kernels.upload(x), y)
    expected = (x > 0).sum(1) + 1000 * (x > -50).all(1) + 10000 * (x > 90).any(1)
    assert (kernels.read(y) == expected[:, None]).all()


@on("reductions")
def test_atomic_integers(kernels):
    x = integers(4 * 96, seed=3, low=-2**30, high=2**30)
    first = numpy.array([5, 5, 2**31 - 1, -2**31, -1, 0, 0, 7, 0, 0, 0, 0, 0], numpy.int32)
    unsigned, wide = numpy.array([0, 7, 2**32 - 1, 0], numpy.uint32), numpy.array([0, 0, 2**63 - 1, 2**64 - 1, 0, 0], numpy.uint64)
    a, b, c = kernels.upload(first), kernels.upload(unsigned), kernels.upload(wide)
    kernels("atomics_int", 4, 96, kernels.upload(x), a, b, c)
    total = x.astype(numpy.int64)
    assert kernels.read(a).tolist() == [
        int(numpy.int64(5 + total.sum()).astype(numpy.int32)), int(numpy.int64(5 - total.sum()).astype(numpy.int32)),
        x.min(), x.max(), numpy.bitwise_and.reduce(x | 0xff), numpy.bitwise_or.reduce(x & 0xff00),
        numpy.bitwise_xor.reduce(x), 7, 2 * x.size, 96, 96, 96, 96]
    # inc wraps to 0 behind 100, dec to 100 behind 0.
    assert kernels.read(b).tolist() == [x.size % 101, (7 - x.size) % 101, x.view(numpy.uint32).min(),
                                        x.view(numpy.uint32).max()]
    bits, u = numpy.uint64(1) << (x & 63).astype(numpy.uint64), total.view(numpy.uint64)
    assert kernels.read(c).tolist() == [
        int(total.sum()) % 2**64, int((u << numpy.uint64(20)).max()), int((total << 20).min()) % 2**64,
        ~int(numpy.bitwise_or.reduce(bits)) % 2**64, int(numpy.bitwise_or.reduce(bits)),
        int(numpy.bitwise_xor.reduce(u * numpy.uint64(0x100000001)))]


@on("reductions")
def test_atomic_floats_that_need_no_rounding(kernels):
    x = (integers(3 * 64, low=-16, high=16) / 8).astype(numpy.float32)
    f, d = kernels.zeros(1, numpy.float32), kernels.zeros(1, numpy.float64)
    h, b, h1 = kernels.zeros(2, numpy.float16), kernels.zeros(2, numpy.uint16), kernels.zeros(1, numpy.float16)
    kernels("atomics_float", 3, 64, kernels.upload(x), f, d, h, b, h1)
    total = float(x.astype(numpy.float64).sum())
    assert kernels.read(f)[0] == total and kernels.read(d)[0] == total and kernels.read(h1)[0] == total
    assert kernels.read(h).tolist() == [total, -total]
    assert BF16.decode(kernels.read(b)).tolist() == [(x > 0).sum(), (x < 0).sum()]


@on("reductions")
def test_tickets_maximum_and_lock(kernels):
    x = numpy.random.default_rng(5).uniform(0, 1, 3 * 64).astype(numpy.float32)
    drawn, greatest, guarded = kernels.zeros(x.size, numpy.int32), kernels.zeros(1, numpy.float32), kernels.zeros(1, numpy.int32)
    kernels("tickets", 3, 64, kernels.zeros(1, numpy.int32), drawn, greatest, kernels.zeros(1, numpy.int32), guarded,
            kernels.upload(x))
    assert (kernels.read(drawn) == 1).all()
    assert kernels.read(greatest)[0] == x.max() and kernels.read(guarded)[0] == x.size


@on("reductions")
def test_last_block_adds_all(kernels):
    x, total = integers(9 * 64), kernels.zeros(1, numpy.int32)
    finished = kernels.zeros(1, numpy.uint32)
    kernels("last_block", 9, 64, kernels.upload(x), kernels.zeros(9, numpy.int32), finished, total)
    assert kernels.read(total)[0] == x.sum() and kernels.read(finished)[0] == 0


@on("reductions")
def test_histogram(kernels):
    x = numpy.random.default_rng(6).integers(0, 256, 5000).astype(numpy.uint8)
    bins = kernels.zeros(256, numpy.uint32)
    kernels("histogram", 4, 96, x.size, kernels.upload(x), bins)
    assert (kernels.read(bins) == numpy.bincount(x, minlength=256)).all()
