// RUN: fp8-opt %s --split-input-file --fp8-fold-into-matmul | FileCheck %s -enable-var-scope

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A chain on an operand: named transpose, generic transpose with an extension, cast.
// CHECK-DAG: #[[$MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[$NM:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-LABEL: func @operand
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<16x8xbf16>, %[[I:.*]]: tensor<4x16xf32>)
// CHECK-NEXT: fp8.matmul ins(%[[X]], %[[W]] : tensor<4x8xf32>, tensor<16x8xbf16>)
// CHECK-SAME: indexing_maps = [#[[$MK]], #[[$NK]], #[[$MN]]]
// CHECK-NEXT: return
func.func @operand(%x: tensor<4x8xf32>, %w: tensor<16x8xbf16>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %e0 = tensor.empty() : tensor<8x16xbf16>
  %t0 = linalg.transpose ins(%w : tensor<16x8xbf16>) outs(%e0 : tensor<8x16xbf16>) permutation = [1, 0]
  %e1 = tensor.empty() : tensor<16x8xf32>
  %t1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                        iterator_types = ["parallel", "parallel"]}
      ins(%t0 : tensor<8x16xbf16>) outs(%e1 : tensor<16x8xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %ext = arith.extf %in : bf16 to f32
    linalg.yield %ext : f32
  } -> tensor<16x8xf32>
  %e2 = tensor.empty() : tensor<8x16xf32>
  %t2 = linalg.transpose ins(%t1 : tensor<16x8xf32>) outs(%e2 : tensor<8x16xf32>) permutation = [1, 0]
  %cast = tensor.cast %t2 : tensor<8x16xf32> to tensor<8x?xf32>
  %y = fp8.matmul ins(%x, %cast : tensor<4x8xf32>, tensor<8x?xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// CHECK-LABEL: func @extension_of_tensors
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf16>, %[[I:.*]]: tensor<4x4xf32>)
// CHECK-NEXT: fp8.matmul ins(%[[X]], %[[X]] : tensor<4x8xf16>, tensor<4x8xf16>)
// CHECK-SAME: indexing_maps = [#[[$MK]], #[[$NK]], #[[$MN]]]
func.func @extension_of_tensors(%x: tensor<4x8xf16>, %i: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %x32 = arith.extf %x : tensor<4x8xf16> to tensor<4x8xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %t = linalg.transpose ins(%x32 : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %y = fp8.matmul ins(%x32, %t : tensor<4x8xf32>, tensor<8x4xf32>) outs(%i : tensor<4x4xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// A rounded operand stays rounded: what is quantized later is the rounded tensor. So
// does one that is extended to f64.
// CHECK-LABEL: func @inexact_operand
// CHECK: %[[ROUNDED:.*]] = linalg.generic
// CHECK: arith.truncf
// CHECK: %[[WIDE:.*]] = arith.extf
// CHECK: fp8.matmul ins(%[[ROUNDED]], %{{.*}} : tensor<4x8xbf16>, tensor<8x16xbf16>)
// CHECK: fp8.matmul ins(%[[WIDE]], %[[WIDE]] : tensor<4x8xf64>, tensor<4x8xf64>)
func.func @inexact_operand(%x: tensor<4x8xf32>, %w: tensor<8x16xbf16>, %i: tensor<4x16xf32>, %j: tensor<4x4xf64>)
    -> (tensor<4x16xf32>, tensor<4x4xf64>) {
  %e = tensor.empty() : tensor<4x8xbf16>
  %rounded = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                             iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4x8xbf16>
  %wide = arith.extf %x : tensor<4x8xf32> to tensor<4x8xf64>
  %y = fp8.matmul ins(%rounded, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %z = fp8.matmul ins(%wide, %wide : tensor<4x8xf64>, tensor<4x8xf64>) outs(%j : tensor<4x4xf64>)
    {indexing_maps = [#mk, affine_map<(m, n, k) -> (n, k)>, #mn]} -> tensor<4x4xf64>
  return %y, %z : tensor<4x16xf32>, tensor<4x4xf64>
}

// A rounding and a transpose of the result, in either order. No op may change the
// sum after it was rounded, and a result with another use stays.
// CHECK-LABEL: func @result
// CHECK: %[[A:.*]] = fp8.matmul ins({{.*}}) outs(%{{.*}} : tensor<16x4xbf16>) {indexing_maps = [#[[$MK]], #[[$KN]], #[[$NM]]]} -> tensor<16x4xbf16>
// CHECK: %[[B:.*]] = fp8.matmul ins({{.*}}) outs(%{{.*}} : tensor<4x16xf32>) {{.*}} -> tensor<4x16xf32>
// CHECK: %[[B16:.*]] = arith.truncf %[[B]]
// CHECK: return %[[A]], %[[B]], %[[B16]]
func.func @result(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>)
    -> (tensor<16x4xbf16>, tensor<4x16xf32>, tensor<4x16xbf16>) {
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %y16 = arith.truncf %y : tensor<4x16xf32> to tensor<4x16xbf16>
  %e = tensor.empty() : tensor<16x4xbf16>
  %t = linalg.transpose ins(%y16 : tensor<4x16xbf16>) outs(%e : tensor<16x4xbf16>) permutation = [1, 0]
  %z = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %z16 = arith.truncf %z : tensor<4x16xf32> to tensor<4x16xbf16>
  return %t, %z, %z16 : tensor<16x4xbf16>, tensor<4x16xf32>, tensor<4x16xbf16>
}

// CHECK-LABEL: func @kept_results
// CHECK: %[[A:.*]] = fp8.matmul {{.*}} -> tensor<4x16xbf16>
// CHECK: arith.extf %[[A]]
// CHECK: %[[B:.*]] = fp8.matmul accumulate {{.*}} -> tensor<4x16xf32>
// CHECK: arith.truncf %[[B]]
func.func @kept_results(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xbf16>, %j: tensor<4x16xf32>)
    -> (tensor<4x16xf32>, tensor<4x16xbf16>) {
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xbf16>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %y32 = arith.extf %y : tensor<4x16xbf16> to tensor<4x16xf32>
  %z = fp8.matmul accumulate ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%j : tensor<4x16xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %z16 = arith.truncf %z : tensor<4x16xf32> to tensor<4x16xbf16>
  return %y32, %z16 : tensor<4x16xf32>, tensor<4x16xbf16>
}

// Sizes known only at run time follow the permutation.
// CHECK-LABEL: func @dynamic_result
// CHECK-SAME: %[[M:[a-z0-9]+]]: index
// CHECK: %[[E:.*]] = tensor.empty(%[[M]]) : tensor<16x?xbf16>
// CHECK: fp8.matmul ins({{.*}}) outs(%[[E]] : tensor<16x?xbf16>)
func.func @dynamic_result(%x: tensor<?x8xf32>, %w: tensor<8x16xf32>, %m: index) -> tensor<16x?xbf16> {
  %i = tensor.empty(%m) : tensor<?x16xf32>
  %y = fp8.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x16xf32>) outs(%i : tensor<?x16xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<?x16xf32>
  %e = tensor.empty(%m) : tensor<16x?xbf16>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x16xf32>) outs(%e : tensor<16x?xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %r = arith.truncf %in : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<16x?xbf16>
  return %t : tensor<16x?xbf16>
}

// -----

// A weight broadcast over the batch is the weight, read again for every batch.
// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func @broadcast
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8xf32>, %[[W:.*]]: tensor<8x16xf32>
// CHECK-NEXT: fp8.matmul ins(%[[X]], %[[W]] : {{.*}}) {{.*}} {indexing_maps = [#[[$A]], #[[$B]], #[[$C]]]}
func.func @broadcast(%x: tensor<2x4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<2x4x16xf32>) -> tensor<2x4x16xf32> {
  %e = tensor.empty() : tensor<2x8x16xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<8x16xf32>) outs(%e : tensor<2x8x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x8x16xf32>
  %y = fp8.matmul ins(%x, %b : tensor<2x4x8xf32>, tensor<2x8x16xf32>) outs(%i : tensor<2x4x16xf32>)
    {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>,
                      affine_map<(b, m, n, k) -> (b, m, n)>]} -> tensor<2x4x16xf32>
  return %y : tensor<2x4x16xf32>
}

// A broadcast along K stays: without it nothing would be summed.
// CHECK-LABEL: func @broadcast_along_k
// CHECK: linalg.broadcast
// CHECK: fp8.matmul
func.func @broadcast_along_k(%x: tensor<4x8xf32>, %v: tensor<16xf32>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %b = linalg.broadcast ins(%v : tensor<16xf32>) outs(%e : tensor<8x16xf32>) dimensions = [0]
  %y = fp8.matmul ins(%x, %b : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                      affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

// Attention as PyTorch writes it: heads moved and flattened for a three-dimensional
// product, the result unflattened. All of it is one product of four dimensions more.
// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d4)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3)>
// CHECK-LABEL: func @heads
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x3x8xf32>, %[[K:.*]]: tensor<2x3x8x5xf32>)
// CHECK-NEXT: %[[I:.*]] = tensor.empty() : tensor<2x4x3x5xf32>
// CHECK-NEXT: fp8.matmul ins(%[[Q]], %[[K]] : {{.*}}) outs(%[[I]] : {{.*}}) {indexing_maps = [#[[$A]], #[[$B]], #[[$C]]]}
// CHECK-NEXT: return
func.func @heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x3x8x5xf32>) -> tensor<2x4x3x5xf32> {
  %e0 = tensor.empty() : tensor<2x3x4x8xf32>
  %t = linalg.transpose ins(%q : tensor<2x4x3x8xf32>) outs(%e0 : tensor<2x3x4x8xf32>) permutation = [0, 2, 1, 3]
  %a = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<2x3x4x8xf32> into tensor<6x4x8xf32>
  %b = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x3x8x5xf32> into tensor<6x8x5xf32>
  %i = tensor.empty() : tensor<6x4x5xf32>
  %y = fp8.matmul ins(%a, %b : tensor<6x4x8xf32>, tensor<6x8x5xf32>) outs(%i : tensor<6x4x5xf32>)
    {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>,
                      affine_map<(b, m, n, k) -> (b, m, n)>]} -> tensor<6x4x5xf32>
  %x = tensor.expand_shape %y [[0, 1], [2], [3]] output_shape [2, 3, 4, 5] : tensor<6x4x5xf32> into tensor<2x3x4x5xf32>
  %e1 = tensor.empty() : tensor<2x4x3x5xf32>
  %z = linalg.transpose ins(%x : tensor<2x3x4x5xf32>) outs(%e1 : tensor<2x4x3x5xf32>) permutation = [0, 2, 1, 3]
  return %z : tensor<2x4x3x5xf32>
}

// -----

// A weight gradient sums over batch and sequence; both operands flatten them alike. One
// of them may be read twice.
// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3, d0)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK-LABEL: func @two_k_dimensions
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8xf32>,
// CHECK-NEXT: fp8.matmul ins(%[[X]], %[[X]] : {{.*}}) {{.*}} {indexing_maps = [#[[$A]], #[[$B]], #[[$C]]]}
// CHECK-NEXT: return
func.func @two_k_dimensions(%x: tensor<2x4x8xf32>, %i: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x4x8xf32> into tensor<8x8xf32>
  %y = fp8.matmul ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%i : tensor<8x8xf32>)
    {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                      affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// Reshapes that not all agree on stay: the result is used as it is; K is split in two
// ways; the sizes are not known.
// CHECK-LABEL: func @kept_reshapes
// CHECK: tensor.collapse_shape
// CHECK: tensor.expand_shape
// CHECK-COUNT-3: tensor.collapse_shape
func.func @kept_reshapes(%x: tensor<2x4x8xf32>, %w: tensor<8x16xf32>, %v: tensor<4x2x16xf32>, %d: tensor<?x?x8xf32>,
                         %i: tensor<8x16xf32>, %j: tensor<?x16xf32>)
    -> (tensor<8x16xf32>, tensor<2x4x16xf32>, tensor<8x16xf32>, tensor<?x16xf32>) {
  %a = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x4x8xf32> into tensor<8x8xf32>
  %y = fp8.matmul ins(%a, %w : tensor<8x8xf32>, tensor<8x16xf32>) outs(%i : tensor<8x16xf32>)
    {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                      affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x16xf32>
  %z = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 4, 16] : tensor<8x16xf32> into tensor<2x4x16xf32>
  %b = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x4x8xf32> into tensor<8x8xf32>
  %c = tensor.collapse_shape %v [[0, 1], [2]] : tensor<4x2x16xf32> into tensor<8x16xf32>
  %u = fp8.matmul ins(%b, %c : tensor<8x8xf32>, tensor<8x16xf32>) outs(%i : tensor<8x16xf32>)
    {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                      affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x16xf32>
  %e = tensor.collapse_shape %d [[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
  %t = fp8.matmul ins(%e, %w : tensor<?x8xf32>, tensor<8x16xf32>) outs(%j : tensor<?x16xf32>)
    {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                      affine_map<(m, n, k) -> (m, n)>]} -> tensor<?x16xf32>
  return %y, %z, %u, %t : tensor<8x16xf32>, tensor<2x4x16xf32>, tensor<8x16xf32>, tensor<?x16xf32>
}

// -----

// PyTorch's attention with grouped heads: probabilities have [batch, heads], values have [batch, heads, groups],
// and are rounded to bf16 after their batch dimensions were joined.
// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func @rounded_after_reshape
// CHECK-SAME: (%[[P:.*]]: tensor<2x6x4x5xf32>, %[[V:.*]]: tensor<2x3x2x5x8xbf16>)
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[P]] : tensor<2x6x4x5xf32> to tensor<2x6x4x5xbf16>
// CHECK: %[[HEADS:.*]] = tensor.collapse_shape %[[V]] {{\[\[}}0], [1, 2], [3], [4]] : {{.*}} into tensor<2x6x5x8xbf16>
// CHECK: %[[Y:.*]] = fp8.matmul ins(%[[ROUNDED]], %[[HEADS]] : {{.*}} {indexing_maps = [#[[$A]], #[[$B]], #[[$C]]]} -> tensor<2x6x4x8xf32>
// CHECK: return %[[Y]]
func.func @rounded_after_reshape(%p: tensor<2x6x4x5xf32>, %v: tensor<2x3x2x5x8xbf16>) -> tensor<2x6x4x8xf32> {
  %a = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x6x4x5xf32> into tensor<12x4x5xf32>
  %e = tensor.empty() : tensor<12x4x5xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%a : tensor<12x4x5xf32>) outs(%e : tensor<12x4x5xbf16>) {
  ^bb0(%x: f32, %out: bf16):
    %t = arith.truncf %x : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<12x4x5xbf16>
  %b = tensor.collapse_shape %v [[0, 1, 2], [3], [4]] : tensor<2x3x2x5x8xbf16> into tensor<12x5x8xbf16>
  %i = tensor.empty() : tensor<12x4x8xf32>
  %y = fp8.matmul ins(%r, %b : tensor<12x4x5xbf16>, tensor<12x5x8xbf16>) outs(%i : tensor<12x4x8xf32>)
    {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>,
                      affine_map<(b, m, n, k) -> (b, m, n)>]} -> tensor<12x4x8xf32>
  %z = tensor.expand_shape %y [[0, 1], [2], [3]] output_shape [2, 6, 4, 8] : tensor<12x4x8xf32> into tensor<2x6x4x8xf32>
  return %z : tensor<2x6x4x8xf32>
}

// -----

// The gradient of repeated heads: the result is split more finely than the operands.
// CHECK-LABEL: func @finer_result
// CHECK-SAME: (%[[P:.*]]: tensor<2x6x4x5xf32>, %[[G:.*]]: tensor<2x6x4x8xf32>)
// CHECK: %[[Y:.*]] = fp8.matmul ins(%[[P]], %[[G]] : {{.*}} -> tensor<2x6x5x8xf32>
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0], [1, 2], [3], [4]] output_shape [2, 3, 2, 5, 8]
func.func @finer_result(%p: tensor<2x6x4x5xf32>, %g: tensor<2x6x4x8xf32>) -> tensor<2x3x2x5x8xf32> {
  %a = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x6x4x5xf32> into tensor<12x4x5xf32>
  %b = tensor.collapse_shape %g [[0, 1], [2], [3]] : tensor<2x6x4x8xf32> into tensor<12x4x8xf32>
  %i = tensor.empty() : tensor<12x5x8xf32>
  %y = fp8.matmul ins(%a, %b : tensor<12x4x5xf32>, tensor<12x4x8xf32>) outs(%i : tensor<12x5x8xf32>)
    {indexing_maps = [affine_map<(b, m, n, k) -> (b, k, m)>, affine_map<(b, m, n, k) -> (b, k, n)>,
                      affine_map<(b, m, n, k) -> (b, m, n)>]} -> tensor<12x5x8xf32>
  %z = tensor.expand_shape %y [[0, 1, 2], [3], [4]] output_shape [2, 3, 2, 5, 8] : tensor<12x5x8xf32> into tensor<2x3x2x5x8xf32>
  return %z : tensor<2x3x2x5x8xf32>
}

// -----

// Dimensions of size 1 that einsum adds and takes away vanish, and batch and heads are two dimensions.
#lhs = affine_map<(b, m, n, k) -> (b, m, k)>
#rhs = affine_map<(b, m, n, k) -> (b, k, n)>
#out = affine_map<(b, m, n, k) -> (b, m, n)>
// CHECK-LABEL: func.func @unit_dimensions
// CHECK-SAME: %[[X:[^ ]+]]: tensor<2x4x6x8xf32>, %[[Y:[^ ]+]]: tensor<2x4x7x8xf32>
// CHECK-NOT: transpose
// CHECK: %[[R:.+]] = fp8.matmul ins(%[[X]], %[[Y]] : tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>) outs(%{{.+}} : tensor<2x6x4x7xf32>)
// CHECK-NEXT: return %[[R]]
func.func @unit_dimensions(%x: tensor<2x4x6x8xf32>, %y: tensor<2x4x7x8xf32>, %init: tensor<8x6x7xf32>) -> tensor<2x6x4x7xf32> {
  %e0 = tensor.empty() : tensor<2x4x8x7x1xf32>
  %e1 = tensor.empty() : tensor<2x6x4x7x1xf32>
  %0 = tensor.collapse_shape %x [[0, 1], [2], [3]] : tensor<2x4x6x8xf32> into tensor<8x6x8xf32>
  %1 = tensor.expand_shape %y [[0], [1], [2], [3, 4]] output_shape [2, 4, 7, 8, 1] : tensor<2x4x7x8xf32> into tensor<2x4x7x8x1xf32>
  %2 = linalg.transpose ins(%1 : tensor<2x4x7x8x1xf32>) outs(%e0 : tensor<2x4x8x7x1xf32>) permutation = [0, 1, 3, 2, 4]
  %3 = tensor.collapse_shape %2 [[0, 1], [2], [3, 4]] : tensor<2x4x8x7x1xf32> into tensor<8x8x7xf32>
  %4 = fp8.matmul ins(%0, %3 : tensor<8x6x8xf32>, tensor<8x8x7xf32>) outs(%init : tensor<8x6x7xf32>) {indexing_maps = [#lhs, #rhs, #out]} -> tensor<8x6x7xf32>
  %5 = tensor.expand_shape %4 [[0, 1], [2], [3, 4]] output_shape [2, 4, 6, 1, 7] : tensor<8x6x7xf32> into tensor<2x4x6x1x7xf32>
  %6 = linalg.transpose ins(%5 : tensor<2x4x6x1x7xf32>) outs(%e1 : tensor<2x6x4x7x1xf32>) permutation = [0, 2, 1, 4, 3]
  %7 = tensor.collapse_shape %6 [[0], [1], [2], [3, 4]] : tensor<2x6x4x7x1xf32> into tensor<2x6x4x7xf32>
  return %7 : tensor<2x6x4x7xf32>
}

// -----

// A transpose that moves dimensions of size 1 only is a reshape; others stay.
// CHECK-LABEL: func.func @transposes
// CHECK-SAME: %[[X:[^ ]+]]: tensor<1x3x1x5xf32>
// CHECK: %[[FULL:.+]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2, 3]] : tensor<1x3x1x5xf32> into tensor<3x5xf32>
// CHECK: %[[FIRST:.+]] = tensor.expand_shape %[[FULL]] {{\[}}[0], [1, 2, 3]] {{.*}} into tensor<3x1x5x1xf32>
// CHECK: %[[SECOND:.+]] = linalg.transpose ins(%[[X]] : tensor<1x3x1x5xf32>) {{.*}} permutation = [3, 0, 1, 2]
// CHECK: %[[ONE:.+]] = tensor.extract_slice
// CHECK: return %[[FIRST]], %[[SECOND]], %[[ONE]]
func.func @transposes(%x: tensor<1x3x1x5xf32>) -> (tensor<3x1x5x1xf32>, tensor<5x1x3x1xf32>, tensor<1x1xf32>) {
  %e0 = tensor.empty() : tensor<3x1x5x1xf32>
  %0 = linalg.transpose ins(%x : tensor<1x3x1x5xf32>) outs(%e0 : tensor<3x1x5x1xf32>) permutation = [1, 0, 3, 2]
  %e1 = tensor.empty() : tensor<5x1x3x1xf32>
  %1 = linalg.transpose ins(%x : tensor<1x3x1x5xf32>) outs(%e1 : tensor<5x1x3x1xf32>) permutation = [3, 0, 1, 2]
  %one = tensor.extract_slice %x[0, 1, 0, 2] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<1x3x1x5xf32> to tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1xf32>
  %2 = linalg.transpose ins(%one : tensor<1x1xf32>) outs(%e2 : tensor<1x1xf32>) permutation = [1, 0]
  return %0, %1, %2 : tensor<3x1x5x1xf32>, tensor<5x1x3x1xf32>, tensor<1x1xf32>
}

// -----

// Sizes that are known when the program runs.
// CHECK-LABEL: func.func @dynamic
// CHECK-NOT: transpose
// CHECK: tensor.expand_shape %{{.+}} {{\[}}[0], [1, 2]] output_shape [%{{.+}}, 1, 8] : tensor<?x8xf32> into tensor<?x1x8xf32>
func.func @dynamic(%x: tensor<1x?x8xf32>, %e: tensor<?x1x8xf32>) -> tensor<?x1x8xf32> {
  %0 = linalg.transpose ins(%x : tensor<1x?x8xf32>) outs(%e : tensor<?x1x8xf32>) permutation = [1, 0, 2]
  return %0 : tensor<?x1x8xf32>
}

// -----

// Heads that are repeated for a group are repeated in bf16, and widened behind that.
// CHECK-LABEL: func.func @repeated
// CHECK-SAME: %[[X:[^ ]+]]: tensor<2x3x1x5xbf16>
// CHECK: %[[R:.+]] = linalg.generic {{.*}} ins(%[[X]] : tensor<2x3x1x5xbf16>) outs(%{{.+}} : tensor<2x3x4x5xbf16>)
// CHECK: %[[J:.+]] = tensor.collapse_shape %[[R]] {{\[}}[0], [1, 2], [3]] : tensor<2x3x4x5xbf16> into tensor<2x12x5xbf16>
// CHECK: %[[W:.+]] = linalg.generic {{.*}} ins(%[[J]] : tensor<2x12x5xbf16>) outs(%{{.+}} : tensor<2x12x5xf32>)
// CHECK: arith.extf
// CHECK: return %[[W]]
#id = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @repeated(%x: tensor<2x3x1x5xbf16>) -> tensor<2x12x5xf32> {
  %e0 = tensor.empty() : tensor<2x3x1x5xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x3x1x5xbf16>) outs(%e0 : tensor<2x3x1x5xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %w = arith.extf %in : bf16 to f32
      linalg.yield %w : f32
  } -> tensor<2x3x1x5xf32>
  %e1 = tensor.empty() : tensor<2x3x4x5xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, 0, d)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%0 : tensor<2x3x1x5xf32>) outs(%e1 : tensor<2x3x4x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
  } -> tensor<2x3x4x5xf32>
  %2 = tensor.collapse_shape %1 [[0], [1, 2], [3]] : tensor<2x3x4x5xf32> into tensor<2x12x5xf32>
  return %2 : tensor<2x12x5xf32>
}

// -----

// A tensor that something else reads in f32 stays as it is.
// CHECK-LABEL: func.func @read_twice
// CHECK: arith.extf %{{.+}} : tensor<5xbf16> to tensor<5xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.+}} : tensor<5xf32>) outs(%{{.+}} : tensor<4x5xf32>)
func.func @read_twice(%x: tensor<5xbf16>) -> (tensor<4x5xf32>, tensor<5xf32>) {
  %0 = arith.extf %x : tensor<5xbf16> to tensor<5xf32>
  %e = tensor.empty() : tensor<4x5xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<5xf32>) outs(%e : tensor<4x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
  } -> tensor<4x5xf32>
  return %1, %0 : tensor<4x5xf32>, tensor<5xf32>
}
