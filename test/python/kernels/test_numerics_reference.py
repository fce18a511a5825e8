# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference in numerics/ itself: the worked examples of the numerics, and exact fractions beside it."""
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from numerics import reference
from numerics.formats import (
    BF16,
    E4M3,
    E5M2,
    F16,
    FLT_MAX,
    FP8,
    SINGLE,
    cast,
    decode_e8m0,
    dequantize,
    scale_inv,
    tf32,
)
from numerics.products import block_product, fma, mx_product, running_sum, scaled_product, split_sum
from numerics.stochastic import cast_stochastic, philox, random_words

from harness import random_generator

INF, NAN = np.inf, np.nan
PEERS = {E4M3: ml_dtypes.float8_e4m3fn, E5M2: ml_dtypes.float8_e5m2, BF16: ml_dtypes.bfloat16, F16: np.float16}
name_of = lambda fmt: getattr(fmt, "name", None)


@pytest.mark.parametrize("fmt", PEERS, ids=name_of)
def test_every_code_is_the_value_that_ml_dtypes_has(fmt):
    codes = np.arange(2**fmt.bits).astype(fmt.code_type)
    np.testing.assert_array_equal(fmt.decode(codes), codes.view(PEERS[fmt]).astype(np.float64))


@pytest.mark.parametrize("fmt", PEERS, ids=name_of)
def test_rounding_is_that_of_ml_dtypes(fmt):
    """Without saturation, where the numerics leave no choice."""
    bits = random_generator(50).integers(0, 2**32, 200_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = np.concatenate([values[~np.isnan(values)], np.float32([0, -0.0, INF, -INF])])
    expected = values.astype(PEERS[fmt]).view(fmt.code_type)
    # E4M3 has no Inf: what overflows is a NaN of either sign.
    same = (fmt.round(values) == expected) | np.isnan(fmt.decode(expected)) & np.isnan(fmt.decode(fmt.round(values)))
    assert same.all(), values[~same][:5]


@pytest.mark.parametrize("fmt", PEERS, ids=name_of)
def test_codes_survive_a_round_trip(fmt):
    codes = np.arange(2**fmt.bits).astype(fmt.code_type)
    kept = codes[np.isfinite(fmt.decode(codes))]
    np.testing.assert_array_equal(fmt.round(fmt.decode(kept)), kept)


@pytest.mark.parametrize("fmt", FP8, ids=name_of)
def test_cast_takes_the_nearest_value(fmt):
    """Against the distances to all values, as fractions."""
    grid = [Fraction(float(v)) for v in fmt.decode(np.arange(fmt.largest + 1))]
    bits = random_generator(51).integers(0, 2**32, 300, dtype=np.uint32).view(np.float32)
    halves = [float((a + b) / 2) for a, b in zip(grid, grid[1:])]
    for value in np.float32([*bits[np.isfinite(bits)], *halves]):
        magnitude = abs(Fraction(float(value)))
        nearest = min(range(len(grid)), key=lambda code: (abs(grid[code] - magnitude), code & 1))
        assert cast(value, 1, fmt) == nearest | (0x80 if np.signbit(value) else 0)


def test_cast_saturates():
    assert cast([INF, -INF, 1e9, -1e9, 449, NAN, -NAN, -0.0, 2.0**-9], 1, E4M3).tolist() == [
        0x7E, 0xFE, 0x7E, 0xFE, 0x7E, 0x7F, 0x7F, 0x80, 1]
    assert cast([INF, -INF, 1e9, 57345, NAN, -0.0, 2.0**-16], 1, E5M2).tolist() == [0x7B, 0xFB, 0x7B, 0x7B, 0x7F, 0x80, 1]
    assert [fmt.max for fmt in FP8] == [448, 57344]
    # The product is rounded in f32 and may overflow there.
    assert cast(1e30, 1e30, E4M3) == 0x7E
    assert dequantize(0x7E, 2.0, E4M3, BF16) == np.float32(896).view(np.uint32) >> 16


def test_amax():
    assert reference.amax([1, -3, NAN]) == 3 and reference.amax([-INF, 2]) == INF
    assert reference.amax([]) == 0 and reference.amax([NAN]) == 0


COLUMN = [3, 8, 2, 1]


def test_worked_column():
    scale, history = reference.update_column(1, COLUMN, [], E4M3)
    assert (scale, history.tolist()) == (56, [0, 2, 1, 3])
    scale, history = reference.update_column(scale, history, [1], E4M3)
    assert (scale, history.tolist()) == (np.float32(448) / 3, [0, 1, 3, 1])
    assert reference.update_column(1, COLUMN, [], E4M3, algo="most_recent")[0] == np.float32(448) / 3
    assert reference.update_column(1, COLUMN, [], E4M3, margin=2)[0] == 14


def test_column_of_a_site_that_did_not_run():
    scale, history = reference.update_column(7, [0, 8, 2, 1], [0, 0], E4M3)
    assert (scale, history.tolist()) == (7, [0, 8, 2, 1])


def test_column_with_inf():
    scale, history = reference.update_column(7, [INF, 8, 2, 1], [], E4M3)
    assert (scale, history.tolist()) == (7, [0, 2, 1, INF])
    for _ in range(3):
        scale, history = reference.update_column(scale, history, [4], E4M3)
        assert scale == 7
    assert reference.update_column(scale, history, [4], E4M3)[0] == 112


def test_column_with_nan():
    scale, history = reference.update_column(7, [NAN, 8, 2, 1], [], E4M3)
    assert scale == 56 and history[:3].tolist() == [0, 2, 1] and np.isnan(history[3])
    assert reference.update_column(7, [NAN, 8, 2, 1], [], E4M3, algo="most_recent")[0] == 7


def test_column_whose_quotient_overflows():
    scale, _ = reference.update_column(1, [1e-37, 0, 0, 0], [], E4M3)
    assert scale == FLT_MAX and 0 < scale_inv(scale) < np.finfo(np.float32).tiny


def test_history_of_one():
    scale, history = reference.update_column(1, [0], [8], E4M3)
    assert (scale, history.tolist()) == (56, [0])


def test_current_scale():
    scales = lambda values, **options: reference.current_scale(values, E4M3, **options).tolist()
    assert scales([8, 0, INF, NAN]) == [56, 1, 1, 1]
    assert scales([0.5], eps=2) == [224] and scales([3], power_2_scale=True) == [128]
    assert scales([1e-37]) == [FLT_MAX] and scales([1e-37], power_2_scale=True) == [2.0**127]


def test_block_scale_overflows_to_the_source_type():
    assert reference.block_scale([1e-37], E4M3, F16, power_2_scale=False) == 65504
    assert reference.block_scale([1e-37], E4M3, F16) == 2.0**15
    assert reference.block_scale([2.0**-8], E4M3, F16, power_2_scale=False) == 448 * 2.0**8  # beyond f16, not beyond f32
    assert reference.block_scale([1e-37], E4M3, BF16, power_2_scale=False) == np.float32(3.3895314e38)


def test_mx_exponent():
    assert reference.mx_exponent([448, 449, 0, INF, 1e-45, 3.4e38], E4M3).tolist() == [127, 128, 0, 254, 0, 247]
    assert reference.mx_exponent([57344, 57345], E5M2).tolist() == [127, 128]
    # floor, ceil and even look at powers of two: 448 is 1.75 · 2^8, and 2^8 that of the format's largest value.
    assert reference.mx_exponent([256, 448, 500, 511], E4M3, "floor").tolist() == [127, 127, 127, 127]
    assert reference.mx_exponent([256, 257, 512], E4M3, "ceil").tolist() == [127, 128, 128]
    assert reference.mx_exponent([256, 495, 496, 512], E4M3, "even").tolist() == [127, 127, 128, 128]


@pytest.mark.parametrize("fmt", FP8, ids=name_of)
def test_mx_exponent_against_fractions(fmt):
    bits = random_generator(52).integers(1, 0x7F800000, 500, dtype=np.uint32)
    for value in bits.view(np.float32):
        quotient = Fraction(float(value)) / Fraction(float(fmt.max))
        power = next(p for p in range(-200, 200) if Fraction(2) ** p >= quotient)
        assert reference.mx_exponent(value, fmt) == min(max(127 + power, 0), 254)


def test_mx_blocks():
    x = np.zeros((3, 40), np.float32)
    x[1, :2], x[2, 33], x[2, 35] = [INF, 1e30], NAN, 448
    data, exponents = reference.quantize_mx(x, (1, 32), E4M3)
    assert exponents.tolist() == [[0, 0], [254, 0], [0, 127]]
    assert not data[0].any() and data[1, 0] == 0x7E and data[2, 33] == 0x7F and data[2, 35] == 0x7E
    # 1e30 · 2^-127 is below half the smallest value.
    assert data[1, 1] == 0


def test_decode_e8m0():
    assert decode_e8m0([0, 127, 254]).tolist() == [2.0**-127, 1, 2.0**127] and np.isnan(decode_e8m0(255))


def test_ragged_blocks_have_their_own_scales():
    x = np.ones((130, 200), np.float32)
    x[:, 128:] = 3
    data, inverse = reference.quantize_blocks(x, (128, 128), E4M3, reference.block_scale)
    assert inverse.tolist() == [[1 / 256, 1 / 128]] * 2
    assert set(data[:, :128].ravel()) == {0x78} and set(data[:, 128:].ravel()) == {0x7C}
    data, inverse = reference.quantize_rows(x, 1, E4M3)
    assert inverse.shape == (130, 1) and (inverse == np.float32(1) / (np.float32(448) / np.float32(3))).all()
    assert reference.scale_shape((1, 0), (5, 0)) == [5, 1] and reference.scale_shape((1, 32), (0, 33)) == [0, 2]


def test_packed_scales():
    scales = np.zeros((128, 4), np.uint8)
    scales[33, 2] = 9
    assert np.flatnonzero(reference.pack_scales(scales)).tolist() == [22]
    packed = reference.pack_scales(np.full((130, 5), 7, np.uint8))
    assert len(packed) == 2048 and packed.astype(int).sum() == 7 * 650
    # The last row and column: the fourth tile, row 1, column 0.
    assert packed[3 * 512 + 16] == 7 and packed[3 * 512 + 17] == 0


def test_fma_rounds_once():
    rng = random_generator(53)
    a, b, c = (rng.integers(0, 2**32, 3000, dtype=np.uint32).view(np.float32) for _ in range(3))
    c = np.where(rng.random(3000) < 0.5, -(a * b) * np.float32(1 + 2**-20), c).astype(np.float32)
    keep = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & np.isfinite(a * b)
    for x, y, z in zip(a[keep], b[keep], c[keep]):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        got = fma(x, y, z)
        if not np.isfinite(got):
            assert abs(exact) >= Fraction(float(FLT_MAX))
            continue
        around = [np.nextafter(got, np.float32(-INF)), got, np.nextafter(got, np.float32(INF))]
        around = [v for v in around if np.isfinite(v)]
        best = min(around, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1))
        assert best == got


def test_products_are_sums_in_order():
    a, b = np.float32([[2.0**24, 1, 1]]), np.float32([[1, 1, 1]])
    assert running_sum(a, b) == 2.0**24
    wide = np.ones((1, 300), np.float32)
    wide[0, 0] = 2.0**24
    # Every part of 128 is summed from 0 before it is added.
    assert running_sum(wide, wide[:, ::-1] * 0 + 1) == 2.0**24
    assert split_sum(wide, wide * 0 + 1) == 2.0**24 + 128 + 44
    assert scaled_product(a, b, 2, 3) == 6 * 2.0**24
    assert scaled_product(np.ones((2, 1), np.float32), np.ones((3, 1), np.float32), [1, 2], [3, 4, 5]).tolist() == [
        [3, 4, 5], [6, 8, 10]]


def test_block_product_by_hand():
    a, b = np.ones((1, 130), np.float32), np.ones((1, 130), np.float32)
    inverses = np.float32([[2, 3]]), np.float32([[5, 7]])
    assert block_product(a, b, *inverses) == 128 * 10 + 2 * 21
    third = np.float32([[1 / 3]])
    tenth = np.float32([[1 / 10]])
    value = np.float32([[1.1]])
    assert block_product(value, value, third, tenth) == (value * value * third) * tenth
    assert block_product(value, value, third, tenth, rhs_first=True) == (value * value * tenth) * third


def test_mx_product_by_hand():
    a = np.ones((1, 33), np.float32)
    assert mx_product(a, a, np.float32([[2, 4]]), np.float32([[1, 8]])) == 64 + 32


def test_philox_known_answers():
    """The known answers that come with Random123."""
    words = lambda counter, key: [int(w) for w in philox(counter, key)]
    assert words((0, 0, 0, 0), (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = 0xFFFFFFFF
    assert words((ones,) * 4, (ones, ones)) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    counter, key = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    assert words(counter, key) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


@pytest.mark.parametrize("fmt", FP8, ids=name_of)
def test_stochastic_rounding(fmt):
    words = random_words(1234567890123, 2, 3, 4000)
    values = np.float32(1 + random_generator(54).random(4000) * 2.0**-fmt.mantissa)
    codes = cast_stochastic(values, 1, fmt, words)
    one = int(cast(1.0, 1, fmt))
    assert set(codes) <= {one, one + 1}
    up = values - 1 > words.astype(np.float64) * 2.0**-32 * 2.0**-fmt.mantissa
    np.testing.assert_array_equal(codes == one + 1, up)
    # Values of the format stay, and what is beyond saturates, whatever the bits.
    exact = fmt.decode(np.arange(256))[np.isfinite(fmt.decode(np.arange(256)))]
    kept = cast_stochastic(exact, 1, fmt, words[: len(exact)])
    np.testing.assert_array_equal(fmt.decode(kept), exact)
    assert cast_stochastic(np.float32([INF, -1e9, NAN]), 1, fmt, words[:3]).tolist() == [
        fmt.largest, fmt.largest | 0x80, 0x7F]


def test_tf32():
    tie = 1 + 2.0**-11
    assert tf32([tie, -tie, np.nextafter(np.float32(tie), np.float32(0)), INF]).tolist() == [1 + 2.0**-10, -1 - 2.0**-10, 1, INF]
    assert tf32(FLT_MAX) == INF and np.isnan(tf32(NAN)) and tf32(np.float32(1e-45)) == 0


def test_loss_scaling():
    gradients, found = reference.unscale([np.float32([65536, INF])], 65536)
    assert gradients[0].tolist() == [1, INF] and found == 1
    assert reference.unscale([np.float32([1])], 2)[1] == 0
    assert reference.update_loss_scale(1, 65536, 1999) == (32768, 0)
    assert reference.update_loss_scale(0, 65536, 1998) == (65536, 1999)
    assert reference.update_loss_scale(0, 65536, 1999) == (131072, 0)


def test_single_is_itself():
    values = random_generator(55).integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    values = values[~np.isnan(values)]
    np.testing.assert_array_equal(SINGLE.round(values), values.view(np.uint32))
