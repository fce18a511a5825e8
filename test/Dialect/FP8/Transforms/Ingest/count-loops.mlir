// RUN: fp8-opt %s --fp8-count-loops | FileCheck %s -enable-var-scope

// The end and the step go through the loop, the counter is read behind it.
// CHECK-LABEL: func.func @carried
// CHECK-SAME: (%[[N:.+]]: i32, %[[X:.+]]: f32)
// CHECK-DAG: %[[END:.+]] = arith.index_cast %[[N]] : i32 to index
// CHECK: %[[R:.+]]:4 = scf.for %[[I:.+]] = %{{.+}} to %[[END]] step %{{.+}} iter_args(%{{.+}} = %{{.+}}, %[[M:.+]] = %[[N]], %[[ONE:.+]] = %{{.+}}, %[[S:.+]] = %[[X]]) -> (i32, i32, i32, f32)
// CHECK: %[[K:.+]] = arith.index_cast %[[I]] : index to i32
// CHECK: arith.sitofp %[[K]]
// CHECK: return %[[R]]#0, %[[R]]#3
func.func @carried(%n: i32, %x: f32) -> (i32, f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:4 = scf.while (%i = %c0, %m = %n, %one = %c1, %s = %x) : (i32, i32, i32, f32) -> (i32, i32, i32, f32) {
    %more = arith.cmpi sgt, %m, %i : i32
    scf.condition(%more) %i, %m, %one, %s : i32, i32, i32, f32
  } do {
  ^bb0(%i: i32, %m: i32, %one: i32, %s: f32):
    %f = arith.sitofp %i : i32 to f32
    %t = arith.addf %s, %f : f32
    %next = arith.addi %one, %i : i32
    scf.yield %next, %m, %one, %t : i32, i32, i32, f32
  }
  return %r#0, %r#3 : i32, f32
}

// JAX: tensors of one element; the slice's place is computed without them.
// CHECK-LABEL: func.func @tensors
// CHECK: scf.for %[[I:.+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args(%{{.+}} = %{{.+}}) -> (tensor<4xf32>)
// CHECK-NEXT: %[[K:.+]] = arith.index_cast %[[I]] : index to i32
// CHECK: %[[BACK:.+]] = arith.subi %{{.+}}, %[[K]] : i32
// CHECK: %[[PLACE:.+]] = arith.index_cast %[[BACK]] : i32 to index
// CHECK: tensor.extract_slice %{{.+}}[%[[PLACE]], 0]
#none = affine_map<() -> ()>
func.func @tensors(%xs: tensor<3x4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant dense<0> : tensor<i32>
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %r:2 = scf.while (%i = %zero, %a = %y) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
    %e = tensor.empty() : tensor<i1>
    %less = linalg.generic {indexing_maps = [#none, #none], iterator_types = []} ins(%i : tensor<i32>) outs(%e : tensor<i1>) {
    ^bb0(%in: i32, %out: i1):
      %l = arith.cmpi slt, %in, %c3 : i32
      linalg.yield %l : i1
    } -> tensor<i1>
    %more = tensor.extract %less[] : tensor<i1>
    scf.condition(%more) %i, %a : tensor<i32>, tensor<4xf32>
  } do {
  ^bb0(%i: tensor<i32>, %a: tensor<4xf32>):
    %e = tensor.empty() : tensor<i32>
    %back = linalg.generic {indexing_maps = [#none, #none], iterator_types = []} ins(%i : tensor<i32>) outs(%e : tensor<i32>) {
    ^bb0(%in: i32, %out: i32):
      %b = arith.subi %c2, %in : i32
      linalg.yield %b : i32
    } -> tensor<i32>
    %k = tensor.extract %back[] : tensor<i32>
    %place = arith.index_cast %k : i32 to index
    %x = tensor.extract_slice %xs[%place, 0] [1, 4] [1, 1] : tensor<3x4xf32> to tensor<4xf32>
    %sum = arith.addf %a, %x : tensor<4xf32>
    %next = linalg.generic {indexing_maps = [#none, #none], iterator_types = []} ins(%i : tensor<i32>) outs(%e : tensor<i32>) {
    ^bb0(%in: i32, %out: i32):
      %b = arith.addi %in, %c1 : i32
      linalg.yield %b : i32
    } -> tensor<i32>
    scf.yield %next, %sum : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}

// Numbers without sign, and an end that the counter may reach. Results may be in another order.
// CHECK-LABEL: func.func @unsigned
// CHECK: %[[LAST:.+]] = arith.index_castui %{{.+}} : i8 to index
// CHECK: %[[END:.+]] = arith.addi %[[LAST]], %{{.+}} : index
// CHECK: %[[R:.+]] = scf.for %[[I:.+]] = %{{.+}} to %[[END]] step %{{.+}} iter_args(%[[S:.+]] = %{{.+}}) -> (f32)
// CHECK: %[[K:.+]] = arith.index_castui %[[I]] : index to i8
// CHECK: arith.uitofp %[[K]]
// CHECK: return %[[R]]
func.func @unsigned(%n: i8, %x: f32) -> f32 {
  %c0 = arith.constant 0 : i8
  %c3 = arith.constant 3 : i8
  %c200 = arith.constant 200 : i8
  %end = arith.minui %n, %c200 : i8
  %r:2 = scf.while (%i = %c0, %s = %x) : (i8, f32) -> (f32, i8) {
    %more = arith.cmpi ule, %i, %end : i8
    scf.condition(%more) %s, %i : f32, i8
  } do {
  ^bb0(%s: f32, %i: i8):
    %f = arith.uitofp %i : i8 to f32
    %t = arith.addf %s, %f : f32
    %next = arith.addi %i, %c3 : i8
    scf.yield %next, %t : i8, f32
  }
  return %r#0 : f32
}

// A loop in a loop that ends where the counter meets the end.
// CHECK-LABEL: func.func @nested
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: scf.while
// CHECK: return
func.func @nested(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r:2 = scf.while (%i = %c0, %s = %x) : (index, f32) -> (index, f32) {
    %more = arith.cmpi ne, %i, %c4 : index
    scf.condition(%more) %i, %s : index, f32
  } do {
  ^bb0(%i: index, %s: f32):
    %q:2 = scf.while (%j = %i, %t = %s) : (index, f32) -> (index, f32) {
      %more = arith.cmpi slt, %j, %c4 : index
      scf.condition(%more) %j, %t : index, f32
    } do {
    ^bb0(%j: index, %t: f32):
      %u = arith.addf %t, %t : f32
      %next = arith.addi %j, %c1 : index
      scf.yield %next, %u : index, f32
    }
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %q#1 : index, f32
  }
  return %r#1 : f32
}

// These stay: a step that may be 0; a counter that may wrap around before it passes the end; an
// end that changes; a first half that computes what it hands on, or has an effect.
// CHECK-LABEL: func.func @others
// CHECK-NOT: scf.for
// CHECK: return
func.func @others(%n: i32, %m: i32) -> (i32, i32, i32, i32, i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %step = scf.while (%i = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %m : i32
    scf.yield %next : i32
  }
  %wraps = scf.while (%i = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c2 : i32
    scf.yield %next : i32
  }
  %last = scf.while (%i = %c0) : (i32) -> i32 {
    %more = arith.cmpi sle, %i, %n : i32
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  %changes:2 = scf.while (%i = %c0, %end = %n) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi slt, %i, %end : i32
    scf.condition(%more) %i, %end : i32, i32
  } do {
  ^bb0(%i: i32, %end: i32):
    %next = arith.addi %i, %c1 : i32
    %sooner = arith.subi %end, %c1 : i32
    scf.yield %next, %sooner : i32, i32
  }
  %computes = scf.while (%i = %c0) : (i32) -> i32 {
    %next = arith.addi %i, %c1 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.condition(%more) %next : i32
  } do {
  ^bb0(%i: i32):
    scf.yield %i : i32
  }
  %effect = scf.while (%i = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %i, %n : i32
    cf.assert %more, "a message"
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  return %step, %wraps, %last, %changes#0, %computes, %effect : i32, i32, i32, i32, i32, i32
}
