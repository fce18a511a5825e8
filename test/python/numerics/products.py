# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scaled products by every recipe: exact FP8 products, f32 sums in the order of K.

Operands are f32 values of FP8 tensors, a [M, K] and b [N, K]; `sums` are [M, N]. Scales of a are spread
along M, those of b along N. A block along K is 128 (block scaling) or 32 (MX) elements.
"""
import numpy as np
from numerics.formats import F32, F64

PART = 128


def running_sum(a, b):
    """Σ a·b in f32, one running sum in K order (`fast`). Products of two FP8 values are exact in f32."""
    total = np.zeros((len(a), len(b)), F32)
    for k in range(a.shape[1]):
        total += a[:, k, None] * b[None, :, k]
    return total


def parts(size, length=PART):
    return [slice(start, min(start + length, size)) for start in range(0, size, length)]


def split_sum(a, b):
    """Each 128 of K is summed from 0, the parts are added in order (`split`)."""
    total = np.zeros((len(a), len(b)), F32)
    for part in parts(a.shape[1]):
        total += running_sum(a[:, part], b[:, part])
    return total


def scaled_product(a, b, a_inv, b_inv, split=False, added=None):
    """(scale_inv_a · scale_inv_b) · Σ [+ C] with one scale per operand, or one per row: a_inv [M], b_inv [N]."""
    scales = np.asarray(a_inv, F32).reshape(-1, 1) * np.asarray(b_inv, F32).reshape(1, -1)
    value = scales * (split_sum if split else running_sum)(a, b)
    return value if added is None else value + added


def fma(a, b, c):
    """a·b + c with one rounding. The product is exact in f64; the sum is rounded to odd there, so that
    rounding it to f32 is right."""
    product, c = np.asarray(a, F64) * np.asarray(b, F64), np.asarray(c, F64)
    total = product + c
    second = total - product
    error = (product - (total - second)) + (c - second)
    inexact = np.isfinite(total) & (error != 0) & (total.view(np.int64) & 1 == 0)
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where(inexact, np.nextafter(total, toward), total).astype(F32)


def block_product(a, b, a_inv, b_inv, rhs_first=False, added=None):
    """Block scaling: per 128 of K a partial p from 0, then y = fma(p · s_first, s_second, y).

    a_inv [M, K/128], b_inv [N, K/128] in f32, the blocks of a 128×128 operand spread over its rows. The
    first scale is the lhs's, but the rhs's where the lhs is the only operand of 128×128 blocks."""
    y = np.zeros((len(a), len(b)), F32)
    for block, part in enumerate(parts(a.shape[1])):
        p = running_sum(a[:, part], b[:, part])
        first, second = a_inv[:, block, None], b_inv[None, :, block]
        if rhs_first:
            first, second = second, first
        y = fma(p * first, np.broadcast_to(second, y.shape), y)
    return y if added is None else y + added


def mx_product(a, b, a_inv, b_inv, split=False, added=None):
    """MX: Σ (a·2^ea)·(b·2^eb) in f32; a_inv [M, K/32] and b_inv [N, K/32] are the f32 values of E8M0."""
    spread = lambda values, inverse: values * np.repeat(inverse.astype(F32), 32, axis=1)[:, : values.shape[1]]
    value = (split_sum if split else running_sum)(spread(a, a_inv), spread(b, b_inv))
    return value if added is None else value + added
