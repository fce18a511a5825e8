// A loop over 16 contiguous elements becomes vectors; unrolled, it would leave the loop over rows to the vectorizer, whose
// elements are loaded one by one.
//
// RUN: fp8-compile %s --recipe=none --emit=llvm --cpu=x86-64-v3 -o - | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>

// The rows of the input are 48 elements apart, so that both loops remain.
// CHECK-LABEL: define internal void @kernel_elementwise(
// CHECK:         load <8 x float>
// CHECK:         store <8 x float>
func.func @columns(%x: tensor<64x48xf32>) -> tensor<64x16xf32> {
  %empty = tensor.empty() : tensor<64x16xf32>
  %part = tensor.extract_slice %x[0, 16] [64, 16] [1, 1] : tensor<64x48xf32> to tensor<64x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%part : tensor<64x16xf32>) outs(%empty : tensor<64x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %0, %in : f32
    linalg.yield %1 : f32
  } -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}
