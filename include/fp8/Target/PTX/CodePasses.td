// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage 7 for GPUs: passes that make PTX of kernels, and host code of launches.

#ifndef FP8_TARGET_PTX_CODEPASSES
#define FP8_TARGET_PTX_CODEPASSES

include "mlir/Pass/PassBase.td"

def CheckKernels : Pass<"fp8-check-kernels", "mlir::gpu::GPUModuleOp"> {
  let summary = "refuse kernels that LLVM has no code for";
  let description = [{
    Before: kernels as functions, after `fp8-expand-math`.
    After: the same; or an error at each operation that has no code on the chip of the
    module: instructions of other chips, functions that need a library, allocations,
    assertions, calls of functions that are not in the gpu.module. LLVM would end the
    process on most of them.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(gpu.module(fp8-check-kernels))'
    module attributes {fp8.target = #fp8.chip<"sm_89">} {
      gpu.module @kernels {
        func.func @k() attributes {gpu.kernel, fp8.threads = 32 : i32} {
          return
        }
      }
    }
    ```
    becomes
    ```mlir
    ...
    func.func @k() attributes {fp8.threads = 32 : i32, gpu.kernel} {
      return
    }
    ...
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect"];
}

def FinishKernels : Pass<"fp8-finish-kernels", "mlir::gpu::GPUModuleOp"> {
  let summary = "set the attributes of kernels from which LLVM writes PTX";
  let description = [{
    Before: kernels as functions of the LLVM dialect, with our attributes (Kernels.h).
    After: each is a kernel with the size of its block (`.reqntid`) and of its cluster, and
    with the blocks that must fit on a multiprocessor (`.minnctapersm`) if `fp8.blocks` says so;
    1 if it sets registers of warps (`setmaxnreg`). An
    argument with `fp8.tensor_map` is a parameter of 128 bytes that the kernel reads in
    place, one with `fp8.operand_table` a parameter of 8 bytes per operand.

    Errors: a kernel that is still a `func.func`, because its arguments do not fit its
    calling convention.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(gpu.module(fp8-finish-kernels))'
    gpu.module @kernels {
      llvm.func @k(%x: !llvm.ptr {fp8.tensor_map = {box = array<i64: 64, 8>, swizzle = 128 : i32}})
          attributes {gpu.kernel, fp8.threads = 256 : i32} {
        llvm.return
      }
    }
    ```
    becomes
    ```mlir
    gpu.module @kernels {
      llvm.func @k(%x: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
          attributes {fp8.threads = 256 : i32, gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>} {
        llvm.return
      }
    }
    ```
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect", "mlir::NVVM::NVVMDialect"];
}

def SerializeKernels : Pass<"fp8-serialize-kernels", "mlir::ModuleOp"> {
  let summary = "write the PTX text of all kernels";
  let description = [{
    Before: kernels after `fp8-finish-kernels`.
    After: the gpu.module has the attribute `fp8.ptx`, the text for the chip of the module.
    Equal kernels give equal text, which tells the lines of the user's program (`.loc`). The version of PTX is the lowest that has the
    instructions of the chip's kernels, or that of mma.sync of FP8 where one is used.

    Example:
    ```mlir
    // fp8-opt --fp8-serialize-kernels
    module attributes {fp8.target = #fp8.chip<"sm_89">} {
      gpu.module @kernels {
        llvm.func @k() attributes {gpu.kernel, nvvm.kernel} {
          llvm.return
        }
      }
    }
    ```
    becomes
    ```mlir
    ...
    gpu.module @kernels attributes {fp8.ptx = "....version 8.4\0A.target sm_89...
    ...
    ```
  }];
  let options = [Option<"cache", "cache", "std::string", "\"\"",
                        "the folder that keeps the text of each kernel for the next compilation; nothing keeps none">];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::LLVM::LLVMDialect"];
}

def AssembleKernels : Pass<"fp8-assemble-kernels", "mlir::gpu::GPUModuleOp"> {
  let summary = "make machine code of the PTX text by ptxas";
  let description = [{
    Before: a gpu.module after `fp8-serialize-kernels`.
    After: the attribute `fp8.cubin` holds the machine code that the program `ptxas` makes of
    the text. With `ptxas=none`, which is the default, nothing changes. Spilled registers, the warnings of ptxas
    and its remarks on slow code (C75xx) are warnings at the kernels.

    Errors: a program that cannot be run, or that refuses the text.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(gpu.module(fp8-assemble-kernels{ptxas=none}))'
    gpu.module @kernels attributes {fp8.ptx = "text"} {
    }
    ```
    becomes
    ```mlir
    gpu.module @kernels attributes {fp8.ptx = "text"} {
    }
    ```
  }];
  let options = [Option<"ptxas", "ptxas", "std::string", "\"none\"",
                        "the program's path, or its name on $PATH; none, or nothing, runs none">,
                 Option<"cache", "cache", "std::string", "\"\"",
                        "the folder that keeps machine code for the next compilation; nothing keeps none">];
  let dependentDialects = ["::fp8::FP8Dialect"];
}

def LowerLaunches : Pass<"fp8-lower-launches", "mlir::ModuleOp"> {
  let summary = "turn launches into calls of the device of a call";
  let description = [{
    Before: entry points with a frame (`fp8-allocate-dynamic`), whose only access of memory
    is `gpu.launch_func`, and `memref.load` of values that host code needs.
    After: launches are calls of `fp8_abi_launch_all`, one for all launches without other code between
    them. A record for each, data of the library, has the number of its kernel, the number of its
    line in `fp8_kernels` (-1 without), the grid, and parameters: numbers, addresses at a known
    distance from an argument, or for an argument with `fp8.tensor_map` a tensor map. The host stores
    parameters that only the running program knows in slots before the call. A buffer is one address, or the
    fields of a descriptor if the kernel takes it so. A load asks the device for the value; one that is
    nothing but the condition of a `cf.assert` becomes a call of `fp8_abi_check`, as the host need not know
    it. Constants of the program are in the gpu.module, `fp8.symbols` lists them, and `fp8_abi_symbol` gives
    their addresses. Each of these calls ends the entry point if the device fails. So does an index beyond
    what kernels count, 2147483136, that the host narrows to an operand of 32 bits: the error names kernel and
    site. `fp8.capturable` tells whether an entry point only enqueues work, `fp8.checks` how many conditions
    it checks.

    Example:
    ```mlir
    // fp8-opt --fp8-lower-launches
    module attributes {gpu.container_module} {
      gpu.module @kernels {
        func.func @k(%x: memref<4xf32>) attributes {gpu.kernel, llvm.bareptr, fp8.threads = 4 : i32} {
          return
        }
      }
      func.func @main(%x: memref<4xf32>, %frame: !llvm.ptr) -> i32 {
        %c1 = arith.constant 1 : index
        %c4 = arith.constant 4 : index
        gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%x : memref<4xf32>)
        %ok = arith.constant 0 : i32
        return %ok : i32
      }
    }
    ```
    becomes
    ```mlir
    ...
    llvm.mlir.global internal constant @fp8_launches_main(dense<[11, 0, -1, 1, 1, 1, 8, 1, 1, 0, 0]> : tensor<11xi64>) ...
    func.func @main(%x: memref<4xf32>, %frame: !llvm.ptr) -> i32 attributes {fp8.capturable = true} {
      ...
      %start = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
      ...
      %good = call @fp8_abi_launch_all(%frame, ...
      cf.assert %good, ""
      ...
    ```
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect", "mlir::arith::ArithDialect", "mlir::cf::ControlFlowDialect",
                           "mlir::func::FuncDialect", "mlir::gpu::GPUDialect", "mlir::memref::MemRefDialect"];
}

def EmitDeviceCode : Pass<"fp8-emit-device-code", "mlir::ModuleOp"> {
  let summary = "put PTX and the tables of kernels and symbols into the library";
  let description = [{
    Before: a gpu.module after `fp8-serialize-kernels`.
    After: the function `fp8_device_code` returns its text, its kernels and its symbols as
    constants with the layout of fp8rt/device.h. The gpu.module is gone.

    Example:
    ```mlir
    // fp8-opt --fp8-emit-device-code
    module attributes {gpu.container_module, fp8.target = #fp8.chip<"sm_89">} {
      gpu.module @kernels attributes {fp8.ptx = "text"} {
        llvm.func @k() attributes {gpu.kernel, fp8.threads = 4 : i32} {
          llvm.return
        }
      }
    }
    ```
    becomes
    ```mlir
    ...
    llvm.mlir.global internal constant @fp8_device_ptx("text\00") {addr_space = 0 : i32, alignment = 16 : i64}
    ...
    llvm.mlir.global internal constant @fp8_kernel_name_0("k\00") {addr_space = 0 : i32, alignment = 16 : i64}
    ...
    llvm.func @fp8_device_code() -> !llvm.ptr {
      %code = llvm.mlir.addressof @fp8_device_code_value : !llvm.ptr
      llvm.return %code : !llvm.ptr
    }
    ...
    ```
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect", "::fp8::FP8Dialect"];
}

#endif // FP8_TARGET_PTX_CODEPASSES
