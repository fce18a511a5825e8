# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of a few lines that several tests compile, and a compiler that is a script."""

import fp8


def product(m=4, k=16, n=8, locations=""):
    """main(x f32 [m, k], w f32 [k, n]) = x · w; `locations` follows the product."""
    return f"""func.func @main(%x: tensor<{m}x{k}xf32> loc("x"), %w: tensor<{k}x{n}xf32> loc("w")) -> tensor<{m}x{n}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}x{n}xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %y = linalg.matmul ins(%x, %w : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) outs(%fill : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>{locations}
  return %y : tensor<{m}x{n}xf32>
}}
"""


COUNTER = """func.func @main(%count: tensor<2xi32> loc("count"), %step: tensor<2xi32> loc("step")) -> (tensor<2xi32>, tensor<2xi32>) {
  %empty = tensor.empty() : tensor<2xi32>
  %sum = linalg.add ins(%count, %step : tensor<2xi32>, tensor<2xi32>) outs(%empty : tensor<2xi32>) -> tensor<2xi32>
  %twice = linalg.add ins(%sum, %sum : tensor<2xi32>, tensor<2xi32>) outs(%empty : tensor<2xi32>) -> tensor<2xi32>
  return %sum, %twice : tensor<2xi32>, tensor<2xi32>
}
"""

DYNAMIC = """func.func @main(%x: tensor<?x16xf32>, %w: tensor<16x8xf32>) -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x16xf32>
  %empty = tensor.empty(%rows) : tensor<?x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x16xf32>, tensor<16x8xf32>) outs(%fill : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
"""


def compile_product(**options):
    return fp8.compile(product(), **{"sites": "all", **options})


PAIR = """
func.func @forward(%x: tensor<4x16xf32> loc("x"), %w: tensor<16x8xf32> loc("w")) -> (tensor<4x8xf32>, tensor<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x16xf32>, tensor<16x8xf32>) outs(%fill : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y, %x : tensor<4x8xf32>, tensor<4x16xf32>
}
func.func @backward(%x: tensor<4x16xf32>, %dy: tensor<4x8xf32> loc("dy")) -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x8xf32>) -> tensor<16x8xf32>
  %dw = linalg.matmul indexing_maps = [affine_map<(k, n, m) -> (m, k)>, affine_map<(k, n, m) -> (m, n)>, affine_map<(k, n, m) -> (k, n)>]
      ins(%x, %dy : tensor<4x16xf32>, tensor<4x8xf32>) outs(%fill : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %dw : tensor<16x8xf32>
}
"""


def fake_tool(folder, text):
    """A build folder whose fp8-compile is a script."""
    (folder / "bin").mkdir(parents=True)
    script = folder / "bin" / "fp8-compile"
    script.write_text("#!/bin/sh\n" + text)
    script.chmod(0o755)
    return folder
