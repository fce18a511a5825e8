// Products with a scale per block get one K dimension, and one for what blocks span across.
// RUN: fp8-opt %s --fp8-collapse-matmuls | FileCheck %s --enable-var-scope

#btd = affine_map<(m, n, b, t) -> (b, t, m)>
#btn = affine_map<(m, n, b, t) -> (b, t, n)>
#mn4 = affine_map<(m, n, b, t) -> (m, n)>

// CHECK-LABEL: func.func @wgrad
// CHECK-SAME: %[[X:[^ :]+]]: tensor<4x64x16xbf16>, %[[G:[^ :]+]]: tensor<4x64x32xbf16>
func.func @wgrad(%x: tensor<4x64x16xbf16>, %g: tensor<4x64x32xbf16>, %i: tensor<16x32xf32>) -> tensor<16x32xf32> {
  // CHECK: %[[CX:.+]] = tensor.collapse_shape %[[X]] {{\[\[0, 1\], \[2\]\]}} : tensor<4x64x16xbf16> into tensor<256x16xbf16>
  // CHECK: %[[CG:.+]] = tensor.collapse_shape %[[G]] {{\[\[0, 1\], \[2\]\]}} : tensor<4x64x32xbf16> into tensor<256x32xbf16>
  // CHECK: fp8.matmul {{.+}} ins(%[[CX]], %[[CG]] : tensor<256x16xbf16>, tensor<256x32xbf16>)
  %0 = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) recipe(#fp8.block_scaling)
      ins(%x, %g : tensor<4x64x16xbf16>, tensor<4x64x32xbf16>) outs(%i : tensor<16x32xf32>)
      {indexing_maps = [#btd, #btn, #mn4]} -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// A scale per tensor does not look at dimensions.
// CHECK-LABEL: func.func @current
func.func @current(%x: tensor<4x64x16xbf16>, %g: tensor<4x64x32xbf16>, %i: tensor<16x32xf32>) -> tensor<16x32xf32> {
  // CHECK-NOT: tensor.collapse_shape
  // CHECK: fp8.matmul {{.+}} ins(%{{.+}}, %{{.+}} : tensor<4x64x16xbf16>, tensor<4x64x32xbf16>)
  %0 = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) recipe(#fp8.current_scaling)
      ins(%x, %g : tensor<4x64x16xbf16>, tensor<4x64x32xbf16>) outs(%i : tensor<16x32xf32>)
      {indexing_maps = [#btd, #btn, #mn4]} -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// The K dimensions of the second operand are not in the order of the product: it is transposed first.
#mtk = affine_map<(m, n, h, d) -> (m, h, d)>
#dhn = affine_map<(m, n, h, d) -> (d, n, h)>
// CHECK-LABEL: func.func @order
// CHECK-SAME: %[[X:[^ :]+]]: tensor<8x2x?xbf16>, %[[W:[^ :]+]]: tensor<?x16x2xbf16>
func.func @order(%x: tensor<8x2x?xbf16>, %w: tensor<?x16x2xbf16>, %i: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK: %[[CX:.+]] = tensor.collapse_shape %[[X]] {{\[\[0\], \[1, 2\]\]}} : tensor<8x2x?xbf16> into tensor<8x?xbf16>
  // CHECK: %[[T:.+]] = linalg.transpose ins(%[[W]] : tensor<?x16x2xbf16>) outs(%{{.+}} : tensor<16x2x?xbf16>) permutation = [1, 2, 0]
  // CHECK: %[[CW:.+]] = tensor.collapse_shape %[[T]] {{\[\[0\], \[1, 2\]\]}} : tensor<16x2x?xbf16> into tensor<16x?xbf16>
  // CHECK: fp8.matmul {{.+}} ins(%[[CX]], %[[CW]] : tensor<8x?xbf16>, tensor<16x?xbf16>)
  %0 = fp8.matmul site("o") role(fprop) kinds(input, weight) recipe(#fp8.mx_scaling)
      ins(%x, %w : tensor<8x2x?xbf16>, tensor<?x16x2xbf16>) outs(%i : tensor<8x16xf32>)
      {indexing_maps = [#mtk, #dhn, affine_map<(m, n, h, d) -> (m, n)>]} -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// 128 x 128 blocks of a weight with two dimensions of heads: the heads are one dimension of the product, whose
// result gets them back.
#bk = affine_map<(b, h, d, k) -> (b, k)>
#khd = affine_map<(b, h, d, k) -> (k, h, d)>
#bhd = affine_map<(b, h, d, k) -> (h, b, d)>
// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<8x256xbf16>, %w: tensor<256x4x64xbf16>, %i: tensor<4x8x64xf32>) -> tensor<4x8x64xf32> {
  // CHECK: %[[CW:.+]] = tensor.collapse_shape %{{.+}} {{\[\[0\], \[1, 2\]\]}} : tensor<256x4x64xbf16> into tensor<256x256xbf16>
  // CHECK: %[[P:.+]] = fp8.matmul {{.+}} ins(%{{.+}}, %[[CW]] : tensor<8x256xbf16>, tensor<256x256xbf16>) outs(%{{.+}} : tensor<8x256xf32>)
  // CHECK: %[[E:.+]] = tensor.expand_shape %[[P]] {{\[\[0\], \[1, 2\]\]}} output_shape [8, 4, 64]
  // CHECK: %[[R:.+]] = linalg.transpose ins(%[[E]] : tensor<8x4x64xf32>) outs(%{{.+}} : tensor<4x8x64xf32>) permutation = [1, 0, 2]
  // CHECK: return %[[R]]
  %0 = fp8.matmul site("q") role(fprop) kinds(input, weight) recipe(#fp8.block_scaling)
      ins(%x, %w : tensor<8x256xbf16>, tensor<256x4x64xbf16>) outs(%i : tensor<4x8x64xf32>)
      {indexing_maps = [#bk, #khd, #bhd]} -> tensor<4x8x64xf32>
  return %0 : tensor<4x8x64xf32>
}
