# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The number formats by plain arithmetic on their bits: E4M3, E5M2, E8M0, bf16, f16, TF32.

No conversion of ml_dtypes is used: a value is taken to f64, which holds every value of every format here
exactly, counted in units of the format's last place, and rounded there. Arrays of codes (u8, u16 or u32)
go in and out.
"""
from dataclasses import dataclass

import numpy as np

F32, F64 = np.float32, np.float64
FLT_MAX = np.finfo(F32).max

# Overflow, Inf and NaN are among what is computed here.
np.seterr(all="ignore")


@dataclass(frozen=True)
class Format:
    """A sign, an exponent and `mantissa` bits. `emin` is the exponent of the smallest normal value,
    `largest` the code of the largest finite one, `inf` that of Inf (None: there is none), `nan` that of NaN."""

    name: str
    bits: int
    mantissa: int
    emin: int
    largest: int
    inf: int | None
    nan: int

    @property
    def code_type(self):
        return np.dtype(f"u{self.bits // 8}")

    @property
    def max(self):
        """The largest finite value."""
        return F32(self.decode(np.array(self.largest)))

    def decode(self, codes):
        """The values in f64; NaN where the code is one."""
        codes = np.asarray(codes).astype(np.int64)
        magnitude, negative = codes & (1 << (self.bits - 1)) - 1, codes >> (self.bits - 1) == 1
        exponent = np.maximum(magnitude >> self.mantissa, 1)
        places = magnitude - ((exponent - 1) << self.mantissa)
        value = np.ldexp(places.astype(F64), exponent - 1 + self.emin - self.mantissa)
        if self.inf is not None:
            value = np.where(magnitude == self.inf, np.inf, value)
        value = np.where(magnitude > (self.largest if self.inf is None else self.inf), np.nan, value)
        return np.where(negative, -value, value)

    def places(self, magnitude):
        """Of finite magnitudes: how many units of the last place each is (exact, not yet whole), and
        the code that 0 units would have there, so that the rounded units are added to it."""
        exponent = np.where(magnitude == 0, self.emin, np.maximum(np.frexp(magnitude)[1] - 1, self.emin))
        units = np.ldexp(magnitude, self.mantissa - exponent)
        return units, (exponent - self.emin).astype(np.int64) << self.mantissa

    def round(self, values, to_whole=np.rint, saturate=False):
        """The codes of f32 or f64 values. `to_whole` rounds units of the last place: to nearest, ties to
        even. Beyond the largest value: Inf, or NaN where there is none; with `saturate` the largest value."""
        values = np.asarray(values).astype(F64)
        finite = np.isfinite(values)
        units, base = self.places(np.where(finite, np.abs(values), 0))
        codes = base + to_whole(units).astype(np.int64)
        codes = np.where(finite, codes, self.largest + 1)
        beyond = self.largest if saturate else self.nan if self.inf is None else self.inf
        codes = np.where(codes > self.largest, beyond, codes) | np.signbit(values).astype(np.int64) << (self.bits - 1)
        return np.where(np.isnan(values), self.nan, codes).astype(self.code_type)


E4M3 = Format("f8E4M3FN", 8, 3, -6, 0x7E, None, 0x7F)
E5M2 = Format("f8E5M2", 8, 2, -14, 0x7B, 0x7C, 0x7F)
F16 = Format("f16", 16, 10, -14, 0x7BFF, 0x7C00, 0x7E00)
BF16 = Format("bf16", 16, 7, -126, 0x7F7F, 0x7F80, 0x7FC0)
SINGLE = Format("f32", 32, 23, -126, 0x7F7FFFFF, 0x7F800000, 0x7FC00000)
FP8 = [E4M3, E5M2]


def cast(values, scale, fmt, to_whole=np.rint):
    """The bytes of f32(x) · scale: one f32 product, rounded, saturated to finite; every NaN is 0x7F."""
    return fmt.round(np.asarray(values).astype(F32) * F32(scale), to_whole, saturate=True)


def scale_inv(scale):
    return F32(1) / np.asarray(scale, F32)


def dequantize(codes, inverse, fmt, wide=SINGLE):
    """The codes of f32(byte) · scale_inv in a wider format, rounded once more where that is not f32."""
    return wide.round(fmt.decode(codes).astype(F32) * np.asarray(inverse, F32))


def tf32(values):
    """f32 values with 10 bits of mantissa: to nearest, ties away from zero (cvt.rna.tf32)."""
    values = np.asarray(values, F32)
    bits = values.view(np.uint32)
    rounded = ((bits & 0x7FFFFFFF) + 0x1000 & 0x7FFFE000) | bits & 0x80000000
    return np.where(np.isfinite(values), rounded.astype(np.uint32).view(F32), values)


# E8M0: the byte e is 2^(e - 127), 255 is NaN; neither sign nor zero.

E8M0_NAN = 255


def decode_e8m0(codes):
    codes = np.asarray(codes).astype(np.int64)
    return np.where(codes == E8M0_NAN, np.nan, np.ldexp(F64(1), codes - 127))


def log2_parts(values):
    """Finite positive values as (p, m): value = m · 2^p, 1 ≤ m < 2. Exact."""
    mantissa, exponent = np.frexp(np.asarray(values, F64))
    return exponent - 1, 2 * mantissa
