# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cuda/math.cu and half_math.cu: exact operations bit for bit, functions within the errors
# that CUDA's programming guide states for them (in units in the last place).

import math

import numpy
import pytest
from formats import BF16, DOWN, F16, NEAREST, UP, ZERO, float32, float_samples, fma_odd, quotient_odd, same_bits, same_codes, ulps

from programs import on

N = 3000
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def moderate(seed, count=N, low=-20, high=20):
    return numpy.random.default_rng(seed).uniform(low, high, count).astype(numpy.float32)


def every(function):
    """A function of Python's math for arrays; NaN and infinity where it refuses."""
    def one(x):
        try:
            return function(x)
        except ValueError:
            return numpy.nan
        except OverflowError:
            return numpy.inf
    return lambda x: numpy.array([one(float(v)) for v in x])


def within(actual, expected, limits, x):
    for row, limit in enumerate(limits):
        error = ulps(actual[row], expected[row])
        worst = numpy.argmax(error)
        assert error[worst] <= limit, "row %d: %g ulp at %r: %r for %r" % (row, error[worst], x[worst], actual[row][worst],
                                                                         expected[row][worst])


@on("math")
@pytest.mark.parametrize("x", [moderate(1), moderate(2, low=-1, high=1), float_samples(N, 3),
                               moderate(4, low=-1e6, high=1e6)], ids=["moderate", "small", "all", "large"])
def test_float_functions(kernels, x):
    kernels.exact = False  # the hardware's approximations are not the emulator's, within the same bounds
    y = kernels.empty((16, N), numpy.float32)
    kernels("float_functions", -(-N // 128), 128, N, kernels.upload(x), y)
    v, a = x.astype(numpy.float64), numpy.abs(x.astype(numpy.float64))
    f = [float(numpy.float32(c)) for c in (1.7, 0.7, 0.3)]
    expected = [numpy.exp(v), numpy.log(a), numpy.sin(v), numpy.cos(v), numpy.tanh(v), every(math.erf)(v),
                numpy.power(a, f[0]), numpy.cbrt(v), numpy.log1p(a), numpy.expm1(v), numpy.arctan2(v, f[1]), numpy.exp2(v),
                numpy.log2(a), numpy.fmod(v, f[2]), numpy.hypot(v, 3), every(math.lgamma)(a)]
    limits = [2, 1, 2, 2, 2, 2, 4, 1, 1, 1, 3, 2, 1, 0, 3, 6]
    actual = kernels.read(y)
    actual[15, (a == 0) | numpy.isinf(a)] = expected[15][(a == 0) | numpy.isinf(a)] = numpy.inf
    # A half of rounding more: the expected values are rounded to f32 to find the unit.
    within(actual, expected, [limit + 0.5 if limit else 0 for limit in limits], x)


@on("math")
@pytest.mark.parametrize("seed", [1, 2])
def test_float_operations_are_exact(kernels, seed):
    x, z = (float_samples(N, seed), float_samples(N, seed + 10)) if seed == 1 else (moderate(3), moderate(4))
    y = kernels.empty((16, N), numpy.float32)
    kernels("float_exact", -(-N // 128), 128, N, kernels.upload(x), kernels.upload(z), y)
    a, b = x.astype(numpy.float64), z.astype(numpy.float64)
    sums = fma_odd(1.0, a, b)
    rounded = numpy.trunc(a) + numpy.where(numpy.abs(a - numpy.trunc(a)) >= 0.5, numpy.copysign(1, a), 0)
    expected = [x / z, numpy.sqrt(numpy.abs(x)), float32(fma_odd(a, b, 1.0)), float32(sums, ZERO), float32(a * b, UP),
                float32(quotient_odd(a, b), DOWN), numpy.float32(1) / z, numpy.rint(x), numpy.floor(x), numpy.trunc(z),
                numpy.copysign(x, z), numpy.fmin(x, z), numpy.fmax(x, z), numpy.nextafter(x, z), float32(a * 32),
                numpy.copysign(rounded, a).astype(numpy.float32)]
    actual = kernels.read(y)
    for row, values in enumerate(expected):
        same_bits(actual[row], values)


@on("math")
def test_hardware_approximations(kernels):
    kernels.exact = False  # the hardware's approximations are not the emulator's, within the same bounds
    x = moderate(5, low=-3, high=3)
    y = kernels.empty((10, N), numpy.float32)
    kernels("float_approximate", -(-N // 128), 128, N, kernels.upload(x), y)
    v, a, actual = x.astype(numpy.float64), numpy.abs(x.astype(numpy.float64)), kernels.read(y).astype(numpy.float64)
    assert (ulps(kernels.read(y)[0], numpy.exp(v)) <= 2.5 + numpy.floor(1.173 * a)).all()
    near = (a >= 0.5) & (a <= 2)
    assert (numpy.abs(actual[1] - numpy.log2(a))[near] <= 2.0**-22).all()
    assert (ulps(kernels.read(y)[1], numpy.log2(a))[~near] <= 3.5).all()
    assert (numpy.abs(actual[2] - numpy.sin(v)) <= 2.0**-20.5).all()
    assert (numpy.abs(actual[3] - numpy.cos(v)) <= 2.0**-20.5).all()
    within(kernels.read(y)[4:6], [v / 3, 1 / numpy.sqrt(a)], [2.5, 2.5], x)
    assert (numpy.abs(actual[6] / numpy.sqrt(a) - 1) <= 2.0**-18).all()
    assert (numpy.abs(actual[7] / numpy.tanh(v) - 1) <= 2.0**-10.9).all()
    within(kernels.read(y)[8:10], [1 / v, numpy.sqrt(a)], [1.5, 2], x)


@on("math")
def test_double_functions(kernels):
    kernels.exact = False  # the hardware's approximations are not the emulator's, within the same bounds
    random = numpy.random.default_rng(6)
    x = numpy.concatenate([random.uniform(-20, 20, 1500), random.uniform(-1, 1, 700), random.uniform(-1e9, 1e9, 300),
                           random.uniform(-1e18, 1e18, 200)])
    y = kernels.empty((12, x.size), numpy.float64)
    kernels("double_functions", -(-x.size // 128), 128, x.size, kernels.upload(x), y)
    v, a = x.astype(numpy.longdouble), numpy.abs(x).astype(numpy.longdouble)
    expected = [numpy.exp(v), numpy.log(a), numpy.sin(v), numpy.cos(v), numpy.tanh(v), every(math.erf)(x), a ** 1.7, 1 / v,
                numpy.sqrt(a), None, v / 3, 1 / numpy.sqrt(a)]
    limits = [1, 1, 2, 2, 2, 2, 2, 0, 0, None, 0, 1]
    actual = kernels.read(y)
    for row in (7, 8, 10):
        same_bits(actual[row], [1 / x, numpy.sqrt(numpy.abs(x)), x / 3][(7, 8, 10).index(row)])
    chosen = [0, 1, 2, 3, 4, 5, 6, 11]
    # erf of Python is itself one unit off.
    within(actual[chosen], [expected[i] for i in chosen], [limits[i] + (1.5 if i == 5 else 0.5) for i in chosen], x)
    # v * v + 1 needs no more than 107 bits where v is an integer: compare those exactly.
    whole = numpy.abs(x) > 2.0**53
    exact = [float(int(value) ** 2 + 1) for value in x[whole]]
    assert (actual[9][whole] == exact).all()


def clamped(x, rounding, kind, nan):
    limits = numpy.iinfo(kind)
    rounded = {NEAREST: numpy.rint, ZERO: numpy.trunc, DOWN: numpy.floor, UP: numpy.ceil}[rounding](x)
    return numpy.array([nan if numpy.isnan(v) else limits.max if v >= limits.max else limits.min if v <= limits.min
                        else int(v) for v in rounded], kind)


@on("math")
def test_floats_to_integers(kernels):
    x = numpy.concatenate([float_samples(1000, 7), moderate(8, 1000, -3e9, 3e9), moderate(9, 1000, -50, 50)])
    y, wide = kernels.empty((8, N), numpy.int32), kernels.empty((5, N), numpy.int64)
    kernels("float_to_integers", -(-N // 128), 128, N, kernels.upload(x), y, wide)
    v, bits = x.astype(numpy.float64), x.view(numpy.int32)
    ints = [clamped(v, ZERO, numpy.int32, 0), clamped(v, NEAREST, numpy.int32, 0), clamped(v, DOWN, numpy.int32, 0),
            clamped(v, UP, numpy.int32, 0), clamped(v, ZERO, numpy.uint32, 0).view(numpy.int32),
            clamped(v, UP, numpy.uint32, 0).view(numpy.int32), clamped(v * 0.1, NEAREST, numpy.int32, -2**31),
            float32(bits.astype(numpy.float64), ZERO).view(numpy.int32)]
    actual = kernels.read(y)
    for row, expected in enumerate(ints):
        assert (actual[row] == expected).all(), "row %d" % row
    actual = kernels.read(wide)
    scaled = clamped(v * 7.3, DOWN, numpy.int64, -2**63)
    assert (actual[0] == clamped(v, NEAREST, numpy.int64, -2**63)).all()
    assert (actual[1].view(numpy.uint64) == clamped(v, ZERO, numpy.uint64, 2**63)).all()
    assert (actual[2] == scaled).all()
    same_bits(actual[3].view(numpy.float64), v + bits)
    products = scaled * numpy.int64(1000003)
    nearest = products.astype(numpy.float64)
    low = numpy.array([int(f) < int(p) for f, p in zip(nearest, products)])
    same_bits(actual[4].view(numpy.float64), numpy.where(low, numpy.nextafter(nearest, numpy.inf), nearest))


def codes_of_samples(kind, seed, count=N):
    """Codes of all kinds of numbers, half of them of moderate size."""
    random = numpy.random.default_rng(seed)
    codes = random.integers(0, 1 << 16, count).astype(numpy.uint16)
    codes[::2] = kind.encode(random.normal(scale=3, size=codes[::2].size))
    codes[:12] = [0, 0x8000, 1, 0x8001, 0x7c00, 0xfc00, 0x7f80, 0xff80, 0x7fff, 0x3c00, 0x3f80, 0xbc00]
    random.shuffle(codes)
    return codes


def saturated(x):
    return numpy.where(numpy.isnan(x), 0, numpy.clip(x, 0, 1))


def pick(least, nan, a, b):
    """min or max: of zeros the negative one is less; a NaN is passed over or returned."""
    ordered = numpy.where(a == b, numpy.signbit(b) == least, (b < a) == least)
    take_b = numpy.where(numpy.isnan(a) | numpy.isnan(b), numpy.isnan(a) != nan, ordered)
    return numpy.where(take_b, b, a)


@on("half_math")
@pytest.mark.parametrize("name, kind", [("half_scalar", F16), ("bf16_scalar", BF16)])
def test_halves(kernels, name, kind):
    kernels.exact = False  # some NaNs have other bits on an H100
    codes = [codes_of_samples(kind, seed) for seed in (1, 2, 3)]
    y = kernels.empty((16, N), numpy.uint16)
    kernels(name, -(-N // 128), 128, N, *map(kernels.upload, codes), y)
    a, b, c = map(kind.decode, codes)
    fused = fma_odd(a, b, c)
    actual = kernels.read(y)
    exact = {0: fma_odd(1.0, a, b), 1: fma_odd(-1.0, b, a), 2: a * b, 3: fused, 5: pick(True, False, a, b),
             6: pick(False, True, a, b), 7: numpy.abs(a), 8: -a, 12: numpy.floor(a), 13: numpy.rint(a), 14: numpy.trunc(a),
             15: numpy.ceil(a)}
    for row, values in exact.items():
        same_codes(kind, actual[row], kind.encode(values))
    # Clamped results: either zero will do.
    for row, values in {4: numpy.where(fused < 0, 0, fused), 9: saturated(exact[0]), 10: saturated(fused)}.items():
        numpy.testing.assert_array_equal(kind.decode(actual[row]), kind.decode(kind.encode(values)))
    nan = numpy.isnan(a) | numpy.isnan(b)
    flags = [a < b, (a <= b) | nan, a == b, (a != b) | nan, a > b, numpy.isnan(a), numpy.isinf(a), a >= b]
    assert (actual[11] == sum(flag.astype(numpy.int64) << i for i, flag in enumerate(flags))).all()


@on("half_math")
@pytest.mark.parametrize("name, kind", [("half_pairs", F16), ("bf16_pairs", BF16)])
def test_packed_halves(kernels, name, kind):
    kernels.exact = False  # some NaNs have other bits on an H100
    codes = [codes_of_samples(kind, seed).reshape(-1, 2) for seed in (4, 5, 6)]
    count = len(codes[0])
    y = kernels.empty((8, count, 2), numpy.uint16)
    kernels(name, -(-count // 128), 128, count, *map(kernels.upload, codes), y)
    a, b, c = map(kind.decode, codes)
    nan, fused = numpy.isnan(a) | numpy.isnan(b), fma_odd(a, b, c)
    rows = [fma_odd(1.0, a, b), a * b, fused]
    if kind is F16:
        rows += [pick(True, True, a, b), (a < b) * 1.0, None, numpy.stack([a[:, 0], b[:, 0]], 1), None]
        clamped_rows = {5: numpy.where(fused < 0, 0, fused), 7: saturated(fma_odd(-1.0, b, a))}
    else:
        rows += [pick(False, False, a, b), ((a >= b) | nan) * 1.0, -a, numpy.stack([a[:, 1], b[:, 1]], 1), numpy.abs(b)]
        clamped_rows = {}
    actual = kernels.read(y)
    for row, values in enumerate(rows):
        if values is not None:
            same_codes(kind, actual[row], kind.encode(values))
    for row, values in clamped_rows.items():
        numpy.testing.assert_array_equal(kind.decode(actual[row]), kind.decode(kind.encode(values)))


@on("half_math")
def test_functions_of_halves(kernels):
    n = 2000
    x = numpy.random.default_rng(7).uniform(0.01, 8, n)
    h, b = F16.encode(x), BF16.encode(x)
    hy, by = kernels.empty((8, n), numpy.uint16), kernels.empty((8, n), numpy.uint16)
    kernels("half_functions", -(-n // 128), 128, n, kernels.upload(h), hy, kernels.upload(b), by)
    for kind, codes, actual in ((F16, h, kernels.read(hy)), (BF16, b, kernels.read(by))):
        v = kind.decode(codes)
        expected = [numpy.exp(v), numpy.log2(v), 1 / v, numpy.sqrt(v), numpy.sin(v), numpy.tanh(v), v / v[0], numpy.exp2(v)]
        for row, values in enumerate(expected):
            distance = numpy.abs(actual[row].astype(numpy.int64) - kind.encode(values).astype(numpy.int64))
            assert (distance <= 2).all(), "row %d at %r" % (row, v[numpy.argmax(distance)])
