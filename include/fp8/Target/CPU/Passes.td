// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on CPU code: loops, then the OpenMP and LLVM dialects.

#ifndef FP8_TARGET_CPU_PASSES
#define FP8_TARGET_CPU_PASSES

include "fp8/Target/CPU/TaskPasses.td"
include "mlir/Pass/PassBase.td"

def SplitSums : Pass<"fp8-split-sums", "mlir::func::FuncOp"> {
  let summary = "compute the addends of float sums in loops of their own";
  let description = [{
    Before: loops, sequential or in an `scf.parallel`.
    After: an innermost `scf.for` that adds to the same elements of memory in all of its
    iterations is two: one computes the addends, and everything else, into a buffer on the
    stack, one adds them up, in the same order. LLVM makes vectors of the first; a loop that
    carries a float sum stays scalar code. Loops longer than 1,024 iterations take so many at
    a time; rows, which are loops directly in an `scf.parallel`, from 4,097 on. A loop stays as it is if an iteration may read a sum so far (two arguments can be
    the same memory unless one is `llvm.noalias`), or has fewer than two operations for each
    addend. One suffices directly in an `scf.parallel`, where `fp8-interleave-rows` then joins
    it with other rows.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-split-sums))'
    func.func @sum_of_squares(%x: memref<4096xbf16>, %y: memref<f32> {llvm.noalias}) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4096 = arith.constant 4096 : index
      scf.for %i = %c0 to %c4096 step %c1 {
        %in = memref.load %x[%i] : memref<4096xbf16>
        %sum = memref.load %y[] : memref<f32>
        %0 = arith.extf %in : bf16 to f32
        %1 = arith.mulf %0, %0 : f32
        %2 = arith.addf %sum, %1 : f32
        memref.store %2, %y[] : memref<f32>
      }
      return
    }
    ```
    becomes
    ```mlir
    ...
    scf.for %begin = %c0 to %c4096 step %c1024 {
      ...
      scf.for %k = %zero to %c1024 step %one {
        %i = arith.addi %begin, %k : index
        %in = memref.load %x[%i] : memref<4096xbf16>
        %0 = arith.extf %in : bf16 to f32
        %1 = arith.mulf %0, %0 : f32
        memref.store %1, %addends[%k] : memref<1024xf32>
      }
      ...
      scf.for %l = %zero2 to %c1024 step %one2 {
        %addend = memref.load %addends[%l] : memref<1024xf32>
        %sum = memref.load %y[] : memref<f32>
        %2 = arith.addf %sum, %addend : f32
        memref.store %2, %y[] : memref<f32>
      }
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::arith::ArithDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect"];
}

def InterleaveRows : Pass<"fp8-interleave-rows", "mlir::func::FuncOp"> {
  let summary = "take the sums and extremes of several rows of a kernel at a time";
  let description = [{
    Before: parallel loops over rows, whose sums are loops of their own (`fp8-split-sums`).
    After: where a row has such a sum, or a maximum or minimum, of constant length, an iteration computes up to eight
    rows: the largest number that divides the last dimension, leaves 16 iterations for
    threads, and whose buffers fit into the target's limit for rows. One loop adds for all of
    them, because each addition to a sum waits for the one before; all other code runs for
    one row after the other. A `memref.alloca` of a row is a part of one for all rows.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-interleave-rows))'
    func.func @normalize(%x: memref<34x64xf32>) {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %c34 = arith.constant 34 : index
      scf.parallel (%i) = (%c0) to (%c34) step (%c1) {
        %sum = memref.alloca() : memref<f32>
        memref.store %zero, %sum[] : memref<f32>
        scf.for %j = %c0 to %c64 step %c1 {
          %0 = memref.load %x[%i, %j] : memref<34x64xf32>
          %1 = memref.load %sum[] : memref<f32>
          %2 = arith.addf %1, %0 : f32
          memref.store %2, %sum[] : memref<f32>
        }
        %total = memref.load %sum[] : memref<f32>
        scf.for %j = %c0 to %c64 step %c1 {
          %0 = memref.load %x[%i, %j] : memref<34x64xf32>
          %1 = arith.divf %0, %total : f32
          memref.store %1, %x[%i, %j] : memref<34x64xf32>
        }
        scf.reduce
      }
      return
    }
    ```
    becomes
    ```mlir
    ...
    scf.parallel (%i) = (%c0) to (%c34) step (%c2) {
      %sums = memref.alloca() {alignment = 64 : i64} : memref<128xi8>
      ...
      scf.for %j = %c0 to %c64 step %c1 {
        %0 = memref.load %x[%row0, %j] : memref<34x64xf32>
        %1 = memref.load %sum0[] : memref<f32>
        %2 = arith.addf %1, %0 : f32
        memref.store %2, %sum0[] : memref<f32>
        %3 = memref.load %x[%row1, %j] : memref<34x64xf32>
        %4 = memref.load %sum1[] : memref<f32>
        %5 = arith.addf %4, %3 : f32
        memref.store %5, %sum1[] : memref<f32>
      }
      ...
      scf.for %r = %zero to %two step %one {
        %row = arith.addi %i, %r : index
        ...
        %sum = memref.view %sums[%shift][] : memref<128xi8> to memref<f32>
        %total = memref.load %sum[] : memref<f32>
        scf.for %k = %c0 to %c64 step %c1 {
          ...
        }
      }
      scf.reduce
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::arith::ArithDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect"];
}

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
    After: loads (also with a mask), stores and selects of bf16 are those of i16 with
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
