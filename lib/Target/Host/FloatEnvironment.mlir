// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that set the floating-point environment of a thread and restore it: the
// module of the processor's name, or else `other`, is moved into every compiled program.
//   @fp8_float_enter() -> the previous environment; afterwards denormals are kept, rounding is
//     to nearest even, and nothing traps
//   @fp8_float_leave(previous): restores it

// LLVM lowers its own intrinsics for this to calls of functions that libm does not have on
// x86-64. The register is MXCSR; 0x1F80 is its value in a new process.
module @x86_64 {
  func.func private @fp8_float_enter() -> i32 {
    %one = arith.constant 1 : i32
    %ours = arith.constant 0x1F80 : i32
    %slot = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
    llvm.call_intrinsic "llvm.x86.sse.stmxcsr"(%slot) : (!llvm.ptr) -> ()
    %found = llvm.load volatile %slot : !llvm.ptr -> i32
    llvm.store volatile %ours, %slot : i32, !llvm.ptr
    llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%slot) : (!llvm.ptr) -> ()
    return %found : i32
  }
  func.func private @fp8_float_leave(%found: i32) {
    %one = arith.constant 1 : i32
    %slot = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
    llvm.store volatile %found, %slot : i32, !llvm.ptr
    llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%slot) : (!llvm.ptr) -> ()
    return
  }
}

// LLVM lowers its intrinsics to inline code on AArch64 (FPCR), and to calls of fegetmode and fesetmode
// for processors that it has no such code for.
module @other {
  func.func private @fp8_float_enter() -> i32 {
    %found = llvm.call_intrinsic "llvm.get.fpmode.i32"() : () -> i32
    llvm.call_intrinsic "llvm.reset.fpmode"() : () -> ()
    return %found : i32
  }
  func.func private @fp8_float_leave(%found: i32) {
    llvm.call_intrinsic "llvm.set.fpmode.i32"(%found) : (i32) -> ()
    return
  }
}
