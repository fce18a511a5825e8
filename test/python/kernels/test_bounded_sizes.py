# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmuls of sizes of which the compiler knows the most that they can be."""
import numpy as np
import pytest

from harness import F32, Program, assert_same_bits, random_generator


@pytest.mark.parametrize("depth", [0, 1, 1000, 4096])
def test_a_depth_that_is_known_at_run_time_only(bin_dir, tmp_path, depth):
    """The most that it can be decides on the plan: segments of K, of which a sum without summands has one."""
    text = """func.func @main(%n: tensor<i64>, %x: tensor<40x4096xf32>, %y: tensor<4096x64xf32>) -> tensor<40x64xf32> {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %most = arith.constant 4096 : index
      %number = tensor.extract %n[] : tensor<i64>
      %index = arith.index_cast %number : i64 to index
      %size = affine.min affine_map<()[s0] -> (s0, 4096)>()[%index]
      %a = tensor.extract_slice %x[0, 0] [40, %size] [1, 1] : tensor<40x4096xf32> to tensor<40x?xf32>
      %b = tensor.extract_slice %y[0, 0] [%size, 64] [1, 1] : tensor<4096x64xf32> to tensor<?x64xf32>
      %e = tensor.empty() : tensor<40x64xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x64xf32>) -> tensor<40x64xf32>
      %r = linalg.matmul ins(%a, %b : tensor<40x?xf32>, tensor<?x64xf32>) outs(%f : tensor<40x64xf32>) -> tensor<40x64xf32>
      return %r : tensor<40x64xf32>
    }"""
    rng = random_generator(49, depth)
    x, y = (rng.integers(-4, 5, shape).astype(F32) for shape in ((40, 4096), (4096, 64)))
    (result,) = Program(bin_dir, tmp_path, text, "--recipe=none").call("main", np.int64(depth), x, y)
    assert_same_bits(result, x[:, :depth] @ y[:depth])
