// RUN: fp8-opt %s --split-input-file --fp8-outline-kernels | FileCheck %s -enable-var-scope

// Equal but for names and locations; constants move inside.
// CHECK-LABEL: func @equal
// CHECK: call @kernel_elementwise(%arg0, %arg1)
// CHECK: call @kernel_elementwise(%arg1, %arg2)
// CHECK: call @kernel_elementwise_2(%arg2, %arg0)
// CHECK-LABEL: func private @kernel_elementwise
// CHECK-SAME: (%[[X:.*]]: memref<4xf32> {llvm.noalias}, %[[Y:.*]]: memref<4xf32> {llvm.noalias}) attributes {fp8.kernel_kind = "elementwise", llvm.bareptr}
// CHECK: %[[TWO:.*]] = arith.constant 2.0
// CHECK: linalg.generic
// CHECK: arith.mulf %{{.*}}, %[[TWO]]
// CHECK-LABEL: func private @kernel_elementwise_2(
// CHECK: arith.constant 3.0
// CHECK-NOT: func private
#id = affine_map<(i) -> (i)>
func.func @equal(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>) {
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %two : f32
    linalg.yield %0 : f32
  } loc("first")
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%b : memref<4xf32>) outs(%c : memref<4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.mulf %x, %two : f32
    linalg.yield %y : f32
  } loc("second")
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%c : memref<4xf32>) outs(%a : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %three : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Two views of one buffer may overlap: no promise to LLVM. In place is one argument.
// CHECK-LABEL: func @overlap
// CHECK: func private @kernel_copy(%arg0: memref<4xf32, strided<[1]>>, %arg1: memref<f32>, %arg2: index)
// CHECK: func private @kernel_exp(%arg0: memref<8xf32> {llvm.noalias})
func.func @overlap(%a: memref<8xf32>) {
  %0 = memref.subview %a[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  %1 = memref.subview %a[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  memref.copy %0, %1 : memref<4xf32, strided<[1]>> to memref<4xf32, strided<[1], offset: 2>>
  linalg.exp ins(%a : memref<8xf32>) outs(%a : memref<8xf32>)
  return
}

// -----

// A loop of its own is a kernel; one around kernels is not.
// CHECK-LABEL: func @loops
// CHECK: call @kernel_loop(%arg0)
// CHECK: scf.for
// CHECK-NEXT: func.call @kernel_exp(%arg0)
// CHECK-LABEL: func private @kernel_loop
// CHECK: scf.parallel
// CHECK-LABEL: func private @kernel_exp
// CHECK: linalg.exp
func.func @loops(%a: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    memref.store %zero, %a[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    linalg.exp ins(%a : memref<8xf32>) outs(%a : memref<8xf32>)
  }
  return
}

// -----

// Sizes unknown here are passed along with the buffer.
// CHECK-LABEL: func @dynamic
// CHECK: func private @kernel_exp(%arg0: memref<?xf32>) attributes {fp8.kernel_kind = "elementwise"} {
func.func @dynamic(%a: memref<?xf32>) {
  linalg.exp ins(%a : memref<?xf32>) outs(%a : memref<?xf32>)
  return
}

// -----

// A loop that results in a number, as those that combine amaxes do, returns it.
// CHECK-LABEL: func.func @number
// CHECK-NOT: scf.for
// CHECK: %[[AMAX:.*]] = call @kernel_loop(%arg0)
// CHECK: memref.store %[[AMAX]], %arg1[]
// CHECK: func.func private @kernel_loop(%[[PARTS:.*]]: memref<8xf32>{{.*}}) -> f32
// CHECK: %[[MOST:.*]] = scf.for
// CHECK: return %[[MOST]] : f32
func.func @number(%parts: memref<8xf32>, %amax: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %most = scf.for %i = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> f32 {
    %part = memref.load %parts[%i] : memref<8xf32>
    %larger = arith.maximumf %so_far, %part : f32
    scf.yield %larger : f32
  }
  memref.store %most, %amax[] : memref<f32>
  return
}

// -----

// The call names the matmuls that a kernel computes: one kernel serves several sites.
// CHECK-LABEL: func @products
// CHECK: call @kernel_product_fprop_a(%arg0, %arg1) {fp8.kernel_site = "a", fp8.matmuls = [{code = "loops", role = "fprop", site = "a"}]}
// CHECK: call @kernel_product_fprop_a(%arg1, %arg2) {fp8.kernel_site = "b", fp8.matmuls = [{code = "loops", role = "dgrad", site = "b"}]}
// CHECK: func private @kernel_product_fprop_a
// CHECK-NOT: fp8.matmuls
#id = affine_map<(i) -> (i)>
func.func @products(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
      attrs = {fp8.matmuls = [{site = "a", role = "fprop", code = "loops"}]} {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%b : memref<4xf32>) outs(%c : memref<4xf32>)
      attrs = {fp8.matmuls = [{site = "b", role = "dgrad", code = "loops"}]} {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// The slots of a vector differ in their offsets only: kernels get the vector and an offset.
// CHECK-LABEL: func @slots
// CHECK: %[[THIRD:.*]] = memref.subview %arg1[3]
// CHECK: %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[THIRD]]
// CHECK: call @kernel_reduce(%arg0, %[[BASE]], %[[OFFSET]]) : (memref<4xf32>, memref<f32>, index) -> ()
// CHECK: memref.subview %arg1[5]
// CHECK: call @kernel_reduce(%arg0
// CHECK: memref.subview %arg1[%arg2]
// CHECK: call @kernel_reduce(%arg0
// CHECK-LABEL: func private @kernel_reduce
// CHECK-SAME: (%[[X:.*]]: memref<4xf32> {llvm.noalias}, %[[ALL:.*]]: memref<f32> {llvm.noalias}, %[[AT:.*]]: index)
// CHECK: %[[SLOT:.*]] = memref.reinterpret_cast %[[ALL]] to offset: [%[[AT]]], sizes: [], strides: []
// CHECK: linalg.generic {{.*}} ins(%[[X]] : memref<4xf32>) outs(%[[SLOT]] : memref<f32, strided<[], offset: ?>>)
// CHECK-NOT: func private
#one = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
func.func @slots(%x: memref<4xf32>, %state: memref<8xf32>, %i: index) {
  %third = memref.subview %state[3] [1] [1] : memref<8xf32> to memref<f32, strided<[], offset: 3>>
  linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%x : memref<4xf32>) outs(%third : memref<f32, strided<[], offset: 3>>) {
  ^bb0(%in: f32, %most: f32):
    %0 = arith.maximumf %in, %most : f32
    linalg.yield %0 : f32
  }
  %fifth = memref.subview %state[5] [1] [1] : memref<8xf32> to memref<f32, strided<[], offset: 5>>
  linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%x : memref<4xf32>) outs(%fifth : memref<f32, strided<[], offset: 5>>) {
  ^bb0(%in: f32, %most: f32):
    %0 = arith.maximumf %in, %most : f32
    linalg.yield %0 : f32
  }
  %any = memref.subview %state[%i] [1] [1] : memref<8xf32> to memref<f32, strided<[], offset: ?>>
  linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%x : memref<4xf32>) outs(%any : memref<f32, strided<[], offset: ?>>) {
  ^bb0(%in: f32, %most: f32):
    %0 = arith.maximumf %in, %most : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// The views inside of a kernel follow, but a loop that carries a view keeps its type.
// CHECK-LABEL: func @views
// CHECK-LABEL: func private @kernel_loop
// CHECK-SAME: (%[[ALL:.*]]: memref<f32> {{.*}}, %[[AT:.*]]: index)
// CHECK: %[[ROWS:.*]] = memref.reinterpret_cast %[[ALL]] to offset: [%[[AT]]], sizes: [2, 4], strides: [4, 1]
// CHECK: %[[ROW:.*]] = memref.subview %[[ROWS]][1, 0] {{.*}} to memref<4xf32, strided<[1], offset: ?>>
// CHECK: memref.store %{{.*}}, %[[ROW]]
// CHECK-LABEL: func private @kernel_loop_2(%arg0: memref<2x4xf32, strided<[4, 1], offset: 8>>
func.func @views(%stack: memref<4x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %rows = memref.subview %stack[2, 0] [2, 4] [1, 1] : memref<4x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 8>>
  scf.for %i = %c0 to %c4 step %c1 {
    %row = memref.subview %rows[1, 0] [1, 4] [1, 1]
        : memref<2x4xf32, strided<[4, 1], offset: 8>> to memref<4xf32, strided<[1], offset: 12>>
    memref.store %zero, %row[%i] : memref<4xf32, strided<[1], offset: 12>>
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %same = scf.for %j = %c0 to %c4 step %c1 iter_args(%view = %rows) -> memref<2x4xf32, strided<[4, 1], offset: 8>> {
      memref.store %zero, %view[%c0, %j] : memref<2x4xf32, strided<[4, 1], offset: 8>>
      scf.yield %view : memref<2x4xf32, strided<[4, 1], offset: 8>>
    }
  }
  return
}

// -----

// A name says what a kernel computes and for which site, the first of several. It takes no part in whether
// kernels are equal. Fused code has no single
// primitive, but often a function that takes most of its time.
// CHECK-LABEL: func @names
// CHECK: call @kernel_tanh_h0_mlp(%arg0, %arg1) {fp8.kernel_site = "h0/mlp"}
// CHECK: call @kernel_tanh_h0_mlp(%arg1, %arg0) {fp8.kernel_site = "h1/mlp"}
// CHECK: call @kernel_epilogue_h0_fc1(%arg0, %arg2) {fp8.kernel_site = "h0/fc1"}
// CHECK: call @kernel_reduce_sum_ln_f(%arg0, %arg3) {fp8.kernel_site = "ln_f"}
// CHECK: call @kernel_elementwise_tanh_h0_mlp(%arg0, %arg1) {fp8.kernel_site = "h0/mlp"}
// CHECK: call @kernel_update_st_0_w(%arg1, %arg4) {fp8.kernel_site = "st[0]['w']"}
// CHECK: call @kernel_copy_a_very_long_name_of_a_site_that_does_not_e(%arg0, %arg1) {fp8.kernel_site = "a_very_long_name_of_a_site_that_does_not_end_so_soon"}
// CHECK: call @kernel_copy_a_very_long_name_of_a_site_that_does_not_e_2(%arg3, %arg5)
// CHECK: func private @kernel_epilogue_h0_fc1{{.*}} attributes {fp8.kernel_kind = "epilogues"
// CHECK-NOT: fp8.computes
// CHECK: func private @kernel_reduce_sum_ln_f{{.*}} attributes {fp8.kernel_kind = "reductions"
#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
func.func @names(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>, %s: memref<f32>,
                 %w: memref<4xf32> {tf.aliasing_output = 0 : i32} loc("st[0]['w']"), %t: memref<f32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } loc("jit(step)/jvp(h0)/mlp/tanh")
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%b : memref<4xf32>) outs(%a : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } loc("jit(step)/jvp(h1)/mlp/tanh")
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %0 = memref.load %a[%i] : memref<4xf32>
    memref.store %0, %c[%i] : memref<4xf32>
  } {fp8.computes = "epilogue"} loc("jit(step)/h0/fc1/dot_general")
  linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%a : memref<4xf32>) outs(%s : memref<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } loc("jit(step)/ln_f/reduce_sum")
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    %1 = arith.mulf %0, %in : f32
    linalg.yield %1 : f32
  } loc("jit(step)/jvp(h0)/mlp/mul")
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%b : memref<4xf32>) outs(%w : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %out, %in : f32
    %1 = arith.addf %0, %in : f32
    linalg.yield %1 : f32
  } loc("jit(step)/add")
  memref.copy %a, %b : memref<4xf32> to memref<4xf32> loc("jit(step)/a_very_long_name_of_a_site_that_does_not_end_so_soon/copy")
  memref.copy %s, %t : memref<f32> to memref<f32> loc("jit(step)/a_very_long_name_of_a_site_that_does_not_end_so_soon/copy")
  return
}

// -----

// A bf16 from outside is passed as its bits.
//
// CHECK-LABEL: func.func @bf16
func.func @bf16(%a: memref<bf16>, %b: memref<4xbf16>) {
  // CHECK: %[[VALUE:.*]] = memref.load
  // CHECK: %[[BITS:.*]] = arith.bitcast %[[VALUE]] : bf16 to i16
  // CHECK: call @kernel_fill(%[[BITS]], %{{.*}}) : (i16, memref<4xbf16>) -> ()
  %value = memref.load %a[] : memref<bf16>
  linalg.fill ins(%value : bf16) outs(%b : memref<4xbf16>)
  return
}
// CHECK: func.func private @kernel_fill(%[[GIVEN:.*]]: i16
// CHECK: %[[BACK:.*]] = arith.bitcast %[[GIVEN]] : i16 to bf16
// CHECK: linalg.fill ins(%[[BACK]] : bf16)
