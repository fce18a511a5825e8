# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Number formats by enumeration: every code of a narrow format has its value, and a number
# is rounded by looking for its neighbours. Slow, and hard to get wrong.

from fractions import Fraction

import numpy

NEAREST, ZERO, DOWN, UP = "nearest", "zero", "down", "up"


class Format:
    """A binary format of a sign, `exponent` and `mantissa` bits. `specials`: "ieee" has
    infinities and NaNs, "nan" NaNs only (all ones), "none" neither."""

    def __init__(self, exponent, mantissa, specials="ieee"):
        self.bits, self.specials, self.mantissa = 1 + exponent + mantissa, specials, mantissa
        self.type = numpy.uint8 if self.bits <= 8 else numpy.uint16
        bias = (1 << exponent - 1) - 1
        codes = numpy.arange(1 << self.bits - 1)
        power, fraction = codes >> mantissa, (codes & (1 << mantissa) - 1) / (1 << mantissa)
        values = numpy.where(power == 0, numpy.ldexp(fraction, 1 - bias), numpy.ldexp(1 + fraction, power - bias))
        top = (1 << exponent) - 1 << mantissa
        self.largest = {"ieee": top - 1, "nan": codes[-1] - 1, "none": codes[-1]}[specials]
        self.infinity = top if specials == "ieee" else None
        self.nan = None if specials == "none" else int(codes[-1])
        self.positive = values[:self.largest + 1]
        if specials == "ieee":
            values[top], values[top + 1:] = numpy.inf, numpy.nan
        elif specials == "nan":
            values[-1] = numpy.nan
        self.values = numpy.concatenate([values, -values])

    def decode(self, codes):
        return self.values[numpy.asarray(codes).astype(numpy.int64) & (1 << self.bits) - 1]

    def encode(self, x, rounding=NEAREST, saturate=False, nan=None):
        """The codes of f64 numbers. Beyond the largest value: that value where `saturate`,
        else infinity, or NaN in formats without. `nan` replaces the NaN's code."""
        x = numpy.asarray(x, numpy.float64)
        size, negative = numpy.abs(x), numpy.signbit(x)
        step = self.positive[-1] - self.positive[-2]
        grid = numpy.append(self.positive, self.positive[-1] + step)  # one more: where overflow begins
        low = numpy.minimum(numpy.searchsorted(grid, size, side="right") - 1, len(grid) - 1)
        high = numpy.minimum(low + (grid[low] < size), len(grid) - 1)
        middle = (grid[low] + grid[high]) / 2
        away = {NEAREST: (size > middle) | ((size == middle) & (low % 2 == 1)), ZERO: numpy.zeros(x.shape, bool),
                DOWN: negative, UP: ~negative}[rounding]
        codes = numpy.where(away, high, low)
        overflow = codes > self.largest
        # Directed rounding towards zero stops at the largest value; so does a finite number beyond the grid.
        toward_zero = {NEAREST: numpy.zeros(x.shape, bool), ZERO: numpy.ones(x.shape, bool), DOWN: ~negative,
                       UP: negative}[rounding] & numpy.isfinite(size)
        beyond = self.infinity if self.infinity is not None else self.nan
        limited = self.largest if saturate or beyond is None else numpy.where(toward_zero, self.largest, beyond)
        codes = numpy.where(overflow, limited, codes) + (negative.astype(numpy.int64) << self.bits - 1)
        if self.nan is not None:
            codes = numpy.where(numpy.isnan(x), self.nan if nan is None else nan, codes)
        return codes.astype(self.type)


F16, BF16 = Format(5, 10), Format(8, 7)
E4M3, E5M2 = Format(4, 3, "nan"), Format(5, 2)
E3M2, E2M3, E2M1 = Format(3, 2, "none"), Format(2, 3, "none"), Format(2, 1, "none")
TF32 = Format(8, 10)
TF32.type = numpy.uint32


def e8m0(x, up=False, saturate=True):
    """Codes of 2^(code - 127) for positive f32: towards zero or up; 255 is NaN."""
    fraction, power = numpy.frexp(numpy.asarray(x, numpy.float64))
    codes = power - 1 + 127 + (up & (fraction > 0.5))
    codes = numpy.where(x == 0, 0, numpy.clip(codes, 0, 255))
    codes = numpy.where(numpy.isinf(x) | (codes == 255), 254 if saturate else 255, codes)
    return numpy.where(numpy.isnan(x), 255, codes).astype(numpy.uint8)


def bits(array):
    """The bits of floats as unsigned integers."""
    array = numpy.asarray(array)
    return array.view("u%d" % array.dtype.itemsize)


def same_bits(actual, expected):
    """Equal bit for bit, but any NaN for a NaN."""
    actual, expected = numpy.asarray(actual), numpy.asarray(expected)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    wrong = (bits(actual) != bits(expected)) & ~(numpy.isnan(actual) & numpy.isnan(expected))
    at = numpy.argwhere(wrong)[:4]
    assert not wrong.any(), "%d differ, first at %s: %s for %s" % (
        wrong.sum(), at.tolist(), actual[tuple(at.T)].tolist(), expected[tuple(at.T)].tolist())


def ulps(actual, expected):
    """The distance of floats from exact values (of a wider type), in units in the last
    place of their own type; 0 where both are NaN or the same infinity."""
    actual = numpy.asarray(actual)
    rounded = expected.astype(actual.dtype)
    same = (numpy.isnan(actual) & numpy.isnan(rounded)) | (actual == rounded)
    with numpy.errstate(invalid="ignore", over="ignore"):
        unit = numpy.spacing(numpy.abs(rounded)).astype(numpy.float64)
        distance = numpy.abs(actual.astype(numpy.float64) - expected.astype(numpy.float64)) / unit
    return numpy.where(same, 0, numpy.where(numpy.isnan(distance), numpy.inf, distance))


def float_samples(count, seed=0):
    """f32 over all exponents, both signs, with the awkward ones first."""
    awkward = [0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF,
               0x00000001, 0x807FFFFF, 0x00800000, 0x3F7FFFFF, 0x3F800001, 0x4B000000, 0x4AFFFFFF, 0x4F000000]
    random = numpy.random.default_rng(seed).integers(0, 1 << 32, count - len(awkward), numpy.uint64)
    return numpy.concatenate([numpy.array(awkward, numpy.uint32), random.astype(numpy.uint32)]).view(numpy.float32)


def make_odd(total, error):
    """An f64 result that lies `error` away from the exact one (only its sign counts),
    rounded to odd instead: rounding it again, to a narrower type, gives what one rounding gives."""
    total = numpy.asarray(total, numpy.float64)
    inexact = numpy.isfinite(total) & (error != 0) & (total.view(numpy.int64) & 1 == 0)
    step = numpy.where((error > 0) == (total > 0), 1, -1)
    return numpy.where(inexact, total.view(numpy.int64) + step, total.view(numpy.int64)).view(numpy.float64)


def fma_odd(a, b, c):
    """a * b + c of numbers whose products f64 holds exactly, rounded to odd."""
    a, b, c = (numpy.asarray(x, numpy.float64) for x in (a, b, c))
    with numpy.errstate(all="ignore"):
        product, total = a * b, a * b + c
        error = numpy.where(numpy.abs(product) > numpy.abs(c), c - (total - product), product - (total - c))
    return make_odd(total, error)


def quotient_odd(a, b):
    """a / b rounded to odd, for f32."""
    a, b = numpy.asarray(a, numpy.float64), numpy.asarray(b, numpy.float64)
    with numpy.errstate(all="ignore"):
        quotient = a / b
    exact = numpy.isfinite(quotient) & numpy.isfinite(b) & (quotient != 0)
    error = numpy.zeros(a.shape)
    for i in numpy.flatnonzero(exact):
        difference = Fraction(a[i]) / Fraction(b[i]) - Fraction(quotient[i])
        error[i] = (difference > 0) - (difference < 0)
    return make_odd(quotient, error)


def integers_odd(values):
    """Integers of any size as f64, rounded to odd."""
    def one(value):
        shift = max(abs(value).bit_length() - 53, 0)
        kept = abs(value) >> shift
        kept |= int(abs(value) != kept << shift)
        return float(-kept if value < 0 else kept) * 2.0 ** shift
    return numpy.array([one(int(value)) for value in values])


def float32(x, rounding=NEAREST):
    """f64 to f32; x exact or rounded to odd."""
    x = numpy.asarray(x, numpy.float64)
    with numpy.errstate(over="ignore"):
        y = x.astype(numpy.float32)
        wide = y.astype(numpy.float64)
        infinity = numpy.float32(numpy.inf)
        if rounding == UP or rounding == ZERO:
            low = (wide < x) if rounding == UP else (wide < x) & (x < 0)
            y = numpy.where(low, numpy.nextafter(y, infinity), y)
        if rounding == DOWN or rounding == ZERO:
            high = (wide > x) if rounding == DOWN else (wide > x) & (x > 0)
            y = numpy.where(high, numpy.nextafter(y, -infinity), y)
    return y


def same_codes(kind, actual, expected):
    """Equal codes of a format, but any NaN for a NaN."""
    actual, expected = numpy.asarray(actual), numpy.asarray(expected)
    nan = numpy.isnan(kind.decode(actual)) & numpy.isnan(kind.decode(expected))
    wrong = numpy.argwhere((actual != expected) & ~nan)
    assert not wrong.size, "%d differ, first at %s: %s for %s" % (
        len(wrong), wrong[:4].tolist(), actual[tuple(wrong[:4].T)].tolist(), expected[tuple(wrong[:4].T)].tolist())
