// Attributes on functions, calls, regions and the module reach the operations inside; the innermost holds.
// RUN: fp8-opt %s --fp8-scope-mixed-precision -split-input-file | FileCheck %s

// CHECK-LABEL: func.func private @inner
// CHECK-NEXT: math.absf %{{.+}} : tensor<4xf32>
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.absf %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-LABEL: func.func private @own
// CHECK: math.absf {{.+}} {fp8.mixed_precision = "f16"}
func.func private @own(%x: tensor<4xf32>) -> tensor<4xf32> attributes {fp8.mixed_precision = "f16"} {
  %y = math.absf %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-LABEL: func.func private @outer
func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = call @own(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>, %c: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: call @outer(
  %a = call @outer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: scf.if
  %b = scf.if %c -> tensor<4xf32> {
    // Both calls have one copy of the function.
    // CHECK: call @[[OUTER:.+]](%{{.+}}) {fp8.mixed_precision = "off"}
    // CHECK: call @[[OUTER]](%{{.+}}) {fp8.mixed_precision = "off"}
    %y = func.call @outer(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %z = func.call @outer(%y) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  } else {
    // CHECK: math.absf {{.+}} {fp8.mixed_precision = "tf32"}
    %y = math.absf %a {fp8.mixed_precision = "tf32"} : tensor<4xf32>
    // CHECK: call @own(%{{.+}}) {fp8.mixed_precision = "off"}
    %z = func.call @own(%y) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  } {fp8.mixed_precision = "off"}
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
// CHECK: func.func private @[[OUTER]](
// CHECK: call @[[INNER:.+]](%{{.+}}) {fp8.mixed_precision = "off"}
// CHECK: call @own(
// CHECK: func.func private @[[INNER]](
// CHECK-NEXT: math.absf {{.+}} {fp8.mixed_precision = "off"}

// -----

// CHECK-LABEL: func.func @of_the_module
// CHECK: math.absf {{.+}} {fp8.mixed_precision = "bf16"}
module attributes {fp8.mixed_precision = "bf16"} {
  func.func @of_the_module(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = math.absf %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// A function that calls itself is copied once.
// CHECK-LABEL: func.func private @recursive
func.func private @recursive(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call @recursive(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @calls_recursive(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: call @[[COPY:.+]](%{{.+}}) {fp8.mixed_precision = "off"}
  %y = call @recursive(%x) {fp8.mixed_precision = "off"} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK: func.func private @[[COPY]](
// CHECK-NEXT: call @[[COPY]](
