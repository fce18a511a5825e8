// Kernels read the 16-bit tensors that a program has widened and scaled, as PyTorch's attention in its math form does.
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-fuse-attention))' | FileCheck %s

// Both operands are multiplied by 0.5, queries by an f64 constant that is rounded: scores by 0.25.
// CHECK: #[[$Q:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
// CHECK: #[[$K:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d3)>
// CHECK-LABEL: @widened(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x16xbf16>, %[[K:.*]]: tensor<2x6x16xbf16>, %[[V:.*]]: tensor<2x6x8xbf16>)
// CHECK: fp8.online_attention ins(%[[Q]], %[[K]], %[[V]] : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x8xbf16>)
// CHECK-SAME: indexing_maps = [#[[$Q]], #[[$K]],
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32):
// CHECK: %[[SCALE:.*]] = arith.constant 2.500000e-01 : f32
// CHECK: %[[X:.*]] = arith.mulf %[[S]], %[[SCALE]] : f32
// CHECK: fp8.yield %[[X]], %{{.*}} : f32, f32
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @widened(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> tensor<2x4x8xbf16> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %half = arith.constant 0.5 : f64
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %eq = tensor.empty() : tensor<2x4x16xf32>
  %wq = linalg.generic {indexing_maps = [affine_map<(b, i, d) -> (b, i, d)>, affine_map<(b, i, d) -> (b, i, d)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%q : tensor<2x4x16xbf16>) outs(%eq : tensor<2x4x16xf32>) {
    ^bb0(%x: bf16, %o: f32):
      %wide = arith.extf %x : bf16 to f32
      %factor = arith.truncf %half : f64 to f32
      %y = arith.mulf %wide, %factor : f32
      linalg.yield %y : f32
  } -> tensor<2x4x16xf32>
  %wk = arith.extf %k : tensor<2x6x16xbf16> to tensor<2x6x16xf32>
  %ek = tensor.empty() : tensor<2x16x6xf32>
  %tk = linalg.transpose ins(%wk : tensor<2x6x16xf32>) outs(%ek : tensor<2x16x6xf32>) permutation = [0, 2, 1]
  %halves = arith.constant dense<0.5> : tensor<2x16x6xf32>
  %sk = arith.mulf %tk, %halves : tensor<2x16x6xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%wq, %sk : tensor<2x4x16xf32>, tensor<2x16x6xf32>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, d, j)>, affine_map<(b, i, j, d) -> (b, i, j)>]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [affine_map<(b, i, e, j) -> (b, i, j)>, affine_map<(b, i, e, j) -> (b, j, e)>, affine_map<(b, i, e, j) -> (b, i, e)>]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}
