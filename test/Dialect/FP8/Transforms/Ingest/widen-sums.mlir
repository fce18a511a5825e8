// Sums with a narrow accumulator are taken in f32 and rounded once.
// RUN: fp8-opt %s --fp8-widen-sums | FileCheck %s

#in = affine_map<(d0, d1) -> (d0, d1)>
#out = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @bias_gradient
func.func @bias_gradient(%x: tensor<4x8xbf16>) -> tensor<4xbf16> {
  // CHECK: %[[FILL:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%{{.+}} : tensor<4xf32>)
  // CHECK: %[[SUM:.+]] = linalg.generic {{.+}} iterator_types = ["parallel", "reduction"]} ins(%{{.+}} : tensor<4x8xbf16>) outs(%[[FILL]] : tensor<4xf32>)
  // CHECK-NEXT: ^bb0(%[[IN:.+]]: bf16, %[[ACC:.+]]: f32):
  // CHECK-NEXT: %[[WIDE:.+]] = arith.extf %[[IN]] : bf16 to f32
  // CHECK-NEXT: %[[ADD:.+]] = arith.addf %[[ACC]], %[[WIDE]] : f32
  // CHECK-NEXT: linalg.yield %[[ADD]] : f32
  // CHECK: linalg.generic {{.+}} iterator_types = ["parallel"]} ins(%[[SUM]] : tensor<4xf32>) outs(%{{.+}} : tensor<4xbf16>)
  // CHECK: arith.truncf %{{.+}} : f32 to bf16
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<4xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%empty : tensor<4xbf16>) -> tensor<4xbf16>
  %sum = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xbf16>) outs(%init : tensor<4xbf16>) {
    ^bb0(%e: bf16, %acc: bf16):
      %s = arith.addf %acc, %e : bf16
      linalg.yield %s : bf16
  } -> tensor<4xbf16>
  return %sum : tensor<4xbf16>
}

// Values that a program computes from each element before it adds keep the program's type.
// CHECK-LABEL: func.func @sum_of_squares
func.func @sum_of_squares(%x: tensor<4x8xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  // CHECK: %[[WIDE_INIT:.+]] = linalg.generic {{.+}} ins(%{{.+}} : tensor<4xf16>) outs(%{{.+}} : tensor<4xf32>)
  // CHECK: linalg.generic {{.+}} ins(%{{.+}} : tensor<4x8xf16>) outs(%[[WIDE_INIT]] : tensor<4xf32>)
  // CHECK: %[[SQUARE:.+]] = arith.mulf %{{.+}}, %{{.+}} : f16
  // CHECK-NEXT: arith.extf %[[SQUARE]] : f16 to f32
  %sum = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf16>) outs(%init : tensor<4xf16>) {
    ^bb0(%e: f16, %acc: f16):
      %square = arith.mulf %e, %e : f16
      %s = arith.addf %square, %acc : f16
      linalg.yield %s : f16
  } -> tensor<4xf16>
  return %sum : tensor<4xf16>
}

// CHECK-LABEL: func.func @not_sums
func.func @not_sums(%x: tensor<4x8xbf16>, %init: tensor<4xbf16>, %wide: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xf32>) {
  // CHECK: linalg.generic {{.+}} outs(%{{.+}} : tensor<4xbf16>)
  // CHECK: arith.maximumf %{{.+}}, %{{.+}} : bf16
  %max = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xbf16>) outs(%init : tensor<4xbf16>) {
    ^bb0(%e: bf16, %acc: bf16):
      %s = arith.maximumf %acc, %e : bf16
      linalg.yield %s : bf16
  } -> tensor<4xbf16>
  // CHECK-COUNT-1: arith.extf
  %sum = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xbf16>) outs(%wide : tensor<4xf32>) {
    ^bb0(%e: bf16, %acc: f32):
      %w = arith.extf %e : bf16 to f32
      %s = arith.addf %acc, %w : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  return %max, %sum : tensor<4xbf16>, tensor<4xf32>
}

// A sum by name is one too.
// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<8x16xbf16>) -> (tensor<8xbf16>, tensor<8xbf16>) {
  // CHECK: %[[FILL:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%{{.+}} : tensor<8xf32>)
  // CHECK: %[[SUM:.+]] = linalg.generic {{.+}} iterator_types = ["parallel", "reduction"]} ins(%{{.+}} : tensor<8x16xbf16>) outs(%[[FILL]] : tensor<8xf32>)
  // CHECK: arith.addf %{{.+}}, %{{.+}} : f32
  // CHECK: arith.truncf %{{.+}} : f32 to bf16
  // CHECK: linalg.reduce ins({{.+}}) outs({{.+}} : tensor<8xbf16>) dimensions = [1]
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<8xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%empty : tensor<8xbf16>) -> tensor<8xbf16>
  %sum = linalg.reduce {arith.addf} ins(%x : tensor<8x16xbf16>) outs(%init : tensor<8xbf16>) dimensions = [1]
  %max = linalg.reduce ins(%x : tensor<8x16xbf16>) outs(%init : tensor<8xbf16>) dimensions = [1]
    (%e: bf16, %acc: bf16) {
      %m = arith.maximumf %e, %acc : bf16
      linalg.yield %m : bf16
    }
  return %sum, %max : tensor<8xbf16>, tensor<8xbf16>
}
