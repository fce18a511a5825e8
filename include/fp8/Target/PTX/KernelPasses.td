// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage 6 for GPUs: which code becomes kernels, and how they are launched.

#ifndef FP8_TARGET_PTX_KERNELPASSES
#define FP8_TARGET_PTX_KERNELPASSES

include "mlir/Pass/PassBase.td"

def AttachChip : Pass<"fp8-attach-chip", "mlir::ModuleOp"> {
  let summary = "compile a module for a GPU";
  let description = [{
    Before: any module.
    After: its attribute `fp8.target` is `#fp8.chip` of `chip`, unless it has a target already
    or `chip` is empty.

    Errors: an unknown chip.

    Example:
    ```mlir
    // fp8-opt --fp8-attach-chip=chip=sm_90a
    module {
    }
    ```
    becomes
    ```mlir
    module attributes {fp8.target = #fp8.chip<"sm_90a">} {
    }
    ```
  }];
  let options = [Option<"chip", "chip", "std::string", "\"\"", "sm_89, sm_90a, sm_100a or sm_120a">];
  let dependentDialects = ["::fp8::FP8Dialect"];
}

def BindElements : Pass<"fp8-bind-elements", "mlir::func::FuncOp"> {
  let summary = "make views of buffers of one element that copy an element of a vector, or are copied into one";
  let description = [{
    Before: bufferized entry points. The scales of the state are copied into a buffer each,
    and the amaxes from a buffer each into the vector that the update reads.
    After: such a buffer is a view of the vector's element, if neither changes while the
    other is used; the copies are gone.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-bind-elements))'
    func.func @f(%scales: memref<10xf32>, %x: memref<8xf32>) {
      %c7 = arith.constant 7 : index
      %0 = memref.load %scales[%c7] : memref<10xf32>
      %scale = memref.alloc() : memref<f32>
      memref.store %0, %scale[] : memref<f32>
      linalg.broadcast ins(%scale : memref<f32>) outs(%x : memref<8xf32>) dimensions = [0]
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%scales: memref<10xf32>, %x: memref<8xf32>) {
      %c7 = arith.constant 7 : index
      %scale = memref.subview %scales[7] [1] [1] : memref<10xf32> to memref<f32, strided<[], offset: 7>>
      linalg.broadcast ins(%scale : memref<f32, strided<[], offset: 7>>) outs(%x : memref<8xf32>) dimensions = [0]
      return
    }
    ```
  }];
  let dependentDialects = ["mlir::memref::MemRefDialect"];
}

def OutlineScalars : Pass<"fp8-outline-scalars", "mlir::func::FuncOp"> {
  let summary = "make kernels of code on single elements of buffers";
  let description = [{
    Before: entry points whose own code loads single elements of buffers, computes with
    them and stores the results: memory that the host cannot access on a GPU.
    After: each maximal run of such code is a kernel, which `fp8-outline-kernels` makes a
    function. A kernel loads the values of a run that it uses from buffers of one element.
    Loads that the host needs to decide something (a condition, a bound, an assertion), and
    arithmetic on them, stay on the host.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-outline-scalars))'
    func.func @f(%scale: memref<f32>, %scale_inv: memref<f32>) {
      %one = arith.constant 1.0 : f32
      %0 = memref.load %scale[] : memref<f32>
      %1 = arith.divf %one, %0 : f32
      memref.store %1, %scale_inv[] : memref<f32>
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%scale: memref<f32>, %scale_inv: memref<f32>) {
      %one = arith.constant 1.0 : f32
      scf.execute_region {
        %0 = memref.load %scale[] : memref<f32>
        %1 = arith.divf %one, %0 : f32
        memref.store %1, %scale_inv[] : memref<f32>
        scf.yield
      } {fp8.computes = "scalars", fp8.kernel}
      return
    }
    ```
  }];
  let dependentDialects = ["mlir::scf::SCFDialect"];
}

def BatchLaunches : Pass<"fp8-batch-launches", "mlir::ModuleOp"> {
  let summary = "join independent launches of one kernel on different buffers";
  let description = [{
    Before: entry points that launch kernels (`fp8-map-threads`).
    After: launches of one kernel that depend on nothing in between are one launch with a
    row of the grid for each: `blockIdx.y` selects the row of a table of operands
    (`fp8.operand_table`). Only launches whose blocks the chip can run at the same time are
    joined; others keep their order.

    Example:
    ```mlir
    // fp8-opt --fp8-batch-launches
    module attributes {gpu.container_module} {
      gpu.module @kernels {
        func.func @clear(%x: memref<256xf32>) attributes {fp8.threads = 256 : i32, gpu.kernel, llvm.bareptr} {
          %zero = arith.constant 0.0 : f32
          %thread = nvvm.read.ptx.sreg.tid.x : i32
          %i = arith.index_castui %thread : i32 to index
          memref.store %zero, %x[%i] : memref<256xf32>
          return
        }
      }
      func.func @f(%x: memref<256xf32>, %y: memref<256xf32>) {
        %c1 = arith.constant 1 : index
        %c256 = arith.constant 256 : index
        gpu.launch_func @kernels::@clear blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) args(%x : memref<256xf32>)
        gpu.launch_func @kernels::@clear blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) args(%y : memref<256xf32>)
        return
      }
    }
    ```
    becomes
    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @kernels {
        func.func @clear_batch_2(%table: !llvm.ptr {fp8.operand_table = 2 : i32}) attributes {fp8.threads = 256 : i32, gpu.kernel, llvm.bareptr} {
          %number = nvvm.read.ptx.sreg.ctaid.y : i32
          %row = llvm.getelementptr %table[%number] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<1 x i64>
          %slot = llvm.getelementptr %row[0] : (!llvm.ptr) -> !llvm.ptr, i64
          %address = llvm.load %slot : !llvm.ptr -> !llvm.ptr
          ...
          return
        }
      }
      func.func @f(%x: memref<256xf32>, %y: memref<256xf32>) {
        %c1 = arith.constant 1 : index
        %c256 = arith.constant 256 : index
        %c2 = arith.constant 2 : index
        %d1 = arith.constant 1 : index
        gpu.launch_func  @kernels::@clear_batch_2 blocks in (%c1, %c2, %d1) threads in (%c256, %d1, %d1)  args(%x : memref<256xf32>, %y : memref<256xf32>)
        return
      }
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::arith::ArithDialect", "mlir::LLVM::LLVMDialect",
                           "mlir::NVVM::NVVMDialect"];
}

#endif // FP8_TARGET_PTX_KERNELPASSES
