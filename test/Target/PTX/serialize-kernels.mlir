// RUN: fp8-opt %s --fp8-gpu-code-pipeline | sed 's/\\0A/\n/g; s/\\09/ /g; s/\\22/"/g' | FileCheck %s

// Arithmetic keeps every rounding: no fma, no approximation, no flushing of denormals.
// CHECK: .version 8.4
// CHECK: .target sm_89
// CHECK: .visible .global .align 4 .b8 constant_0[4000]
// CHECK-NOT: debug
// CHECK: .visible .entry kernel_axpy(
// CHECK: .param .u64 .ptr .align 1 kernel_axpy_param_0
// CHECK: .reqntid 256, 1, 1
// CHECK-NOT: fma
// CHECK-NOT: approx
// CHECK-NOT: ftz
// CHECK: .loc 1 [[@LINE+21]] {{[0-9]+}}
// CHECK: ld.global.b32
// CHECK: mul.rn.f32
// CHECK: add.rn.f32
// CHECK: div.rn.f32
// CHECK: sqrt.rn.f32
// CHECK: cvt.rn.bf16.f32
// CHECK: .visible .entry kernel_tail(
// CHECK: .shared .align 4 .b8 tile[128]
// CHECK: st.shared.b32
// CHECK: .visible .entry kernel_words(
// CHECK: ld.global.b64
// CHECK: st.global.b64
// CHECK: .file 1 "{{.*}}serialize-kernels.mlir"
module attributes {gpu.container_module, fp8.target = #fp8.chip<"sm_89">} {
  gpu.module @kernels {
    memref.global "private" @tile : memref<32xf32, 3> loc(callsite("data"("inner.mlir":3:1) at "outer.mlir":4:2))
    func.func @kernel_axpy(%x: memref<1000xf32>, %y: memref<1000xf32>, %z: memref<1000xbf16>, %a: f32)
        attributes {gpu.kernel, llvm.bareptr, fp8.threads = 256 : i32} {
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %i = arith.index_castui %tid : i32 to index
      %0 = memref.load %x[%i] : memref<1000xf32>
      %1 = memref.load %y[%i] : memref<1000xf32>
      %2 = arith.mulf %a, %0 : f32
      %3 = arith.addf %2, %1 : f32
      %4 = arith.divf %3, %1 : f32
      %5 = math.sqrt %4 : f32
      %6 = arith.truncf %5 : f32 to bf16
      memref.store %6, %z[%i] : memref<1000xbf16>
      return
    }
    func.func @kernel_tail(%x: memref<?x8xf32>, %n: index)
        attributes {gpu.kernel, fp8.threads = 32 : i32} {
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %i = arith.index_castui %tid : i32 to index
      %inside = arith.cmpi ult, %i, %n : index
      %tile = memref.get_global @tile : memref<32xf32, 3>
      scf.if %inside {
        %c0 = arith.constant 0 : index
        %0 = memref.load %x[%i, %c0] : memref<?x8xf32>
        %1 = math.exp %0 : f32
        memref.store %1, %tile[%i] : memref<32xf32, 3>
        nvvm.barrier0
        %2 = memref.load %tile[%c0] : memref<32xf32, 3>
        memref.store %2, %x[%i, %c0] : memref<?x8xf32>
      }
      return
    }
    func.func @kernel_words(%x: memref<32xi64>) attributes {gpu.kernel, llvm.bareptr, fp8.threads = 32 : i32} {
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %i = arith.index_castui %tid : i32 to index
      %0 = memref.load %x[%i] : memref<32xi64>
      %1 = arith.addi %0, %0 : i64
      memref.store %1, %x[%i] : memref<32xi64>
      return
    }
  }
  memref.global "private" constant @weights : memref<1000xf32> = dense<1.0>
    loc(callsite("inner"("inner.mlir":3:1) at "outer.mlir":2:2))
  // Inlined code in a function of the host, and in a constant.
  func.func @main(%x: memref<1000xf32>, %y: memref<1000xf32>, %z: memref<1000xbf16>) {
    %a = arith.constant 2.0 : f32
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %w = memref.get_global @weights : memref<1000xf32>
    gpu.launch_func @kernels::@kernel_axpy blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
      args(%w : memref<1000xf32>, %y : memref<1000xf32>, %z : memref<1000xbf16>, %a : f32)
      loc(callsite("inner"("inner.mlir":1:1) at "outer.mlir":2:2))
    return
  }
}
