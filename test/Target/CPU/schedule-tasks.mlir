// Threads take tasks one by one; loops over elements are divided among them.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-schedule-tasks))' | FileCheck %s

func.func private @pack(index)
func.func private @gemm(index)

// CHECK-LABEL: func @product
// CHECK: omp.wsloop {
// CHECK: func.call @pack
// CHECK: omp.wsloop schedule(dynamic) {
// CHECK: func.call @gemm(%{{.+}}) : (index) -> ()
func.func @product(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  omp.parallel {
    omp.wsloop {
      omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
        func.call @pack(%i) : (index) -> ()
        omp.yield
      }
    }
    omp.wsloop {
      omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
        scf.for %j = %c0 to %n step %c1 {
          func.call @gemm(%j) {fp8.task} : (index) -> ()
        }
        omp.yield
      }
    }
    omp.terminator
  }
  return
}

// One thread computes a small product.
// CHECK-LABEL: func @serial
// CHECK: scf.for
func.func @serial(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    func.call @gemm(%i) {fp8.task} : (index) -> ()
  }
  return
}
