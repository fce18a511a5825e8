// Small sums and means of one kind become one, behind the last of them; what reads the others moves behind it.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-bucket-reductions{bytes=256}))' | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-bucket-reductions{bytes=0}))' | FileCheck %s --check-prefix=NONE

// NONE-NOT: insert_slice

// A reader between the two moves behind the bucket. Parts begin at multiples of 64 bytes.
// CHECK-LABEL: func.func @joined
// CHECK-SAME: %[[A:.+]]: tensor<2x3xf32>, %[[B:.+]]: tensor<f32>
func.func @joined(%a: tensor<2x3xf32>, %b: tensor<f32>) -> (tensor<2x3xf32>, tensor<f32>) {
  // CHECK: %[[E:.+]] = tensor.empty() : tensor<17xf32>
  // CHECK: %[[FLAT:.+]] = tensor.collapse_shape %[[A]] {{\[\[}}0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  // CHECK: %[[FIRST:.+]] = tensor.insert_slice %[[FLAT]] into %[[E]][0] [6] [1]
  // CHECK: %[[ONE:.+]] = tensor.expand_shape %[[B]] [] output_shape [1]
  // CHECK: %[[ALL:.+]] = tensor.insert_slice %[[ONE]] into %[[FIRST]][16] [1] [1]
  // CHECK: %[[R:.+]] = fp8.all_reduce mean on(4) axes [0] of("b and 1 before") ins(%[[ALL]] : tensor<17xf32>) outs(%[[ALL]] : tensor<17xf32>) {fp8.joined = 2 : i64}
  // CHECK: %[[PART:.+]] = tensor.extract_slice %[[R]][0] [6] [1]
  // CHECK: %[[X:.+]] = tensor.expand_shape %[[PART]] {{\[\[}}0, 1]] output_shape [2, 3]
  // CHECK: %[[LAST:.+]] = tensor.extract_slice %[[R]][16] [1] [1]
  // CHECK: %[[Y:.+]] = tensor.collapse_shape %[[LAST]] []
  // CHECK: %[[TWICE:.+]] = arith.addf %[[X]], %[[X]]
  // CHECK: return %[[TWICE]], %[[Y]]
  %x = fp8.all_reduce mean on(4) axes [0] of("a") ins(%a : tensor<2x3xf32>) outs(%a : tensor<2x3xf32>) -> tensor<2x3xf32>
  %twice = arith.addf %x, %x : tensor<2x3xf32>
  %y = fp8.all_reduce mean on(4) axes [0] of("b") ins(%b : tensor<f32>) outs(%b : tensor<f32>) -> tensor<f32>
  return %twice, %y : tensor<2x3xf32>, tensor<f32>
}

// One that needs the result of another begins the next bucket, which takes the third.
// CHECK-LABEL: func.func @dependent
func.func @dependent(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[X:.+]] = fp8.all_reduce sum on(4) axes [0] ins(%arg0
  // CHECK: arith.addf %[[X]]
  // CHECK: fp8.all_reduce sum on(4) axes [0] of("all_reduce and 1 before") ins({{.+}} : tensor<20xf32>)
  // CHECK-NOT: fp8.all_reduce
  // CHECK: return
  %x = fp8.all_reduce sum on(4) axes [0] ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  %z = arith.addf %x, %b : tensor<4xf32>
  %y = fp8.all_reduce sum on(4) axes [0] ins(%z : tensor<4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
  %w = fp8.all_reduce sum on(4) axes [0] ins(%b : tensor<4xf32>) outs(%b : tensor<4xf32>) -> tensor<4xf32>
  return %y, %w : tensor<4xf32>, tensor<4xf32>
}

// Others stay: maxima, another type, other axes, dynamic sizes.
// CHECK-LABEL: func.func @others
func.func @others(%a: tensor<4xf32>, %b: tensor<4xbf16>, %c: tensor<?xf32>) -> (tensor<4xf32>, tensor<4xbf16>, tensor<4xf32>, tensor<?xf32>, tensor<4xf32>) {
  // CHECK: fp8.all_reduce max on(4x2) axes [0] ins({{.+}} : tensor<4xf32>)
  // CHECK: fp8.all_reduce sum on(4x2) axes [0] ins({{.+}} : tensor<4xbf16>)
  // CHECK: fp8.all_reduce sum on(4x2) axes [1] ins({{.+}} : tensor<4xf32>)
  // CHECK: fp8.all_reduce sum on(4x2) axes [0] ins({{.+}} : tensor<?xf32>)
  // CHECK: fp8.all_reduce sum on(4x2) axes [0] ins({{.+}} : tensor<4xf32>)
  %x = fp8.all_reduce max on(4x2) axes [0] ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  %y = fp8.all_reduce sum on(4x2) axes [0] ins(%b : tensor<4xbf16>) outs(%b : tensor<4xbf16>) -> tensor<4xbf16>
  %z = fp8.all_reduce sum on(4x2) axes [1] ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  %v = fp8.all_reduce sum on(4x2) axes [0] ins(%c : tensor<?xf32>) outs(%c : tensor<?xf32>) -> tensor<?xf32>
  %w = fp8.all_reduce sum on(4x2) axes [0] ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  return %x, %y, %z, %v, %w : tensor<4xf32>, tensor<4xbf16>, tensor<4xf32>, tensor<?xf32>, tensor<4xf32>
}

// A tensor that fills a bucket alone stays where it is, between two that are joined.
// CHECK-LABEL: func.func @around
func.func @around(%a: tensor<4xf32>, %c: tensor<64xf32>) -> (tensor<4xf32>, tensor<64xf32>, tensor<4xf32>) {
  // CHECK: fp8.all_reduce sum on(4) axes [0] of("large") ins({{.+}} : tensor<64xf32>)
  // CHECK: fp8.all_reduce sum on(4) axes [0] of("all_reduce and 1 before") ins({{.+}} : tensor<20xf32>)
  // CHECK-NOT: fp8.all_reduce
  %x = fp8.all_reduce sum on(4) axes [0] ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  %y = fp8.all_reduce sum on(4) axes [0] of("large") ins(%c : tensor<64xf32>) outs(%c : tensor<64xf32>) -> tensor<64xf32>
  %b = arith.addf %a, %a : tensor<4xf32>
  %z = fp8.all_reduce sum on(4) axes [0] ins(%b : tensor<4xf32>) outs(%b : tensor<4xf32>) -> tensor<4xf32>
  return %x, %y, %z : tensor<4xf32>, tensor<64xf32>, tensor<4xf32>
}

// A reduction that does not fit into a bucket any more begins the next.
// CHECK-LABEL: func.func @full
func.func @full(%a: tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) {
  // CHECK: fp8.all_reduce sum {{.+}} : tensor<64xf32>) outs({{.+}}) {fp8.joined = 2 : i64}
  // CHECK: fp8.all_reduce sum {{.+}} : tensor<64xf32>) outs({{.+}}) {fp8.joined = 2 : i64}
  // CHECK-NOT: fp8.all_reduce
  %x = fp8.all_reduce sum on(4) axes [0] ins(%a : tensor<32xf32>) outs(%a : tensor<32xf32>) -> tensor<32xf32>
  %y = fp8.all_reduce sum on(4) axes [0] ins(%a : tensor<32xf32>) outs(%a : tensor<32xf32>) -> tensor<32xf32>
  %z = fp8.all_reduce sum on(4) axes [0] ins(%a : tensor<32xf32>) outs(%a : tensor<32xf32>) -> tensor<32xf32>
  %w = fp8.all_reduce sum on(4) axes [0] ins(%a : tensor<32xf32>) outs(%a : tensor<32xf32>) -> tensor<32xf32>
  return %x, %y, %z, %w : tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>
}

// An operation with side effects that needs the result of the first cannot move, and closes the bucket.
// CHECK-LABEL: func.func @effect
func.func @effect(%a: tensor<4xf32>, %m: memref<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[X:.+]] = fp8.all_reduce sum on(4) axes [0] ins({{.+}} : tensor<4xf32>)
  // CHECK: bufferization.materialize_in_destination %[[X]]
  // CHECK: fp8.all_reduce sum on(4) axes [0] ins({{.+}} : tensor<4xf32>)
  %x = fp8.all_reduce sum on(4) axes [0] ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %x in writable %m : (tensor<4xf32>, memref<4xf32>) -> ()
  %y = fp8.all_reduce sum on(4) axes [0] ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
