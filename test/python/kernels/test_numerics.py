# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts, amaxes and scales by value: FP8 operations through compiled code against reference.py.

test_conversions.py has the casts of all values.
"""
import numpy as np
import pytest

import reference
from harness import BF16, E4M3, E5M2, F16, F32, MLIR_NAMES, Program, assert_same_bits, random_generator, tensor_type

FORMATS = [E4M3, E5M2]
format_name = MLIR_NAMES.get
WIDE = [F32, BF16, F16]
INF, NAN = np.inf, np.nan


def quantize_entry(fmt, dtype, count):
    x, q, scalar = tensor_type([count], dtype), tensor_type([count], fmt), "tensor<f32>"
    return f"""
func.func @quantize_{format_name(fmt)}_{MLIR_NAMES[dtype]}(%x: {x}, %s: {scalar}) -> ({q}, {scalar}, {scalar}) {{
  %d = tensor.empty() : {q}
  %e = tensor.empty() : {scalar}
  %q, %i, %a = fp8.quantize record_amax ins(%x : {x}) scale(%s : {scalar})
      outs(%d, %e, %e : {q}, {scalar}, {scalar}) -> {q}, {scalar}, {scalar}
  return %q, %i, %a : {q}, {scalar}, {scalar}
}}"""


def amax_entry(name, shape, dtype):
    x = tensor_type(shape, dtype)
    return f"""
func.func @amax_{name}(%x: {x}) -> tensor<f32> {{
  %e = tensor.empty() : tensor<f32>
  %a = fp8.amax ins(%x : {x}) outs(%e : tensor<f32>) -> tensor<f32>
  return %a : tensor<f32>
}}"""


CURRENT = {
    "plain": ("#fp8.current_scaling", {}),
    "eps": ("#fp8.current_scaling<eps = 1.0e-3>", {"eps": 1e-3}),
    "power": ("#fp8.current_scaling<power_2_scale = true>", {"power_2_scale": True}),
}


def current_entry(name, recipe, fmt):
    return f"""
func.func @current_{name}_{format_name(fmt)}(%a: tensor<f32>) -> tensor<f32> {{
  %e = tensor.empty() : tensor<f32>
  %s = fp8.compute_scale recipe({recipe}) format({format_name(fmt)})
      ins(%a : tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}}"""


# A cast that computes its element: a bias along the columns added in bf16, bytes in both layouts.
PRODUCER = """
#rows = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
func.func @producer(%x: tensor<7x33xbf16>, %b: tensor<33xbf16>, %s: tensor<f32>)
    -> (tensor<7x33xf8E5M2>, tensor<33x7xf8E5M2>, tensor<f32>, tensor<f32>) {
  %d = tensor.empty() : tensor<7x33xf8E5M2>
  %t = tensor.empty() : tensor<33x7xf8E5M2>
  %e = tensor.empty() : tensor<f32>
  %q, %qt, %i, %a = fp8.quantize record_amax ins(%x, %b : tensor<7x33xbf16>, tensor<33xbf16>) scale(%s : tensor<f32>)
      outs(%d, %t, %e, %e : tensor<7x33xf8E5M2>, tensor<33x7xf8E5M2>, tensor<f32>, tensor<f32>)
      {indexing_maps = [#rows, #columns], transposition = array<i64: 1, 0>} producer {
    ^bb0(%xe: bf16, %be: bf16):
      %sum = arith.addf %xe, %be : bf16
      fp8.yield %sum : bf16
  } -> tensor<7x33xf8E5M2>, tensor<33x7xf8E5M2>, tensor<f32>, tensor<f32>
  return %q, %qt, %i, %a : tensor<7x33xf8E5M2>, tensor<33x7xf8E5M2>, tensor<f32>, tensor<f32>
}"""

COUNT = 64

AMAX_SHAPES = {"scalar": [], "empty": [0], "vector": [1000], "hollow": [3, 0, 5], "cube": [3, 5, 17], "large": [300, 400]}


@pytest.fixture(scope="module")
def program(bin_dir, tmp_path_factory):
    text = [PRODUCER]
    for fmt in FORMATS:
        text += [quantize_entry(fmt, BF16, COUNT), quantize_entry(fmt, F32, COUNT)]
        text += [current_entry(name, recipe, fmt) for name, (recipe, _) in CURRENT.items()]
    for name, shape in AMAX_SHAPES.items():
        text += [amax_entry(f"{name}_{MLIR_NAMES[dtype]}", shape, dtype) for dtype in WIDE]
    return Program(bin_dir, tmp_path_factory.mktemp("numerics"), "\n".join(text), "--recipe=none")


@pytest.mark.parametrize("fmt", FORMATS, ids=format_name)
def test_cast_corrections_by_hand(program, fmt):
    """The reference itself, on the cases where ml_dtypes alone would be wrong."""
    limit = {E4M3: 0x7E, E5M2: 0x7B}[fmt]
    x = np.array([INF, -INF, NAN, -NAN, 500.0, 1e6, -1e6, 0.0, -0.0, 2.0**-9], np.float32)
    expected = [limit, limit | 0x80, 0x7F, 0x7F, 0x7E if fmt == E4M3 else 0x60, limit, limit | 0x80, 0, 0x80]
    expected.append({E4M3: 0x01, E5M2: 0x18}[fmt])
    padded = np.resize(x, COUNT)
    data, _, amax = program.call(f"quantize_{format_name(fmt)}_f32", padded, np.float32(1))
    assert data.view(np.uint8)[: len(x)].tolist() == expected
    assert amax == INF


@pytest.mark.parametrize("fmt", FORMATS, ids=format_name)
def test_scale_inv_is_correctly_rounded(program, fmt):
    rng = random_generator(2)
    scales = np.abs(rng.integers(1, 0x7F7FFFFF, 12, dtype=np.uint32).view(np.float32))
    # 1 / scale is a denormal for the first three, and rounds at its last bit.
    scales = [3.4028235e38, 2.0**127, 1.5e38, 3.0, *scales]
    x = np.zeros(COUNT, BF16)
    for scale in scales:
        _, inverse, amax = program.call(f"quantize_{format_name(fmt)}_bf16", x, np.float32(scale))
        exact = np.float32(np.longdouble(1) / np.longdouble(np.float32(scale)))
        assert_same_bits(inverse, exact)
        assert amax == 0
    assert 0 < reference.scale_inv(scales[0]) < np.finfo(np.float32).tiny


def test_producer_rounds_as_the_program_said(program):
    rng = random_generator(3)
    x, bias = (rng.standard_normal(shape).astype(BF16) for shape in [(7, 33), (33,)])
    data, transposed, inverse, amax = program.call("producer", x, bias, np.float32(1000))
    rounded = (x.astype(np.float32) + bias.astype(np.float32)).astype(BF16)
    assert_same_bits(data, reference.cast(rounded, 1000, E5M2))
    assert_same_bits(transposed, data.T)
    assert_same_bits(inverse, reference.scale_inv(1000))
    assert_same_bits(amax, reference.amax(rounded))


@pytest.mark.parametrize("dtype", WIDE, ids=MLIR_NAMES.get)
@pytest.mark.parametrize("name", AMAX_SHAPES)
def test_amax(program, name, dtype):
    rng, shape = random_generator(4), AMAX_SHAPES[name]
    plain = rng.standard_normal(shape).astype(dtype)
    cases = [plain, np.full(shape, NAN, dtype), np.full(shape, -0.0, dtype), np.full(shape, -INF, dtype)]
    if plain.size:
        spotted, infinite, least = plain.copy(), plain.copy(), np.zeros(shape, dtype)
        spotted.ravel()[:: max(1, plain.size // 3)] = NAN
        infinite.ravel()[-1], infinite.ravel()[0] = -INF, NAN if plain.size > 1 else INF
        least.ravel()[-1] = -np.array([1], np.uint32 if dtype == F32 else np.uint16).view(dtype)[0]
        cases += [spotted, infinite, least]
    for x in cases:
        (amax,) = program.call(f"amax_{name}_{MLIR_NAMES[dtype]}", x)
        assert_same_bits(amax, reference.amax(x))


@pytest.mark.parametrize("fmt", FORMATS, ids=format_name)
@pytest.mark.parametrize("name", CURRENT)
def test_current_scaling(program, name, fmt):
    rng = random_generator(5)
    amaxes = [0.0, INF, NAN, 1e-3, 9e-4, 1e-4, 1.0, 448.0, 449.0, 447.0, 3.0, 57344.0, 1e-37, 1e-38, 1e-45, 3.4e38]
    amaxes += list(np.exp(rng.uniform(-80, 80, 10)))
    _, options = CURRENT[name]
    for amax in np.array(amaxes, np.float32):
        (scale,) = program.call(f"current_{name}_{format_name(fmt)}", amax)
        assert_same_bits(scale, reference.current_scale(amax, fmt, **options), None)


def test_current_scaling_by_hand():
    """The reference itself, on the rule's corners."""
    largest = np.finfo(np.float32).max
    assert reference.current_scale(np.float32(1e-37), E4M3) == largest
    assert reference.current_scale(np.float32(1e-37), E4M3, power_2_scale=True) == 2.0**127
    assert reference.current_scale(np.float32(3), E4M3, power_2_scale=True) == 128
    assert reference.current_scale(np.float32(0), E4M3, eps=2.0) == 224
    assert [reference.current_scale(np.float32(a), E5M2) for a in (0, INF, NAN)] == [1, 1, 1]
