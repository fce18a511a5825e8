// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that every target shares: kernels as functions and loops, memory of an entry, its
// C ABI, its errors. Each with the IR before and after it.

#ifndef FP8_TARGET_HOST_PASSES
#define FP8_TARGET_HOST_PASSES

include "mlir/Pass/PassBase.td"

def ParallelizeRows : Pass<"fp8-parallelize-rows", "mlir::func::FuncOp"> {
  let summary = "Run loops over rows on all cores";
  let description = [{
    In: bufferized loops that `fp8-expand-rows` made, marked `fp8.row_elements`. Out: each
    is an `scf.parallel` whose temporaries are on the stack, one set per row, or where all
    rows have fewer than 32,768 elements together, `scf.for` loops that share one set. The
    mark `fp8.kernel` keeps what is in the loop together. Other `scf.forall` stay.

    Errors: a temporary of a row whose size is not known.

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
      } {fp8.kernel}
      return
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect"];
}

def OutlineKernels : Pass<"fp8-outline-kernels", "mlir::ModuleOp"> {
  let summary = "Make every linalg op and loop nest a function, equal ones the same";
  let description = [{
    In: bufferized entries. Out: every linalg op, memref.copy and loop nest of an entry is
    the call of a private function `kernel_<n>`; structurally equal ones share it, whatever
    their locations say. So compile time follows the number of distinct kernels, not of
    layers. Constants move inside; other captured values become arguments. An argument that
    shares no memory with any other at all its calls is marked `llvm.noalias`.
    Loops that hold linalg ops, calls or allocations stay, and their bodies are searched,
    unless `fp8.kernel` on them says that they are one kernel. `fp8.products`, which says what
    products a kernel computes, moves to the call.

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
      call @kernel_0(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
      call @kernel_0(%b, %c) : (memref<4xf32>, memref<4xf32>) -> ()
      return
    }
    func.func private @kernel_0(%x: memref<4xf32> {llvm.noalias}, %y: memref<4xf32> {llvm.noalias}) ... {
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    ```
  }];
  let dependentDialects = ["mlir::func::FuncDialect"];
}

def PlanWorkspace : Pass<"fp8-plan-workspace", "mlir::func::FuncOp"> {
  let summary = "Place all temporary buffers of an entry in one workspace argument";
  let description = [{
    In: an entry with `memref.alloc`s. Out: an entry whose last argument is the workspace, a
    memref of bytes (absent where nothing is needed), and whose static buffers are views of
    it at 64-byte aligned offsets. Buffers that are never alive at the same time share
    memory. Lifetimes are counted in operations of the entry's body; uses through views and
    results of structured control flow count. `fp8.workspace_bytes` on the function is the
    size. Buffers of dynamic size stay allocations, with a `memref.dealloc` after their last
    use where that is in their own block; what the function returns stays as it is.

    Errors: a buffer inside of a parallel loop, or handed from iteration to iteration.

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
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def AllocateDynamic : Pass<"fp8-allocate-dynamic", "mlir::ModuleOp"> {
  let summary = "Have results of dynamic shape allocated by the caller, temporaries on the heap";
  let description = [{
    In: entries of fp8-plan-workspace. Out: entries that allocate, return a buffer or assert
    take a frame, a pointer, as their last argument and return a status, 0. Their
    allocations are calls of functions that fp8-emit-entry-points brings, each followed by a
    `cf.assert` that there was memory. A returned buffer, marked `fp8.result`, is asked of
    the caller; `fp8.allocated_results` keeps its type. Temporaries are on the heap, in a
    list of the frame: what `memref.dealloc` does not free is freed when the call ends, in
    whatever way it ends.

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

def LinalgToLoops : Pass<"fp8-linalg-to-loops", "mlir::func::FuncOp"> {
  let summary = "Lower linalg on memrefs to loops in an order that memory likes";
  let description = [{
    In: linalg ops and copies on memrefs. Out: loops. The dimension along which most
    operands are contiguous becomes the innermost loop; reduction dimensions keep their
    order, so every element's sum is taken in the same order as before. Where the work is
    worth starting threads for, the outer parallel loops become one scf.parallel; everything
    else is scf.for.

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
                        "Work of a loop nest, in elements times cost, from which threads are used">];
  let dependentDialects = ["mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
                           "mlir::linalg::LinalgDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect"];
}

def KeepRoundings : Pass<"fp8-keep-roundings", "mlir::func::FuncOp"> {
  let summary = "Let no one fold a rounding away";
  let description = [{
    In and out: any function. Casts between floats lose their fast-math flags: upstream's
    emulation of bf16 and f16 puts `contract` on them, after which a rounding to the narrow
    type and the extension that follows it would be folded into nothing.

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

def EmitEntryPoints : Pass<"fp8-emit-entry-points", "mlir::ModuleOp"> {
  let summary = "Give every entry its function of the C ABI";
  let description = [{
    In: public functions on memrefs that return nothing, or a status if fp8-allocate-dynamic
    gave them a frame. Out: they are private, and for each a public function
    `fp8_call_<entry>` takes a `fp8rt_call`, checks its version, counts, workspace and every
    tensor's type, shape and strides, writes one line into `call->error` and returns 1 where
    something is wrong, and calls the entry otherwise. A result whose tensor is not the
    memory of the argument that carries it gets a copy.

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
                        "Declare the functions that do the checks instead of defining them">];
  let dependentDialects = ["mlir::LLVM::LLVMDialect", "mlir::arith::ArithDialect",
                           "mlir::cf::ControlFlowDialect", "mlir::func::FuncDialect",
                           "mlir::scf::SCFDialect"];
}

def ReturnErrors : Pass<"fp8-return-errors", "mlir::ModuleOp"> {
  let summary = "Make a failed assertion the error of the call";
  let description = [{
    In: entries that fp8-allocate-dynamic gave a frame, without structured control flow.
    Out: no `cf.assert`: where the condition does not hold, the entry leaves the message in
    `call->error` and returns.

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
  let summary = "Give integer divisions a result where the processor has none";
  let description = [{
    In: the LLVM dialect, where the result of a division by zero, and that of the least
    integer by -1, is undefined. Out: a quotient by zero is -1 (all bits set), a remainder by
    zero the dividend; the least integer divided by -1 is itself, with remainder 0. These are
    XLA's results. Divisions by other constants stay as they are.

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
  let summary = "Compute in one floating-point environment, whoever calls";
  let description = [{
    Callers may flush denormals (XLA's threads do) or round in another direction, and threads of
    OpenMP have whatever their pool was left with.

    In: entry points (fp8-emit-entry-points) and parallel regions of OpenMP. Out: each begins by
    setting the environment that compiled code needs (denormals are kept, rounding is to
    nearest even, nothing traps) and ends by restoring what it found.

    The module's `llvm.target_triple` says for which processor; without one it is this machine's.

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

#endif // FP8_TARGET_HOST_PASSES
