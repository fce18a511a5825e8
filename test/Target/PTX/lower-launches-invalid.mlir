// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-lower-launches

module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @k(%x: memref<4xf32>) attributes {gpu.kernel, llvm.bareptr, fp8.threads = 4 : i32} {
      return
    }
  }
  func.func @block(%x: memref<4xf32>, %frame: !llvm.ptr) -> i32 {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{the block of a launch must be (fp8.threads, 1, 1) of kernel 'k'}}
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @k(%x: i32) attributes {gpu.kernel, llvm.bareptr, fp8.threads = 1 : i32} {
      return
    }
  }
  func.func @type(%n: index, %frame: !llvm.ptr) -> i32 {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{argument 0 of kernel 'k' has type 'i32', the launch passes 'index'}}
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%n : index)
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
}

// -----

func.func @store(%x: memref<f32>, %v: f32, %frame: !llvm.ptr) -> i32 {
  // expected-error@+1 {{'memref.store' in host code, which cannot access memory of the device}}
  memref.store %v, %x[] : memref<f32>
  %ok = arith.constant 0 : i32
  return %ok : i32
}

// -----

// expected-error@+1 {{'main' has no frame: run fp8-allocate-dynamic first}}
func.func @main(%x: memref<i32>) {
  %0 = memref.load %x[] : memref<i32>
  return
}
