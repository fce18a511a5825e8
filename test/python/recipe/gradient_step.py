# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One linear layer y = x · w with both gradients, of g = y - t, and a function that evaluates it. With the
identity for x the gradient of w is the cast g."""

TEXT = """
func.func @step(%w: tensor<NxNxf32> loc("w"), %x: tensor<NxNxf32>, %t: tensor<NxNxf32>) -> (tensor<NxNxf32>, tensor<NxNxf32>, tensor<NxNxf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<NxNxf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<NxNxf32>) -> tensor<NxNxf32>
  %y = linalg.matmul ins(%x, %w : tensor<NxNxf32>, tensor<NxNxf32>) outs(%f : tensor<NxNxf32>) -> tensor<NxNxf32>
  %g = arith.subf %y, %t : tensor<NxNxf32>
  %dw = linalg.matmul indexing_maps = [affine_map<(k, n, m) -> (m, k)>, affine_map<(k, n, m) -> (m, n)>, affine_map<(k, n, m) -> (k, n)>]
      ins(%x, %g : tensor<NxNxf32>, tensor<NxNxf32>) outs(%f : tensor<NxNxf32>) -> tensor<NxNxf32>
  %dx = linalg.matmul indexing_maps = [affine_map<(m, k, n) -> (m, n)>, affine_map<(m, k, n) -> (k, n)>, affine_map<(m, k, n) -> (m, k)>]
      ins(%g, %w : tensor<NxNxf32>, tensor<NxNxf32>) outs(%f : tensor<NxNxf32>) -> tensor<NxNxf32>
  return %dw, %dx, %y : tensor<NxNxf32>, tensor<NxNxf32>, tensor<NxNxf32>
}
func.func @evaluate(%w: tensor<NxNxf32> loc("w"), %x: tensor<NxNxf32>) -> tensor<NxNxf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<NxNxf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<NxNxf32>) -> tensor<NxNxf32>
  %y = linalg.matmul ins(%x, %w : tensor<NxNxf32>, tensor<NxNxf32>) outs(%f : tensor<NxNxf32>) -> tensor<NxNxf32>
  return %y : tensor<NxNxf32>
}
"""


def text(size):
    """All tensors are square matrices; step(w, x, t) returns dw, dx and y."""
    return TEXT.replace("NxN", f"{size}x{size}")
