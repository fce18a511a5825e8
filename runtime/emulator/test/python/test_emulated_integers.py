# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cuda/integers.cu: integer instructions against Python's integers.

import numpy

from programs import on

N = 600
W = 0xffffffff


def words(seed):
    special = [0, 1, W, 0x80000000, 0x7fffffff, 2, 31, 32, 33, 0xff, 0x100, 0xfffffff0]
    random = numpy.random.default_rng(seed)
    mixed = random.integers(0, 1 << 32, N) >> random.integers(0, 32, N)
    mixed[:144] = numpy.repeat(special, 12) if seed % 2 else numpy.tile(special, 12)
    return mixed.astype(numpy.uint32)


def signed(x, bits=32):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> bits - 1 else x


def lanes(x, bits=8, sign=False):
    parts = [x >> at & (1 << bits) - 1 for at in range(0, 32, bits)]
    return [signed(part, bits) for part in parts] if sign else parts


def pack(parts, bits=8):
    return sum((part & (1 << bits) - 1) << bits * i for i, part in enumerate(parts))


def reverse(x, bits=32):
    return int(format(x, "0%db" % bits)[::-1], 2)


def permute(a, b, selector):
    source, result = (b << 32 | a).to_bytes(8, "little"), 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = source[nibble & 7]
        if nibble & 8:
            byte = 0xff if byte & 0x80 else 0
        result |= byte << 8 * i
    return result


def nth_set(mask, base, offset):
    """__fns: where the offset-th set bit lies, from bit `base` up."""
    for i in range(base, 32):
        offset -= mask >> i & 1
        if offset == 0:
            return i
    return W


def bits32(a, b):
    sa, sb = signed(a), signed(b)
    shift, other = b & 31, min(a & 63, 32)
    highest = (a ^ W if sa < 0 else a).bit_length() - 1
    low, high = [signed(a, 16), signed(a >> 16, 16)], lanes(b, sign=True)
    clamp = max(-2**31, min(2**31 - 1, sa + sb))
    width = b & 31
    return [32 - a.bit_length(), bin(a).count("1"), reverse(a), (a & -a).bit_length(),
            permute(a, b, 0x6240 ^ (b & 0x7777)), (b << 32 | a) << shift >> 32, (b << 32 | a) >> other,
            sa * sb >> 32, a * b >> 32, sum(p * q for p, q in zip(lanes(a, sign=True), lanes(b, sign=True))) + 17,
            sum(p * q for p, q in zip(lanes(a), lanes(b))) + 17, low[0] * high[0] + low[1] * high[1] - 3,
            abs(sa - sb) + 5, signed(a >> 5 & 0x7ff, 11), b & ~(0x1ff << 7) | (a & 0x1ff) << 7, highest & W,
            a ^ b ^ a >> 3, signed(a, 24) * signed(b, 24), nth_set(a, 3, 2), sa + sb + 1 >> 1, abs(a - b) + 9, clamp,
            signed(a & (1 << width) - 1, width) if width else 0,
            0 if (a & 31) >= 32 else (((1 << min(b & 63, 32)) - 1) << (a & 31))]


def compare(actual, reference, *inputs):
    """`reference` gives a row of results for each tuple of inputs, taken modulo the type."""
    modulus = 1 << 8 * actual.dtype.itemsize
    unsigned = actual.view("u%d" % actual.dtype.itemsize)
    for i, values in enumerate(zip(*(x.tolist() for x in inputs))):
        for row, expected in enumerate(reference(*values)):
            assert unsigned[row, i] == expected % modulus, "row %d of %s: %#x for %#x" % (
                row, [hex(v) for v in values], unsigned[row, i], expected % modulus)


@on("integers")
def test_bits_of_words(kernels):
    a, b = words(0), words(1)
    y = kernels.empty((24, N), numpy.uint32)
    kernels("bits32", 5, 128, N, kernels.upload(a), kernels.upload(b), y)
    compare(kernels.read(y), bits32, a, b)


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b):
    return a - quotient(a, b) * b


@on("integers")
def test_division(kernels):
    a, b = words(0).view(numpy.int32), words(1).view(numpy.int32)
    y, wide = kernels.empty((6, N), numpy.int32), kernels.empty((6, N), numpy.int64)
    kernels("division", 5, 128, N, kernels.upload(a), kernels.upload(b), y, wide)

    def words32(a, b):
        b = b or 1
        short = signed(signed(b, 16) | 1, 16)
        return [0 if b == -1 else quotient(a, b), 0 if b == -1 else remainder(a, b), (a & W) // (b & W), (a & W) % (b & W),
                quotient(a, 7) + (a & W) % 10, quotient(signed(a, 16), short)]

    def words64(a, b):
        b = b or 1
        mask = (1 << 64) - 1
        wide_a, wide_b = a * 1000003, b * 31
        factor = signed(wide_b * 1000000007, 64)
        return [quotient(wide_a, wide_b), remainder(wide_a, wide_b), (wide_a & mask) // (wide_b & mask),
                wide_a * factor >> 64, (wide_a & mask) * (factor & mask) >> 64,
                wide_a >> (b & 63) ^ (wide_a & mask) << (a & 63)]

    compare(kernels.read(y), words32, a, b)
    compare(kernels.read(wide), words64, a, b)


def long_words(seed):
    return words(seed).astype(numpy.uint64) << numpy.uint64(32) | numpy.roll(words(seed + 2), 5).astype(numpy.uint64)


@on("integers")
def test_bits_of_long_words(kernels):
    a, b = long_words(0), long_words(1)
    y = kernels.empty((8, N), numpy.uint64)
    kernels("bits64", 5, 128, N, kernels.upload(a), kernels.upload(b), y)

    def expected(a, b):
        return [64 - a.bit_length(), bin(a).count("1"), reverse(a, 64), (a & -a).bit_length(), a * b + 12345,
                (a & W) * (b & W) + signed(a) * signed(b), min(a, b, key=lambda x: signed(x, 64)),
                a - b if a > b else ~(a | b)]

    compare(kernels.read(y), expected, a, b)


@on("integers")
def test_128_bits(kernels):
    x, z = long_words(0), long_words(1)
    y = kernels.empty((12, N), numpy.uint64)
    kernels("wide128", 5, 128, N, kernels.upload(x), kernels.upload(z), y)

    def expected(x, z):
        a, b = x << 64 | z, (z >> 20) << (z & 31) | 1
        results = [a + b, a - b * 3, a * b, a // b, a % b, quotient(signed(a, 128), -12345)]
        return [part for result in results for part in (result, result >> 64)]

    compare(kernels.read(y), expected, x, z)


@on("integers")
def test_packed_bytes(kernels):
    a, b = words(0), words(1)
    y = kernels.empty((10, N), numpy.uint32)
    kernels("packed", 5, 128, N, kernels.upload(a), kernels.upload(b), y)

    def each(function, a, b, bits=8, sign=False):
        return pack([function(p, q) for p, q in zip(lanes(a, bits, sign), lanes(b, bits, sign))], bits)

    def expected(a, b):
        def clamp(value):
            return max(-32768, min(32767, value))

        thirds = zip(lanes(a, 16, True), lanes(b, 16, True), lanes(a ^ b, 16, True))
        return [each(lambda p, q: p + q, a, b), each(lambda p, q: clamp(p - q), a, b, 16, True),
                each(lambda p, q: abs(p - q), a, b), each(max, a, b, 16, True),
                each(lambda p, q: 255 if p < q else 0, a, b), each(lambda p, q: p + q + 1 >> 1, a, b), each(min, a, b),
                sum(abs(p - q) for p, q in zip(lanes(a), lanes(b))),
                max(signed(signed(a) + signed(b)), 5), pack([max(three) for three in thirds], 16)]

    compare(kernels.read(y), expected, a, b)
