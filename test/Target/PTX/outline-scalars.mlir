// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-outline-scalars))' | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-outline-scalars),fp8-outline-kernels)' -o /dev/null

// One run although views and allocations are between its parts; a chain stays together.
// CHECK-LABEL: func.func @run(
// CHECK-SAME: %[[STATE:.*]]: memref<10xf32>, %[[INV:.*]]: memref<f32>)
// CHECK: scf.execute_region
// CHECK-NEXT: %[[SCALE:.*]] = memref.load %[[STATE]][%{{.*}}] : memref<10xf32>
// CHECK-NEXT: memref.store %[[SCALE]], %[[COPY:.*]][] : memref<f32>
// CHECK-NEXT: %[[INVERSE:.*]] = arith.divf %{{.*}}, %[[SCALE]] : f32
// CHECK-NEXT: memref.store %[[INVERSE]], %[[INV]][] : memref<f32>
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } {fp8.computes = "scalars", fp8.kernel}
func.func @run(%state: memref<10xf32>, %inv: memref<f32>) {
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %scale = memref.load %state[%c3] : memref<10xf32>
  %copy = memref.alloc() : memref<f32>
  memref.store %scale, %copy[] : memref<f32>
  %inverse = arith.divf %one, %scale : f32
  memref.store %inverse, %inv[] : memref<f32>
  return
}

// A kernel loads a scalar of a run from a buffer of one element.
// CHECK-LABEL: func.func @kernel(
// CHECK: %[[BUFFER:.*]] = memref.alloc() : memref<f32>
// CHECK: scf.execute_region
// CHECK: %[[PRODUCT:.*]] = arith.mulf
// CHECK: memref.store %[[PRODUCT]], %[[BUFFER]][]
// CHECK: scf.execute_region
// CHECK-NEXT: %[[LOADED:.*]] = memref.load %[[BUFFER]][]
// CHECK-NEXT: linalg.generic
// CHECK: arith.mulf %{{.*}}, %[[LOADED]]
// CHECK: scf.yield
// CHECK-NEXT: } {fp8.kernel}
func.func @kernel(%a: memref<f32>, %b: memref<f32>, %x: memref<8xf32>) {
  %0 = memref.load %a[] : memref<f32>
  %1 = memref.load %b[] : memref<f32>
  %2 = arith.mulf %0, %1 : f32
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%x : memref<8xf32>) {
  ^bb0(%value: f32):
    %3 = arith.mulf %value, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// The host reads what it decides on: no kernel for the comparison. Code in the branch becomes a kernel.
// CHECK-LABEL: func.func @branch(
// CHECK-NEXT: arith.constant
// CHECK-NEXT: %[[VALUE:.*]] = memref.load %{{.*}}[] : memref<i32>
// CHECK-NEXT: %[[POSITIVE:.*]] = arith.cmpi sgt, %[[VALUE]]
// CHECK-NEXT: scf.if %[[POSITIVE]] {
// CHECK-NEXT: linalg.fill
// CHECK-NEXT: scf.execute_region
// CHECK-NEXT: memref.load
// CHECK-NEXT: memref.store
func.func @branch(%flag: memref<i32>, %x: memref<8xi32>, %y: memref<i32>) {
  %zero = arith.constant 0 : i32
  %0 = memref.load %flag[] : memref<i32>
  %1 = arith.cmpi sgt, %0, %zero : i32
  scf.if %1 {
    linalg.fill ins(%zero : i32) outs(%x : memref<8xi32>)
    %2 = memref.load %flag[] : memref<i32>
    memref.store %2, %y[] : memref<i32>
  }
  return
}

// A value that a kernel and the host use: computed in a run, read by both.
// CHECK-LABEL: func.func @both(
// CHECK: scf.execute_region
// CHECK: %[[SUM:.*]] = arith.addi
// CHECK: memref.store %[[SUM]], %[[BUFFER:.*]][]
// CHECK: scf.execute_region
// CHECK-NEXT: memref.load %[[BUFFER]][]
// CHECK-NEXT: linalg.fill
// CHECK: %[[READ:.*]] = memref.load %[[BUFFER]][]
// CHECK-NEXT: cf.assert %[[READ]]
func.func @both(%a: memref<i1>, %b: memref<i1>, %x: memref<8xi1>) {
  %0 = memref.load %a[] : memref<i1>
  %1 = memref.load %b[] : memref<i1>
  %2 = arith.addi %0, %1 : i1
  linalg.fill ins(%2 : i1) outs(%x : memref<8xi1>)
  cf.assert %2, "both"
  return
}

// The condition of a loop over a counter in memory is the host's, the counter's increment a kernel.
// CHECK-LABEL: func.func @counter(
// CHECK: scf.while
// CHECK-NEXT: %[[COUNT:.*]] = memref.load
// CHECK-NEXT: %[[MORE:.*]] = arith.cmpi
// CHECK-NEXT: scf.condition(%[[MORE]])
// CHECK: do
// CHECK-NEXT: linalg.fill
// CHECK-NEXT: scf.execute_region
// CHECK-NEXT: memref.load
// CHECK-NEXT: arith.addi
// CHECK-NEXT: memref.store
func.func @counter(%count: memref<i32>, %x: memref<8xi32>) {
  %ten = arith.constant 10 : i32
  %one = arith.constant 1 : i32
  scf.while : () -> () {
    %0 = memref.load %count[] : memref<i32>
    %1 = arith.cmpi slt, %0, %ten : i32
    scf.condition(%1)
  } do {
    linalg.fill ins(%ten : i32) outs(%x : memref<8xi32>)
    %0 = memref.load %count[] : memref<i32>
    %1 = arith.addi %0, %one : i32
    memref.store %1, %count[] : memref<i32>
    scf.yield
  }
  return
}

// A loop whose iterations have memory of their own is a kernel as it is.
// CHECK-LABEL: func.func @own_memory(
// CHECK-NOT: scf.execute_region
// CHECK: scf.parallel
// CHECK: memref.alloca
// CHECK: return
func.func @own_memory(%x: memref<8x4xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    %own = memref.alloca() : memref<1xf32>
    %0 = memref.load %x[%i, %c0] : memref<8x4xf32>
    memref.store %0, %own[%c0] : memref<1xf32>
    %1 = memref.load %own[%c0] : memref<1xf32>
    %2 = arith.addf %1, %0 : f32
    memref.store %2, %y[%i] : memref<8xf32>
    scf.reduce
  }
  return
}
