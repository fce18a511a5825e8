// RUN: fp8-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(fp8-finish-kernels))' | FileCheck %s

// Our attributes of arguments are gone, others stay; functions that are no kernels stay as they are.
// CHECK-LABEL: llvm.func @k
// CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant},
// CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.noalias},
// CHECK-SAME: %{{[a-z0-9]+}}: i64)
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
// CHECK-SAME: nvvm.kernel, nvvm.reqntid = array<i32: 384, 1, 1>
// CHECK-LABEL: llvm.func @helper() {
gpu.module @kernels {
  llvm.func @k(%m: !llvm.ptr {fp8.tensor_map = {box = array<i64: 64, 8>, swizzle = 128 : i32}},
               %x: !llvm.ptr {llvm.noalias, fp8.own_memory}, %n: i64)
      attributes {gpu.kernel, fp8.threads = 384 : i32, fp8.cluster = 2 : i32} {
    llvm.return
  }
  llvm.func @helper() {
    llvm.return
  }
}

// -----

// A kernel that sets registers says how many blocks share a multiprocessor, or ptxas ignores it.
// CHECK-LABEL: llvm.func @registers
// CHECK-SAME: nvvm.minctasm = 1 : i32
gpu.module @kernels {
  llvm.func @registers() attributes {gpu.kernel, fp8.threads = 384 : i32} {
    nvvm.setmaxregister increase 232
    llvm.return
  }
}

// -----

// CHECK-LABEL: llvm.func @two_blocks
// CHECK-SAME: nvvm.minctasm = 2 : i32
// CHECK-LABEL: llvm.func @any
// CHECK-NOT: nvvm.minctasm
gpu.module @kernels {
  llvm.func @two_blocks() attributes {gpu.kernel, fp8.blocks = 2 : i32, fp8.threads = 256 : i32} {
    llvm.return
  }
  llvm.func @any() attributes {gpu.kernel, fp8.threads = 256 : i32} {
    llvm.return
  }
}

// -----

gpu.module @kernels {
  // expected-error@+1 {{kernel 'k' has arguments that upstream cannot lower}}
  func.func @k(%x: memref<?xf32>) attributes {gpu.kernel, llvm.bareptr, fp8.threads = 32 : i32} {
    return
  }
}
