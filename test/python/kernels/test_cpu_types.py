# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of code for the CPU in bf16, f16, f64 and bytes: where it rounds."""

import ml_dtypes
import numpy as np
import pytest

from harness import Program


def unary(name, source, target, body):
    """A function of one element applied to a whole tensor of 4,096."""
    return f"""
func.func @main(%x: tensor<4096x{source}>) -> tensor<4096x{target}> {{
  %empty = tensor.empty() : tensor<4096x{target}>
  %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%x : tensor<4096x{source}>) outs(%empty : tensor<4096x{target}>) {{
  ^bb0(%in: {source}, %out: {target}):
    {body}
    linalg.yield %{name} : {target}
  }} -> tensor<4096x{target}>
  return %y : tensor<4096x{target}>
}}
"""


def all_halves(dtype):
    return np.arange(65536, dtype=np.uint16).view(dtype).reshape(16, 4096)


@pytest.mark.parametrize("name, dtype", [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_narrow_arithmetic_rounds_after_every_operation(execute, name, dtype):
    """sqrt(x * x) + x with three roundings, denormals kept, for a quarter of all numbers."""
    program = unary(
        "sum", name, name, f"%square = arith.mulf %in, %in : {name}\n    %root = math.sqrt %square : {name}\n    %sum = arith.addf %root, %in : {name}"
    )
    for x in all_halves(dtype)[::5]:
        with np.errstate(all="ignore"):
            wide = x.astype(np.float32)
            square = (wide * wide).astype(dtype)
            root = np.sqrt(square.astype(np.float32)).astype(dtype)
            want = (root.astype(np.float32) + wide).astype(dtype)
        got = execute(program, [x])["0"]
        finite = ~np.isnan(want.astype(np.float32))
        np.testing.assert_array_equal(got.view(np.uint16)[finite], want.view(np.uint16)[finite])
        assert np.isnan(got.astype(np.float32)[~finite]).all()


@pytest.mark.parametrize("name, dtype", [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_truncation_to_narrow_types(execute, name, dtype):
    """Round to nearest even, denormals of the narrow type included."""
    random = np.random.default_rng(0)
    x = np.concatenate(
        [
            random.standard_normal(2048).astype(np.float32) * np.exp2(random.integers(-40, 20, 2048)).astype(np.float32),
            np.exp2(random.uniform(-149, -120, 2040)).astype(np.float32),
            np.array([0, -0.0, np.inf, -np.inf, 65504, 65519.9, 65520, 3.4e38], np.float32),
        ]
    )
    with np.errstate(all="ignore"):
        want = x.astype(dtype)
    got = execute(unary("narrow", "f32", name, f"%narrow = arith.truncf %in : f32 to {name}"), [x])["0"]
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


def test_powers_of_two_of_a_byte(bin_dir, tmp_path):
    """f8E8M0FNU to f32: all 256 values."""
    text = unary("r", "i8", "f32", "%e = arith.bitcast %in : i8 to f8E8M0FNU\n    %r = arith.extf %e : f8E8M0FNU to f32")
    x = np.resize(np.arange(256, dtype=np.uint8), 4096).view(np.int8)
    (got,) = Program(bin_dir, tmp_path, text, "--recipe=none").call("main", x)
    want = np.ldexp(np.float32(1), x.view(np.uint8).astype(np.int32) - 127)
    want[x.view(np.uint8) == 255] = np.nan
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("target", [ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_truncation_from_f64_rounds_once(bin_dir, tmp_path, target):
    """Values near ties of the narrow type, which rounding to f32 on the way would make ties."""
    name = {"bfloat16": "bf16", "float16": "f16", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2"}[np.dtype(target).name]
    exact = np.arange(1, 0x3F00 if name in ("bf16", "f16") else 0x70, dtype=f"u{np.dtype(target).itemsize}").view(target).astype(np.float64)
    ties = (exact[:-1] + exact[1:]) / 2
    x = np.concatenate([exact[:-1], ties, ties * (1 + 2.0**-40), -ties * (1 - 2.0**-40), [0, -0.0]])
    x = np.resize(x[:: max(1, len(x) // 4000)], 4096)
    lower, upper = exact[np.searchsorted(exact, np.abs(x), "right") - 1], exact[np.minimum(np.searchsorted(exact, np.abs(x), "left"), len(exact) - 1)]
    tie = np.abs(x) == (lower + upper) / 2
    nearest = np.where(np.abs(x) - lower < upper - np.abs(x), lower, upper)
    even = np.where(lower.astype(target).view(f"u{np.dtype(target).itemsize}") % 2 == 0, lower, upper)
    want = (np.copysign(np.where(x == 0, 0, np.where(tie, even, nearest)), x)).astype(target)
    text = unary("narrow", "f64", name, f"%narrow = arith.truncf %in : f64 to {name}")
    (got,) = Program(bin_dir, tmp_path, text, "--recipe=none").call("main", x)
    np.testing.assert_array_equal(got.view(want.view(f"u{want.itemsize}").dtype), want.view(f"u{want.itemsize}"))


def test_a_short_vector_of_bf16(execute):
    """Seven elements are one vector without a loop: its roundings are no library calls."""
    program = """
    func.func @main(%x: tensor<7xf32>, %y: tensor<7xf32>, %z: tensor<7xf32>) -> tensor<7xbf16> {
      %0 = arith.truncf %x : tensor<7xf32> to tensor<7xbf16>
      %1 = arith.truncf %y : tensor<7xf32> to tensor<7xbf16>
      %2 = arith.truncf %z : tensor<7xf32> to tensor<7xbf16>
      %3 = arith.addf %0, %1 : tensor<7xbf16>
      %4 = arith.mulf %3, %2 : tensor<7xbf16>
      %5 = arith.addf %4, %0 : tensor<7xbf16>
      return %5 : tensor<7xbf16>
    }
    """
    x, y, z = np.random.default_rng(7).standard_normal((3, 7)).astype(np.float32)
    x[3], y[4] = np.nan, np.inf
    narrow = lambda value: np.asarray(value, np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
    (result,) = execute(program, [x, y, z]).values()
    expected = narrow(narrow(narrow(narrow(x) + narrow(y)) * narrow(z)) + narrow(x))
    np.testing.assert_array_equal(result.astype(np.float32), expected)


WIDE_SUM = """
func.func @main(%x: tensor<8x16xSOURCE>, %w: tensor<16x32xSOURCE>, %init: tensor<8x32xf64>) -> tensor<8x32xf64> {
  %r = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x16xSOURCE>, tensor<16x32xSOURCE>) outs(%init : tensor<8x32xf64>) {
  ^bb0(%a: SOURCE, %b: SOURCE, %acc: f64):
    PRODUCT
    %wide = arith.extf %p : f32 to f64
    %s = arith.addf %acc, %wide : f64
    linalg.yield %s : f64
  } -> tensor<8x32xf64>
  return %r : tensor<8x32xf64>
}
"""


@pytest.mark.parametrize("source", ["f32", "bf16"])
def test_a_product_of_less_is_summed_in_f64_where_the_program_does(execute, source):
    extend = "%wa = arith.extf %a : bf16 to f32\n%wb = arith.extf %b : bf16 to f32\n"
    product = {"f32": "%p = arith.mulf %a, %b : f32", "bf16": extend + "%p = arith.mulf %wa, %wb : f32"}[source]
    dtype = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}[source]
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((8, 16)).astype(dtype), rng.standard_normal((16, 32)).astype(dtype)
    x[:, 0], w[0] = 1, 2**24  # a sum in f32 loses the rest
    init = rng.standard_normal((8, 32))
    want = init.copy()
    for k in range(16):
        want += np.outer(x[:, k].astype(np.float32), w[k].astype(np.float32)).astype(np.float64)
    got = execute(WIDE_SUM.replace("PRODUCT", product).replace("SOURCE", source), [x, w, init])["0"]
    np.testing.assert_array_equal(got, want)
