// RUN: fp8-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(fp8-check-kernels))'

module attributes {fp8.target = #fp8.chip<"sm_89">} {
  gpu.module @kernels {
    func.func @good(%x: f32, %y: !llvm.ptr) attributes {gpu.kernel, fp8.threads = 256 : i32} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %a = math.absf %x : f32
      %b = nvvm.convert.f32x2.to.f8x2 %a, %x {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16 (f8E4M3FN)
      llvm.store %b, %y : i16, !llvm.ptr
      return
    }
    func.func @functions(%x: f32, %y: f64, %i: i64) attributes {gpu.kernel, fp8.threads = 256 : i32} {
      // expected-error@+1 {{'math.exp' on f64 has no code on GPUs; fp8-expand-math knows functions of f32}}
      %a = math.exp %y : f64
      // Without a place, as in the bodies of named operations, the error is at what it is in.
      // expected-error@+1 {{'math.sin' on f64 has no code}}
      scf.execute_region {
        %s = math.sin %y : f64 loc(unknown)
        scf.yield
      }
      // expected-error@+1 {{'arith.remf' on f32 has no exact code on GPUs; fp8-expand-math knows it on f32}}
      %b = arith.remf %x, %x : f32
      // expected-error@+1 {{'memref.alloc' has no code in a kernel: pass the memory as an argument}}
      %c = memref.alloc() : memref<4xf32>
      // expected-error@+1 {{'outside' is no function of this gpu.module}}
      func.call @outside() : () -> ()
      // expected-error@+1 {{'gpu.barrier' has no code on GPUs}}
      gpu.barrier
      %true = arith.constant true
      // expected-error@+1 {{'cf.assert' has no code in a kernel: check before the launch}}
      cf.assert %true, "message"
      return
    }
    func.func private @outside()
    func.func @instructions(%x: i32, %f: f32, %p: !llvm.ptr<3>) attributes {gpu.kernel, fp8.threads = 256 : i32} {
      // expected-error@+1 {{'nvvm.cluster.arrive' is no instruction of sm_89}}
      nvvm.cluster.arrive
      // expected-error@+1 {{'nvvm.wgmma.fence.aligned' is no instruction of sm_89}}
      nvvm.wgmma.fence.aligned
      // expected-error@+1 {{'nvvm.tcgen05.alloc' is no instruction of sm_89}}
      nvvm.tcgen05.alloc %p, %x : !llvm.ptr<3>, i32
      // expected-error@+1 {{'llvm.nvvm.no.such' is no intrinsic of LLVM}}
      %a = llvm.call_intrinsic "llvm.nvvm.no.such"(%x) : (i32) -> i32
      %d = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"(%x, %x, %x, %x, %x, %x, %f, %f, %f, %f)
        : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      return
    }
    // expected-error@+1 {{kernel 'threads' needs fp8.threads, the threads of a block: 1 to 1024}}
    func.func @threads() attributes {gpu.kernel} {
      return
    }
    // expected-error@+1 {{kernel 'shared' needs 102400 bytes of shared memory: a block of sm_89 has 101376}}
    func.func @shared() attributes {gpu.kernel, fp8.threads = 1 : i32, fp8.shared_bytes = 102400 : i32} {
      return
    }
  }
}

// -----

// Every chip has the instruction for FP8.
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  gpu.module @kernels {
    func.func @mma(%x: i32, %f: f32) attributes {gpu.kernel, fp8.threads = 256 : i32} {
      nvvm.wgmma.fence.aligned
      %d = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"(%x, %x, %x, %x, %x, %x, %f, %f, %f, %f)
        : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      return
    }
  }
}

// -----

// expected-error@+1 {{kernels of a GPU in a module for cpu: set its attribute fp8.target to a #fp8.chip}}
gpu.module @kernels {
}
