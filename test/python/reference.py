# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A reference of the FP8 operations in numpy, written independently of the compiler.

All arithmetic is on numpy's float32, which rounds to nearest even and keeps denormals.
"""
import ml_dtypes
import numpy as np

E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
FP8_MAX = {E4M3: np.float32(448), E5M2: np.float32(57344)}
F32 = np.float32
F32_MAX = np.finfo(np.float32).max
NAN_BYTE = 0x7F

np.seterr(all="ignore")


def cast(x, scale, fmt):
    """Saturating cast of x · scale; every NaN is one byte."""
    scaled = x.astype(F32) * F32(scale)
    limit = FP8_MAX[np.dtype(fmt)]
    data = np.clip(scaled, -limit, limit).astype(fmt).view(np.uint8)
    return np.where(np.isnan(scaled), np.uint8(NAN_BYTE), data).view(fmt)


def scale_inv(scale):
    return F32(1) / F32(scale)


def dequantize(data, inverse, dtype):
    return (data.astype(F32) * F32(inverse)).astype(dtype)


def amax(x):
    """Largest magnitude; NaN does not count, nothing gives 0."""
    magnitudes = np.abs(x.astype(F32)).ravel()
    return F32(max([0.0, *magnitudes[~np.isnan(magnitudes)]]))


def usable(value):
    return value > 0 and value < np.inf


def current_scale(value, fmt, eps=0.0, power_2_scale=False):
    value = value if np.isnan(value) else max(F32(value), F32(eps))
    if not usable(value):
        return F32(1)
    scale = min(FP8_MAX[np.dtype(fmt)] / F32(value), F32_MAX)
    return F32(2.0 ** np.floor(np.log2(np.float64(scale)))) if power_2_scale else F32(scale)


def delayed_scale(value, fmt, margin=0, old=1.0):
    """The scale that follows from an amax: the old one where there is nothing to divide by."""
    if not usable(value):
        return F32(old)
    return F32(min(FP8_MAX[np.dtype(fmt)] * F32(2.0**-margin) / F32(value), F32_MAX))


def combine(amaxes):
    """Several recorded amaxes of one column: the largest, NaN if there is one."""
    return F32(np.max(amaxes))


def choose_amax(window, algo):
    """The amax that the next scale follows from; row 0 is the current one."""
    counted = window[~np.isnan(window)] if algo == "max" else window[:1]
    return counted.max() if counted.size else F32(np.nan)


def update_column(
    scale,
    history,
    recorded,
    fmt,
    margin=0,
    algo="max",
    ignore_non_finite=False,
    executed_mask=False,
    scale_function=None,
    amax_function=None,
):
    """(scale, history) of one column after an update that recorded these amaxes; none of them, or
    only zeros without an `executed_mask`, means that its site did not run. The functions are the user's: scale_function(amax, fp8_max, old), amax_function(column)."""
    past, recorded = history.astype(F32), np.array(recorded, F32)
    if ignore_non_finite:
        # One overflow of a step stands for all of it, however the step is divided into microbatches.
        past = np.where(np.isfinite(past), past, F32(0))
        recorded = recorded if np.isfinite(recorded).all() else recorded[:0]
    recorded = np.array([*past[:1][past[:1] != 0], *recorded], F32)
    if not executed_mask:
        recorded = recorded[recorded != 0]
    if not recorded.size:
        return scale, history.copy()
    current = combine(recorded)
    window = np.array([current, *past[1:]], F32)
    value = F32(amax_function(window)) if amax_function else choose_amax(window, algo)
    if scale_function:
        scale = F32(scale_function(value, FP8_MAX[np.dtype(fmt)], F32(scale)))
    else:
        scale = delayed_scale(value, fmt, margin, scale)
    if len(history) == 1:
        return scale, np.zeros(1, F32)
    return scale, np.array([0, *history[2:], current], F32)


def update(scale, history, columns, amaxes, formats, *arguments, **options):
    """All columns; those that `columns` does not name stay as they are."""
    scale, history = scale.copy(), history.copy()
    for column in set(columns):
        entries = [i for i, c in enumerate(columns) if c == column]
        recorded, fmt = [amaxes[i] for i in entries], formats[entries[0]]
        scale[column], history[:, column] = update_column(
            scale[column], history[:, column], recorded, fmt, *arguments, **options
        )
    return scale, history


def dot(a, b, split=False):
    """Products along the last axis of a [..., M, K] and b [..., N, K], summed in order."""
    a, b = a.astype(F32), b.astype(F32)
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-2])
    total, part = np.zeros(shape, F32), np.zeros(shape, F32)
    for k in range(a.shape[-1]):
        part = part + a[..., :, None, k] * b[..., None, :, k]
        if split and k % 128 == 127:
            total, part = total + part, np.zeros(shape, F32)
    return total + part if split else part


def contract(spec, dims, a, b, split=False):
    """einsum of two operands in f32: `dims` is the order of the iteration space, and so of K."""
    first, second, result = spec.replace("->", ",").split(",")
    sizes = dict(zip(first + second, a.shape + b.shape))
    batch = [d for d in dims if d in first and d in second and d in result]
    m = [d for d in dims if d in first and d not in second]
    n = [d for d in dims if d in second and d not in first]
    k = [d for d in dims if d not in result]
    extent = lambda group: int(np.prod([sizes[d] for d in group], dtype=np.int64))
    lhs = a.transpose([first.index(d) for d in batch + m + k]).reshape(extent(batch), extent(m), extent(k))
    rhs = b.transpose([second.index(d) for d in batch + n + k]).reshape(extent(batch), extent(n), extent(k))
    sums = dot(lhs, rhs, split).reshape([sizes[d] for d in batch + m + n])
    return sums.transpose([(batch + m + n).index(d) for d in result])


def scaled_matmul(a, b, a_inv, b_inv, split=False, added=None):
    """f32 value of the product before any epilogue."""
    value = (F32(a_inv) * F32(b_inv)) * dot(a, b, split)
    return value if added is None else value + added.astype(F32)
