// RUN: fp8-opt %s --split-input-file --fp8-set-float-environment | FileCheck %s -enable-var-scope

// Nothing comes before or after: what the call checks and copies is no arithmetic of floats,
// but nothing is left to chance.
// CHECK-LABEL: func @fp8_call_step(
// CHECK-NEXT: %[[FOUND:.*]] = call @fp8_float_enter() : () -> i32
// CHECK-NEXT: call @kernel
// CHECK-NEXT: arith.constant
// CHECK-NEXT: call @fp8_float_leave(%[[FOUND]]) : (i32) -> ()
// CHECK-NEXT: return
module attributes {llvm.target_triple = "x86_64-unknown-linux-gnu"} {
  func.func @fp8_call_step(%call: !llvm.ptr) -> i32 attributes {fp8.workspace_bytes = 0 : i64} {
    func.call @kernel() : () -> ()
    %ok = arith.constant 0 : i32
    return %ok : i32
  }

  // Kernels run in the environment of their entry, but for the threads that they start.
  // CHECK-LABEL: func private @kernel(
  // CHECK-NEXT: omp.parallel {
  // CHECK-NEXT: %[[FOUND:.*]] = func.call @fp8_float_enter() : () -> i32
  // CHECK: omp.barrier
  // CHECK-NEXT: func.call @fp8_float_leave(%[[FOUND]]) : (i32) -> ()
  // CHECK-NEXT: omp.terminator
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  func.func private @kernel() {
    omp.parallel {
      omp.barrier
      omp.terminator
    }
    return
  }
}
// CHECK: func.func private @fp8_float_enter() -> i32 {
// CHECK: llvm.call_intrinsic "llvm.x86.sse.stmxcsr"
// CHECK: llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"
// CHECK: func.func private @fp8_float_leave(%{{.*}}: i32) {
// CHECK: llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"

// -----

// CHECK-LABEL: func @fp8_call_step(
// CHECK: call @fp8_float_enter
// CHECK: func.func private @fp8_float_enter() -> i32 {
// CHECK: llvm.call_intrinsic "llvm.get.fpmode.i32"
// CHECK: llvm.call_intrinsic "llvm.reset.fpmode"
// CHECK: llvm.call_intrinsic "llvm.set.fpmode.i32"
module attributes {llvm.target_triple = "aarch64-unknown-linux-gnu"} {
  func.func @fp8_call_step(%call: !llvm.ptr) -> i32 attributes {fp8.workspace_bytes = 0 : i64} {
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
}

// -----

// Nothing to do: nothing is added.
// CHECK-LABEL: func private @other
// CHECK-NOT: fp8_float
func.func private @other() {
  return
}
