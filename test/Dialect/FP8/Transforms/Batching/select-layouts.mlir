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
