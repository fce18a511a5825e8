// Loops use registers of 512 bits on processors with AVX512-FP16. Older processors keep LLVM's choice, as does a function
// with a short loop of which wider vectors would leave a rest.
//
// RUN: fp8-compile %s --recipe=none --emit=llvm --cpu=sapphirerapids -o - | FileCheck %s
// RUN: fp8-compile %s --recipe=none --emit=llvm --cpu=icelake-server -o - | FileCheck %s --check-prefix=BEFORE

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: define internal void @kernel_elementwise(
// CHECK: fmul <16 x float>
// BEFORE-LABEL: define internal void @kernel_elementwise(
// BEFORE: fmul <8 x float>
func.func @long(%x: tensor<1000xf32>, %y: tensor<1000xf32>) -> tensor<1000xf32> {
  %empty = tensor.empty() : tensor<1000xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<1000xf32>, tensor<1000xf32>) outs(%empty : tensor<1000xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %0, %a : f32
    linalg.yield %1 : f32
  } -> tensor<1000xf32>
  return %z : tensor<1000xf32>
}

// CHECK-LABEL: define internal void @kernel_elementwise_2(
// CHECK-NOT: <16 x float>
// CHECK: fmul <8 x float>
func.func @rest(%v: tensor<40xf32>, %w: tensor<40xf32>) -> tensor<40xf32> {
  %empty = tensor.empty() : tensor<40xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%v, %w : tensor<40xf32>, tensor<40xf32>) outs(%empty : tensor<40xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.subf %0, %b : f32
    linalg.yield %1 : f32
  } -> tensor<40xf32>
  return %z : tensor<40xf32>
}

// CHECK-LABEL: define internal void @kernel_elementwise_3(
// CHECK: fmul <16 x float>
func.func @whole(%p: tensor<48xf32>, %q: tensor<48xf32>) -> tensor<48xf32> {
  %empty = tensor.empty() : tensor<48xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%p, %q : tensor<48xf32>, tensor<48xf32>) outs(%empty : tensor<48xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.divf %0, %b : f32
    linalg.yield %1 : f32
  } -> tensor<48xf32>
  return %z : tensor<48xf32>
}
