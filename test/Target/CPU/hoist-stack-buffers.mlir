// One set of temporaries per thread; those of unknown size stay where their size is known.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-hoist-stack-buffers))' | FileCheck %s

// CHECK-LABEL: func @f
// CHECK: omp.parallel {
// CHECK-NEXT: memref.alloca() : memref<64xf32>
// CHECK-NEXT: omp.wsloop
// CHECK: memref.alloca_scope
// CHECK: memref.alloca(%{{.+}}) : memref<?xf32>
func.func @f(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  omp.parallel {
    omp.wsloop {
      omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
        memref.alloca_scope {
          %0 = memref.alloca() : memref<64xf32>
          %1 = memref.alloca(%i) : memref<?xf32>
          memref.store %x, %0[%c0] : memref<64xf32>
          memref.store %x, %1[%c0] : memref<?xf32>
        }
        omp.yield
      }
    }
    omp.terminator
  }
  return
}

// A buffer in no parallel loop stays.
// CHECK-LABEL: func @serial
// CHECK: memref.alloca_scope
// CHECK-NEXT: memref.alloca()
func.func @serial(%x: f32) {
  %c0 = arith.constant 0 : index
  memref.alloca_scope {
    %0 = memref.alloca() : memref<64xf32>
    memref.store %x, %0[%c0] : memref<64xf32>
  }
  return
}
