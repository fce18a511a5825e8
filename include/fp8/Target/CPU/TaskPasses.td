// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on tasks: iterations of an outer loop that run on one thread each.

#ifndef FP8_TARGET_CPU_TASKPASSES
#define FP8_TARGET_CPU_TASKPASSES

include "mlir/Pass/PassBase.td"

def ParallelizeTasks : Pass<"fp8-parallelize-tasks", "mlir::func::FuncOp"> {
  let summary = "give tasks to threads, one after the other";
  let description = [{
    Before: `scf.forall`s with `fp8.tasks`, whose iterations are independent, such as the heads of attention.
    After: each is one kernel, a parallel loop over workers. A worker takes the next task from a counter while there
    are any, so that threads have equal work although tasks may not.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-parallelize-tasks))'
    func.func @heads(%x: memref<2x12xf32>) {
      %zero = arith.constant 0.0 : f32
      scf.forall (%b, %h) in (2, 12) {
        memref.store %zero, %x[%b, %h] : memref<2x12xf32>
      } {fp8.tasks}
      return
    }
    ```
    becomes
    ```mlir
    ...
    scf.parallel (%worker) = (%c0) to (%workers) step (%c1) {
      %last = scf.while : () -> index {
        ...
        %next = memref.atomic_rmw addi %one, %taken[%c0_0] : (i64, memref<1xi64>) -> i64
        ...
        scf.condition(%left) %task : index
      } do {
      ^bb0(%index: index):
        %0:2 = affine.delinearize_index %index into (2, 12) : index, index
        memref.store %zero, %x[%0#0, %0#1] : memref<2x12xf32>
        scf.yield
      }
      scf.reduce
    } {fp8.kernel, fp8.tasks}
    ```
  }];
  let dependentDialects = ["mlir::affine::AffineDialect", "mlir::arith::ArithDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect"];
}

def GiveTasksMemory : Pass<"fp8-give-tasks-memory", "mlir::func::FuncOp"> {
  let summary = "allocate what tasks need before they run, a part for each worker";
  let description = [{
    Before: loops over workers (`fp8-parallelize-tasks`) with `memref.alloc`s of known size.
    After: the memory is allocated before the loop, so that it is part of the workspace. The part of a worker is a
    `memref.view`. A worker without a task does not touch its part.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-give-tasks-memory))'
    func.func @scores() {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c12 = arith.constant 12 : index
      scf.parallel (%worker) = (%c0) to (%c12) step (%c1) {
        %scores = memref.alloc() : memref<16xf32>
        memref.store %zero, %scores[%c0] : memref<16xf32>
        scf.reduce
      } {fp8.tasks}
      return
    }
    ```
    becomes
    ```mlir
    ...
    %all = memref.alloc() {alignment = 64 : i64} : memref<768xi8>
    scf.parallel (%worker) = (%c0) to (%c12) step (%c1) {
      ...
      %scores = memref.view %all[%begin][] : memref<768xi8> to memref<16xf32>
      memref.store %zero, %scores[%c0] : memref<16xf32>
      scf.reduce
    } {fp8.tasks}
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::arith::ArithDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect"];
}

def SerializeTasks : Pass<"fp8-serialize-tasks", "mlir::func::FuncOp"> {
  let summary = "run the parallel loops within a task on its thread";
  let description = [{
    Before: loops over workers (`fp8-parallelize-tasks`) with parallel loops in them, such as those over rows.
    After: the inner loops are sequential.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-serialize-tasks))'
    func.func @rows(%x: memref<12x64xf32>) {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c12 = arith.constant 12 : index
      %c64 = arith.constant 64 : index
      scf.parallel (%worker) = (%c0) to (%c12) step (%c1) {
        scf.parallel (%row) = (%c0) to (%c64) step (%c1) {
          memref.store %zero, %x[%worker, %row] : memref<12x64xf32>
          scf.reduce
        }
        scf.reduce
      } {fp8.tasks}
      return
    }
    ```
    becomes
    ```mlir
    ...
    scf.parallel (%worker) = (%c0) to (%c12) step (%c1) {
      scf.for %row = %c0 to %c64 step %c1 {
        memref.store %zero, %x[%worker, %row] : memref<12x64xf32>
      }
      scf.reduce
    } {fp8.tasks}
    ```
  }];
  let dependentDialects = ["mlir::scf::SCFDialect"];
}

#endif // FP8_TARGET_CPU_TASKPASSES
