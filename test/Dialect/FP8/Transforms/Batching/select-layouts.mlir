// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-select-layouts))' | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// fprop reads the columns of the weight, dgrad the rows: the cast writes both. Sizes may be dynamic, and extra results stay.

module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @both
  // CHECK: %[[Q:.*]]:4 = fp8.quantize record_amax
  // CHECK-SAME: transposition = array<i64: 1, 0>
  // CHECK: fp8.scaled_matmul fast ins(%{{.*}}, %[[Q]]#1 : {{.*}}) scales(%{{.*}}, %[[Q]]#2
  // CHECK-SAME: [#[[$MK:.*]], #[[$NK:map.*]], #
  // CHECK: fp8.scaled_matmul fast ins(%{{.*}}, %[[Q]]#0 :
  // CHECK: return {{.*}}, %[[Q]]#3
  func.func @both(%x: tensor<8x?xf8E4M3FN>, %w: tensor<?x32xbf16>, %s: tensor<f32>, %d: tensor<?x32xf8E4M3FN>, %i: tensor<f32>,
                  %o: tensor<8x32xf32>, %p: tensor<8x?xf32>, %g: tensor<8x32xf8E4M3FN>)
      -> (tensor<8x32xf32>, tensor<8x?xf32>, tensor<f32>) {
    %q, %si, %amax = fp8.quantize record_amax ins(%w : tensor<?x32xbf16>) scale(%s : tensor<f32>)
        outs(%d, %i, %i : tensor<?x32xf8E4M3FN>, tensor<f32>, tensor<f32>)
        -> tensor<?x32xf8E4M3FN>, tensor<f32>, tensor<f32>
    %y = fp8.scaled_matmul fast ins(%x, %q : tensor<8x?xf8E4M3FN>, tensor<?x32xf8E4M3FN>)
        scales(%s, %si : tensor<f32>, tensor<f32>) outs(%o : tensor<8x32xf32>)
        {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf32>
    %z = fp8.scaled_matmul fast ins(%g, %q : tensor<8x32xf8E4M3FN>, tensor<?x32xf8E4M3FN>)
        scales(%s, %si : tensor<f32>, tensor<f32>) outs(%p : tensor<8x?xf32>)
        {indexing_maps = [#mk, #nk, #mn]} -> tensor<8x?xf32>
    return %y, %z, %amax : tensor<8x32xf32>, tensor<8x?xf32>, tensor<f32>
  }
}

// -----

// Tensor memory is filled from either order.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  // CHECK-LABEL: func.func @read_as_it_is
  // CHECK-NOT: transposition
  func.func @read_as_it_is(%x: tensor<8x16xf8E4M3FN>, %w: tensor<16x32xbf16>, %s: tensor<f32>, %d: tensor<16x32xf8E4M3FN>,
                           %o: tensor<8x32xf32>) -> tensor<8x32xf32> {
    %q, %si = fp8.quantize ins(%w : tensor<16x32xbf16>) scale(%s : tensor<f32>)
        outs(%d, %s : tensor<16x32xf8E4M3FN>, tensor<f32>) -> tensor<16x32xf8E4M3FN>, tensor<f32>
    %y = fp8.scaled_matmul fast ins(%x, %q : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>)
        scales(%s, %si : tensor<f32>, tensor<f32>) outs(%o : tensor<8x32xf32>)
        {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf32>
    return %y : tensor<8x32xf32>
  }
}

// -----

// Blocks of 128 of an activation behind a reshape: fprop reads the rows as they are, wgrad the columns. The cast writes data
// and scale_inv of the columns transposed, and the reshape follows.

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  // CHECK-LABEL: func.func @directions
  // CHECK: %[[Q:.*]]:4 = fp8.quantize_blocks recipe(#fp8.block_scaling)
  // CHECK-SAME: outs({{.*}} : tensor<4x64x256xf8E4M3FN>, tensor<4x64x2xf32>, tensor<256x4x64xf8E4M3FN>, tensor<256x2x1xf32>)
  // CHECK-SAME: blocks = [array<i64: 1, 1, 128>, array<i64: 2, 64, 1>]
  // CHECK-SAME: transpositions = [array<i64: 0, 1, 2>, array<i64: 2, 0, 1>]
  // CHECK: %[[R:.*]] = tensor.collapse_shape %[[Q]]#0 {{\[\[}}0, 1], [2]]
  // CHECK: %[[RS:.*]] = tensor.collapse_shape %[[Q]]#1 {{\[\[}}0, 1], [2]]
  // CHECK: fp8.scaled_matmul {{.*}} ins(%[[R]], %{{.*}}) scales(%[[RS]],
  // CHECK-SAME: indexing_maps = [#[[$MK:.*]], #[[$NK:.*]], #{{.*}}], lhs_block = array<i64: 1, 128>
  // CHECK: %[[C:.*]] = tensor.collapse_shape %[[Q]]#2 {{\[\[}}0], [1, 2]] : tensor<256x4x64xf8E4M3FN> into tensor<256x256xf8E4M3FN>
  // CHECK: %[[CS:.*]] = tensor.collapse_shape %[[Q]]#3 {{\[\[}}0], [1, 2]] : tensor<256x2x1xf32> into tensor<256x2xf32>
  // CHECK: fp8.scaled_matmul {{.*}} ins(%[[C]], %{{.*}}) scales(%[[CS]],
  // CHECK-SAME: indexing_maps = [#[[$MK]], #[[$NK]], #{{.*}}], lhs_block = array<i64: 1, 128>
  func.func @directions(%x: tensor<4x64x256xbf16>, %w: tensor<32x256xf8E4M3FN>, %sw: tensor<1x2xf32>, %g: tensor<32x256xf8E4M3FN>,
      %d: tensor<4x64x256xf8E4M3FN>, %i: tensor<4x64x2xf32>, %ic: tensor<2x1x256xf32>, %o: tensor<256x32xf32>)
      -> (tensor<256x32xf32>, tensor<256x32xf32>) {
    %q:4 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<4x64x256xbf16>)
        outs(%d, %i, %d, %ic : tensor<4x64x256xf8E4M3FN>, tensor<4x64x2xf32>, tensor<4x64x256xf8E4M3FN>, tensor<2x1x256xf32>)
        {blocks = [array<i64: 1, 1, 128>, array<i64: 2, 64, 1>]}
        -> tensor<4x64x256xf8E4M3FN>, tensor<4x64x2xf32>, tensor<4x64x256xf8E4M3FN>, tensor<2x1x256xf32>
    %r = tensor.collapse_shape %q#0 [[0, 1], [2]] : tensor<4x64x256xf8E4M3FN> into tensor<256x256xf8E4M3FN>
    %rs = tensor.collapse_shape %q#1 [[0, 1], [2]] : tensor<4x64x2xf32> into tensor<256x2xf32>
    %c = tensor.collapse_shape %q#2 [[0, 1], [2]] : tensor<4x64x256xf8E4M3FN> into tensor<256x256xf8E4M3FN>
    %cs = tensor.collapse_shape %q#3 [[0, 1], [2]] : tensor<2x1x256xf32> into tensor<2x256xf32>
    %y = fp8.scaled_matmul recipe(#fp8.block_scaling) split
        ins(%r, %w : tensor<256x256xf8E4M3FN>, tensor<32x256xf8E4M3FN>) scales(%rs, %sw : tensor<256x2xf32>, tensor<1x2xf32>)
        outs(%o : tensor<256x32xf32>) {indexing_maps = [#mk, affine_map<(m, n, k) -> (n, k)>, #mn],
        lhs_block = array<i64: 1, 128>, rhs_block = array<i64: 128, 128>} -> tensor<256x32xf32>
    %z = fp8.scaled_matmul recipe(#fp8.block_scaling) split
        ins(%c, %g : tensor<256x256xf8E4M3FN>, tensor<32x256xf8E4M3FN>) scales(%cs, %sw : tensor<2x256xf32>, tensor<1x2xf32>)
        outs(%o : tensor<256x32xf32>) {indexing_maps = [#km, affine_map<(m, n, k) -> (n, k)>, #mn],
        lhs_block = array<i64: 128, 1>, rhs_block = array<i64: 128, 128>} -> tensor<256x32xf32>
    return %y, %z : tensor<256x32xf32>, tensor<256x32xf32>
  }
}

// -----

// A weight with blocks of 128 x 128 that both products read is cast once, in two layouts; one that only fprop reads has the
// wanted layout alone.

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
module attributes {fp8.target = #fp8.chip<"sm_120a">} {
  // CHECK-LABEL: func.func @weight
  // CHECK: %[[Q:.*]]:4 = fp8.quantize_blocks {{.*}} {blocks = [array<i64: 128, 128>, array<i64: 128, 128>], transpositions = [array<i64: 0, 1>, array<i64: 1, 0>]}
  // CHECK: fp8.scaled_matmul {{.*}} ins(%{{.*}}, %[[Q]]#2 : {{.*}}) scales(%{{.*}}, %[[Q]]#3
  // CHECK: fp8.scaled_matmul {{.*}} ins(%{{.*}}, %[[Q]]#0 : {{.*}}) scales(%{{.*}}, %[[Q]]#1
  func.func @weight(%w: tensor<256x384xbf16>, %x: tensor<8x256xf8E4M3FN>, %sx: tensor<8x2xf32>, %g: tensor<8x384xf8E4M3FN>,
      %sg: tensor<8x3xf32>, %d: tensor<256x384xf8E4M3FN>, %i: tensor<2x3xf32>, %o: tensor<8x384xf32>, %p: tensor<8x256xf32>)
      -> (tensor<8x384xf32>, tensor<8x256xf32>) {
    %q, %s = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%w : tensor<256x384xbf16>)
        outs(%d, %i : tensor<256x384xf8E4M3FN>, tensor<2x3xf32>) {blocks = [array<i64: 128, 128>]}
        -> tensor<256x384xf8E4M3FN>, tensor<2x3xf32>
    %y = fp8.scaled_matmul recipe(#fp8.block_scaling) split
        ins(%x, %q : tensor<8x256xf8E4M3FN>, tensor<256x384xf8E4M3FN>) scales(%sx, %s : tensor<8x2xf32>, tensor<2x3xf32>)
        outs(%o : tensor<8x384xf32>) {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1, 128>,
        rhs_block = array<i64: 128, 128>} -> tensor<8x384xf32>
    %z = fp8.scaled_matmul recipe(#fp8.block_scaling) split
        ins(%g, %q : tensor<8x384xf8E4M3FN>, tensor<256x384xf8E4M3FN>) scales(%sg, %s : tensor<8x3xf32>, tensor<2x3xf32>)
        outs(%p : tensor<8x256xf32>) {indexing_maps = [#mk, #nk, #mn], lhs_block = array<i64: 1, 128>,
        rhs_block = array<i64: 128, 128>} -> tensor<8x256xf32>
    return %y, %z : tensor<8x384xf32>, tensor<8x256xf32>
  }

  // Two functions: the second has nothing of the first.
  // CHECK-LABEL: func.func @evaluate
  // CHECK: %[[Q:.*]]:2 = fp8.quantize_blocks {{.*}} {blocks = [array<i64: 128, 1>], transpositions = [array<i64: 1, 0>]}
  // CHECK: fp8.scaled_matmul {{.*}} scales(%{{.*}}, %[[Q]]#1 : tensor<8x2xf32>, tensor<384x2xf32>)
  // CHECK-SAME: rhs_block = array<i64: 1, 128>
  func.func @evaluate(%w: tensor<256x384xbf16>, %x: tensor<8x256xf8E4M3FN>, %sx: tensor<8x2xf32>,
      %d: tensor<256x384xf8E4M3FN>, %i: tensor<2x384xf32>, %o: tensor<8x384xf32>) -> tensor<8x384xf32> {
    %q, %s = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%w : tensor<256x384xbf16>)
        outs(%d, %i : tensor<256x384xf8E4M3FN>, tensor<2x384xf32>) {blocks = [array<i64: 128, 1>]}
        -> tensor<256x384xf8E4M3FN>, tensor<2x384xf32>
    %y = fp8.scaled_matmul recipe(#fp8.block_scaling) split
        ins(%x, %q : tensor<8x256xf8E4M3FN>, tensor<256x384xf8E4M3FN>) scales(%sx, %s : tensor<8x2xf32>, tensor<2x384xf32>)
        outs(%o : tensor<8x384xf32>) {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1, 128>,
        rhs_block = array<i64: 128, 1>} -> tensor<8x384xf32>
    return %y : tensor<8x384xf32>
  }
}
