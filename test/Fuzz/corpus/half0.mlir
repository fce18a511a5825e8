// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// IR of the dialect as nobody's pass leaves it: operations alone, without what makes their
// operands, with half of a pair or of the state. Each is right or an error; none is a crash.

func.func @matmul_alone(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %y = fp8.matmul site("a") role(dgrad) kinds(grad_output, weight) ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
