# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The computations of every recipe: amaxes, scales, histories, casts by rows and blocks, packed scales.

Written from the numerics alone, apart from the compiler and from ../reference.py, in f32 where the
numerics say f32 and exactly elsewhere. FP8 tensors are arrays of bytes beside a Format.
"""

import numpy as np
from numerics.formats import BF16, F16, F32, F64, FLT_MAX, SINGLE, cast, log2_parts, scale_inv

LARGEST = {SINGLE: FLT_MAX, BF16: BF16.max, F16: F16.max}


def amax(x, axis=None):
    """max |x| as f32: NaN elements are ignored, Inf counts, nothing gives 0."""
    magnitudes = np.abs(np.asarray(x).astype(F32))
    return np.max(np.where(np.isnan(magnitudes), F32(0), magnitudes), axis=axis, initial=F32(0))


def floor_to_power_of_two(scale):
    power, _ = log2_parts(scale)
    return np.ldexp(F64(1), power).astype(F32)


def current_scale(amaxes, fmt, eps=0.0, power_2_scale=False, overflow=FLT_MAX):
    """One scale per amax: fp8_max / max(amax, eps), 1 where that maximum is 0, Inf or NaN; `overflow` where
    the quotient overflows; then floored to a power of two on request."""
    amaxes = np.asarray(amaxes, F32)
    bounded = np.where(np.isnan(amaxes), amaxes, np.maximum(amaxes, F32(eps)))
    usable = (bounded > 0) & (bounded < np.inf)
    scale = fmt.max / np.where(usable, bounded, F32(1))
    scale = np.where(np.isinf(scale), F32(overflow), scale)
    if power_2_scale:
        scale = floor_to_power_of_two(scale)
    return np.where(usable, scale, F32(1)).astype(F32)


def block_scale(amaxes, fmt, source=SINGLE, eps=0.0, power_2_scale=True):
    """Block scaling: as current_scale, but a quotient that overflows f32 gives the largest finite value of the source's type."""
    return current_scale(amaxes, fmt, eps, power_2_scale, LARGEST[source])


# How an MX scale is rounded. `up`: on the exact quotient amax / fp8_max, so that no element saturates.
# The others look at the power of two of the amax alone, over that of fp8_max (OCP MX 1.0, section 6.3):
# `floor` takes it as it is, `ceil` rounds the amax up to a power of two before, `even` rounds the amax to
# the format's mantissa bits before (half away from zero, so that 1.9375 and more become 2).
MX_ROUNDINGS = ["up", "floor", "ceil", "even"]


def mx_exponent(amaxes, fmt, rounding="up"):
    """The E8M0 byte of the scale_inv of each amax: clamp(127 + log2(amax / fp8_max), 0, 254); 0 → 0, Inf → 254."""
    amaxes = np.asarray(amaxes, F32)
    usable = (amaxes > 0) & (amaxes < np.inf)
    power, mantissa = log2_parts(np.where(usable, amaxes, 1))
    top, limit = log2_parts(fmt.max)
    if rounding == "up":
        power = power + (mantissa > limit)
    elif rounding == "ceil":
        power = power + (mantissa > 1)
    elif rounding == "even":
        power = power + (mantissa + 0.5**fmt.mantissa / 2 >= 2)
    exponent = np.clip(127 + power - top, 0, 254)
    return np.where(usable, exponent, np.where(amaxes == 0, 0, 254)).astype(np.uint8)


# --- delayed scaling


def delayed_scale(value, fmt, margin=0, old=1.0):
    """(fp8_max · 2^-margin) / amax; the old scale where amax is 0, Inf or NaN; FLT_MAX on overflow."""
    if not 0 < value < np.inf:
        return F32(old)
    return min(fmt.max * F32(2.0**-margin) / F32(value), FLT_MAX)


def update_column(scale, history, recorded, fmt, margin=0, algo="max", ignore_non_finite=False, executed_mask=False):
    """(scale, history) of one column after a step that recorded these amaxes.

    Row 0 is the staging slot of the step (0: empty), row 1 the oldest amax, the last row the newest. With
    `executed_mask` a negative amax says that the site did not run, and 0 is an amax like any other. With
    `ignore_non_finite` Inf and NaN of the history are not counted (they move on), a recorded one counts as 0;
    the amaxes that are recorded are combined before."""
    history = np.array(history, F32)
    finite = lambda values: np.where(np.isfinite(values), values, F32(0)) if ignore_non_finite else values
    ran = [a for a in np.asarray(recorded, F32) if not (executed_mask and a < 0)]
    combined = [F32(np.max(ran))] if ran else []
    if ignore_non_finite:
        combined = [a for a in combined if np.isfinite(a)]
    staged, past = finite(history[:1])[0], finite(history[1:])
    present = [a for a in [staged, *combined] if a != 0] or (combined if executed_mask else [])
    if not present:
        return F32(scale), history
    current = F32(np.max(present))
    column = np.array([current, *past], F32)
    value = amax(column) if algo == "max" else current
    scale = delayed_scale(value, fmt, margin, scale)
    if len(history) == 1:
        return scale, np.zeros(1, F32)
    return scale, np.array([0, *history[2:], current], F32)


# --- casts with one scale, per row, per block


def extents(blocks, shape):
    """The block's extent in each dimension; 0 spans the dimension."""
    return [block or max(size, 1) for block, size in zip(blocks, shape)]


def scale_shape(blocks, shape):
    """One scale per block: ceil(size / extent) per dimension, 1 for a block that spans the dimension."""
    return [-(-size // extent) if block else 1 for block, size, extent in zip(blocks, shape, extents(blocks, shape))]


def block_amaxes(x, blocks):
    """The amax of every block; those at the ends are shorter."""
    result = np.zeros(scale_shape(blocks, x.shape), F32)
    magnitudes = np.abs(x.astype(F32))
    magnitudes = np.where(np.isnan(magnitudes), F32(0), magnitudes)
    for axis, extent in enumerate(extents(blocks, x.shape)):
        if magnitudes.size:
            magnitudes = np.maximum.reduceat(magnitudes, np.arange(0, x.shape[axis], extent), axis=axis)
    if magnitudes.size:
        result[...] = magnitudes
    return result


def spread(scales, blocks, shape):
    """The scale of every element."""
    for axis, extent in enumerate(extents(blocks, shape)):
        scales = np.repeat(scales, extent, axis=axis)[(slice(None),) * axis + (slice(0, shape[axis]),)]
    return scales


def quantize_current(x, fmt, **options):
    """(bytes, scale_inv, amax) of one tensor with one scale from its own amax."""
    largest = amax(x)
    scale = current_scale(largest, fmt, **options)
    return cast(x, scale, fmt), scale_inv(scale), largest


def quantize_blocks(x, blocks, fmt, rule, cast_block=cast):
    """(bytes, scale_inv in f32) with a scale per block; rule(amaxes, fmt) gives the scales. Rows are blocks
    with the extents (1, 0), columns (0, 1)."""
    scales = rule(block_amaxes(x, blocks), fmt)
    return cast_block(x, spread(scales, blocks, x.shape), fmt), scale_inv(scales)


def quantize_rows(x, axis, fmt, **options):
    """Row scaling of a matrix contracted along `axis`: its scales span that dimension."""
    blocks = [0 if d == axis else 1 for d in range(x.ndim)]
    return quantize_blocks(x, blocks, fmt, lambda amaxes, f: current_scale(amaxes, f, **options))


def quantize_mx(x, blocks, fmt, rounding="up", cast_block=cast):
    """(bytes, E8M0 bytes): blocks are 1×32, 32×1 or 32×32; the multiplier is 2^(127 - e)."""
    exponents = mx_exponent(block_amaxes(x, blocks), fmt, rounding)
    multipliers = np.ldexp(F64(1), 127 - exponents.astype(np.int64)).astype(F32)
    return cast_block(x, spread(multipliers, blocks, x.shape), fmt), exponents


def pack_scales(scales):
    """E8M0 scales [rows, columns] in tiles of 128×4, 512 bytes each; padding is zero."""
    rows, columns = scales.shape
    across = -(-columns // 4)
    packed = np.zeros(-(-rows // 128) * across * 512, np.uint8)
    i, j = np.indices(scales.shape)
    tile = i // 128 * across + j // 4
    packed[tile * 512 + i % 32 * 16 + i // 32 % 4 * 4 + j % 4] = scales
    return packed


# --- loss scaling


def unscale(gradients, scale):
    """(gradients · 1/scale, found): found is 1 where any gradient holds an Inf or NaN."""
    inverse = F32(1) / F32(scale)
    found = any(not np.isfinite(g.astype(F32)).all() for g in gradients)
    return [(g.astype(F32) * inverse).astype(g.dtype) for g in gradients], F32(found)


def update_loss_scale(found, scale, tracker, growth=2.0, backoff=0.5, interval=2000):
    """(scale, tracker) after a step: back off after an overflow, grow after `interval` steps without."""
    if found:
        return F32(scale) * F32(backoff), 0
    if tracker + 1 == interval:
        return F32(scale) * F32(growth), 0
    return F32(scale), tracker + 1
