// RUN: fp8-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(fp8-map-threads,canonicalize)' | FileCheck %s -enable-var-scope

// Two dimensions, the last one fastest; 700 iterations take three blocks of 256 threads.
// CHECK: module attributes {gpu.container_module}
// CHECK: gpu.module @kernels
// CHECK: func.func @scale(%[[X:.*]]: memref<7x100xf32>, %[[S:.*]]: memref<f32>) attributes {fp8.threads = 256 : i32, gpu.kernel
// CHECK-DAG: %[[FACTOR:.*]] = memref.load %[[S]][]
// CHECK-DAG: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK-DAG: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x : i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[BLOCK]], %c256_i32
// CHECK: %[[NUMBER:.*]] = arith.addi %[[FIRST]], %[[THREAD]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[NUMBER]], %c700_i32
// CHECK: scf.if %[[INSIDE]] {
// CHECK: %[[COLUMN:.*]] = arith.remui %[[NUMBER]], %c100_i32
// CHECK: %[[ROW:.*]] = arith.divui %[[NUMBER]], %c100_i32
// CHECK: %[[J:.*]] = arith.index_castui %[[COLUMN]]
// CHECK: %[[I:.*]] = arith.index_castui %[[ROW]]
// CHECK: memref.load %[[X]][%[[I]], %[[J]]]
// CHECK: arith.mulf %{{.*}}, %[[FACTOR]]
// CHECK-LABEL: func.func @main(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[SIZE:.*]] = arith.constant 256 : index
// CHECK: gpu.launch_func @kernels::@scale blocks in (%[[THREE]], %[[ONE]], %[[ONE]]) threads in (%[[SIZE]], %[[ONE]], %[[ONE]]) args(%{{.*}} : memref<7x100xf32>, %{{.*}} : memref<f32>) {fp8.kernel_site = "fc"}
func.func private @scale(%x: memref<7x100xf32>, %s: memref<f32>) attributes {llvm.bareptr} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c100 = arith.constant 100 : index
  %factor = memref.load %s[] : memref<f32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%c7, %c100) step (%c1, %c1) {
    %0 = memref.load %x[%i, %j] : memref<7x100xf32>
    %1 = arith.mulf %0, %factor : f32
    memref.store %1, %x[%i, %j] : memref<7x100xf32>
    scf.reduce
  }
  return
}
func.func @main(%x: memref<7x100xf32>, %s: memref<f32>) {
  call @scale(%x, %s) {fp8.kernel_site = "fc"} : (memref<7x100xf32>, memref<f32>) -> ()
  return
}

// -----

// The host computes the blocks of a dynamic size; the kernel guards with its own count.
// CHECK: func.func @clear(%[[X:.*]]: memref<?xf32>)
// CHECK: %[[SIZE:.*]] = memref.dim %[[X]]
// CHECK: scf.if
// CHECK-LABEL: func.func @main(
// CHECK: %[[ROWS:.*]] = memref.dim
// CHECK: gpu.launch_func
func.func private @clear(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %zero, %x[%i] : memref<?xf32>
    scf.reduce
  }
  return
}
func.func @main(%x: memref<?xf32>) {
  call @clear(%x) : (memref<?xf32>) -> ()
  return
}

// -----

// One thread: every thread of the loop would load what others have changed already.
// CHECK: func.func @shift
// CHECK-SAME: fp8.threads = 1 : i32
// CHECK: scf.parallel
func.func private @shift(%x: memref<8xf32>) attributes {llvm.bareptr} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %first = memref.load %x[%c0] : memref<8xf32>
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = arith.subf %0, %first : f32
    memref.store %1, %x[%i] : memref<8xf32>
    scf.reduce
  }
  return
}
func.func @main(%x: memref<8xf32>) {
  call @shift(%x) : (memref<8xf32>) -> ()
  return
}

// -----

// expected-error @below {{kernel 'sum' returns values: run fp8-outline-scalars before kernels are outlined}}
func.func private @sum(%x: memref<8xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %0 = memref.load %x[%c0] : memref<8xf32>
  return %0 : f32
}
func.func @main(%x: memref<8xf32>, %y: memref<f32>) {
  %0 = call @sum(%x) : (memref<8xf32>) -> f32
  memref.store %0, %y[] : memref<f32>
  return
}

// -----

// A kernel that is there already keeps its name.
// CHECK: gpu.module @kernels
// CHECK: func.func @clear(%{{.*}}: memref<4xf32>)
// CHECK: func.func @clear_0(%{{.*}}: memref<8xf32>)
// CHECK: gpu.launch_func @kernels::@clear_0
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @clear(%x: memref<4xf32>) attributes {fp8.threads = 32 : i32, gpu.kernel} {
      return
    }
  }
  func.func private @clear(%x: memref<8xf32>) attributes {llvm.bareptr} {
    return
  }
  func.func @main(%x: memref<8xf32>) {
    call @clear(%x) : (memref<8xf32>) -> ()
    return
  }
}

// -----

// A block for each iteration of the first dimension, with a buffer in shared memory. The number of blocks is unknown: 64 bits.
// CHECK: memref.global "private" @shared_2xf32_0 : memref<2xf32, 3>
// CHECK: func.func @with_blocks({{.*}}fp8.threads = 64 : i32
// CHECK: arith.muli %{{.*}}, %c64_i64 : i64
// CHECK: memref.get_global @shared_2xf32_0
// CHECK: func.func @blocks(
// CHECK: arith.muli
// CHECK: arith.ceildivui %{{.*}}, %c64
// CHECK: gpu.launch_func @kernels::@with_blocks {{.*}} threads in (%c64
func.func private @with_blocks(%n: index, %y: memref<?xf32>) attributes {fp8.threads = 64 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i, %lane) = (%c0, %c0) to (%n, %c64) step (%c1, %c1) {
    %shared = memref.alloca() : memref<2xf32, 3>
    %place = arith.remui %lane, %c2 : index
    %0 = memref.load %shared[%place] : memref<2xf32, 3>
    memref.store %0, %y[%i] : memref<?xf32>
    scf.reduce
  }
  return
}
func.func @blocks(%n: index, %y: memref<?xf32>) {
  call @with_blocks(%n, %y) : (index, memref<?xf32>) -> ()
  return
}
