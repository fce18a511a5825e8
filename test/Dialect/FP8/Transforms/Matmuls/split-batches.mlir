// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-fold-into-matmul,canonicalize))' | FileCheck %s

// Batches and heads that are one dimension around a matmul, as bmm and baddbmm have them, and in the bias that is added
// before the program tells them apart.
// CHECK-LABEL: @bias
// CHECK-SAME: %[[Q:[^ ]+]]: tensor<2x3x5x8xf32>, %[[K:[^ ]+]]: tensor<2x3x6x8xf32>, %[[BIAS:[^ ]+]]: tensor<6x1x6xf32>
// CHECK: %[[S:.+]] = fp8.matmul {{.*}}ins(%[[Q]], %[[K]] : tensor<2x3x5x8xf32>, tensor<2x3x6x8xf32>) {{.*}} -> tensor<2x3x5x6xf32>
// CHECK: %[[FLAT:.+]] = tensor.collapse_shape %[[BIAS]] {{\[}}[0], [1, 2]] : tensor<6x1x6xf32> into tensor<6x6xf32>
// CHECK: %[[SPLIT:.+]] = tensor.expand_shape %[[FLAT]] {{\[}}[0, 1], [2]] output_shape [2, 3, 6] : tensor<6x6xf32> into tensor<2x3x6xf32>
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}} ins(%[[S]], %[[SPLIT]] : tensor<2x3x5x6xf32>, tensor<2x3x6xf32>)
// CHECK: return %[[SUM]] : tensor<2x3x5x6xf32>
func.func @bias(%q: tensor<2x3x5x8xf32>, %k: tensor<2x3x6x8xf32>, %bias: tensor<6x1x6xf32>) -> tensor<2x3x5x6xf32> {
  %lhs = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x3x5x8xf32> into tensor<6x5x8xf32>
  %rhs = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x3x6x8xf32> into tensor<6x6x8xf32>
  %out = tensor.empty() : tensor<6x5x6xf32>
  %s = fp8.matmul site("s") role(other) kinds(input, input) ins(%lhs, %rhs : tensor<6x5x8xf32>, tensor<6x6x8xf32>) outs(%out : tensor<6x5x6xf32>)
    {indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]} -> tensor<6x5x6xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, 0, j)>, affine_map<(b, i, j) -> (b, i, j)>],
                         iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %bias : tensor<6x5x6xf32>, tensor<6x1x6xf32>) outs(%out : tensor<6x5x6xf32>) {
    ^bb0(%x: f32, %y: f32, %old: f32):
      %z = arith.addf %x, %y : f32
      linalg.yield %z : f32
  } -> tensor<6x5x6xf32>
  %heads = tensor.expand_shape %sum [[0, 1], [2], [3]] output_shape [2, 3, 5, 6] : tensor<6x5x6xf32> into tensor<2x3x5x6xf32>
  return %heads : tensor<2x3x5x6xf32>
}

// -----

// Rows of a weight's matmul that are joined are no batch: nothing changes behind it.
// CHECK-LABEL: @rows
// CHECK: fp8.matmul {{.*}} -> tensor<10x4xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.+}} : tensor<10x4xf32>)
func.func @rows(%x: tensor<2x5x8xf32>, %w: tensor<4x8xf32>) -> tensor<10x4xf32> {
  %lhs = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x5x8xf32> into tensor<10x8xf32>
  %out = tensor.empty() : tensor<10x4xf32>
  %s = fp8.matmul site("s") role(fprop) kinds(input, weight) ins(%lhs, %w : tensor<10x8xf32>, tensor<4x8xf32>) outs(%out : tensor<10x4xf32>)
    {indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>]} -> tensor<10x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<10x4xf32>) outs(%out : tensor<10x4xf32>) {
    ^bb0(%a: f32, %old: f32):
      %z = arith.negf %a : f32
      linalg.yield %z : f32
  } -> tensor<10x4xf32>
  return %y : tensor<10x4xf32>
}

// -----

// Two of three tensors split the batch, one of them is elementwise code, and the third is a view of a tensor without these
// dimensions, as values are in torch.nn.MultiheadAttention: it is split, too.
// CHECK-LABEL: @third_is_operand
// CHECK-SAME: %{{[^ ]+}}: tensor<2x3x5x6xf32>, %[[V:[^ ]+]]: tensor<6x48xf32>
// CHECK: %[[P:.+]] = linalg.generic
// CHECK: %[[SPLIT:.+]] = tensor.expand_shape %[[V]] {{\[}}[0], [1, 2, 3]] output_shape [6, 2, 3, 8]
// CHECK: fp8.matmul {{.*}}ins(%[[P]], %[[SPLIT]] : tensor<2x3x5x6xf32>, tensor<6x2x3x8xf32>) {{.*}} -> tensor<2x3x5x8xf32>
func.func @third_is_operand(%s: tensor<2x3x5x6xf32>, %v: tensor<6x48xf32>) -> tensor<2x3x5x8xf32> {
  %empty = tensor.empty() : tensor<2x3x5x6xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h, i, j)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x3x5x6xf32>) outs(%empty : tensor<2x3x5x6xf32>) {
    ^bb0(%a: f32, %old: f32):
      %z = math.exp %a : f32
      linalg.yield %z : f32
  } -> tensor<2x3x5x6xf32>
  %lhs = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x3x5x6xf32> into tensor<6x5x6xf32>
  %rhs = tensor.expand_shape %v [[0], [1, 2]] output_shape [6, 6, 8] : tensor<6x48xf32> into tensor<6x6x8xf32>
  %out = tensor.empty() : tensor<6x5x8xf32>
  %y = fp8.matmul site("s") role(other) kinds(input, input) ins(%lhs, %rhs : tensor<6x5x6xf32>, tensor<6x6x8xf32>) outs(%out : tensor<6x5x8xf32>)
    {indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (d, b, j)>, affine_map<(b, i, j, d) -> (b, i, j)>]} -> tensor<6x5x8xf32>
  %heads = tensor.expand_shape %y [[0, 1], [2], [3]] output_shape [2, 3, 5, 8] : tensor<6x5x8xf32> into tensor<2x3x5x8xf32>
  return %heads : tensor<2x3x5x8xf32>
}

// -----

// CHECK-LABEL: @third_is_result
// CHECK: %[[P:.+]] = linalg.generic
// CHECK: %[[Y:.+]] = fp8.matmul {{.*}}ins(%[[P]], %{{.+}} : tensor<2x3x?x6xf32>, tensor<2x3x?x8xf32>) {{.*}} -> tensor<6x2x3x8xf32>
// CHECK: %[[JOINED:.+]] = tensor.collapse_shape %[[Y]] {{\[}}[0], [1, 2, 3]] : tensor<6x2x3x8xf32> into tensor<6x48xf32>
// CHECK: return %[[JOINED]]
func.func @third_is_result(%s: tensor<2x3x?x6xf32>, %g: tensor<2x3x?x8xf32>, %empty: tensor<2x3x?x6xf32>) -> tensor<6x48xf32> {
  %p = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h, i, j)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x3x?x6xf32>) outs(%empty : tensor<2x3x?x6xf32>) {
    ^bb0(%a: f32, %old: f32):
      %z = math.exp %a : f32
      linalg.yield %z : f32
  } -> tensor<2x3x?x6xf32>
  %lhs = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x3x?x6xf32> into tensor<6x?x6xf32>
  %rhs = tensor.collapse_shape %g [[0, 1], [2], [3]] : tensor<2x3x?x8xf32> into tensor<6x?x8xf32>
  %out = tensor.empty() : tensor<6x6x8xf32>
  %y = fp8.matmul site("s") role(other) kinds(input, grad_output) ins(%lhs, %rhs : tensor<6x?x6xf32>, tensor<6x?x8xf32>) outs(%out : tensor<6x6x8xf32>)
    {indexing_maps = [affine_map<(b, i, j, d) -> (b, d, i)>, affine_map<(b, i, j, d) -> (b, d, j)>, affine_map<(b, i, j, d) -> (i, b, j)>]} -> tensor<6x6x8xf32>
  %joined = tensor.collapse_shape %y [[0], [1, 2]] : tensor<6x6x8xf32> into tensor<6x48xf32>
  return %joined : tensor<6x48xf32>
}

// -----

// The third tensor is elementwise code's, which would go on with the joined batch: it stays, as do the others.
// CHECK-LABEL: @third_is_code
// CHECK: fp8.matmul {{.*}} -> tensor<6x5x8xf32>
func.func @third_is_code(%s: tensor<6x5x6xf32>, %v: tensor<2x3x6x8xf32>) -> tensor<2x3x5x8xf32> {
  %empty = tensor.empty() : tensor<6x5x6xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<6x5x6xf32>) outs(%empty : tensor<6x5x6xf32>) {
    ^bb0(%a: f32, %old: f32):
      %z = math.exp %a : f32
      linalg.yield %z : f32
  } -> tensor<6x5x6xf32>
  %rhs = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x3x6x8xf32> into tensor<6x6x8xf32>
  %out = tensor.empty() : tensor<6x5x8xf32>
  %y = fp8.matmul site("s") role(other) kinds(input, input) ins(%p, %rhs : tensor<6x5x6xf32>, tensor<6x6x8xf32>) outs(%out : tensor<6x5x8xf32>)
    {indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, d, j)>, affine_map<(b, i, j, d) -> (b, i, j)>]} -> tensor<6x5x8xf32>
  %heads = tensor.expand_shape %y [[0, 1], [2], [3]] output_shape [2, 3, 5, 8] : tensor<6x5x8xf32> into tensor<2x3x5x8xf32>
  return %heads : tensor<2x3x5x8xf32>
}

// -----

// No code works on the split batch: the result stays as it is.
// CHECK-LABEL: @no_code
// CHECK: fp8.matmul {{.*}} -> tensor<6x5x6xf32>
func.func @no_code(%q: tensor<2x3x5x8xf32>, %k: tensor<2x3x6x8xf32>) -> tensor<6x5x6xf32> {
  %lhs = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x3x5x8xf32> into tensor<6x5x8xf32>
  %rhs = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x3x6x8xf32> into tensor<6x6x8xf32>
  %out = tensor.empty() : tensor<6x5x6xf32>
  %s = fp8.matmul site("s") role(other) kinds(input, input) ins(%lhs, %rhs : tensor<6x5x8xf32>, tensor<6x6x8xf32>) outs(%out : tensor<6x5x6xf32>)
    {indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]} -> tensor<6x5x6xf32>
  return %s : tensor<6x5x6xf32>
}

// -----

// The depth of scores stays one dimension, though both operands have it in two halves; the batch is split.
// CHECK-LABEL: @depth
// CHECK-SAME: (%[[Q:[^ ]+]]: tensor<2x3x5x2x4xf32>, %[[K:[^ ]+]]: tensor<2x3x6x2x4xf32>)
// CHECK-DAG: %[[QUERIES:.+]] = tensor.collapse_shape %[[Q]] {{\[}}[0], [1], [2], [3, 4]]
// CHECK-DAG: %[[KEYS:.+]] = tensor.collapse_shape %[[K]] {{\[}}[0], [1], [2], [3, 4]]
// CHECK: fp8.matmul {{.*}}ins(%[[QUERIES]], %[[KEYS]] : tensor<2x3x5x8xf32>, tensor<2x3x6x8xf32>) {{.*}} -> tensor<2x3x5x6xf32>
func.func @depth(%q: tensor<2x3x5x2x4xf32>, %k: tensor<2x3x6x2x4xf32>) -> tensor<2x3x5x6xf32> {
  %lhs = tensor.collapse_shape %q [[0, 1], [2], [3, 4]] : tensor<2x3x5x2x4xf32> into tensor<6x5x8xf32>
  %rhs = tensor.collapse_shape %k [[0, 1], [2], [3, 4]] : tensor<2x3x6x2x4xf32> into tensor<6x6x8xf32>
  %out = tensor.empty() : tensor<6x5x6xf32>
  %s = fp8.matmul site("s") role(other) kinds(input, input) ins(%lhs, %rhs : tensor<6x5x8xf32>, tensor<6x6x8xf32>) outs(%out : tensor<6x5x6xf32>)
    {indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]} -> tensor<6x5x6xf32>
  %heads = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [2, 3, 5, 6] : tensor<6x5x6xf32> into tensor<2x3x5x6xf32>
  return %heads : tensor<2x3x5x6xf32>
}

// -----

// Without a batch, sums over two dimensions are one matmul of the tensors as they are.
// CHECK-LABEL: @no_batch
// CHECK-SAME: (%[[X:[^ ]+]]: tensor<5x2x4xf32>, %[[W:[^ ]+]]: tensor<6x2x4xf32>)
// CHECK: fp8.matmul {{.*}}ins(%[[X]], %[[W]] :
func.func @no_batch(%x: tensor<5x2x4xf32>, %w: tensor<6x2x4xf32>) -> tensor<5x6xf32> {
  %lhs = tensor.collapse_shape %x [[0], [1, 2]] : tensor<5x2x4xf32> into tensor<5x8xf32>
  %rhs = tensor.collapse_shape %w [[0], [1, 2]] : tensor<6x2x4xf32> into tensor<6x8xf32>
  %out = tensor.empty() : tensor<5x6xf32>
  %y = fp8.matmul site("s") role(fprop) kinds(input, weight) ins(%lhs, %rhs : tensor<5x8xf32>, tensor<6x8xf32>) outs(%out : tensor<5x6xf32>)
    {indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>]} -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}
