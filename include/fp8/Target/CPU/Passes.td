// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on the LLVM dialect and OpenMP loops of CPU code, each with the IR before and
// after it.

#ifndef FP8_TARGET_CPU_PASSES
#define FP8_TARGET_CPU_PASSES

include "mlir/Pass/PassBase.td"

def HoistStackBuffers : Pass<"fp8-hoist-stack-buffers", "mlir::func::FuncOp"> {
  let summary = "Give every thread one set of temporaries, not every iteration";
  let description = [{
    In: OpenMP loops. Out: a `memref.alloca` of known size in an `omp.parallel` is at its
    start, where every thread comes by once.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-hoist-stack-buffers))'
    func.func @f(%n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      omp.parallel {
        omp.wsloop {
          omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
            memref.alloca_scope {
              %0 = memref.alloca() : memref<64xf32>
              %1 = memref.assume_alignment %0, 64 : memref<64xf32>
            }
            omp.yield
          }
        }
        omp.terminator
      }
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      omp.parallel {
        %0 = memref.alloca() : memref<64xf32>
        omp.wsloop {
          omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
            memref.alloca_scope {
              %1 = memref.assume_alignment %0, 64 : memref<64xf32>
            }
            omp.yield
          }
        }
        omp.terminator
      }
      return
    }
    ```
  }];
}

def NarrowFloatBits : Pass<"fp8-narrow-float-bits", "mlir::LLVM::LLVMFuncOp"> {
  let summary = "Move and choose bf16 as integers";
  let description = [{
    In: functions of the LLVM dialect in which no arithmetic is done in bf16. Out: loads,
    stores and selects of bf16 are ones of i16, with bitcasts that cancel out. Of a vector
    of bf16 LLVM 22 would make element by element extensions and roundings, the latter by a
    call of `__truncsfbf2`, which no library that we link has.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(llvm.func(fp8-narrow-float-bits))'
    llvm.func @f(%p: !llvm.ptr, %x: bf16) {
      llvm.store %x, %p : bf16, !llvm.ptr
      llvm.return
    }
    ```
    becomes
    ```mlir
    llvm.func @f(%p: !llvm.ptr, %x: bf16) {
      %0 = llvm.bitcast %x : bf16 to i16
      llvm.store %0, %p : i16, !llvm.ptr
      llvm.return
    }
    ```
  }];
}

def AnnotateAliasScopes : Pass<"fp8-annotate-alias-scopes", "mlir::LLVM::LLVMFuncOp"> {
  let summary = "Tell LLVM on every access which kernel arguments it cannot touch";
  let description = [{
    In and out: the LLVM dialect. Loads and stores through an argument marked `llvm.noalias`
    get an alias scope. The mark alone would be lost where the OpenMP lowering moves the
    loops into functions of their own, and with it vectorization without run-time checks.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(llvm.func(fp8-annotate-alias-scopes))'
    llvm.func @kernel_0(%x: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias}) {
      %0 = llvm.load %x : !llvm.ptr -> f32
      llvm.store %0, %y : f32, !llvm.ptr
      llvm.return
    }
    ```
    becomes
    ```mlir
    ...
    %0 = llvm.load %x {alias_scopes = [#alias_scope], noalias_scopes = [#alias_scope1]} : !llvm.ptr -> f32
    llvm.store %0, %y {alias_scopes = [#alias_scope1], noalias_scopes = [#alias_scope]} : f32, !llvm.ptr
    ```
  }];
}

#endif // FP8_TARGET_CPU_PASSES
