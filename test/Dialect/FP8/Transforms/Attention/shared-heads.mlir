// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-fuse-attention,canonicalize))' | FileCheck %s

// Keys and values that the program repeats for the two heads of a group are read as they were before: the dimension of all
// heads becomes two.
// CHECK-DAG: #[[$QUERY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[$KEY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d4)>
// CHECK-DAG: #[[$VALUE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d5)>
// CHECK-DAG: #[[$SLOPE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1)>
// CHECK-DAG: #[[$OUTPUT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5)>
// CHECK-LABEL: @groups
// CHECK-SAME: %[[Q:[^ ]+]]: tensor<6x4x8xf32>, %[[K:[^ ]+]]: tensor<3x5x8xf32>, %[[V:[^ ]+]]: tensor<3x5x8xf32>, %[[SLOPES:[^ ]+]]: tensor<6xf32>
// CHECK-NOT: linalg.broadcast
// CHECK-DAG: %[[HEADS:.+]] = tensor.expand_shape %[[Q]] {{\[}}[0, 1], [2], [3]] output_shape [3, 2, 4, 8]
// CHECK-DAG: %[[EACH:.+]] = tensor.expand_shape %[[SLOPES]] {{\[}}[0, 1]] output_shape [3, 2]
// CHECK: %[[Y:.+]] = fp8.attention ins(%[[HEADS]], %[[K]], %[[V]] : tensor<3x2x4x8xf32>, tensor<3x5x8xf32>, tensor<3x5x8xf32>) row_ins(%[[EACH]] : tensor<3x2xf32>)
// CHECK-SAME: {indexing_maps = [#[[$QUERY]], #[[$KEY]], #[[$VALUE]], #[[$SLOPE]], #[[$OUTPUT]]]
// CHECK: ^bb0(%[[GROUP:.+]]: index, %[[HEAD:.+]]: index, %{{.+}}: index, %{{.+}}: tensor<5xf32>, %{{.+}}: f32):
// CHECK: %[[FIRST:.+]] = arith.muli %[[GROUP]], %{{.+}} : index
// CHECK: %[[ALL:.+]] = arith.addi %[[FIRST]], %[[HEAD]] : index
// CHECK: arith.index_cast %[[ALL]] : index to i32
// CHECK: tensor.collapse_shape %[[Y]] {{\[}}[0, 1], [2], [3]] : tensor<3x2x4x8xf32> into tensor<6x4x8xf32>
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @groups(%q: tensor<6x4x8xf32>, %k: tensor<3x5x8xf32>, %v: tensor<3x5x8xf32>, %slopes: tensor<6xf32>) -> tensor<6x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %each = tensor.empty() : tensor<3x2x5x8xf32>
  %ks = linalg.broadcast ins(%k : tensor<3x5x8xf32>) outs(%each : tensor<3x2x5x8xf32>) dimensions = [1]
  %vs = linalg.broadcast ins(%v : tensor<3x5x8xf32>) outs(%each : tensor<3x2x5x8xf32>) dimensions = [1]
  %keys = tensor.collapse_shape %ks [[0, 1], [2], [3]] : tensor<3x2x5x8xf32> into tensor<6x5x8xf32>
  %values = tensor.collapse_shape %vs [[0, 1], [2], [3]] : tensor<3x2x5x8xf32> into tensor<6x5x8xf32>
  %rows = tensor.empty() : tensor<6x4x5xf32>
  %stats = tensor.empty() : tensor<6x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<6x4xf32>) -> tensor<6x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<6x4xf32>) -> tensor<6x4xf32>
  %out = tensor.empty() : tensor<6x4x8xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %keys : tensor<6x4x8xf32>, tensor<6x5x8xf32>) outs(%rows : tensor<6x4x5xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<6x4x5xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b)>, affine_map<(b, i, j) -> (b, i, j)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %slopes : tensor<6x4x5xf32>, tensor<6xf32>) outs(%rows : tensor<6x4x5xf32>) {
    ^bb0(%x: f32, %slope: f32, %old: f32):
      %b = linalg.index 0 : index
      %head = arith.index_cast %b : index to i32
      %float = arith.sitofp %head : i32 to f32
      %steep = arith.mulf %slope, %float : f32
      %y = arith.addf %x, %steep : f32
      linalg.yield %y : f32
  } -> tensor<6x4x5xf32>
  %max = linalg.reduce { arith.maximumf } ins(%m : tensor<6x4x5xf32>) outs(%below : tensor<6x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<6x4xf32>) outs(%rows : tensor<6x4x5xf32>) dimensions = [2]
  %shifted = arith.subf %m, %maxes : tensor<6x4x5xf32>
  %exp = math.exp %shifted : tensor<6x4x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<6x4x5xf32>) outs(%none : tensor<6x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<6x4xf32>) outs(%rows : tensor<6x4x5xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<6x4x5xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %values : tensor<6x4x5xf32>, tensor<6x5x8xf32>) outs(%out : tensor<6x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<6x4x8xf32>
  return %y : tensor<6x4x8xf32>
}

// -----

// All heads of a sequence read one key, of which a transpose and a reshape of batches and heads were made; values differ.
// CHECK-DAG: #[[$QUERY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[$KEY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d3)>
// CHECK-DAG: #[[$VALUE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>
// CHECK-LABEL: @all_heads
// CHECK-SAME: %[[Q:[^ ]+]]: tensor<6x4x8xf32>, %[[K:[^ ]+]]: tensor<2x8x5xf32>, %[[V:[^ ]+]]: tensor<6x5x8xf32>
// CHECK-DAG: %[[HEADS:.+]] = tensor.expand_shape %[[Q]] {{\[}}[0, 1], [2], [3]] output_shape [2, 3, 4, 8]
// CHECK-DAG: %[[VALUES:.+]] = tensor.expand_shape %[[V]] {{\[}}[0, 1], [2], [3]] output_shape [2, 3, 5, 8]
// CHECK: fp8.attention ins(%[[HEADS]], %[[K]], %[[VALUES]] : tensor<2x3x4x8xf32>, tensor<2x8x5xf32>, tensor<2x3x5x8xf32>)
// CHECK-SAME: {indexing_maps = [#[[$QUERY]], #[[$KEY]], #[[$VALUE]],
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @all_heads(%q: tensor<6x4x8xf32>, %k: tensor<2x8x5xf32>, %v: tensor<6x5x8xf32>) -> tensor<6x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %each = tensor.empty() : tensor<2x3x5x8xf32>
  %ks = linalg.generic {indexing_maps = [affine_map<(b, h, j, d) -> (b, d, j)>, affine_map<(b, h, j, d) -> (b, h, j, d)>],
                        iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x8x5xf32>) outs(%each : tensor<2x3x5x8xf32>) {
    ^bb0(%x: f32, %old: f32):
      linalg.yield %x : f32
  } -> tensor<2x3x5x8xf32>
  %keys = tensor.collapse_shape %ks [[0, 1], [2], [3]] : tensor<2x3x5x8xf32> into tensor<6x5x8xf32>
  %rows = tensor.empty() : tensor<6x4x5xf32>
  %stats = tensor.empty() : tensor<6x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<6x4xf32>) -> tensor<6x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<6x4xf32>) -> tensor<6x4xf32>
  %out = tensor.empty() : tensor<6x4x8xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %keys : tensor<6x4x8xf32>, tensor<6x5x8xf32>) outs(%rows : tensor<6x4x5xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<6x4x5xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<6x4x5xf32>) outs(%below : tensor<6x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<6x4xf32>) outs(%rows : tensor<6x4x5xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<6x4x5xf32>
  %exp = math.exp %shifted : tensor<6x4x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<6x4x5xf32>) outs(%none : tensor<6x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<6x4xf32>) outs(%rows : tensor<6x4x5xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<6x4x5xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<6x4x5xf32>, tensor<6x5x8xf32>) outs(%out : tensor<6x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<6x4x8xf32>
  return %y : tensor<6x4x8xf32>
}
