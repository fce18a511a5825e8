# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with few tiles and a long K, which fp8-split-matmuls divides: values whose sums are exact in f32 in any order."""

import ml_dtypes
import numpy as np
import pytest

from harness import F32, Program, assert_same_bits, random_generator

CHIPS = ["sm_89", "sm_90a", "sm_100a", "sm_120a"]
TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": F32}


def program(m, n, k, element, transposed=False):
    """The product, the product added to C, and relu(product + bias)."""
    x, w = f"tensor<{m}x{k}x{element}>", f"tensor<{f'{n}x{k}' if transposed else f'{k}x{n}'}x{element}>"
    sums, out = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{n}x{element}>"
    maps = f"""indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> ({"n, k" if transposed else "k, n"})>,
      affine_map<(m, n, k) -> (m, n)>]"""
    product = lambda init, type: f"linalg.contract {maps} ins(%x, %w : {x}, {w}) outs({init} : {type}) -> {type}"
    return f"""
func.func @main(%x: {x}, %w: {w}, %c: {sums}, %bias: tensor<{n}x{element}>) -> ({sums}, {sums}, {out}) {{
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0.0 : {element}
  %e = tensor.empty() : {sums}
  %f = linalg.fill ins(%zero : f32) outs(%e : {sums}) -> {sums}
  %y = {product("%f", sums)}
  %added = {product("%c", sums)}
  %eo = tensor.empty() : {out}
  %fo = linalg.fill ins(%low : {element}) outs(%eo : {out}) -> {out}
  %yo = {product("%fo", out)}
  %relu = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}} ins(%yo, %bias : {out}, tensor<{n}x{element}>) outs(%eo : {out}) {{
    ^bb0(%s: {element}, %b: {element}, %o: {element}):
      %0 = arith.addf %s, %b : {element}
      %1 = arith.maximumf %0, %low : {element}
      linalg.yield %1 : {element}
  }} -> {out}
  return %y, %added, %relu : {sums}, {sums}, {out}
}}
"""


def check(compiled, m, n, k, element, transposed=False):
    rng, dtype = random_generator(98), TYPES[element]
    x, w = (2.0 ** rng.integers(0, 3, shape).astype(F32) * rng.integers(-1, 2, shape).astype(F32) for shape in ((m, k), (k, n)))
    c, bias = rng.integers(-8, 9, (m, n)).astype(F32), rng.integers(-8, 9, n).astype(F32)
    given = np.ascontiguousarray(w.T) if transposed else w
    y, added, relu = compiled.call("main", x.astype(dtype), given.astype(dtype), c, bias.astype(dtype))
    sums = x @ w
    assert_same_bits(y, sums)
    assert_same_bits(added, sums + c)
    assert_same_bits(relu, np.maximum((sums.astype(dtype).astype(F32) + bias).astype(dtype), np.zeros((), dtype)))


@pytest.mark.slow(one_of=3)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("recipe", ["none", "current", "row"])
def test_exact_sums(bin_dir, tmp_path, chip, recipe):
    m, n, k = 40, 72, 8192
    options = [f"--recipe={recipe}", *(["--power-2-scale=true"] if recipe != "none" else [])]
    compiled = Program(bin_dir, tmp_path, program(m, n, k, "bf16"), f"--target={chip}", "--ptxas=none", "--sites=all", *options)
    codes = [site["code"] for site in compiled.manifest["sites"]]
    assert codes and all("K in " in code for code in codes), codes
    check(compiled, m, n, k, "bf16")


SCALED = """
func.func @main(%x: tensor<24x8192xf8E4M3FN>, %w: tensor<40x8192xf8E4M3FN>, %sx: tensor<f32>, %sw: tensor<f32>) -> tensor<24x40xf32> {{
  %e = tensor.empty() : tensor<24x40xf32>
  %y = fp8.scaled_matmul site("fc") role(fprop) {} ins(%x, %w : tensor<24x8192xf8E4M3FN>, tensor<40x8192xf8E4M3FN>)
    scales(%sx, %sw : tensor<f32>, tensor<f32>) outs(%e : tensor<24x40xf32>)
    {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}} -> tensor<24x40xf32>
  return %y : tensor<24x40xf32>
}}
"""


@pytest.mark.slow(one_of=2)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("accumulation", ["fast", "split"])
def test_the_sum_of_all_parts_is_multiplied_by_the_scales_once(bin_dir, tmp_path, chip, accumulation):
    """A sum of parts that are multiplied each would be rounded more often."""
    compiled = Program(bin_dir, tmp_path, SCALED.format(accumulation), f"--target={chip}", "--ptxas=none", "--recipe=none")
    assert "K in 8 parts" in compiled.manifest["sites"][0]["code"]
    rng, scales = random_generator(99), (F32.type(0.3), F32.type(0.7))
    x, w = (rng.integers(-3, 4, shape).astype(F32) for shape in ((24, 8192), (40, 8192)))
    (y,) = compiled.call("main", *(v.astype(ml_dtypes.float8_e4m3fn) for v in (x, w)), *scales)
    assert_same_bits(y, (scales[0] * scales[1]) * (x @ w.T))


@pytest.mark.parametrize("element, transposed, k", [("f16", True, 5120), ("f32", False, 2304), ("bf16", True, 4096)])
def test_elements_and_layouts(bin_dir, tmp_path, element, transposed, k):
    compiled = Program(bin_dir, tmp_path, program(130, 20, k, element, transposed), "--target=sm_90a", "--ptxas=none", "--recipe=none", "--sites=all")
    assert all("K in " in site["code"] for site in compiled.manifest["sites"])
    check(compiled, 130, 20, k, element, transposed)


@pytest.mark.parametrize("size, options", [((40, 72, 1024), []), ((40, 72, 4095), []), ((2048, 2048, 4096), []), ((40, 72, 8192), ["--order=program"])])
def test_products_that_stay_whole(run, tmp_path, size, options):
    """A short K, one that has no equal parts, tiles for all multiprocessors, and the order of the program."""
    (tmp_path / "program.mlir").write_text(program(*size, "bf16"))
    done = run("fp8-compile", tmp_path / "program.mlir", "-o", "-", "--emit=kernels", "--target=sm_90a", "--recipe=none", "--sites=all", *options)
    assert done.returncode == 0 and "K in " not in done.stdout, done.stderr
