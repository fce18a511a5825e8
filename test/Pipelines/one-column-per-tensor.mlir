// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-ingest-pipeline,fp8-recipe-pipeline)' | FileCheck %s

// An exporter that casts x anew for every use still has one input column, cast once.

// CHECK: fp8.state_columns = [{format = f8E4M3FN, sites = ["matmul0", "matmul1"], tensor = "input"}
// CHECK-COUNT-3: fp8.quantize
// CHECK-NOT: fp8.quantize

func.func @main(%x: tensor<4x4xf32>, %q: tensor<4x4xbf16>, %k: tensor<4x4xbf16>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %x0 = arith.truncf %x : tensor<4x4xf32> to tensor<4x4xbf16>
  %0 = linalg.matmul ins(%x0, %q : tensor<4x4xbf16>, tensor<4x4xbf16>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %x1 = arith.truncf %x : tensor<4x4xf32> to tensor<4x4xbf16>
  %1 = linalg.matmul ins(%x1, %k : tensor<4x4xbf16>, tensor<4x4xbf16>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}
