# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of whole libraries: the results on the emulator are those on the CPU, bit for bit. Sums are of small integers, which
are exact in any order."""

import ml_dtypes
import numpy as np
import pytest
from test_libraries import both  # noqa: F401

# A product of dynamic M, the sum of its columns and of all squares.
EPILOGUE = """
#id = affine_map<(m, n) -> (m, n)>
#columns = affine_map<(m, n) -> (n)>
#all = affine_map<(m, n) -> ()>
func.func @main(%x: tensor<?x16xbf16>, %w: tensor<16x96xbf16>) -> (tensor<?x96xbf16>, tensor<96xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x16xbf16>
  %e = tensor.empty(%m) : tensor<?x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x16xbf16>, tensor<16x96xbf16>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
  %eb = tensor.empty(%m) : tensor<?x96xbf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<?x96xf32>) outs(%eb : tensor<?x96xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %0 = arith.truncf %a : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<?x96xbf16>
  %ec = tensor.empty() : tensor<96xf32>
  %fc = linalg.fill ins(%zero : f32) outs(%ec : tensor<96xf32>) -> tensor<96xf32>
  %c = linalg.generic {indexing_maps = [#id, #columns], iterator_types = ["reduction", "parallel"]} ins(%y : tensor<?x96xbf16>) outs(%fc : tensor<96xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<96xf32>
  %es = tensor.empty() : tensor<f32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction"]} ins(%y : tensor<?x96xbf16>) outs(%fs : tensor<f32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  return %y, %c, %s : tensor<?x96xbf16>, tensor<96xf32>, tensor<f32>
}
"""


@pytest.mark.parametrize("rows", [0, 1, 300])
def test_sums_of_epilogues_over_dynamic_rows(both, rows):
    program = both(EPILOGUE, "--recipe=none")
    rng = np.random.default_rng(rows)
    x, w = (rng.integers(-2, 3, shape).astype(ml_dtypes.bfloat16) for shape in ((rows, 16), (16, 96)))
    y = x.astype(np.float32) @ w.astype(np.float32)
    results = program.results(x, w)
    assert (results["1"] == y.sum(0)).all() and results["2"] == (y * y).sum()
    assert program.compile("--target=sm_89", "--recipe=none", "--emit=kernels", "-o", "kernels.mlir").returncode == 0
    launches = (program.folder / "kernels.mlir").read_text().split("gpu.launch_func")[1:]
    assert sum("@kernel_sum_of_rows_batch_2 " in launch for launch in launches) == 1  # the parts of both sums
