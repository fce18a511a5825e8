// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-pin-loop-buffers | FileCheck %s -enable-var-scope

// Two values that change places: one is saved before it is overwritten. The third only
// passes through and stays where it is.
// CHECK-LABEL: func @swap
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<4xf32>, %[[Y:[a-z0-9]+]]: memref<4xf32>, %[[Z:[a-z0-9]+]]: memref<4xf32>
// CHECK-DAG: %[[P:.*]] = memref.alloc()
// CHECK-DAG: %[[Q:.*]] = memref.alloc()
// CHECK-DAG: memref.copy %[[X]], %[[P]]
// CHECK-DAG: memref.copy %[[Y]], %[[Q]]
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %[[P]], %[[B:.*]] = %[[Q]], %[[C:.*]] = %[[Z]])
// CHECK: %[[T:.*]] = memref.alloc()
// CHECK: memref.copy %[[B]], %[[T]]
// CHECK-NOT: memref.alloc
// CHECK: memref.copy %[[A]], %[[Q]]
// CHECK: memref.copy %[[T]], %[[P]]
// CHECK: scf.yield %[[P]], %[[Q]], %[[C]]
func.func @swap(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>, %c0: index, %c1: index, %n: index) {
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %c = %z) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>) {
    scf.yield %b, %a, %c : memref<4xf32>, memref<4xf32>, memref<4xf32>
  }
  return
}

// -----

// Both halves of a while loop hand over buffers of their own; what the first only passes on
// has one already. Scalars are no buffers.
// CHECK-LABEL: func @while
// CHECK-SAME: (%[[X:.*]]: memref<4xf32>
// CHECK: %[[P:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
// CHECK: %[[Q:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
// CHECK: memref.copy %[[X]], %[[P]]
// CHECK: scf.while (%[[I:.*]] = %{{.*}}, %[[OLD:.*]] = %[[P]]) :
// CHECK: %[[MADE:.*]] = memref.alloc()
// CHECK: memref.copy %[[MADE]], %[[Q]] :
// CHECK: scf.condition(%{{.*}}) %[[I]], %[[OLD]], %[[Q]]
// CHECK: %[[NEW:.*]] = memref.alloc() : memref<4xf32>
// CHECK: memref.copy %[[NEW]], %[[P]]
// CHECK: scf.yield %{{.*}}, %[[P]]
func.func @while(%x: memref<4xf32>, %c0: index, %c1: index, %n: index) {
  %r:3 = scf.while (%i = %c0, %old = %x) : (index, memref<4xf32>) -> (index, memref<4xf32>, memref<4xf32>) {
    %more = arith.cmpi slt, %i, %n : index
    %made = memref.alloc() : memref<4xf32>
    linalg.exp ins(%old : memref<4xf32>) outs(%made : memref<4xf32>)
    scf.condition(%more) %i, %old, %made : index, memref<4xf32>, memref<4xf32>
  } do {
  ^bb0(%i: index, %old: memref<4xf32>, %made: memref<4xf32>):
    %next = arith.addi %i, %c1 : index
    %new = memref.alloc() : memref<4xf32>
    linalg.exp ins(%old : memref<4xf32>) outs(%new : memref<4xf32>)
    scf.yield %next, %new : index, memref<4xf32>
  }
  return
}

// -----

// The buffer has the size of the first value, and the others must have it too.
// CHECK-LABEL: func @dynamic
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<?xf32>, %[[Y:[a-z0-9]+]]: memref<?xf32>
// CHECK: %[[SIZE:.*]] = memref.dim %[[X]]
// CHECK: %[[P:.*]] = memref.alloc(%[[SIZE]])
// CHECK: scf.for
// CHECK: %[[HAVE:.*]] = memref.dim %[[Y]]
// CHECK: %[[WANT:.*]] = memref.dim %[[P]]
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[HAVE]], %[[WANT]]
// CHECK: cf.assert %[[SAME]], "a tensor that a loop carries changes its size"
// CHECK: scf.yield %[[P]]
func.func @dynamic(%x: memref<?xf32>, %y: memref<?xf32>, %c0: index, %c1: index, %n: index) {
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> memref<?xf32> {
    scf.yield %y : memref<?xf32>
  }
  return
}

// -----

// The size of what the first half hands on is known before the loop.
// CHECK-LABEL: func @dynamic_while
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<?xf32>
// CHECK: %[[P:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?xf32>
// CHECK: %[[SIZE:.*]] = memref.dim %[[X]]
// CHECK: %[[Q:.*]] = memref.alloc(%[[SIZE]]) {alignment = 64 : i64} : memref<?xf32>
// CHECK: scf.while
// CHECK: memref.copy %{{.*}}, %[[Q]]
// CHECK: scf.condition(%{{.*}}) %[[Q]]
func.func @dynamic_while(%x: memref<?xf32>, %more: i1) {
  %c0 = arith.constant 0 : index
  %r = scf.while (%old = %x) : (memref<?xf32>) -> memref<?xf32> {
    %size = memref.dim %old, %c0 : memref<?xf32>
    %new = memref.alloc(%size) : memref<?xf32>
    memref.copy %old, %new : memref<?xf32> to memref<?xf32>
    scf.condition(%more) %new : memref<?xf32>
  } do {
  ^bb0(%made: memref<?xf32>):
    scf.yield %made : memref<?xf32>
  }
  return
}

// -----

func.func @dynamic_condition(%x: memref<?xf32>, %more: i1) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{the loop computes a value of dynamic shape before its condition, which is not supported yet: compute it in the loop's body}}
  %r = scf.while (%old = %x) : (memref<?xf32>) -> memref<?xf32> {
    %m = arith.select %more, %c0, %c0 : index
    %new = memref.alloc(%m) : memref<?xf32>
    scf.condition(%more) %new : memref<?xf32>
  } do {
  ^bb0(%made: memref<?xf32>):
    scf.yield %made : memref<?xf32>
  }
  return
}

// -----

// A value that is computed in the buffer that was handed over is in its place: in a while,
// behind a cast, through a branch, and through a loop in a loop.
// CHECK-LABEL: func @in_place
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<4xf32>
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: scf.while (%{{.+}} = %[[X]])
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: scf.for {{.*}} iter_args(%[[A:.+]] = %{{.+}})
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: scf.for {{.*}} iter_args(%[[B:.+]] = %[[A]])
// CHECK: scf.yield %[[B]]
// CHECK: scf.yield %[[A]]
// CHECK: return
func.func @in_place(%x: memref<4xf32>, %c0: index, %c1: index, %n: index, %v: f32) {
  %r = scf.while (%old = %x) : (memref<4xf32>) -> memref<4xf32> {
    %e = memref.load %old[%c0] : memref<4xf32>
    %more = arith.cmpf olt, %e, %v : f32
    %cast = memref.cast %old : memref<4xf32> to memref<?xf32>
    %back = memref.cast %cast : memref<?xf32> to memref<4xf32>
    scf.condition(%more) %back : memref<4xf32>
  } do {
  ^bb0(%a: memref<4xf32>):
    linalg.exp ins(%a : memref<4xf32>) outs(%a : memref<4xf32>)
    scf.yield %a : memref<4xf32>
  }
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %r) -> memref<4xf32> {
    %t = scf.for %j = %c0 to %i step %c1 iter_args(%b = %a) -> memref<4xf32> {
      memref.store %v, %b[%c0] : memref<4xf32>
      scf.yield %b : memref<4xf32>
    }
    %some = arith.cmpi slt, %i, %c1 : index
    %u = scf.if %some -> memref<4xf32> {
      scf.yield %t : memref<4xf32>
    } else {
      scf.yield %a : memref<4xf32>
    }
    scf.yield %u : memref<4xf32>
  }
  return
}

// -----

// Buffers that the copies overwrite are read before, without temporaries where an order allows it.
// CHECK-LABEL: func @order
// CHECK: scf.for {{.*}} iter_args(%{{.+}} = %[[P:[a-z0-9_]+]], %[[B:.+]] = %[[Q:[a-z0-9_]+]], %[[C:.+]] = %[[R:[a-z0-9_]+]])
// CHECK: %[[NEW:.*]] = memref.alloc()
// CHECK-NOT: memref.alloc
// CHECK: memref.copy %[[B]], %[[P]]
// CHECK: memref.copy %[[C]], %[[Q]]
// CHECK: memref.copy %[[NEW]], %[[R]]
// CHECK: scf.yield %[[P]], %[[Q]], %[[R]]
func.func @order(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>, %c0: index, %c1: index, %n: index) {
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %c = %z) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>) {
    %new = memref.alloc() : memref<4xf32>
    linalg.exp ins(%a : memref<4xf32>) outs(%new : memref<4xf32>)
    scf.yield %b, %c, %new : memref<4xf32>, memref<4xf32>, memref<4xf32>
  }
  return
}

// -----

// A view of the buffer is saved before the buffer is overwritten.
// CHECK-LABEL: func @view
// CHECK: scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] = %[[P:[a-z0-9_]+]])
// CHECK: %[[ROWS:.*]] = memref.transpose %[[A]]
// CHECK: %[[NEW:.*]] = memref.alloc()
// CHECK: %[[T:.*]] = memref.cast %[[NEW]]
// CHECK: memref.copy %[[ROWS]], %[[T]]
// CHECK: memref.copy %[[T]], %[[P]]
func.func @view(%x: memref<4x4xf32, strided<[?, ?], offset: ?>>, %c0: index, %c1: index, %n: index) {
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (memref<4x4xf32, strided<[?, ?], offset: ?>>) {
    %t = memref.transpose %a (i, j) -> (j, i) : memref<4x4xf32, strided<[?, ?], offset: ?>> to memref<4x4xf32, strided<[?, ?], offset: ?>>
    scf.yield %t : memref<4x4xf32, strided<[?, ?], offset: ?>>
  }
  return
}

// -----

// A buffer that nothing has written to is not copied: no iteration reads the first value.
// CHECK-LABEL: func @never_read
// CHECK: memref.alloc()
// CHECK: %[[P:.*]] = memref.alloc()
// CHECK-NOT: memref.copy
// CHECK: scf.for {{.*}} iter_args(%{{.+}} = %[[P]])
// CHECK: memref.copy %{{.+}}, %[[P]]
func.func @never_read(%x: memref<4xf32>, %c0: index, %c1: index) {
  %a = memref.alloc() : memref<4xf32>
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%s = %a) -> (memref<4xf32>) {
    %new = memref.alloc() : memref<4xf32>
    linalg.exp ins(%x : memref<4xf32>) outs(%new : memref<4xf32>)
    scf.yield %new : memref<4xf32>
  }
  return
}
