// Casts from and to FP8 become integer and f32 arithmetic, on scalars and vectors; other
// casts stay. Values: python/test_conversions.py.
// RUN: fp8-opt %s --fp8-expand-casts | FileCheck %s
// RUN: fp8-opt %s --fp8-expand-casts --convert-math-to-llvm --convert-arith-to-llvm --convert-func-to-llvm --reconcile-unrealized-casts -o /dev/null

// CHECK-LABEL: func.func @widen
func.func @widen(%x: f8E4M3FN, %v: vector<8xf8E5M2>) -> (f32, vector<8xbf16>) {
  // CHECK-NOT: arith.extf %{{.+}} : f8
  // CHECK-NOT: arith.extf %{{.+}} : vector<8xf8
  %0 = arith.extf %x : f8E4M3FN to f32
  // CHECK: arith.truncf %{{.+}} : vector<8xf32> to vector<8xbf16>
  %1 = arith.extf %v : vector<8xf8E5M2> to vector<8xbf16>
  return %0, %1 : f32, vector<8xbf16>
}

// CHECK-LABEL: func.func @narrow
func.func @narrow(%x: f32, %v: vector<8xbf16>) -> (f8E4M3FN, vector<8xf8E5M2>) {
  // CHECK-NOT: to f8E4M3FN{{$}}
  // CHECK: arith.bitcast %{{.+}} : i8 to f8E4M3FN
  %0 = arith.truncf %x : f32 to f8E4M3FN
  // CHECK: arith.extf %{{.+}} : vector<8xbf16> to vector<8xf32>
  // CHECK: arith.bitcast %{{.+}} : vector<8xi8> to vector<8xf8E5M2>
  %1 = arith.truncf %v : vector<8xbf16> to vector<8xf8E5M2>
  return %0, %1 : f8E4M3FN, vector<8xf8E5M2>
}

// To f64 by way of f32: LLVM compares the bf16 itself with a constant otherwise, and calls a function for it.
// CHECK-LABEL: func.func @to_f64
func.func @to_f64(%x: bf16, %v: vector<8xbf16>, %h: f16) -> (f64, vector<8xf64>, f64) {
  // CHECK: %[[X:.+]] = arith.extf %{{.+}} : bf16 to f32
  // CHECK: arith.extf %[[X]] : f32 to f64
  %0 = arith.extf %x : bf16 to f64
  // CHECK: %[[V:.+]] = arith.extf %{{.+}} : vector<8xbf16> to vector<8xf32>
  // CHECK: arith.extf %[[V]] : vector<8xf32> to vector<8xf64>
  %1 = arith.extf %v : vector<8xbf16> to vector<8xf64>
  // CHECK: arith.extf %{{.+}} : f16 to f64
  %2 = arith.extf %h : f16 to f64
  return %0, %1, %2 : f64, vector<8xf64>, f64
}

// From f64 there is one rounding, and no call of a function that may be missing.
// CHECK-LABEL: func.func @from_f64
func.func @from_f64(%x: f64, %v: vector<8xf64>) -> (bf16, vector<8xf8E5M2>) {
  // CHECK-NOT: arith.truncf %{{.+}} : f64 to bf16
  // CHECK: arith.truncf %{{.+}} : f32 to bf16
  %0 = arith.truncf %x : f64 to bf16
  // CHECK: arith.truncf %{{.+}} : vector<8xf64> to vector<8xf32>
  // CHECK-NOT: to vector<8xf8E5M2>{{$}}
  // CHECK: arith.bitcast %{{.+}} : vector<8xi8> to vector<8xf8E5M2>
  %1 = arith.truncf %v : vector<8xf64> to vector<8xf8E5M2>
  return %0, %1 : bf16, vector<8xf8E5M2>
}

// CHECK-LABEL: func.func @power_of_two
func.func @power_of_two(%v: vector<8xf8E8M0FNU>) -> vector<8xbf16> {
  // CHECK-NOT: arith.extf
  // CHECK: arith.truncf %{{.+}} : vector<8xf32> to vector<8xbf16>
  %0 = arith.extf %v : vector<8xf8E8M0FNU> to vector<8xbf16>
  return %0 : vector<8xbf16>
}

// CHECK-LABEL: func.func @others
func.func @others(%x: f32) -> bf16 {
  // CHECK: arith.truncf %{{.+}} : f32 to bf16
  %0 = arith.truncf %x : f32 to bf16
  return %0 : bf16
}
