// RUN: fp8-opt %s -split-input-file --fp8-gpu-code-pipeline | sed 's/\\0A/\n/g; s/\\09/ /g; s/\\22/"/g' | FileCheck %s

// Drivers for the chip's PTX are older than those for mma.sync of FP8, which only some programs use.
// CHECK: .version 8.0
// CHECK: .target sm_90a
module attributes {gpu.container_module, fp8.target = #fp8.chip<"sm_90a">} {
  gpu.module @kernels {
    func.func @kernel_none() attributes {gpu.kernel, fp8.threads = 32 : i32} {
      return
    }
  }
}

// -----

// CHECK: .version 8.4
// CHECK: .target sm_90a
// CHECK: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
module attributes {gpu.container_module, fp8.target = #fp8.chip<"sm_90a">} {
  gpu.module @kernels {
    func.func @kernel_mma(%x: i32, %f: f32, %out: memref<1xf32>) attributes {gpu.kernel, llvm.bareptr, fp8.threads = 32 : i32} {
      %c0 = arith.constant 0 : index
      %d = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"(%x, %x, %x, %x, %x, %x, %f, %f, %f, %f)
        : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      %first = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
      memref.store %first, %out[%c0] : memref<1xf32>
      return
    }
  }
}
