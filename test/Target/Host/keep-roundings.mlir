// RUN: fp8-opt %s --fp8-keep-roundings --canonicalize | FileCheck %s -enable-var-scope

// CHECK-LABEL: func @round_trip
// CHECK: %[[NARROW:.*]] = arith.truncf %arg0 : f32 to bf16
// CHECK: %[[WIDE:.*]] = arith.extf %[[NARROW]] : bf16 to f32
// CHECK: return %[[WIDE]]
func.func @round_trip(%x: f32) -> f32 {
  %0 = arith.truncf %x fastmath<contract> : f32 to bf16
  %1 = arith.extf %0 fastmath<contract> : bf16 to f32
  return %1 : f32
}
