// Long loops are computed for four vectors of f32 elements at a time where no element is left over, on processors with 16
// vector registers. Loops on bf16 alone have two such vectors in an iteration before they are interleaved.
//
// RUN: fp8-compile %s --recipe=none --emit=llvm --cpu=x86-64-v3 -o - | FileCheck %s --check-prefix=AVX2
// RUN: fp8-compile %s --recipe=none --emit=llvm --cpu=x86-64-v4 -o - | FileCheck %s --check-prefix=AVX512

#id = affine_map<(i) -> (i)>

// Ten roundings to bf16, each of which waits for the one before.
// AVX2-LABEL: define internal void @kernel_elementwise(
// AVX2:         add nuw i64 %index, 32{{$}}
// AVX512-LABEL: define internal void @kernel_elementwise(
// AVX512:         add nuw i64 %index, 16{{$}}
func.func @long(%x: tensor<1024xbf16>) -> tensor<1024xbf16> {
  %empty = tensor.empty() : tensor<1024xbf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<1024xbf16>) outs(%empty : tensor<1024xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %0 = arith.mulf %in, %in : bf16
    %1 = arith.addf %0, %in : bf16
    %2 = arith.mulf %1, %in : bf16
    %3 = arith.addf %2, %in : bf16
    %4 = arith.mulf %3, %in : bf16
    %5 = arith.addf %4, %in : bf16
    %6 = arith.mulf %5, %in : bf16
    %7 = arith.addf %6, %in : bf16
    %8 = arith.mulf %7, %in : bf16
    %9 = arith.addf %8, %in : bf16
    linalg.yield %9 : bf16
  } -> tensor<1024xbf16>
  return %y : tensor<1024xbf16>
}

// 1,000 elements are no multiple of 32.
// AVX2-LABEL: define internal void @kernel_elementwise_2(
// AVX2:         add nuw i64 %index, 8{{$}}
func.func @rest(%z: tensor<1000xbf16>) -> tensor<1000xbf16> {
  %empty = tensor.empty() : tensor<1000xbf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%z : tensor<1000xbf16>) outs(%empty : tensor<1000xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %0 = arith.mulf %in, %in : bf16
    %1 = arith.addf %0, %in : bf16
    %2 = arith.mulf %1, %in : bf16
    %3 = arith.addf %2, %in : bf16
    %4 = arith.mulf %3, %in : bf16
    %5 = arith.addf %4, %in : bf16
    %6 = arith.mulf %5, %in : bf16
    %7 = arith.addf %6, %in : bf16
    %8 = arith.mulf %7, %in : bf16
    %9 = arith.addf %8, %in : bf16
    linalg.yield %9 : bf16
  } -> tensor<1000xbf16>
  return %y : tensor<1000xbf16>
}
