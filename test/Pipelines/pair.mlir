// Two functions of a step are one to the ingest stage. Names, roles and numbers of sites
// come out as in one function, though backward knows neither weights nor names.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-ingest-pipeline{pair=forward:backward:2})' | FileCheck -enable-var-scope %s

// Attention, twice of one name; the gradients belong to theirs. A mask and ids cross as they are.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    -> (tensor<4x4xbf16>, tensor<i64>, tensor<4xi64> {fp8.residual}, tensor<4x8xbf16> {fp8.residual}, tensor<4x8xbf16> {fp8.residual}, tensor<4x4xi1> {fp8.residual})
// CHECK-SAME:    attributes {fp8.backward = @backward}
// CHECK:         fp8.matmul site("qkv") role(fprop) kinds(input, weight)
// CHECK:         fp8.matmul site("attention") role(other) kinds(input, input)
// CHECK:         fp8.matmul site("attention#2") role(other) kinds(input, input)
// CHECK-LABEL: func.func @backward(
// CHECK:         fp8.matmul site("attention#2") role(other) kinds(grad_output, input)
// CHECK:         fp8.matmul site("attention#2") role(other) kinds(grad_output, input)
// CHECK:         fp8.matmul site("attention") role(other) kinds(grad_output, input)
func.func @forward(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %ids: tensor<4xi64>)
    -> (tensor<4x4xbf16>, tensor<i64>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x4xi1>, tensor<4xi64>) {
  %z = arith.constant 0.0 : bf16
  %n = arith.constant dense<0> : tensor<i64>
  %e8 = tensor.empty() : tensor<4x8xbf16>
  %f8 = linalg.fill ins(%z : bf16) outs(%e8 : tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %h = linalg.matmul ins(%x, %w : tensor<4x8xbf16>, tensor<8x8xbf16>) outs(%f8 : tensor<4x8xbf16>) -> tensor<4x8xbf16> loc("jit(f)/qkv/dot_general")
  %q = math.tanh %h : tensor<4x8xbf16>
  %k = math.exp %h : tensor<4x8xbf16>
  %v = math.absf %h : tensor<4x8xbf16>
  %e4 = tensor.empty() : tensor<4x4xbf16>
  %f4 = linalg.fill ins(%z : bf16) outs(%e4 : tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %s = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%q, %k : tensor<4x8xbf16>, tensor<4x8xbf16>) outs(%f4 : tensor<4x4xbf16>) -> tensor<4x4xbf16> loc("jit(f)/attention/dot_general")
  %mask = arith.cmpf ogt, %s, %f4 : tensor<4x4xbf16>
  %p = arith.maximumf %s, %f4 : tensor<4x4xbf16>
  %o = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%v, %k : tensor<4x8xbf16>, tensor<4x8xbf16>) outs(%p : tensor<4x4xbf16>) -> tensor<4x4xbf16> loc("jit(f)/attention/dot_general")
  return %o, %n, %q, %k, %v, %mask, %ids
    : tensor<4x4xbf16>, tensor<i64>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x4xi1>, tensor<4xi64>
}
func.func @backward(%q: tensor<4x8xbf16>, %k: tensor<4x8xbf16>, %v: tensor<4x8xbf16>, %mask: tensor<4x4xi1>,
                    %ids: tensor<4xi64>, %do: tensor<4x4xbf16>)
    -> (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4xi64>) {
  %z = arith.constant 0.0 : bf16
  %e8 = tensor.empty() : tensor<4x8xbf16>
  %f8 = linalg.fill ins(%z : bf16) outs(%e8 : tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %e4 = tensor.empty() : tensor<4x4xbf16>
  %f4 = linalg.fill ins(%z : bf16) outs(%e4 : tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %dv = linalg.matmul ins(%do, %k : tensor<4x4xbf16>, tensor<4x8xbf16>) outs(%f8 : tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %dk = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%do, %v : tensor<4x4xbf16>, tensor<4x8xbf16>) outs(%f8 : tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %ds = arith.select %mask, %do, %f4 : tensor<4x4xi1>, tensor<4x4xbf16>
  %dq = linalg.matmul ins(%ds, %k : tensor<4x4xbf16>, tensor<4x8xbf16>) outs(%f8 : tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %dq, %dk, %dv, %ids : tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4xi64>
}
