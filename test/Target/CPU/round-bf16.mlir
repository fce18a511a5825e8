// RUN: fp8-opt %s --fp8-round-bf16 | FileCheck %s -enable-var-scope

// CHECK-LABEL: func.func @vector
// CHECK: arith.addi %{{.*}}, %{{.*}} : vector<4xi32>
// CHECK-NOT: arith.truncf
func.func @vector(%x: vector<4xbf16>) -> vector<4xbf16> {
  %one = arith.constant dense<1.0> : vector<4xf32>
  %0 = arith.extf %x : vector<4xbf16> to vector<4xf32>
  %1 = arith.divf %one, %0 : vector<4xf32>
  %2 = arith.truncf %1 : vector<4xf32> to vector<4xbf16>
  return %2 : vector<4xbf16>
}

// An f32 of the program may be a NaN with any bits.
// CHECK-LABEL: func.func @any
// CHECK: arith.truncf
// CHECK: arith.truncf
func.func @any(%x: f32, %y: bf16) -> (bf16, bf16) {
  %0 = arith.truncf %x : f32 to bf16
  %1 = arith.extf %y : bf16 to f32
  %2 = arith.addf %x, %1 : f32
  %3 = arith.truncf %2 : f32 to bf16
  return %0, %3 : bf16, bf16
}

// CHECK-LABEL: func.func @half
// CHECK: arith.truncf
func.func @half(%x: f16) -> f16 {
  %0 = arith.extf %x : f16 to f32
  %1 = arith.addf %0, %0 : f32
  %2 = arith.truncf %1 : f32 to f16
  return %2 : f16
}
