// Math functions of f32, scalars and vectors, become arithmetic. Values: python/test_math.py.
// RUN: fp8-opt %s --fp8-expand-math | FileCheck %s
// RUN: fp8-opt %s --fp8-expand-math -o %t
// RUN: fp8-opt %t --fp8-expand-math | diff %t -

// No function is left, and no branch.
// CHECK-LABEL: func.func @all
func.func @all(%x: f32, %y: f32, %n: i32) -> f32 {
  // CHECK-NOT: math.{{[ac]?(sin|tan|cos)|exp|log|pow|fpow|cbrt|rsqrt|erf|as|at}}
  // CHECK-NOT: scf.
  // CHECK-NOT: call
  // CHECK: return
  %0 = math.exp %x : f32
  %1 = math.exp2 %0 : f32
  %2 = math.expm1 %1 : f32
  %3 = math.tanh %2 : f32
  %4 = math.sinh %3 : f32
  %5 = math.cosh %4 : f32
  %6 = math.log %5 : f32
  %7 = math.log2 %6 : f32
  %8 = math.log10 %7 : f32
  %9 = math.log1p %8 : f32
  %10 = math.asinh %9 : f32
  %11 = math.acosh %10 : f32
  %12 = math.atanh %11 : f32
  %13 = math.cbrt %12 : f32
  %14 = math.rsqrt %13 : f32
  %15 = math.sin %14 : f32
  %16 = math.cos %15 : f32
  %17 = math.tan %16 : f32
  %18, %19 = math.sincos %17 : f32
  %20 = math.atan2 %18, %19 : f32
  %21 = math.asin %20 : f32
  %22 = math.acos %21 : f32
  %23 = math.atan %22 : f32
  %24 = math.erf %23 : f32
  %25 = math.erfc %24 : f32
  %26 = math.powf %25, %y : f32
  %27 = math.fpowi %26, %n : f32, i32
  return %27 : f32
}

// CHECK-LABEL: func.func @vector
func.func @vector(%x: vector<4x[8]xf32>) -> vector<4x[8]xf32> {
  // CHECK-NOT: math.tanh
  // CHECK: arith.divf %{{.+}} : vector<4x[8]xf32>
  // CHECK-NEXT: math.copysign
  %0 = math.tanh %x : vector<4x[8]xf32>
  return %0 : vector<4x[8]xf32>
}

// Flags that allow other results are dropped.
// CHECK-LABEL: func.func @flags
func.func @flags(%x: f32) -> f32 {
  // CHECK-NOT: fastmath
  // CHECK: return
  %0 = math.log %x fastmath<fast> : f32
  return %0 : f32
}

// Exponents of any width become i32; constant ones that need a few products only are products.
// CHECK-LABEL: func.func @exponents
// CHECK-SAME: %[[X:.+]]: f32, %[[V:.+]]: vector<8xf32>, %[[N:.+]]: i16, %[[M:.+]]: i64, %[[I:.+]]: index
func.func @exponents(%x: f32, %v: vector<8xf32>, %n: i16, %m: i64, %i: index)
    -> (f32, vector<8xf32>, f32, f32, f32, f32) {
  // CHECK: %[[SQUARE:.+]] = arith.mulf %[[X]], %[[X]] : f32
  // CHECK-NEXT: %[[CUBE:.+]] = arith.mulf %[[SQUARE]], %[[X]] : f32
  %c3 = arith.constant 3 : i64
  %0 = math.fpowi %x, %c3 : f32, i64
  // CHECK: arith.mulf %[[V]], %[[V]] : vector<8xf32>
  %c2 = arith.constant dense<2.0> : vector<8xf32>
  %1 = math.powf %v, %c2 : vector<8xf32>
  // CHECK: arith.extsi %[[N]] : i16 to i32
  %2 = math.fpowi %x, %n : f32, i16
  // CHECK: arith.trunci %{{.+}} : i64 to i32
  %3 = math.fpowi %x, %m : f32, i64
  // CHECK: math.sqrt
  %half = arith.constant 0.5 : f32
  %4 = math.powf %x, %half : f32
  // CHECK: arith.index_cast %[[I]] : index to i64
  %5 = math.fpowi %x, %i : f32, index
  return %0, %1, %2, %3, %4, %5 : f32, vector<8xf32>, f32, f32, f32, f32
}

// Functions that are exact everywhere stay, as do other types.
// CHECK-LABEL: func.func @stays
func.func @stays(%x: f32, %y: f64, %h: bf16, %t: tensor<4xf32>) -> (f32, f32, f64, bf16, tensor<4xf32>) {
  // CHECK-NEXT: math.floor
  // CHECK-NEXT: math.sqrt
  // CHECK-NEXT: math.exp %{{.+}} : f64
  // CHECK-NEXT: math.exp %{{.+}} : bf16
  // CHECK-NEXT: math.exp %{{.+}} : tensor<4xf32>
  %0 = math.floor %x : f32
  %1 = math.sqrt %x : f32
  %2 = math.exp %y : f64
  %3 = math.exp %h : bf16
  %4 = math.exp %t : tensor<4xf32>
  return %0, %1, %2, %3, %4 : f32, f32, f64, bf16, tensor<4xf32>
}
