// One quantize per tensor, format and scale; different ones stay different.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-merge-quantizes))' | FileCheck %s

// CHECK-LABEL: func.func @same
func.func @same(%x: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4xf8E4M3FN>, %e: tensor<f32>)
    -> (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>) {
  // The first takes over the amax that the second records.
  // CHECK: %[[Q:.+]]:3 = fp8.quantize record_amax
  // CHECK-NOT: fp8.quantize
  // CHECK: return %[[Q]]#0, %[[Q]]#0, %[[Q]]#1, %[[Q]]#2
  %q0, %i0 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  %q1, %i1, %a = fp8.quantize record_amax ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %e, %e : tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %q0, %q1, %i1, %a : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>
}

// The first takes over the copy in another order too, of any size.
// CHECK-LABEL: func.func @orders
// CHECK-SAME: %[[X:[^ :]+]]: tensor<?x4xf32>
func.func @orders(%x: tensor<?x4xf32>, %s: tensor<f32>, %d: tensor<?x4xf8E4M3FN>, %t: tensor<4x?xf8E4M3FN>, %e: tensor<f32>)
    -> (tensor<?x4xf8E4M3FN>, tensor<f32>, tensor<?x4xf8E4M3FN>, tensor<4x?xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<4x?xf8E4M3FN>) {
  // CHECK: %[[SIZE:.+]] = tensor.dim %[[X]]
  // CHECK: %[[EMPTY:.+]] = tensor.empty(%[[SIZE]]) : tensor<4x?xf8E4M3FN>
  // CHECK: %[[Q:.+]]:4 = fp8.quantize record_amax ins(%[[X]] : {{.*}} outs(%{{.+}}, %[[EMPTY]], %{{.*}} {transposition = array<i64: 1, 0>}
  // CHECK-NOT: fp8.quantize
  // CHECK: return %[[Q]]#0, %[[Q]]#2, %[[Q]]#0, %[[Q]]#1, %[[Q]]#2, %[[Q]]#3, %[[Q]]#1
  %q0, %i0 = fp8.quantize ins(%x : tensor<?x4xf32>) scale(%s : tensor<f32>)
      outs(%d, %e : tensor<?x4xf8E4M3FN>, tensor<f32>) -> tensor<?x4xf8E4M3FN>, tensor<f32>
  %q1, %t1, %i1, %a = fp8.quantize record_amax ins(%x : tensor<?x4xf32>) scale(%s : tensor<f32>)
      outs(%d, %t, %e, %e : tensor<?x4xf8E4M3FN>, tensor<4x?xf8E4M3FN>, tensor<f32>, tensor<f32>) {transposition = array<i64: 1, 0>}
      -> tensor<?x4xf8E4M3FN>, tensor<4x?xf8E4M3FN>, tensor<f32>, tensor<f32>
  %q2, %t2, %i2 = fp8.quantize ins(%x : tensor<?x4xf32>) scale(%s : tensor<f32>)
      outs(%d, %t, %e : tensor<?x4xf8E4M3FN>, tensor<4x?xf8E4M3FN>, tensor<f32>) {transposition = array<i64: 1, 0>}
      -> tensor<?x4xf8E4M3FN>, tensor<4x?xf8E4M3FN>, tensor<f32>
  return %q0, %i0, %q1, %t1, %i1, %a, %t2
      : tensor<?x4xf8E4M3FN>, tensor<f32>, tensor<?x4xf8E4M3FN>, tensor<4x?xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<4x?xf8E4M3FN>
}

// CHECK-LABEL: func.func @different
func.func @different(%x: tensor<4xf32>, %y: tensor<4xf32>, %s: tensor<f32>, %t: tensor<f32>, %d: tensor<4xf8E4M3FN>, %g: tensor<4xf8E5M2>, %e: tensor<f32>)
    -> (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>) {
  // CHECK-COUNT-4: fp8.quantize
  %tensor, %i0 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  %other, %i1 = fp8.quantize ins(%y : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  %scale, %i2 = fp8.quantize ins(%x : tensor<4xf32>) scale(%t : tensor<f32>)
      outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  %format, %i3 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%g, %e : tensor<4xf8E5M2>, tensor<f32>) -> tensor<4xf8E5M2>, tensor<f32>
  return %tensor, %other, %scale, %format : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>
}

// Directions of one tensor become one operation; a direction that is there already is shared.
// CHECK-LABEL: func.func @directions
// CHECK-SAME: %[[X:[^ :]+]]: tensor<?x256xf32>
func.func @directions(%x: tensor<?x256xf32>, %d: tensor<?x256xf8E4M3FN>, %a: tensor<?x2xf32>, %b: tensor<?x256xf32>)
    -> (tensor<?x256xf8E4M3FN>, tensor<?x256xf8E4M3FN>, tensor<?x256xf32>, tensor<?x2xf32>) {
  // CHECK: %[[Q:.+]]:4 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%[[X]] : {{.+}}) {blocks = [array<i64: 1, 128>, array<i64: 128, 1>]}
  // CHECK-NOT: fp8.quantize_blocks
  // CHECK: return %[[Q]]#0, %[[Q]]#2, %[[Q]]#3, %[[Q]]#1
  %0:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<?x256xf32>)
      outs(%d, %a : tensor<?x256xf8E4M3FN>, tensor<?x2xf32>) {blocks = [array<i64: 1, 128>]}
      -> tensor<?x256xf8E4M3FN>, tensor<?x2xf32>
  %1:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<?x256xf32>)
      outs(%d, %b : tensor<?x256xf8E4M3FN>, tensor<?x256xf32>) {blocks = [array<i64: 128, 1>]}
      -> tensor<?x256xf8E4M3FN>, tensor<?x256xf32>
  %2:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<?x256xf32>)
      outs(%d, %a : tensor<?x256xf8E4M3FN>, tensor<?x2xf32>) {blocks = [array<i64: 1, 128>]}
      -> tensor<?x256xf8E4M3FN>, tensor<?x2xf32>
  return %0#0, %1#0, %1#1, %2#1 : tensor<?x256xf8E4M3FN>, tensor<?x256xf8E4M3FN>, tensor<?x256xf32>, tensor<?x2xf32>
}

// Other recipes and formats stay apart.
// CHECK-LABEL: func.func @other_casts
func.func @other_casts(%x: tensor<8x256xf32>, %d: tensor<8x256xf8E4M3FN>, %g: tensor<8x256xf8E5M2>, %a: tensor<8x2xf32>, %r: tensor<8x1xf32>)
    -> (tensor<8x256xf8E4M3FN>, tensor<8x256xf8E5M2>, tensor<8x256xf8E4M3FN>) {
  // CHECK-COUNT-3: fp8.quantize_blocks
  %0:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<8x256xf32>)
      outs(%d, %a : tensor<8x256xf8E4M3FN>, tensor<8x2xf32>) {blocks = [array<i64: 1, 128>]} -> tensor<8x256xf8E4M3FN>, tensor<8x2xf32>
  %1:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<8x256xf32>)
      outs(%g, %a : tensor<8x256xf8E5M2>, tensor<8x2xf32>) {blocks = [array<i64: 1, 128>]} -> tensor<8x256xf8E5M2>, tensor<8x2xf32>
  %2:2 = fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%x : tensor<8x256xf32>)
      outs(%d, %r : tensor<8x256xf8E4M3FN>, tensor<8x1xf32>) {blocks = [array<i64: 1, 0>]} -> tensor<8x256xf8E4M3FN>, tensor<8x1xf32>
  return %0#0, %1#0, %2#0 : tensor<8x256xf8E4M3FN>, tensor<8x256xf8E5M2>, tensor<8x256xf8E4M3FN>
}

// Casts with the same random bits become one, others do not.
// CHECK-LABEL: func.func @random_bits
func.func @random_bits(%x: tensor<4x8xf32>, %r: tensor<2xi64>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>, %b: tensor<4x1xf32>, %c: tensor<1x8xf32>)
    -> (tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>) {
  // CHECK: %[[Q:.+]]:2 = fp8.quantize {{.+}} stream(1)
  // CHECK: %[[OTHER:.+]]:2 = fp8.quantize {{.+}} stream(2)
  // CHECK: %[[BLOCKS:.+]]:4 = fp8.quantize_blocks {{.+}} stream(1)
  // CHECK-NOT: fp8.quantize
  // CHECK: return %[[Q]]#0, %[[Q]]#0, %[[OTHER]]#0, %[[BLOCKS]]#0, %[[BLOCKS]]#2
  %q:2 = fp8.quantize ins(%x : tensor<4x8xf32>) scale(%s : tensor<f32>) random(%r : tensor<2xi64>) stream(1)
      outs(%d, %s : tensor<4x8xf8E4M3FN>, tensor<f32>) -> tensor<4x8xf8E4M3FN>, tensor<f32>
  %same:2 = fp8.quantize ins(%x : tensor<4x8xf32>) scale(%s : tensor<f32>) random(%r : tensor<2xi64>) stream(1)
      outs(%d, %s : tensor<4x8xf8E4M3FN>, tensor<f32>) -> tensor<4x8xf8E4M3FN>, tensor<f32>
  %other:2 = fp8.quantize ins(%x : tensor<4x8xf32>) scale(%s : tensor<f32>) random(%r : tensor<2xi64>) stream(2)
      outs(%d, %s : tensor<4x8xf8E4M3FN>, tensor<f32>) -> tensor<4x8xf8E4M3FN>, tensor<f32>
  %rows:2 = fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%x : tensor<4x8xf32>) random(%r : tensor<2xi64>) stream(1)
      outs(%d, %b : tensor<4x8xf8E4M3FN>, tensor<4x1xf32>) {blocks = [array<i64: 1, 0>]} -> tensor<4x8xf8E4M3FN>, tensor<4x1xf32>
  %columns:2 = fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%x : tensor<4x8xf32>) random(%r : tensor<2xi64>) stream(1)
      outs(%d, %c : tensor<4x8xf8E4M3FN>, tensor<1x8xf32>) {blocks = [array<i64: 0, 1>]} -> tensor<4x8xf8E4M3FN>, tensor<1x8xf32>
  return %q#0, %same#0, %other#0, %rows#0, %columns#0 : tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>
}
