// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage 7 on all targets: workspace, C ABI, errors and profile of entry points.

#ifndef FP8_TARGET_HOST_ENTRYPOINTPASSES
#define FP8_TARGET_HOST_ENTRYPOINTPASSES

include "mlir/Pass/PassBase.td"

def PlanWorkspace : Pass<"fp8-plan-workspace", "mlir::func::FuncOp"> {
  let summary = "place the static temporary buffers of an entry point in one workspace argument";
  let description = [{
    Before: an entry point with `memref.alloc`s.
    After: its last argument is the workspace, a memref of bytes (absent if the size is 0),
    and all static buffers are views of the workspace at 64-byte aligned offsets. Buffers
    that are never live at the same time share memory, unless `reuse` is false. A lifetime is a range of operations
    of the entry point's body, and includes uses through views and through results of
    structured control flow. `fp8.workspace_bytes` on the function is the size in bytes.
    Buffers of dynamic size stay allocations, with a `memref.dealloc` after their last
    use if that is in the same block; returned buffers stay unchanged.

    Errors: a buffer inside a parallel loop, or one that is passed from iteration to
    iteration.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-plan-workspace))'
    func.func @main(%x: memref<4xf32>, %out: memref<4xf32>) {
      %0 = memref.alloc() : memref<4xf32>
      linalg.exp ins(%x : memref<4xf32>) outs(%0 : memref<4xf32>)
      memref.copy %0, %out : memref<4xf32> to memref<4xf32>
      return
    }
    ```
    becomes
    ```mlir
    func.func @main(%x: memref<4xf32>, %out: memref<4xf32>, %workspace: memref<64xi8>)
        attributes {fp8.workspace_bytes = 64 : i64} {
      %c0 = arith.constant 0 : index
      %0 = memref.view %workspace[%c0][] : memref<64xi8> to memref<4xf32>
      linalg.exp ins(%x : memref<4xf32>) outs(%0 : memref<4xf32>)
      memref.copy %0, %out : memref<4xf32> to memref<4xf32>
      return
    }
    ```
  }];
  let options = [Option<"reuse", "reuse", "bool", "true",
                        "let buffers share memory that are never live at the same time; otherwise a read of what "
                        "was not written finds no values of another buffer">];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def AllocateDynamic : Pass<"fp8-allocate-dynamic", "mlir::ModuleOp"> {
  let summary = "allocate results of dynamic shape by the caller and temporaries on the heap";
  let description = [{
    Before: entry points after `fp8-plan-workspace`.
    After: entry points that allocate, return a buffer or assert take a pointer, the frame of
    the call, as their last argument and return a status, 0. Their allocations are calls of
    functions that `fp8-emit-entry-points` defines, each followed by a `cf.assert` that it
    did not fail. A returned buffer, marked `fp8.result`, is allocated by the caller;
    `fp8.allocated_results` on the function holds the types of these buffers. Temporaries
    are on the heap, in a list of the frame: those that `memref.dealloc` does not free are
    freed at the end of the call, also after an error.

    Example:
    ```mlir
    // fp8-opt --fp8-allocate-dynamic
    func.func @main(%x: memref<?xf32>, %n: index) -> (memref<?xf32> {fp8.result = 0 : i32}) {
      %out = memref.alloc(%n) : memref<?xf32>
      linalg.exp ins(%x : memref<?xf32>) outs(%out : memref<?xf32>)
      return %out : memref<?xf32>
    }
    ```
    becomes
    ```mlir
    ...
    func.func @main(%x: memref<?xf32>, %n: index, %frame: !llvm.ptr) -> i32 attributes {...} {
      ...
      %memory = call @fp8_abi_allocate_result(%frame, ...
      %null = llvm.mlir.zero : !llvm.ptr
      %given = llvm.icmp "ne" %memory, %null : !llvm.ptr
      cf.assert %given, "no memory for result 0"
      ...
      %out = builtin.unrealized_conversion_cast ...
      linalg.exp ins(%x : memref<?xf32>) outs(%out : memref<?xf32>)
      %status = arith.constant 0 : i32
      return %status : i32
    }
    ...
    ```
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect", "mlir::arith::ArithDialect",
                           "mlir::cf::ControlFlowDialect", "mlir::func::FuncDialect",
                           "mlir::memref::MemRefDialect"];
}

def LowerCollectives : Pass<"fp8-lower-collectives", "mlir::ModuleOp"> {
  let summary = "turn collectives into calls of the communicator";
  let description = [{
    Before: entry points after `fp8-allocate-dynamic`, with starts and waits of collectives.
    After: calls of functions that `fp8-emit-entry-points` defines, each followed by a
    `cf.assert` that it succeeded. Kind, reduction, element type, group and name are
    constant data. An entry point with collectives first asserts that there are as many
    ranks as `fp8.grid` of the module has places.

    Example:
    ```mlir
    // fp8-opt --fp8-lower-collectives
    func.func @main(%g: memref<8xf32>, %frame: !llvm.ptr) -> i32 {
      %t = fp8.start_collective all_reduce sum root 0 on(4) axes [0] of("g")
        from(%g : memref<8xf32>) to(%g : memref<8xf32>)
      fp8.wait_collective %t from(%g : memref<8xf32>) to(%g : memref<8xf32>)
      %status = arith.constant 0 : i32
      return %status : i32
    }
    ```
    becomes
    ```mlir
    ...
      %good = call @fp8_abi_start(%frame, ...
      cf.assert %good, ""
      %ticket = llvm.load ...
      %done = call @fp8_abi_wait(%frame, %ticket) : (!llvm.ptr, i64) -> i1
      cf.assert %done, ""
    ...
    ```
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect", "mlir::arith::ArithDialect",
                           "mlir::cf::ControlFlowDialect", "mlir::func::FuncDialect",
                           "mlir::memref::MemRefDialect"];
}

def EmitEntryPoints : Pass<"fp8-emit-entry-points", "mlir::ModuleOp"> {
  let summary = "give every entry point a function with the C ABI";
  let description = [{
    Before: public functions on memrefs that return nothing, or a status if
    `fp8-allocate-dynamic` gave them a frame.
    After: these functions are private, and each has a public function `fp8_call_<entry>`
    that takes a `fp8rt_call`. It checks the version, the counts, the workspace, and the
    type, shape and strides of every tensor. If a check fails it writes one line into
    `call->error` and returns 1; otherwise it calls the entry point. If the caller passes a
    result in other memory than the argument that carries it, the result is copied there.
    With `on-device`, the call must be of version 2 with a device, whose memory holds all
    tensors.

    Example:
    ```mlir
    // fp8-opt --fp8-emit-entry-points
    func.func public @step(%x: memref<4xf32>, %out: memref<4xf32> {fp8.result = 0 : i32}) {
      memref.copy %x, %out : memref<4xf32> to memref<4xf32>
      return
    }
    ```
    becomes
    ```mlir
    func.func @fp8_call_step(%call: !llvm.ptr) -> i32 ... {
      ...
      %status = call @fp8_abi_check_call(%call, ...
      ...
    }
    ...
    func.func private @fp8_entry_step(%x: memref<4xf32>, %out: memref<4xf32>) ... {
    ...
    ```
  }];
  let options = [Option<"declareHelpers", "declare-helpers", "bool", "false",
                        "declare the functions that do the checks instead of defining them">,
                 Option<"onDevice", "on-device", "bool", "false",
                        "the code launches kernels on the device of the call">];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::LLVM::LLVMDialect", "mlir::arith::ArithDialect",
                           "mlir::cf::ControlFlowDialect", "mlir::func::FuncDialect",
                           "mlir::scf::SCFDialect"];
}

def ReturnErrors : Pass<"fp8-return-errors", "mlir::ModuleOp"> {
  let summary = "turn failed assertions into errors of the call";
  let description = [{
    Before: entry points with a frame (`fp8-allocate-dynamic`), without structured control
    flow.
    After: no `cf.assert` is left. If its condition is false, the entry point writes the
    message into `call->error` and returns. Where there is no message, `call->error` stays
    as a helper function has left it.

    Errors: an assertion in a kernel or a parallel loop.

    Example:
    ```mlir
    // fp8-opt --fp8-return-errors
    func.func private @fp8_abi_fail(!llvm.ptr, !llvm.ptr) -> i32
    func.func @main(%good: i1, %frame: !llvm.ptr) -> i32 {
      cf.assert %good, "bad"
      %ok = arith.constant 0 : i32
      return %ok : i32
    }
    ```
    becomes
    ```mlir
    func.func private @fp8_abi_fail(!llvm.ptr, !llvm.ptr) -> i32
    ...
    func.func @main(%good: i1, %frame: !llvm.ptr) -> i32 {
      ...
      cf.cond_br %good, ^bb1, ^bb2(%message : !llvm.ptr)
    ^bb1: ...
      %ok = arith.constant 0 : i32
      return %ok : i32
    ^bb2(%line: !llvm.ptr): ...
      %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
      %status = call @fp8_abi_fail(%call, %line) : (!llvm.ptr, !llvm.ptr) -> i32
      return %status : i32
    }
    ```
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect", "mlir::cf::ControlFlowDialect",
                           "mlir::func::FuncDialect"];
}

def GuardDivisions : Pass<"fp8-guard-divisions", "mlir::LLVM::LLVMFuncOp"> {
  let summary = "define the results of integer divisions by zero and of overflowing ones";
  let description = [{
    Before: the LLVM dialect, in which dividing by zero, and dividing the least integer by
    -1, is undefined behaviour.
    After: a quotient by zero is -1 (all bits set), a remainder by zero is the dividend; the
    least integer divided by -1 is itself, with remainder 0. XLA defines the same results.
    Divisions by other constants stay unchanged.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(llvm.func(fp8-guard-divisions))'
    llvm.func @f(%x: i32, %y: i32) -> i32 {
      %0 = llvm.urem %x, %y : i32
      llvm.return %0 : i32
    }
    ```
    becomes
    ```mlir
    llvm.func @f(%x: i32, %y: i32) -> i32 {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %none = llvm.icmp "eq" %y, %zero : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %divisor = llvm.select %none, %one, %y : i1, i32
      %0 = llvm.urem %x, %divisor : i32
      %1 = llvm.select %none, %x, %0 : i1, i32
      llvm.return %1 : i32
    }
    ```
  }];
}

def SetFloatEnvironment : Pass<"fp8-set-float-environment", "mlir::ModuleOp"> {
  let summary = "set the floating-point environment of calls and threads";
  let description = [{
    Callers may flush denormals (XLA's threads do) or round in another direction, and the threads
    of OpenMP keep the environment that was last set in them.

    Before: entry points (`fp8-emit-entry-points`) and parallel regions of OpenMP.
    After: each first sets the environment that compiled code needs (denormals are kept, rounding
    is to nearest even, nothing traps), and restores the previous one at its end.

    The code is for the processor in the module's `llvm.target_triple`, or for that of this
    machine if there is none.

    Example:
    ```mlir
    // fp8-opt --fp8-set-float-environment
    func.func private @kernel() {
      omp.parallel {
        %c = arith.constant 1.0 : f32
        omp.terminator
      }
      return
    }
    ```
    becomes
    ```mlir
    func.func private @kernel() {
      omp.parallel {
        %found = func.call @fp8_float_enter() : () -> i32
        %c = arith.constant 1.000000e+00 : f32
        func.call @fp8_float_leave(%found) : (i32) -> ()
        omp.terminator
      }
      return
    }
    func.func private @fp8_float_enter() -> i32 {
      ...
    func.func private @fp8_float_leave(%before: i32) {
      ...
    ```
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect", "mlir::arith::ArithDialect",
                           "mlir::func::FuncDialect"];
}

def EmitProfile : Pass<"fp8-emit-profile", "mlir::ModuleOp"> {
  let summary = "let a call of an entry point tell its caller when kernels end";
  let description = [{
    Before: entry points after `fp8-emit-entry-points`, with the numbers of
    `fp8-count-kernels`.
    After: each entry point takes the profile of the call (fp8rt/call.h), null for most calls,
    as its first argument and passes it to its kernels, which call `fp8_abi_record` with
    their number at their end. A function with several numbers is recorded where it is
    called. Before a kernel, -1 is recorded if other code ran that may take time: loops,
    allocations, calls. Kernels in parallel loops are not recorded. The function
    `fp8_kernels` returns the list of kernels as JSON, and `fp8.kernels` is gone. With
    `on-device`, the device records kernels, and only the list is added.

    Example:
    ```mlir
    // fp8-opt --fp8-emit-profile
    module attributes {fp8.kernels = [{kind = "other", name = "k", sites = []} ]} {
      func.func @fp8_call_main(%call: !llvm.ptr) {
        call @fp8_entry_main() : () -> ()
        return
      }
      func.func private @fp8_entry_main() {
        call @kernel_k() {fp8.kernel_number = 0 : i32} : () -> ()
        return
      }
      func.func private @kernel_k() {
        return
      }
    }
    ```
    becomes
    ```mlir
    func.func @fp8_call_main(%call: !llvm.ptr) {
      %profile = call @fp8_abi_profile(%call) : (!llvm.ptr) -> !llvm.ptr
      call @fp8_entry_main(%profile) : (!llvm.ptr) -> ()
      return
    }
    func.func private @fp8_entry_main(%p: !llvm.ptr) {
      ... = arith.constant -1 : i32
      call @fp8_abi_record(%p, ...
      call @kernel_k(%p) : (!llvm.ptr) -> ()
      return
    }
    func.func private @kernel_k(%q: !llvm.ptr) {
      ... = arith.constant 0 : i32
      call @fp8_abi_record(%q, ...
      return
    }
    ...
    llvm.func @fp8_kernels() -> !llvm.ptr {
    ...
    ```
  }];
  let options = [Option<"onDevice", "on-device", "bool", "false",
                        "kernels run on a device, which records them itself">];
  let dependentDialects = ["mlir::LLVM::LLVMDialect", "mlir::arith::ArithDialect", "mlir::func::FuncDialect"];
}

#endif // FP8_TARGET_HOST_ENTRYPOINTPASSES
