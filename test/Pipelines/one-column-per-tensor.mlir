// RUN: fp8-opt %s --split-input-file --pass-pipeline='builtin.module(fp8-ingest-pipeline,fp8-recipe-pipeline)' | FileCheck %s

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

// -----

// A weight that each of two scopes narrows in its own way is one tensor as well, and has one
// column.
// CHECK: fp8.state_columns = {{.*}}sites = ["down", "up"], tensor = "weight"}
// CHECK-LABEL: func.func @weight
// CHECK-COUNT-2: fp8.quantize column(1)
// CHECK-NOT: fp8.quantize column(1)
func.func @weight(%x: tensor<4x4xbf16>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %w0 = arith.truncf %w : tensor<4x4xf32> to tensor<4x4xbf16>
  %0 = linalg.matmul ins(%x, %w0 : tensor<4x4xbf16>, tensor<4x4xbf16>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32> loc("up/dot_general")
  %h = arith.truncf %0 : tensor<4x4xf32> to tensor<4x4xbf16>
  %n = tensor.empty() : tensor<4x4xbf16>
  %w1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<4x4xf32>) outs(%n : tensor<4x4xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %r = arith.truncf %in : f32 to bf16
      linalg.yield %r : bf16
  } -> tensor<4x4xbf16>
  %1 = linalg.matmul ins(%h, %w1 : tensor<4x4xbf16>, tensor<4x4xbf16>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32> loc("down/dot_general")
  return %w, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// So is an activation of run-time size that two layers narrow in two ways, and their gradient.
// CHECK: fp8.state_columns = [{format = f8E4M3FN, sites = ["down", "up"], tensor = "input"}
// CHECK-SAME: {format = f8E5M2, sites = ["down", "up"], tensor = "grad_output"}
// CHECK-LABEL: func.func @activation
func.func @activation(%pixels: tensor<?x4xi32>, %g: tensor<?x4xf32>, %u: tensor<4x4xbf16>, %d: tensor<4x4xbf16>, %i: tensor<?x4xf32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %pixels, %c0 : tensor<?x4xi32>
  %in = arith.sitofp %pixels : tensor<?x4xi32> to tensor<?x4xf32>
  %x = math.tanh %in : tensor<?x4xf32>
  %n = tensor.empty(%size) : tensor<?x4xbf16>
  %x0 = arith.truncf %x : tensor<?x4xf32> to tensor<?x4xbf16>
  %x1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%n : tensor<?x4xbf16>) {
    ^bb0(%b: f32, %out: bf16):
      %r = arith.truncf %b : f32 to bf16
      linalg.yield %r : bf16
  } -> tensor<?x4xbf16>
  %g0 = arith.truncf %g : tensor<?x4xf32> to tensor<?x4xbf16>
  %g1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<?x4xf32>) outs(%n : tensor<?x4xbf16>) {
    ^bb0(%b: f32, %out: bf16):
      %r = arith.truncf %b : f32 to bf16
      linalg.yield %r : bf16
  } -> tensor<?x4xbf16>
  %0 = linalg.matmul ins(%x0, %u : tensor<?x4xbf16>, tensor<4x4xbf16>) outs(%i : tensor<?x4xf32>) -> tensor<?x4xf32> loc("up/dot_general")
  %1 = linalg.matmul ins(%x1, %d : tensor<?x4xbf16>, tensor<4x4xbf16>) outs(%i : tensor<?x4xf32>) -> tensor<?x4xf32> loc("down/dot_general")
  %2 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%g0, %u : tensor<?x4xbf16>, tensor<4x4xbf16>) outs(%i : tensor<?x4xf32>) -> tensor<?x4xf32> loc("transpose(up)/dot_general")
  %3 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%g1, %d : tensor<?x4xbf16>, tensor<4x4xbf16>) outs(%i : tensor<?x4xf32>) -> tensor<?x4xf32> loc("transpose(down)/dot_general")
  return %0, %1, %2, %3 : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}
