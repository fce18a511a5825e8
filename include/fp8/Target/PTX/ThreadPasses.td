// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage 6 for GPUs: how the iterations of a kernel are divided among blocks, warps and threads.

#ifndef FP8_TARGET_PTX_THREADPASSES
#define FP8_TARGET_PTX_THREADPASSES

include "mlir/Pass/PassBase.td"

def SplitReductions : Pass<"fp8-split-reductions", "mlir::func::FuncOp"> {
  let summary = "divide long reductions into parts that multiprocessors take side by side";
  let description = [{
    Before: entry points with reductions of linalg on memrefs.
    After: a reduction of more than 65,536 adjacent elements to each of few results, or one that would keep
    a thread busy for more than 256 iterations, is three operations: parts get the neutral element
    of the combiner, each part is reduced into its value, and the values into the results.
    Neighbouring dimensions that are reduced count as one. A rest that the number of parts does
    not divide is reduced into the results on its own. Adjacent elements up to that number are for
    a block of `fp8-map-reductions`.

    An operation stays as it is if its sizes are dynamic, if it uses positions, stores anything
    but its reductions, or combines by more than one operation, and sums of bf16 and f16, which
    are rounded each time; all do in a module with the attribute `fp8.program_order`.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-split-reductions))'
    func.func @f(%x: memref<131072xf32>, %sum: memref<f32>) {
      linalg.reduce {arith.addf} ins(%x : memref<131072xf32>) outs(%sum : memref<f32>) dimensions = [0]
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<131072xf32>, %sum: memref<f32>) {
      %parts = memref.alloc() : memref<64xf32>
      %zero = arith.constant 0.000000e+00 : f32
      linalg.fill ins(%zero : f32) outs(%parts : memref<64xf32>)
      %rows = memref.expand_shape %x ... : memref<131072xf32> into memref<64x2048xf32>
      linalg.generic {...} ins(%rows : memref<64x2048xf32>) outs(%parts : memref<64xf32>) {
      ...
      linalg.generic {...} ins(%parts : memref<64xf32>) outs(%sum : memref<f32>) ...
      ...
      return
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect", "mlir::memref::MemRefDialect"];
}

def MapReductions : Pass<"fp8-map-reductions", "mlir::func::FuncOp"> {
  let summary = "share the rows and reductions of GPU kernels among lanes";
  let description = [{
    Before: private functions that become kernels (`fp8-map-threads`), with one
    `scf.parallel` whose iterations contain loops over adjacent elements: sums along the
    last dimension, norms and softmaxes by rows.
    After: the `scf.parallel` has a further dimension, the lanes that share an iteration,
    and lane i of 32 runs iterations i, i + 32, … of the loops. Shuffles combine the
    values that a loop reduces; temporaries of a row hold the elements of one lane; the
    first lane stores the values that are stored once per row.

    The lanes are those of a warp, or up to 1,024, a power of two, where an iteration is
    long and iterations are few: each has 8 elements or more, and there are no more than
    131,072 in all. They make a block (`fp8.threads`), whose warps meet in shared memory,
    `memref.alloca` in space 3. An unknown number of iterations counts as many, and takes
    more lanes than a warp from 32 elements for each on.

    Lanes combine what has one operation with a neutral element, of integers of up to 64
    bits, `index` and floating point, but no products of bf16 and f16; a sum of these is
    taken in f32 and rounded once. They also combine selections, such as the greatest element and its place: what an
    iteration keeps or takes by comparisons, if these follow one order of all elements.
    Of equal ones the same is taken as by one thread in order, and NaN is treated alike.

    A function without a parallel loop, such as a sum of all elements, gets one of one
    iteration. A nest of loops counts as one loop.

    Sizes may be dynamic: written arguments are `fp8.own_memory` then, instead of `llvm.noalias`, and the
    bounds of the parallel loop are such that a launch can compute them.

    A function stays as it is if a lane would read what another one wrote, if neighbouring
    iterations are not adjacent (but those that reduce 1,024 elements or more, or an unknown
    number, to each of fewer than 4,096 results), and, with a remark of `fp8-kernels`, if a loop carries
    anything else; all functions do in a module with the attribute `fp8.program_order`.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-map-reductions))'
    func.func private @sums(%x: memref<100x64xf32>, %y: memref<100xf32> {llvm.noalias}) attributes {llvm.bareptr} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %c100 = arith.constant 100 : index
      scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
        scf.for %j = %c0 to %c64 step %c1 {
          %0 = memref.load %x[%i, %j] : memref<100x64xf32>
          %1 = memref.load %y[%i] : memref<100xf32>
          %2 = arith.addf %1, %0 : f32
          memref.store %2, %y[%i] : memref<100xf32>
        }
        scf.reduce
      }
      return
    }
    ```
    becomes
    ```mlir
    func.func private @sums(%x: memref<100x64xf32>, %y: memref<100xf32> {llvm.noalias}) attributes {llvm.bareptr} {
      ...
      scf.parallel (%i, %lane) = (%c0, %zero) to (%c100, %lanes) step (%c1, %one) {
        ...
        %part = scf.for %j = %lane to %c64 step %all iter_args(%so_far = %none) -> (f32) {
          %0 = memref.load %x[%i, %j] : memref<100x64xf32>
          %1 = arith.addf %so_far, %0 : f32
          scf.yield %1 : f32
        }
        ...
        %other = nvvm.shfl.sync ... : f32 -> f32
        %sum = arith.addf %part, %other : f32
        ...
        scf.if %isFirst {
          %2 = memref.load %y[%i] : memref<100xf32>
          %3 = arith.addf %2, %total : f32
          memref.store %3, %y[%i] : memref<100xf32>
        }
        scf.reduce
      }
      return
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect", "mlir::NVVM::NVVMDialect",
                           "mlir::scf::SCFDialect"];
}

def VectorizeThreads : Pass<"fp8-vectorize-threads", "mlir::ModuleOp"> {
  let summary = "give threads of elementwise kernels several neighbouring points, accessed as vectors";
  let description = [{
    Before: private functions without linalg operations that the entry points call, as for
    `fp8-map-threads`.
    After: in a function whose code is one `scf.parallel` without inner loops, each
    iteration computes as many points along the last dimension as 16 bytes have elements of
    the widest buffer. Loads and stores of neighbouring points are one access of at most 16 bytes; values that
    they share are loaded once. The code of a point is unchanged, so are its bits. A branch that all points
    take, since the parts of a row that it tells apart begin at multiples of 16, has vectors as results.

    Points are halved until they divide the size of the last dimension, the address of every access is
    proven to be a multiple of its bytes at all calls, and there is a block for every
    multiprocessor, of 64 threads at least: `fp8.threads` of the function tells how many.

    A function stays as it is if this leaves one point; if the size of the last dimension is dynamic; if
    neighbouring points load or store what is not adjacent, or take different branches; and if it accesses i1.

    Example:
    ```mlir
    // fp8-opt --fp8-vectorize-threads
    func.func private @scale(%x: memref<?x512xf32>, %s: memref<?xf32>, %y: memref<?x512xbf16>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c512 = arith.constant 512 : index
      %rows = memref.dim %x, %c0 : memref<?x512xf32>
      scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %c512) step (%c1, %c1) {
        %0 = memref.load %x[%i, %j] : memref<?x512xf32>
        %1 = memref.load %s[%i] : memref<?xf32>
        %2 = arith.mulf %0, %1 : f32
        %3 = arith.truncf %2 : f32 to bf16
        memref.store %3, %y[%i, %j] : memref<?x512xbf16>
        scf.reduce
      }
      return
    }
    func.func @f(%x: memref<?x512xf32>, %s: memref<?xf32>, %y: memref<?x512xbf16>) {
      call @scale(%x, %s, %y) : (memref<?x512xf32>, memref<?xf32>, memref<?x512xbf16>) -> ()
      return
    }
    ```
    becomes
    ```mlir
    func.func private @scale(%x: memref<?x512xf32>, %s: memref<?xf32>, %y: memref<?x512xbf16>) attributes {fp8.threads = 256 : i32} {
      ...
      scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %c512) step (%c1, %c4) {
        %x4 = vector.load %x[%i, %j] {alignment = 16 : i64} : memref<?x512xf32>, vector<4xf32>
        %e:4 = vector.to_elements %x4 : vector<4xf32>
        %1 = memref.load %s[%i] : memref<?xf32>
        %y0 = arith.mulf %e#0, %1 : f32
        ...
        %y4 = vector.from_elements ... : vector<4xbf16>
        vector.store %y4, %y[%i, %j] {alignment = 8 : i64} : memref<?x512xbf16>, vector<4xbf16>
        scf.reduce
      }
      return
    }
    ...
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::arith::ArithDialect", "mlir::scf::SCFDialect",
                           "mlir::vector::VectorDialect"];
}

def MapThreads : Pass<"fp8-map-threads", "mlir::ModuleOp"> {
  let summary = "make GPU kernels of outlined functions: a thread per iteration of a parallel loop";
  let description = [{
    Before: private functions without linalg operations (`fp8-linalg-to-loops`)
    that the entry points call, each with scalars as its only results.
    After: the functions are kernels in `gpu.module @kernels`, and the calls launch them. A
    function whose code is one `scf.parallel` and pure code before it runs with one thread
    per iteration; any other function runs with one thread, in program order. A block has 256
    threads, or as many as `fp8.threads` says; a `memref.alloca` in memory space 3 becomes a buffer of
    the block in shared memory.

    Example:
    ```mlir
    // fp8-opt --fp8-map-threads
    func.func private @double(%x: memref<1000xf32>) attributes {llvm.bareptr} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c1000 = arith.constant 1000 : index
      scf.parallel (%i) = (%c0) to (%c1000) step (%c1) {
        %0 = memref.load %x[%i] : memref<1000xf32>
        %1 = arith.addf %0, %0 : f32
        memref.store %1, %x[%i] : memref<1000xf32>
        scf.reduce
      }
      return
    }
    func.func @f(%x: memref<1000xf32>) {
      call @double(%x) : (memref<1000xf32>) -> ()
      return
    }
    ```
    becomes
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @kernels {
        func.func @double(%x: memref<1000xf32>) attributes {fp8.threads = 256 : i32, gpu.kernel, llvm.bareptr} {
          ...
          %block = nvvm.read.ptx.sreg.ctaid.x : i32
          %thread = nvvm.read.ptx.sreg.tid.x : i32
          ...
          scf.if %isInside {
            ...
          }
          return
        }
      }
      func.func @f(%x: memref<1000xf32>) {
        %c4 = arith.constant 4 : index
        %c1 = arith.constant 1 : index
        %c256 = arith.constant 256 : index
        gpu.launch_func  @kernels::@double blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1)  args(%x : memref<1000xf32>)
        return
      }
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::gpu::GPUDialect", "mlir::NVVM::NVVMDialect",
                           "mlir::scf::SCFDialect"];
}

#endif // FP8_TARGET_PTX_THREADPASSES
