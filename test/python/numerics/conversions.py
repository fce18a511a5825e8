# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that convert between the formats, and the f32 inputs that decide a rounding.

An entry is one function whose results are many conversions of one argument, so that a call of fp8-run
checks all of them. Its description holds, per result, the function that computes the expected codes.
"""
import numpy as np
from numerics import formats
from numerics.formats import BF16, E4M3, E5M2, F16, FP8, SINGLE

import harness

DTYPES = {E4M3: harness.E4M3, E5M2: harness.E5M2, F16: harness.F16, BF16: harness.BF16, SINGLE: harness.F32}
WIDE = [SINGLE, BF16, F16]


def tensor(count, type_name):
    return f"tensor<{count}x{type_name}>"


class Entry:
    """A function of one tensor [count] and f32 scalars, and what its results must be."""

    def __init__(self, name, count, type_name, scalars=()):
        self.name, self.argument = name, tensor(count, type_name)
        self.count, self.scalars, self.body, self.results, self.expected = count, list(scalars), [], [], []

    def convert(self, operation, fmt, expected):
        """One arith operation on the argument; `expected` maps its values to codes."""
        result = tensor(self.count, fmt.name)
        number = len(self.results)
        self.body.append(f"  %r{number} = arith.{operation} %x : {self.argument} to {result}")
        self.results.append((f"%r{number}", result))
        self.expected.append(expected)

    def quantize(self, fmt, scalar, expected):
        number, result = len(self.results), tensor(self.count, fmt.name)
        self.body += [
            f"  %d{number} = tensor.empty() : {result}",
            f"  %r{number}, %i{number} = fp8.quantize ins(%x : {self.argument}) scale(%s{scalar} : tensor<f32>)",
            f"      outs(%d{number}, %e : {result}, tensor<f32>) -> {result}, tensor<f32>",
        ]
        self.results += [(f"%r{number}", result), (f"%i{number}", "tensor<f32>")]
        inverse = lambda _: formats.scale_inv(self.scalars[scalar]).view(np.uint32)
        self.expected += [expected, inverse]

    def dequantize(self, fmt, scalar, expected):
        number, result = len(self.results), tensor(self.count, fmt.name)
        self.body += [
            f"  %d{number} = tensor.empty() : {result}",
            f"  %r{number} = fp8.dequantize ins(%x : {self.argument}) scale_inv(%s{scalar} : tensor<f32>)",
            f"      outs(%d{number} : {result}) -> {result}",
        ]
        self.results.append((f"%r{number}", result))
        self.expected.append(expected)

    @property
    def text(self):
        scalars = "".join(f", %s{i}: tensor<f32>" for i in range(len(self.scalars)))
        values, types = (", ".join(column) for column in zip(*self.results))
        body = "\n".join(["  %e = tensor.empty() : tensor<f32>", *self.body])
        return f"func.func @{self.name}(%x: {self.argument}{scalars}) -> ({types}) {{\n{body}\n  return {values} : {types}\n}}\n"

    def inputs(self, x):
        return [x, *map(np.float32, self.scalars)]


def narrowing(wide, count):
    """A program's own conversions of "f64", "f32", "bf16" or "f16", rounded once. To FP8 they saturate as all
    casts to FP8 do; to wider formats they overflow to Inf."""
    entry = Entry(f"narrow_{wide}", count, wide)
    narrow = {"f64": [SINGLE, BF16, F16], "f32": [BF16, F16]}
    for fmt in [*FP8, *narrow.get(wide, [])]:
        entry.convert("truncf", fmt, lambda x, fmt=fmt: fmt.round(x, saturate=fmt in FP8))
    return entry


def casting(wide, count, scales):
    """Saturating casts to both FP8 formats with every scale."""
    entry = Entry(f"cast_{wide.name}", count, wide.name, scales)
    for fmt in FP8:
        for i, scale in enumerate(scales):
            entry.quantize(fmt, i, lambda x, fmt=fmt, scale=scale: formats.cast(x, scale, fmt))
    return entry


def widening(fmt, inverses):
    """Every byte to the wide formats, as it is and with every scale_inv."""
    entry = Entry(f"widen_{fmt.name}", 256, fmt.name, inverses)
    codes = np.arange(256, dtype=np.uint8)
    for wide in WIDE:
        entry.convert("extf", wide, lambda _, wide=wide: wide.round(fmt.decode(codes)))
        for i, inverse in enumerate(inverses):
            entry.dequantize(wide, i, lambda _, wide=wide, inverse=inverse: formats.dequantize(codes, inverse, fmt, wide))
    return entry


def widening_e8m0():
    entry = Entry("widen_f8E8M0FNU", 256, "f8E8M0FNU")
    values = formats.decode_e8m0(np.arange(256))
    for wide in WIDE:
        entry.convert("extf", wide, lambda _, wide=wide: wide.round(values))
    return entry


def widening_16(fmt):
    """Every bf16 or f16 to f32."""
    entry = Entry(f"widen_{fmt.name}", 65536, fmt.name)
    entry.convert("extf", SINGLE, lambda x: SINGLE.round(x.astype(np.float32)))
    return entry


def strided(stride):
    """f32 values whose bits are `stride` (odd, so that the last bits differ too) apart, from 0 to all ones."""
    return np.arange(0, 2**32, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


def boundaries(fmts, ulps=2):
    """The f32 values at every value of the formats, in the middle between neighbours, around the largest
    value, and up to `ulps` beside each, of both signs; zeros, Inf, NaN and extremes of f32 too."""
    points = [np.float32([0, 1e-45, 1.1754942e-38, 1.1754944e-38, formats.FLT_MAX])]
    for fmt in fmts:
        grid = fmt.decode(np.arange(fmt.largest + 1))
        step = grid[-1] - grid[-2]
        beyond = grid[-1] + step * np.array([0.5, 1, 1.5, 2])
        points.append(np.concatenate([grid, (grid[1:] + grid[:-1]) / 2, beyond]).astype(np.float32))
    bits = np.concatenate(points).view(np.uint32).astype(np.int64)
    bits = np.unique(bits[:, None] + np.arange(-ulps, ulps + 1))
    values = bits[(bits >= 0) & (bits <= 0x7F800000)].astype(np.uint32).view(np.float32)
    nans = np.array([0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFC00000], np.uint32).view(np.float32)
    return np.concatenate([values, -values, nans])


def doubles():
    """f64 values that a rounding to f32 on the way would take to a wrong neighbour: a little beside the
    middle between two values of each format; and any bits of f32 with 29 bits behind them."""
    rng = harness.random_generator(60)
    values = []
    for fmt in [*FP8, BF16, F16]:
        grid = fmt.decode(rng.integers(0, fmt.largest, 300))
        middle = (grid + fmt.decode(fmt.round(grid) + 1)) / 2
        values += [middle, middle * (1 + 2.0**-40), middle * (1 - 2.0**-40), np.nextafter(middle, 0), np.nextafter(middle, np.inf)]
    any_f32 = rng.integers(0, 2**32, 10_000, dtype=np.uint32).view(np.float32).astype(np.float64)
    values.append(any_f32 * (1 + rng.random(10_000) * 2.0**-23))
    values.append(np.array([0, np.inf, np.nan, 1e-320, 1e300, formats.FLT_MAX, 2.0**-150, np.nextafter(2.0**-150, 1)]))
    values = np.concatenate(values)
    return np.concatenate([values, -values])


def wrong_codes(got, expected):
    """Where a result differs from the expected codes; in types wider than FP8 one NaN is as good as another."""
    codes = got.view(np.dtype(f"u{got.dtype.itemsize}"))
    differ = codes != expected
    if got.dtype.itemsize > 1:
        differ &= ~(np.isnan(got) & np.isnan(expected.view(got.dtype)))
    return np.flatnonzero(differ)
