# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scale that each recipe computes from an amax, for many amaxes at once, against exact arithmetic.

fp8.compute_scale on a tensor of amaxes, expanded by fp8-expand-scaling to the code that recipes emit.
"""
import functools
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from harness import Program, random_generator

FLT_MAX = np.finfo(np.float32).max
FP8_MAX = {"f8E4M3FN": 448, "f8E5M2": 57344}
EDGES = [0.0, 1e-45, 1.1754942e-38, 1.1754944e-38, 1e-37, 1.0, 256.0, 448.0, 448.00003, 449.0, 495.99997, 496.0, 512.0, 57344.0, 57345.0,
         61439.996, 61440.0,
         2.0**127, FLT_MAX, np.inf, np.nan]


def amaxes():
    random = random_generator(13)
    bits = random.integers(0, 0x7F800000, 4000, dtype=np.uint32)
    return np.concatenate([np.array(EDGES, np.float32), bits.view(np.float32)])


def nearest_f32(value):
    """The f32 nearest to a fraction, ties to even."""
    if value > Fraction(float(FLT_MAX)) * (1 + Fraction(1, 2**25)):
        return np.float32(np.inf)
    guess = np.float32(float(value))
    near = [np.nextafter(guess, np.float32(0)), guess, np.nextafter(guess, np.float32(np.inf))]
    near = [x for x in near if np.isfinite(x)]
    return min(near, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.uint32)) & 1))


def quotient(amax, fp8_max, eps=0.0, power_2=False, largest=float(FLT_MAX)):
    """numerics: fp8_max / max(amax, eps), 1 where amax is 0, Inf or NaN."""
    if not np.isnan(amax):
        amax = max(amax, np.float32(eps))
    if not (0 < amax < np.inf):
        return np.float32(1)
    scale = nearest_f32(Fraction(fp8_max) / Fraction(float(amax)))
    if np.isinf(scale):
        scale = np.float32(largest)
    return np.float32(2.0 ** (np.frexp(scale)[1] - 1)) if power_2 else scale


def multiplier(amax, fp8_max):
    """2^(127 - e) with e = clamp(127 + ceil(log2(amax / fp8_max)), 0, 254), on the exact quotient."""
    if amax == 0 or np.isnan(amax):
        e = 0
    elif np.isinf(amax):
        e = 254
    else:
        ratio, log = Fraction(float(amax)) / fp8_max, -200
        while Fraction(2) ** log < ratio:
            log += 1
        e = min(max(127 + log, 0), 254)
    return np.float32(2.0 ** (127 - e))


def log2_floor(value):
    """floor(log2(value)) of a fraction above 0."""
    log = value.numerator.bit_length() - value.denominator.bit_length()
    return log if Fraction(2) ** log <= value else log - 1


def multiplier_of_floor(amax, fp8_max, even=False, ceil=False):
    """2^(127 - e) with e = clamp(127 + floor(log2(amax)) - floor(log2(fp8_max)), 0, 254); with `even` of the amax
    rounded to the mantissa bits of the format, ties away from zero; with `ceil` the first logarithm is rounded up."""
    if amax == 0 or np.isinf(amax):
        return multiplier(amax, fp8_max)
    value = Fraction(float(amax))
    if even:
        unit = Fraction(2) ** (log2_floor(value) - (3 if fp8_max == 448 else 2))
        value = (value / unit + Fraction(1, 2)).__floor__() * unit
    log = log2_floor(value)
    log += ceil and Fraction(2) ** log < value
    e = min(max(127 + log - log2_floor(Fraction(fp8_max)), 0), 254)
    return np.float32(2.0 ** (127 - e))


BF16_MAX = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
RULES = {
    "current": ("#fp8.current_scaling", None, quotient),
    "current_eps": ("#fp8.current_scaling<eps = 1.0e-3>", None, lambda a, m: quotient(a, m, eps=1e-3)),
    "row": ("#fp8.row_scaling", None, quotient),
    "row_power": ("#fp8.row_scaling<power_2_scale = true>", None, lambda a, m: quotient(a, m, power_2=True)),
    "block": ("#fp8.block_scaling", None, lambda a, m: quotient(a, m, power_2=True)),
    "block_f16": ("#fp8.block_scaling<power_2_scale = false>", "f16", lambda a, m: quotient(a, m, largest=65504.0)),
    "block_bf16": ("#fp8.block_scaling<power_2_scale = false>", "bf16", lambda a, m: quotient(a, m, largest=BF16_MAX)),
    "mx": ("#fp8.mx_scaling", None, multiplier),
    "mx_ceil": ("#fp8.mx_scaling<rounding = ceil>", None, lambda a, m: multiplier_of_floor(a, m, ceil=True)),
    "mx_floor": ("#fp8.mx_scaling<rounding = floor>", None, multiplier_of_floor),
    "mx_even": ("#fp8.mx_scaling<rounding = even>", None, lambda a, m: multiplier_of_floor(a, m, even=True)),
}


@functools.cache
def cases(rule, fmt):
    """(amaxes, the scale of each)."""
    values = amaxes()
    if rule.startswith("mx"):  # the amax of a block is never NaN: NaN elements are left out of it
        values = values[~np.isnan(values)]
    expected = RULES[rule][2]
    return values, np.array([expected(a, FP8_MAX[fmt]) for a in values], np.float32)


@pytest.mark.parametrize("target", ["cpu", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("fmt", FP8_MAX)
@pytest.mark.parametrize("rule", RULES)
def test_scales(bin_dir, tmp_path, rule, fmt, target):
    recipe, input_type, _ = RULES[rule]
    values, want = cases(rule, fmt)
    n = len(values)
    of_type = f"input_type({input_type})" if input_type else ""
    text = f"""
func.func @main(%a: tensor<{n}xf32>) -> tensor<{n}xf32> {{
  %e = tensor.empty() : tensor<{n}xf32>
  %s = fp8.compute_scale recipe({recipe}) format({fmt}) {of_type}
      ins(%a : tensor<{n}xf32>) outs(%e : tensor<{n}xf32>) -> tensor<{n}xf32>
  return %s : tensor<{n}xf32>
}}"""
    (got,) = Program(bin_dir, tmp_path, text, f"--target={target}").call("main", values)
    wrong = np.flatnonzero(got.view(np.uint32) != want.view(np.uint32))
    assert not len(wrong), [(values[i], got[i], want[i]) for i in wrong[:5]]
