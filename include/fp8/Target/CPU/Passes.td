// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on CPU code in the OpenMP and LLVM dialects.

#ifndef FP8_TARGET_CPU_PASSES
#define FP8_TARGET_CPU_PASSES

include "mlir/Pass/PassBase.td"

def HoistStackBuffers : Pass<"fp8-hoist-stack-buffers", "mlir::func::FuncOp"> {
  let summary = "allocate stack buffers once per thread instead of once per iteration";
  let description = [{
    Before: OpenMP loops.
    After: every `memref.alloca` of static size inside an `omp.parallel` is at the start of
    the `omp.parallel`, which every thread executes once; no `memref.alloca_scope` is left
    around code without a `memref.alloca`.

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
            %1 = memref.assume_alignment %0, 64 : memref<64xf32>
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

def RoundBF16 : Pass<"fp8-round-bf16"> {
  let summary = "round results of bf16 arithmetic without a test for NaN";
  let description = [{
    Before: arithmetic on bf16 is arithmetic on f32 between `arith.extf` and `arith.truncf`.
    After: a sum, difference, product, quotient or negation of extended bf16 values and
    constants is rounded by integer arithmetic. Other `arith.truncf` stay: upstream's
    expansion tests them for NaN, whose last bits rounding could carry into the sign.

    Example:
    ```mlir
    // fp8-opt --fp8-round-bf16
    func.func @f(%x: bf16) -> bf16 {
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.mulf %0, %0 : f32
      %2 = arith.truncf %1 : f32 to bf16
      return %2 : bf16
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: bf16) -> bf16 {
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.mulf %0, %0 : f32
      %2 = arith.bitcast %1 : f32 to i32
      %c16 = arith.constant 16 : i32
      %3 = arith.shrui %2, %c16 : i32
      %c1 = arith.constant 1 : i32
      %4 = arith.andi %3, %c1 : i32
      %c32767 = arith.constant 32767 : i32
      %5 = arith.addi %2, %c32767 : i32
      %6 = arith.addi %5, %4 : i32
      %c16_0 = arith.constant 16 : i32
      %7 = arith.shrui %6, %c16_0 : i32
      %8 = arith.trunci %7 : i32 to i16
      %9 = arith.bitcast %8 : i16 to bf16
      return %9 : bf16
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def NarrowFloatBits : Pass<"fp8-narrow-float-bits", "mlir::LLVM::LLVMFuncOp"> {
  let summary = "load, store and select bf16 values as i16";
  let description = [{
    Before: functions of the LLVM dialect without arithmetic in bf16.
    After: loads, stores and selects of bf16 are loads, stores and selects of i16 with
    bitcasts, which cancel out. LLVM 22 lowers those of bf16 vectors to an extension and a
    rounding per element, and the rounding to a call of `__truncsfbf2`, a function that no
    linked library defines.

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
  let summary = "add alias scopes to accesses through llvm.noalias arguments";
  let description = [{
    Before: functions of the LLVM dialect.
    After: loads and stores through an argument marked `llvm.noalias` have an alias scope.
    The attribute alone is lost when the OpenMP lowering moves loops into functions of their
    own, and LLVM would vectorize those loops only with run-time checks.

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
