# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Conversions between formats: cuda_fp8.h's for every input of 8 and 16 bits and f32 in
# strides, FP4, FP6 and E8M0, cuda_fp16.h's and cuda_bf16.h's in every rounding.

import numpy
import pytest
from formats import BF16, DOWN, E2M1, E2M3, E3M2, E4M3, E5M2, F16, NEAREST, UP, ZERO, e8m0, float_samples, integers_odd, same_bits, same_codes

from programs import on

ALL16 = numpy.arange(1 << 16, dtype=numpy.uint16)
# Every 2^32 / 65536th f32, and all that lie near the FP8 formats' own.
STRIDES = [(0, 65537), (0x36000000, 4099), (0xB6000000, 4099), (0x43D00000, 16), (0x477F0000, 8)]


def fp8_ways(x):
    """Saturated and not, of both formats. NaN is the code of all ones, positive."""
    return numpy.stack([E4M3.encode(x, saturate=True), E4M3.encode(x), E5M2.encode(x, saturate=True), E5M2.encode(x)])


@on("fp8_convert")
@pytest.mark.parametrize("name, source", [("half_to_fp8", F16), ("bf16_to_fp8", BF16)])
def test_every_half_to_fp8(kernels, name, source):
    y = kernels.empty((4, 1 << 16), numpy.uint8)
    kernels(name, 256, 256, 1 << 16, y)
    expected = fp8_ways(source.decode(ALL16))
    assert (kernels.read(y) == expected).all()


@on("fp8_convert")
@pytest.mark.parametrize("first, stride", STRIDES)
def test_floats_to_fp8(kernels, first, stride):
    n = 1 << 16
    y = kernels.empty((4, n), numpy.uint8)
    kernels("float_to_fp8", 64, 256, n, numpy.uint32(first), numpy.uint32(stride), y)
    x = ((first + numpy.arange(n) * stride) % (1 << 32)).astype(numpy.uint32).view(numpy.float32)
    assert (kernels.read(y) == fp8_ways(x)).all()


@on("fp8_convert")
def test_doubles_to_fp8(kernels):
    # Halfway between neighbours and a little beside it: only one rounding gives these.
    middles = numpy.concatenate([(E4M3.positive[1:] + E4M3.positive[:-1]) / 2, (E5M2.positive[1:] + E5M2.positive[:-1]) / 2])
    x = numpy.concatenate([middles * factor for factor in (1, 1 + 2e-16, 1 - 2e-16, -1, -1 - 2e-16)] + [[1e300, -numpy.inf]])
    y = kernels.empty((4, x.size), numpy.uint8)
    kernels("double_to_fp8", -(-x.size // 128), 128, x.size, kernels.upload(x), y)
    assert (kernels.read(y) == fp8_ways(x)).all()


@on("fp8_convert")
def test_pairs_to_fp8(kernels):
    x = float_samples(4000).reshape(-1, 2)
    x[1000:] = numpy.random.default_rng(1).normal(scale=30, size=x[1000:].shape)
    y = kernels.empty((6, len(x)), numpy.uint16)
    kernels("pairs_to_fp8", 16, 128, len(x), kernels.upload(x), y)
    h, b = F16.decode(F16.encode(x)), BF16.decode(BF16.encode(x))
    for row, (values, kind) in zip(kernels.read(y), [(x, E4M3), (x, E5M2), (h, E4M3), (h, E5M2), (b, E4M3), (b, E5M2)]):
        codes = kind.encode(values, saturate=True).astype(numpy.uint16)
        assert (row == codes[:, 0] | codes[:, 1] << 8).all()


@on("fp8_convert")
def test_every_fp8_to_wide(kernels):
    halves, floats, pairs = (kernels.empty((2, 256), kind) for kind in (numpy.uint16, numpy.float32, numpy.uint32))
    kernels("fp8_to_wide", 1, 256, halves, floats, pairs)
    codes = numpy.arange(256)
    h, f, p = kernels.read(halves), kernels.read(floats), kernels.read(pairs)
    for i, kind in enumerate((E4M3, E5M2)):
        same_codes(F16, h[i], F16.encode(kind.decode(codes)))
        same_bits(f[i], kind.decode(codes).astype(numpy.float32))
        same_codes(F16, (p[i] & 0xffff).astype(numpy.uint16), F16.encode(kind.decode(codes)))
        same_codes(F16, (p[i] >> 16).astype(numpy.uint16), F16.encode(kind.decode(255 - codes)))


@on("fp8_convert")
def test_fp8_classes(kernels):
    x = numpy.random.default_rng(2).normal(scale=100, size=(500, 4)).astype(numpy.float32)
    packed, back, ints = (kernels.empty(shape, kind) for shape, kind in
                          ((500, numpy.uint32), (x.shape, numpy.float32), (500, numpy.int32)))
    kernels("fp8_classes", 4, 128, 500, kernels.upload(x), packed, back, ints)
    codes = E4M3.encode(x, saturate=True)
    assert (kernels.read(packed) == codes.view(numpy.uint32)[:, 0]).all()
    same_bits(kernels.read(back), E4M3.decode(codes).astype(numpy.float32))
    one = E5M2.decode(E5M2.encode(x[:, 0], saturate=True))
    assert (kernels.read(ints) == numpy.trunc(one) + 1000000 * (one != 0)).all()


@on("fp8_convert")
def test_scales_in_e8m0(kernels):
    x = numpy.concatenate([numpy.abs(float_samples(2000)), numpy.ldexp(numpy.float32(1), numpy.arange(-149, 128)),
                           numpy.ldexp(numpy.float32(1.5), numpy.arange(-148, 128))]).astype(numpy.float32)
    y, back = kernels.empty((4, x.size), numpy.uint8), kernels.empty(256, numpy.float32)
    kernels("scales", -(-x.size // 128), 128, x.size, kernels.upload(x), y, back)
    assert (kernels.read(y) == numpy.stack([e8m0(x), e8m0(x, up=True), e8m0(x, saturate=False),
                                            e8m0(x, up=True, saturate=False)])).all()
    wide = numpy.ldexp(1.0, numpy.arange(256) - 127)
    wide[255] = numpy.nan
    same_bits(kernels.read(back), wide.astype(numpy.float32))


def narrow_samples():
    values = float_samples(3000).astype(numpy.float32)
    values[1000:] = numpy.random.default_rng(3).normal(scale=4, size=2000)
    values[2000:] = numpy.random.default_rng(4).integers(-240, 240, 1000) / 32
    return values.reshape(-1, 2)


@on("narrow_convert")
def test_to_fp4(kernels):
    x = narrow_samples()
    pairs, fours = kernels.empty(len(x), numpy.uint8), kernels.empty(len(x), numpy.uint16)
    kernels("to_fp4", 16, 128, len(x), kernels.upload(x), pairs, fours)

    def code(values):
        return numpy.where(numpy.isnan(values), 7, E2M1.encode(values, saturate=True)).astype(numpy.uint16)

    low, high = code(x[:, 0]), code(x[:, 1])
    assert (kernels.read(pairs) == low | high << 4).all()
    assert (kernels.read(fours) == low | high << 4 | code(-x[:, 1]) << 8 | code(numpy.float32(0.5) * x[:, 0]) << 12).all()


@on("narrow_convert")
def test_to_fp6(kernels):
    x = narrow_samples()
    y = kernels.empty((2, len(x)), numpy.uint16)
    kernels("to_fp6", 16, 128, len(x), kernels.upload(x), y)
    for row, kind in zip(kernels.read(y), (E3M2, E2M3)):
        codes = numpy.where(numpy.isnan(x), 31, kind.encode(x, saturate=True)).astype(numpy.uint16)
        assert (row == codes[:, 0] | codes[:, 1] << 8).all()


@on("narrow_convert")
def test_from_fp4_and_fp6(kernels):
    pairs, halves = kernels.empty(256, numpy.uint32), kernels.empty((2, 64), numpy.uint16)
    kernels("from_narrow", 1, 256, pairs, halves)
    codes = numpy.arange(256)
    low, high = (F16.encode(E2M1.decode(part)).astype(numpy.uint32) for part in (codes & 15, codes >> 4))
    assert (kernels.read(pairs) == low | high << 16).all()
    same_codes(F16, kernels.read(halves), numpy.stack([F16.encode(kind.decode(codes[:64])) for kind in (E3M2, E2M3)]))


@on("half_math")
@pytest.mark.parametrize("first, stride", [(0, 65537), (0x33000000, 8191), (0x477FE000, 1), (0xC7800000, 3)])
def test_floats_to_halves_in_all_roundings(kernels, first, stride):
    kernels.exact = False  # some NaNs have other bits on an H100
    n = 1 << 16
    h, b = kernels.empty((6, n), numpy.uint16), kernels.empty((6, n), numpy.uint16)
    kernels("float_to_halves", 32, 256, n, numpy.uint32(first), numpy.uint32(stride), h, b)
    x = ((first + numpy.arange(n) * stride) % (1 << 32)).astype(numpy.uint32).view(numpy.float32).astype(numpy.float64)
    for kind, codes in ((F16, kernels.read(h)), (BF16, kernels.read(b))):
        for row, rounding in enumerate((NEAREST, ZERO, DOWN, UP)):
            same_codes(kind, codes[row], kind.encode(x, rounding))
        same_codes(kind, codes[4], kind.encode(x * 1.0000000001))
        same_codes(kind, codes[5], kind.encode(-x))


def to_integer(x, rounding, kind, nan=0):
    limits = numpy.iinfo(kind)
    rounded = {NEAREST: numpy.rint, ZERO: numpy.trunc, DOWN: numpy.floor, UP: numpy.ceil}[rounding](x)
    clamped = [nan if numpy.isnan(v) else limits.max if v >= limits.max else limits.min if v <= limits.min else int(v)
               for v in rounded]
    return numpy.array(clamped, kind)


@on("half_math")
def test_every_half_to_integers(kernels):
    n = 1 << 16
    h, b = kernels.empty((6, n), numpy.int32), kernels.empty((6, n), numpy.int32)
    wide, floats = kernels.empty((2, n), numpy.int64), kernels.empty((2, n), numpy.float32)
    kernels("halves_to_integers", 256, 256, n, h, b, wide, floats)
    ways = [(ZERO, numpy.int32), (NEAREST, numpy.int32), (DOWN, numpy.int16), (UP, numpy.uint32), (NEAREST, numpy.uint16),
            (ZERO, numpy.uint8)]
    for kind, actual in ((F16, kernels.read(h)), (BF16, kernels.read(b))):
        x = kind.decode(ALL16)
        for row, (rounding, to) in enumerate(ways):
            assert (actual[row] == to_integer(x, rounding, to).astype(numpy.int32)).all(), "row %d" % row
    # NaN becomes the top bit alone in 64 bits (PTX ISA 9.7.9.21).
    long, unsigned = kernels.read(wide)
    assert (long == to_integer(F16.decode(ALL16), NEAREST, numpy.int64, -2**63)).all()
    assert (unsigned.view(numpy.uint64) == to_integer(BF16.decode(ALL16), ZERO, numpy.uint64, 2**63)).all()
    same_bits(kernels.read(floats), numpy.stack([F16.decode(ALL16), BF16.decode(ALL16)]).astype(numpy.float32))


@on("half_math")
def test_integers_to_halves(kernels):
    random = numpy.random.default_rng(5)
    x = numpy.concatenate([random.integers(-2**31, 2**31, 500), random.integers(-70000, 70000, 500)]).astype(numpy.int32)
    wide = random.integers(-2**63, 2**63, 1000) >> random.integers(0, 63, 1000)
    h, b = kernels.empty((6, x.size), numpy.uint16), kernels.empty((6, x.size), numpy.uint16)
    kernels("integers_to_halves", 8, 128, x.size, kernels.upload(x), kernels.upload(wide), h, b)
    ways = [(x, NEAREST), (x.view(numpy.uint32), ZERO), (x.astype(numpy.int16), DOWN), (x.astype(numpy.uint16), UP),
            (wide, NEAREST), (wide.view(numpy.uint64), NEAREST)]
    for kind, actual in ((F16, kernels.read(h)), (BF16, kernels.read(b))):
        for row, (values, rounding) in enumerate(ways):
            same_codes(kind, actual[row], kind.encode(integers_odd(values), rounding))
