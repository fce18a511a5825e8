// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage 6 on all targets: kernels as functions and loops, with their costs.

#ifndef FP8_TARGET_HOST_KERNELPASSES
#define FP8_TARGET_HOST_KERNELPASSES

include "mlir/Pass/PassBase.td"

def ParallelizeRows : Pass<"fp8-parallelize-rows", "mlir::func::FuncOp"> {
  let summary = "run loops over rows on all cores";
  let description = [{
    Before: bufferized `scf.forall` loops of `fp8-expand-rows`, marked `fp8.row_elements`.
    After: each is an `scf.parallel` with temporaries on the stack, one set per row; or, if
    all rows together have fewer than 32,768 elements, nested `scf.for` loops that share one
    set of temporaries. `fp8.kernel` marks the loop as one kernel. Other `scf.forall` stay
    unchanged.

    Errors: a temporary of dynamic size in a row.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-parallelize-rows))'
    func.func @f(%x: memref<1024x64xf32>, %y: memref<1024x64xf32>) {
      scf.forall (%i) in (1024) {
        %0 = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
        %1 = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<1024x64xf32> to memref<64xf32, strided<[1], offset: ?>>
        %2 = memref.subview %y[%i, 0] [1, 64] [1, 1] : memref<1024x64xf32> to memref<64xf32, strided<[1], offset: ?>>
        linalg.exp ins(%1 : memref<64xf32, strided<[1], offset: ?>>) outs(%0 : memref<64xf32>)
        linalg.exp ins(%0 : memref<64xf32>) outs(%2 : memref<64xf32, strided<[1], offset: ?>>)
      } {fp8.row_elements = 64 : i64}
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<1024x64xf32>, %y: memref<1024x64xf32>) {
      %c0 = arith.constant 0 : index
      %c1024 = arith.constant 1024 : index
      %c1 = arith.constant 1 : index
      scf.parallel (%i) = (%c0) to (%c1024) step (%c1) {
        %0 = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
        %1 = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<1024x64xf32> to memref<64xf32, strided<[1], offset: ?>>
        %2 = memref.subview %y[%i, 0] [1, 64] [1, 1] : memref<1024x64xf32> to memref<64xf32, strided<[1], offset: ?>>
        linalg.exp ins(%1 : memref<64xf32, strided<[1], offset: ?>>) outs(%0 : memref<64xf32>)
        linalg.exp ins(%0 : memref<64xf32>) outs(%2 : memref<64xf32, strided<[1], offset: ?>>)
        scf.reduce
      } {fp8.kernel, fp8.row_elements = 64 : i64}
      return
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::arith::ArithDialect", "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect"];
}

def OutlineKernels : Pass<"fp8-outline-kernels", "mlir::ModuleOp"> {
  let summary = "outline linalg ops and loop nests into functions, one for all equal ones";
  let description = [{
    Before: bufferized entry points.
    After: every linalg op, memref.copy and loop nest of an entry point is a call of a
    private function `kernel_<what it computes>_<site>`, marked `fp8.kernel_kind`.
    Structurally equal ones share a function, whatever their locations, so that compile time
    grows with the number of distinct kernels, not with the number of layers. Constants move
    into the function; other captured values become arguments, bf16 as its bits, which every
    processor can pass. An argument that shares no
    memory with any other argument in any of its calls is marked `llvm.noalias`. A view whose
    sizes and strides are static is passed as its buffer and its offset, so that kernels for
    different slots of the state are equal.

    A loop with linalg ops, calls or allocations stays, and the pass outlines its body
    instead, unless the loop is marked `fp8.kernel`. `fp8.matmuls`, the list of the matmuls
    that a kernel computes, moves to the call; `fp8.kernel_site` on the call is the site or
    the carried argument that the kernel works for in this call. The name is that of the
    first call. It comes from `fp8.computes`, which lowerings set, or from the operation,
    and does not affect which kernels are equal.

    Example:
    ```mlir
    // fp8-opt --fp8-outline-kernels
    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>) {
      linalg.exp ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
      linalg.exp ins(%b : memref<4xf32>) outs(%c : memref<4xf32>)
      return
    }
    ```
    becomes
    ```mlir
    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>) {
      call @kernel_exp(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
      call @kernel_exp(%b, %c) : (memref<4xf32>, memref<4xf32>) -> ()
      return
    }
    func.func private @kernel_exp(%x: memref<4xf32> {llvm.noalias}, %y: memref<4xf32> {llvm.noalias}) ... {
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::arith::ArithDialect", "mlir::func::FuncDialect",
                           "mlir::memref::MemRefDialect"];
}

def LinalgToLoops : Pass<"fp8-linalg-to-loops", "mlir::func::FuncOp"> {
  let summary = "lower linalg on memrefs to loops with contiguous innermost accesses";
  let description = [{
    Before: linalg ops and copies on memrefs.
    After: loops. The dimension along which most operands are contiguous is the innermost
    loop; reduction dimensions keep their order, so every sum is taken in the same order as
    before. If the work is at least `parallel-threshold`, the outer parallel loops are one
    `scf.parallel`; all other loops are `scf.for`. Where the innermost loop carries a sum,
    two or four rows run at a time. Where it compares its index with constants, as in a
    concatenation, it is cut into one loop per range, without the comparisons. For a target
    with many threads, all parallel dimensions are one `scf.parallel`, whatever the work.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-linalg-to-loops))'
    func.func @column_sums(%x: memref<8x16xf32>, %y: memref<16xf32>) {
      linalg.reduce ins(%x : memref<8x16xf32>) outs(%y : memref<16xf32>) dimensions = [0]
        (%in: f32, %sum: f32) {
          %s = arith.addf %in, %sum : f32
          linalg.yield %s : f32
        }
      return
    }
    ```
    becomes
    ```mlir
    ...
    scf.for %k = %c0 to %c8 step %c1 {
      scf.for %n = %d0 to %c16 step %d1 {
        ...
        %s = arith.addf %in, %sum : f32
        memref.store %s, %y[...] : memref<16xf32>
      }
    }
    ```
  }];
  let options = [Option<"parallelThreshold", "parallel-threshold", "int64_t", "32768",
                        "smallest work of a loop nest, in elements times cost, that runs on threads">];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
                           "mlir::linalg::LinalgDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect"];
}

def KeepRoundings : Pass<"fp8-keep-roundings", "mlir::func::FuncOp"> {
  let summary = "remove fast-math flags from casts, so that no rounding is folded away";
  let description = [{
    Before: any function.
    After: casts between floats have no fast-math flags. Upstream's emulation of bf16 and
    f16 sets `contract` on them, which allows folds to drop a rounding to the narrow
    type together with the extension that follows it.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-keep-roundings))'
    func.func @f(%x: f32) -> f32 {
      %0 = arith.truncf %x fastmath<contract> : f32 to bf16
      %1 = arith.extf %0 fastmath<contract> : bf16 to f32
      return %1 : f32
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: f32) -> f32 {
      %0 = arith.truncf %x : f32 to bf16
      %1 = arith.extf %0 : bf16 to f32
      return %1 : f32
    }
    ```
  }];
}

def MarkCosts : Pass<"fp8-mark-costs", "mlir::ModuleOp"> {
  let summary = "mark calls of kernels with the bytes that they move and their operations";
  let description = [{
    Before: entry points after `fp8-outline-kernels`.
    After: `fp8.kernel_cost` on a call has what `fp8-count-kernels` counts of it. Later passes
    may change the kernel's code, and join calls.

    Example:
    ```mlir
    // fp8-opt --fp8-mark-costs
    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
      call @kernel_exp(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
      return
    }
    func.func private @kernel_exp(%x: memref<4xf32>, %y: memref<4xf32>) {
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    ```
    becomes
    ```mlir
    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
      call @kernel_exp(%a, %b) {fp8.kernel_cost = {operations = 4 : i64, read = 16 : i64, written = 16 : i64}} : (memref<4xf32>, memref<4xf32>) -> ()
      return
    }
    ...
    ```
  }];
  let dependentDialects = ["mlir::func::FuncDialect"];
}

def CountKernels : Pass<"fp8-count-kernels", "mlir::ModuleOp"> {
  let summary = "list the kernels with the bytes that they move and their operations";
  let description = [{
    Before: entry points after `fp8-outline-kernels`, or launches of GPU kernels that are
    marked with their costs (`fp8-mark-costs`).
    After: `fp8.kernels` on the module lists what a profile tells apart: every kernel and, of
    a function for several shapes, every combination of shapes and role. `fp8.kernel_number`
    on a call is its position in the list. Per call, `read` and `written` are the bytes of
    the buffers that the kernel accesses, each distinct byte once; `operations` are
    floating-point operations: two for a fused multiply-add, one for any other operation or
    function. `clocks`, of a GPU's kernel for a matmul or attention, are those of KernelCost.h. A
    number that depends on dynamic sizes is absent.

    Example:
    ```mlir
    // fp8-opt --fp8-count-kernels
    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
      call @kernel_exp(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
      return
    }
    func.func private @kernel_exp(%x: memref<4xf32>, %y: memref<4xf32>) {
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    ```
    becomes
    ```mlir
    module attributes {fp8.kernels = [{kind = "other", name = "exp", operations = 4 : i64, read = 16 : i64, sites = [], written = 16 : i64}...
      func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
        call @kernel_exp(%a, %b) {fp8.kernel_number = 0 : i32} : (memref<4xf32>, memref<4xf32>) -> ()
        return
      }
      ...
    ```
  }];
  let dependentDialects = ["mlir::func::FuncDialect"];
}

#endif // FP8_TARGET_HOST_KERNELPASSES
