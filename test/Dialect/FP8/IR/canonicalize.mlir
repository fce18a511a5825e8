// Folds and canonicalizations of the dialect, and the folds that must not happen.
// RUN: fp8-opt %s --canonicalize | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Adding to zeros is writing.
// CHECK-LABEL: func.func @zero_accumulator
// CHECK-SAME: %[[A:[^:]+]]: tensor<8x16xbf16>, %[[B:[^:]+]]: tensor<16x32xbf16>, %[[C:[^:]+]]: tensor<8x32xf32>
func.func @zero_accumulator(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // CHECK-NOT: linalg.fill
  // CHECK: fp8.matmul ins(%[[A]], %[[B]] : {{.+}}) outs(%[[C]] : tensor<8x32xf32>)
  %zero = arith.constant -0.0 : f32
  %fill = linalg.fill ins(%zero : f32) outs(%c : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = fp8.matmul accumulate ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%fill : tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// CHECK-LABEL: func.func @nonzero_accumulator
func.func @nonzero_accumulator(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // CHECK: %[[FILL:.+]] = linalg.fill
  // CHECK: fp8.matmul accumulate ins({{.+}}) outs(%[[FILL]]
  %one = arith.constant 1.0 : f32
  %fill = linalg.fill ins(%one : f32) outs(%c : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = fp8.matmul accumulate ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%fill : tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// Results of a cast that nothing reads go, in any combination.
// CHECK-LABEL: func.func @unused_amax
func.func @unused_amax(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %t: tensor<16x8xf8E4M3FN>)
    -> (tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>) {
  // CHECK: %[[Q:.+]]:3 = fp8.quantize column(1) ins({{.+}}) scale({{.+}}) outs({{.+}}) {transposition = array<i64: 1, 0>}
  // CHECK: return %[[Q]]#0, %[[Q]]#1, %[[Q]]#2
  %0:4 = fp8.quantize record_amax column(1) ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %t, %s, %s : tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>, tensor<f32>)
      {transposition = array<i64: 1, 0>}
      -> tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %0#0, %0#1, %0#2 : tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>
}

// CHECK-LABEL: func.func @unused_transpose
func.func @unused_transpose(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %t: tensor<16x8xf8E4M3FN>)
    -> (tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>) {
  // CHECK: %[[Q:.+]]:3 = fp8.quantize record_amax ins({{.+}}) scale({{.+}}) outs({{.+}}) -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
  // CHECK: return %[[Q]]#0, %[[Q]]#1, %[[Q]]#2
  %0:4 = fp8.quantize record_amax ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %t, %s, %s : tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>, tensor<f32>)
      {transposition = array<i64: 1, 0>}
      -> tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %0#0, %0#2, %0#3 : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @unused_quantize
func.func @unused_quantize(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>) {
  // CHECK-NOT: fp8.quantize
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %s : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// On memrefs the writes are effects: nothing goes.
// CHECK-LABEL: func.func @quantize_memref
func.func @quantize_memref(%x: memref<8x16xbf16>, %s: memref<f32>, %q: memref<8x16xf8E4M3FN>, %a: memref<f32>) {
  // CHECK: fp8.quantize record_amax
  fp8.quantize record_amax ins(%x : memref<8x16xbf16>) scale(%s : memref<f32>)
      outs(%q, %s, %a : memref<8x16xf8E4M3FN>, memref<f32>, memref<f32>)
  return
}

// A maximum over the ranks of a maximum over the same ranks.
// CHECK-LABEL: func.func @repeated_max
func.func @repeated_max(%v: tensor<5xf32>) -> tensor<5xf32> {
  // CHECK-COUNT-1: fp8.all_reduce
  // CHECK-NOT: fp8.all_reduce
  %0 = fp8.all_reduce max on(4) axes [0] ins(%v : tensor<5xf32>) outs(%v : tensor<5xf32>) -> tensor<5xf32>
  %1 = fp8.all_reduce max on(4) axes [0] ins(%0 : tensor<5xf32>) outs(%v : tensor<5xf32>) -> tensor<5xf32>
  return %1 : tensor<5xf32>
}

// CHECK-LABEL: func.func @other_reductions
func.func @other_reductions(%v: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  // CHECK-COUNT-4: fp8.all_reduce
  %0 = fp8.all_reduce max on(4) axes [0] ins(%v : tensor<5xf32>) outs(%v : tensor<5xf32>) -> tensor<5xf32>
  %1 = fp8.all_reduce max on(2x2) axes [1] ins(%0 : tensor<5xf32>) outs(%v : tensor<5xf32>) -> tensor<5xf32>
  %2 = fp8.all_reduce sum on(4) axes [0] ins(%v : tensor<5xf32>) outs(%v : tensor<5xf32>) -> tensor<5xf32>
  %3 = fp8.all_reduce sum on(4) axes [0] ins(%2 : tensor<5xf32>) outs(%v : tensor<5xf32>) -> tensor<5xf32>
  return %1, %3 : tensor<5xf32>, tensor<5xf32>
}

// Sizes that a tensor.cast forgot, in an op without a region and in a cast to FP8.
// CHECK-LABEL: func.func @forgotten_sizes
func.func @forgotten_sizes(%x: tensor<8x16xbf16>, %b: tensor<16x32xf8E4M3FN>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>,
                           %c: tensor<8x32xf32>) -> tensor<?x32xf32> {
  // CHECK: fp8.quantize ins(%{{.+}} : tensor<8x16xbf16>) {{.+}} -> tensor<8x16xf8E4M3FN>, tensor<f32>
  // CHECK: fp8.scaled_matmul fast ins(%{{.+}}, %{{.+}} : tensor<8x16xf8E4M3FN>, {{.+}}) {{.+}} -> tensor<8x32xf32>
  // CHECK: tensor.cast %{{.+}} : tensor<8x32xf32> to tensor<?x32xf32>
  %xd = tensor.cast %x : tensor<8x16xbf16> to tensor<?x16xbf16>
  %qd = tensor.cast %q : tensor<8x16xf8E4M3FN> to tensor<?x16xf8E4M3FN>
  %0:2 = fp8.quantize ins(%xd : tensor<?x16xbf16>) scale(%s : tensor<f32>)
      outs(%qd, %s : tensor<?x16xf8E4M3FN>, tensor<f32>) -> tensor<?x16xf8E4M3FN>, tensor<f32>
  %cd = tensor.cast %c : tensor<8x32xf32> to tensor<?x32xf32>
  %1 = fp8.scaled_matmul fast ins(%0#0, %b : tensor<?x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>)
      scales(%0#1, %s : tensor<f32>, tensor<f32>) outs(%cd : tensor<?x32xf32>) {indexing_maps = [#mk, #kn, #mn]}
      -> tensor<?x32xf32>
  return %1 : tensor<?x32xf32>
}

// An amax and a result that nothing reads go; a result whose amax is read stays, at another position.
// CHECK-LABEL: func.func @unused_amaxes
func.func @unused_amaxes(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xbf16>, %w: tensor<8x32xf32>, %s: tensor<f32>)
    -> (tensor<8x32xbf16>, tensor<f32>) {
  // CHECK: %[[Y:.+]]:3 = fp8.matmul record_amax[1] ins({{.+}}) outs({{.+}} : tensor<8x32xbf16>, tensor<f32>, tensor<8x32xf32>)
  // CHECK-NEXT: ^bb0(%[[SUM:.+]]: f32):
  // CHECK: %[[N:.+]] = arith.negf %[[SUM]]
  // CHECK: fp8.yield %{{.+}}, %[[N]] : bf16, f32
  // CHECK: return %[[Y]]#0, %[[Y]]#1
  %y:5 = fp8.matmul record_amax[0, 2] ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>)
      outs(%c, %s, %s, %w, %w : tensor<8x32xbf16>, tensor<f32>, tensor<f32>, tensor<8x32xf32>, tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn], epilogue_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]} epilogue {
    ^bb0(%sum: f32):
      %r = arith.truncf %sum : f32 to bf16
      %n = arith.negf %sum : f32
      fp8.yield %r, %sum, %n : bf16, f32, f32
  } -> tensor<8x32xbf16>, tensor<f32>, tensor<f32>, tensor<8x32xf32>, tensor<8x32xf32>
  return %y#0, %y#2 : tensor<8x32xbf16>, tensor<f32>
}

// A cast by blocks moves before the collapse of dimensions where each block is a box there.
// CHECK-LABEL: func.func @blocks_before_collapse
// CHECK-SAME: %[[X:[^ :]+]]: tensor<3x64x256xbf16>
func.func @blocks_before_collapse(%x: tensor<3x64x256xbf16>) -> (tensor<192x256xf8E4M3FN>, tensor<192x2xf32>, tensor<192x256xf8E4M3FN>, tensor<2x256xf32>) {
  // CHECK: %[[Q:.+]]:4 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%[[X]] : tensor<3x64x256xbf16>)
  // CHECK-SAME: tensor<3x64x256xf8E4M3FN>, tensor<3x64x2xf32>, tensor<3x64x256xf8E4M3FN>, tensor<2x1x256xf32>) {blocks = [array<i64: 1, 1, 128>, array<i64: 2, 64, 1>]}
  // CHECK-DAG: tensor.collapse_shape %[[Q]]#1 {{\[\[0, 1\], \[2\]\]}} : tensor<3x64x2xf32> into tensor<192x2xf32>
  // CHECK-DAG: tensor.collapse_shape %[[Q]]#3 {{\[\[0, 1\], \[2\]\]}} : tensor<2x1x256xf32> into tensor<2x256xf32>
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<3x64x256xbf16> into tensor<192x256xbf16>
  %d = tensor.empty() : tensor<192x256xf8E4M3FN>
  %a = tensor.empty() : tensor<192x2xf32>
  %b = tensor.empty() : tensor<2x256xf32>
  %0:4 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%c : tensor<192x256xbf16>)
      outs(%d, %a, %d, %b : tensor<192x256xf8E4M3FN>, tensor<192x2xf32>, tensor<192x256xf8E4M3FN>, tensor<2x256xf32>)
      {blocks = [array<i64: 1, 128>, array<i64: 128, 1>]}
      -> tensor<192x256xf8E4M3FN>, tensor<192x2xf32>, tensor<192x256xf8E4M3FN>, tensor<2x256xf32>
  return %0#0, %0#1, %0#2, %0#3 : tensor<192x256xf8E4M3FN>, tensor<192x2xf32>, tensor<192x256xf8E4M3FN>, tensor<2x256xf32>
}

// 128 neighbours of 4 x 96 are no box.
// CHECK-LABEL: func.func @blocks_across
func.func @blocks_across(%x: tensor<4x96x8xbf16>) -> (tensor<384x8xf8E4M3FN>, tensor<3x8xf32>) {
  // CHECK: fp8.quantize_blocks {{.+}} ins(%{{.+}} : tensor<384x8xbf16>)
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x96x8xbf16> into tensor<384x8xbf16>
  %d = tensor.empty() : tensor<384x8xf8E4M3FN>
  %b = tensor.empty() : tensor<3x8xf32>
  %0:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%c : tensor<384x8xbf16>)
      outs(%d, %b : tensor<384x8xf8E4M3FN>, tensor<3x8xf32>) {blocks = [array<i64: 128, 1>]} -> tensor<384x8xf8E4M3FN>, tensor<3x8xf32>
  return %0#0, %0#1 : tensor<384x8xf8E4M3FN>, tensor<3x8xf32>
}

// A direction that nothing reads is not cast.
// CHECK-LABEL: func.func @unused_direction
func.func @unused_direction(%x: tensor<8x256xf32>, %d: tensor<8x256xf8E4M3FN>, %a: tensor<8x2xf32>, %b: tensor<1x256xf32>) -> (tensor<8x256xf8E4M3FN>, tensor<1x256xf32>) {
  // CHECK: fp8.quantize_blocks {{.+}} {blocks = [array<i64: 128, 1>], transpositions = [array<i64: 0, 1>]}
  %0:4 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<8x256xf32>)
      outs(%d, %a, %d, %b : tensor<8x256xf8E4M3FN>, tensor<8x2xf32>, tensor<8x256xf8E4M3FN>, tensor<1x256xf32>)
      {blocks = [array<i64: 1, 128>, array<i64: 128, 1>], transpositions = [array<i64: 0, 1>, array<i64: 0, 1>]}
      -> tensor<8x256xf8E4M3FN>, tensor<8x2xf32>, tensor<8x256xf8E4M3FN>, tensor<1x256xf32>
  return %0#2, %0#3 : tensor<8x256xf8E4M3FN>, tensor<1x256xf32>
}

// A reshape keeps the order of the elements, and so their random bits.
// CHECK-LABEL: func.func @random_bits_before_reshape
func.func @random_bits_before_reshape(%x: tensor<4x6x8xf32>, %s: tensor<f32>, %r: tensor<2xi64>, %d: tensor<24x8xf8E4M3FN>) -> tensor<24x8xf8E4M3FN> {
  // CHECK: fp8.quantize ins(%{{.+}} : tensor<4x6x8xf32>) {{.+}} random(%{{.+}}) stream(7)
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x6x8xf32> into tensor<24x8xf32>
  %q, %i = fp8.quantize ins(%c : tensor<24x8xf32>) scale(%s : tensor<f32>) random(%r : tensor<2xi64>) stream(7)
      outs(%d, %s : tensor<24x8xf8E4M3FN>, tensor<f32>) -> tensor<24x8xf8E4M3FN>, tensor<f32>
  return %q : tensor<24x8xf8E4M3FN>
}
