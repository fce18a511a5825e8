// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks that divide rows among groups. Values: test/python/steps/test_experts.py.
// RUN: fp8-opt %s --fp8-raise-row-groups | FileCheck %s -enable-var-scope

#g = affine_map<(g, t, k) -> (g)>
#tk = affine_map<(g, t, k) -> (t, k)>
#gtk = affine_map<(g, t, k) -> (g, t, k)>
#fwd_a = affine_map<(m, n, k, g) -> (g, m, k)>
#fwd_b = affine_map<(m, n, k, g) -> (g, k, n)>
#fwd_c = affine_map<(m, n, k, g) -> (m, n)>

// CHECK-LABEL: func @one_operation
// CHECK-SAME: (%[[X:.*]]: tensor<8x6xf32>, %[[W:.*]]: tensor<3x6x5xf32>, %[[ENDS:.*]]: tensor<3xi32>
// CHECK-NOT: linalg.generic
// CHECK: %[[ROWS:.*]] = fp8.group_rows ins(%[[X]], %[[ENDS]] : tensor<8x6xf32>, tensor<3xi32>) -> tensor<3x8x6xf32>
// CHECK-NEXT: fp8.matmul ins(%[[ROWS]], %[[W]]
func.func @one_operation(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %first = arith.constant dense<0> : tensor<1xi32>
  %before = tensor.extract_slice %ends[0] [2] [1] : tensor<3xi32> to tensor<2xi32>
  %starts = tensor.concat dim(0) %first, %before : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %masked = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %starts, %ends : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
    %index = linalg.index 1 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sle, %start, %t : i32
    %to = arith.cmpi slt, %t, %end : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>)
    {indexing_maps = [#fwd_a, #fwd_b, #fwd_c]} -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// As JAX writes it: every step of the mask in an operation of its own, on the whole of [groups, rows, columns], and the
// starts as a loop that chooses between two slices.
// CHECK-LABEL: func @many_operations
// CHECK-SAME: (%[[X:.*]]: tensor<8x6xf32>, %{{.*}}: tensor<3x6x5xf32>, %[[ENDS:.*]]: tensor<3xi32>
// CHECK-NOT: arith.select
// CHECK: fp8.group_rows ins(%[[X]], %[[ENDS]] :
func.func @many_operations(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %none = arith.constant dense<0> : tensor<i32>
  %c1 = arith.constant 1 : index
  %e3 = tensor.empty() : tensor<3xi32>
  %zeros = linalg.generic {indexing_maps = [affine_map<(g) -> ()>, affine_map<(g) -> (g)>], iterator_types = ["parallel"]} ins(%none : tensor<i32>) outs(%e3 : tensor<3xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<3xi32>
  %first = tensor.extract_slice %zeros[0] [1] [1] : tensor<3xi32> to tensor<1xi32>
  %before = tensor.extract_slice %ends[0] [2] [1] : tensor<3xi32> to tensor<2xi32>
  %starts = linalg.generic {indexing_maps = [affine_map<(g) -> (g)>], iterator_types = ["parallel"]} outs(%e3 : tensor<3xi32>) {
  ^bb0(%out: i32):
    %g = linalg.index 0 : index
    %isFirst = arith.cmpi ult, %g, %c1 : index
    %start = scf.if %isFirst -> (i32) {
      %a = tensor.extract %first[%g] : tensor<1xi32>
      scf.yield %a : i32
    } else {
      %p = arith.subi %g, %c1 : index
      %a = tensor.extract %before[%p] : tensor<2xi32>
      scf.yield %a : i32
    }
    linalg.yield %start : i32
  } -> tensor<3xi32>
  %e_i32 = tensor.empty() : tensor<3x8x6xi32>
  %e_i1 = tensor.empty() : tensor<3x8x6xi1>
  %e_f32 = tensor.empty() : tensor<3x8x6xf32>
  %t = linalg.generic {indexing_maps = [#gtk], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e_i32 : tensor<3x8x6xi32>) {
  ^bb0(%out: i32):
    %index = linalg.index 1 : index
    %row = arith.index_cast %index : index to i32
    linalg.yield %row : i32
  } -> tensor<3x8x6xi32>
  %all = linalg.generic {indexing_maps = [#tk, #gtk], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<8x6xf32>) outs(%e_f32 : tensor<3x8x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x8x6xf32>
  %s = linalg.generic {indexing_maps = [#g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]} ins(%starts : tensor<3xi32>) outs(%e_i32 : tensor<3x8x6xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<3x8x6xi32>
  %n = linalg.generic {indexing_maps = [#g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]} ins(%ends : tensor<3xi32>) outs(%e_i32 : tensor<3x8x6xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<3x8x6xi32>
  %from = linalg.generic {indexing_maps = [#gtk, #gtk, #gtk], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %t : tensor<3x8x6xi32>, tensor<3x8x6xi32>) outs(%e_i1 : tensor<3x8x6xi1>) {
  ^bb0(%a: i32, %b: i32, %out: i1):
    %c = arith.cmpi sle, %a, %b : i32
    linalg.yield %c : i1
  } -> tensor<3x8x6xi1>
  %to = linalg.generic {indexing_maps = [#gtk, #gtk, #gtk], iterator_types = ["parallel", "parallel", "parallel"]} ins(%t, %n : tensor<3x8x6xi32>, tensor<3x8x6xi32>) outs(%e_i1 : tensor<3x8x6xi1>) {
  ^bb0(%a: i32, %b: i32, %out: i1):
    %c = arith.cmpi slt, %a, %b : i32
    linalg.yield %c : i1
  } -> tensor<3x8x6xi1>
  %inside = linalg.generic {indexing_maps = [#gtk, #gtk, #gtk], iterator_types = ["parallel", "parallel", "parallel"]} ins(%from, %to : tensor<3x8x6xi1>, tensor<3x8x6xi1>) outs(%e_i1 : tensor<3x8x6xi1>) {
  ^bb0(%a: i1, %b: i1, %out: i1):
    %c = arith.andi %a, %b : i1
    linalg.yield %c : i1
  } -> tensor<3x8x6xi1>
  %masked = linalg.generic {indexing_maps = [#gtk, #gtk, #gtk], iterator_types = ["parallel", "parallel", "parallel"]} ins(%inside, %all : tensor<3x8x6xi1>, tensor<3x8x6xf32>) outs(%e_f32 : tensor<3x8x6xf32>) {
  ^bb0(%a: i1, %b: f32, %out: f32):
    %c = arith.select %a, %b, %zero : f32
    linalg.yield %c : f32
  } -> tensor<3x8x6xf32>
  %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>)
    {indexing_maps = [#fwd_a, #fwd_b, #fwd_c]} -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// The ends are computed for each product again, and are one value after.
// CHECK-LABEL: func @same_ends
// CHECK: %[[ENDS:.*]] = arith.addi
// CHECK: fp8.group_rows ins(%{{.*}}, %[[ENDS]] :
// CHECK-NOT: arith.addi
// CHECK: fp8.group_rows ins(%{{.*}}, %[[ENDS]] :
func.func @same_ends(%x: tensor<8x6xf32>, %dy: tensor<8x6xf32>, %sizes: tensor<3xi32>, %i: tensor<3x6x6xf32>) -> tensor<3x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %first = arith.constant dense<0> : tensor<1xi32>
  %ends = arith.addi %sizes, %sizes : tensor<3xi32>
  %before = tensor.extract_slice %ends[0] [2] [1] : tensor<3xi32> to tensor<2xi32>
  %starts = tensor.concat dim(0) %first, %before : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %a = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %starts, %ends : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
    %index = linalg.index 1 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sle, %start, %t : i32
    %to = arith.cmpi slt, %t, %end : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  %ends2 = arith.addi %sizes, %sizes : tensor<3xi32>
  %before2 = tensor.extract_slice %ends2[0] [2] [1] : tensor<3xi32> to tensor<2xi32>
  %starts2 = tensor.concat dim(0) %first, %before2 : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %b = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%dy, %starts2, %ends2 : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
    %index = linalg.index 1 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sle, %start, %t : i32
    %to = arith.cmpi slt, %t, %end : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  %dw = fp8.matmul ins(%a, %b : tensor<3x8x6xf32>, tensor<3x8x6xf32>) outs(%i : tensor<3x6x6xf32>)
    {indexing_maps = [affine_map<(g, m, n, k) -> (g, k, m)>, affine_map<(g, m, n, k) -> (g, k, n)>, affine_map<(g, m, n, k) -> (g, m, n)>]} -> tensor<3x6x6xf32>
  return %dw : tensor<3x6x6xf32>
}

// The starts may be anything.
// CHECK-LABEL: func @other_starts
// CHECK-NOT: fp8.group_rows
// CHECK: linalg.generic
func.func @other_starts(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>, %starts: tensor<3xi32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %masked = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %starts, %ends : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
    %index = linalg.index 1 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sle, %start, %t : i32
    %to = arith.cmpi slt, %t, %end : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>)
    {indexing_maps = [#fwd_a, #fwd_b, #fwd_c]} -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// The first rows belong to no group.
// CHECK-LABEL: func @first_is_not_zero
// CHECK-NOT: fp8.group_rows
// CHECK: linalg.generic
func.func @first_is_not_zero(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %first = arith.constant dense<1> : tensor<1xi32>
  %before = tensor.extract_slice %ends[0] [2] [1] : tensor<3xi32> to tensor<2xi32>
  %starts = tensor.concat dim(0) %first, %before : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %masked = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %starts, %ends : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
    %index = linalg.index 1 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sle, %start, %t : i32
    %to = arith.cmpi slt, %t, %end : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>)
    {indexing_maps = [#fwd_a, #fwd_b, #fwd_c]} -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// The last row of a group belongs to the next one, too.
// CHECK-LABEL: func @ends_belong
// CHECK-NOT: fp8.group_rows
// CHECK: linalg.generic
func.func @ends_belong(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %first = arith.constant dense<0> : tensor<1xi32>
  %before = tensor.extract_slice %ends[0] [2] [1] : tensor<3xi32> to tensor<2xi32>
  %starts = tensor.concat dim(0) %first, %before : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %masked = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %starts, %ends : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
    %index = linalg.index 1 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sle, %start, %t : i32
    %to = arith.cmpi sle, %t, %end : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>)
    {indexing_maps = [#fwd_a, #fwd_b, #fwd_c]} -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// Columns are divided, not rows.
// CHECK-LABEL: func @columns
// CHECK-NOT: fp8.group_rows
// CHECK: linalg.generic
func.func @columns(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %first = arith.constant dense<0> : tensor<1xi32>
  %before = tensor.extract_slice %ends[0] [2] [1] : tensor<3xi32> to tensor<2xi32>
  %starts = tensor.concat dim(0) %first, %before : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %masked = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %starts, %ends : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
    %index = linalg.index 2 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sle, %start, %t : i32
    %to = arith.cmpi slt, %t, %end : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>)
    {indexing_maps = [#fwd_a, #fwd_b, #fwd_c]} -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// Other rows are 1.
// CHECK-LABEL: func @ones
// CHECK-NOT: fp8.group_rows
// CHECK: linalg.generic
func.func @ones(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %first = arith.constant dense<0> : tensor<1xi32>
  %before = tensor.extract_slice %ends[0] [2] [1] : tensor<3xi32> to tensor<2xi32>
  %starts = tensor.concat dim(0) %first, %before : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %one = arith.constant 1.0 : f32
  %masked = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %starts, %ends : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
    %index = linalg.index 1 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sle, %start, %t : i32
    %to = arith.cmpi slt, %t, %end : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %one : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>)
    {indexing_maps = [#fwd_a, #fwd_b, #fwd_c]} -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// Something else reads the mask's result.
// CHECK-LABEL: func @other_reader
// CHECK-NOT: fp8.group_rows
// CHECK: linalg.generic
func.func @other_reader(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>) -> (tensor<8x5xf32>, tensor<3x8x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %first = arith.constant dense<0> : tensor<1xi32>
  %before = tensor.extract_slice %ends[0] [2] [1] : tensor<3xi32> to tensor<2xi32>
  %starts = tensor.concat dim(0) %first, %before : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %masked = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %starts, %ends : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
    %index = linalg.index 1 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sle, %start, %t : i32
    %to = arith.cmpi slt, %t, %end : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>)
    {indexing_maps = [#fwd_a, #fwd_b, #fwd_c]} -> tensor<8x5xf32>
  return %y, %masked : tensor<8x5xf32>, tensor<3x8x6xf32>
}

// How many groups there are is not known.
// CHECK-LABEL: func @dynamic_groups
// CHECK-NOT: fp8.group_rows
// CHECK: linalg.generic
func.func @dynamic_groups(%x: tensor<8x6xf32>, %w: tensor<?x6x5xf32>, %starts: tensor<?xi32>, %ends: tensor<?xi32>, %e: tensor<?x8x6xf32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %masked = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %starts, %ends : tensor<8x6xf32>, tensor<?xi32>, tensor<?xi32>) outs(%e : tensor<?x8x6xf32>) {
  ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
    %index = linalg.index 1 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sle, %start, %t : i32
    %to = arith.cmpi slt, %t, %end : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<?x8x6xf32>
  %y = fp8.matmul ins(%masked, %w : tensor<?x8x6xf32>, tensor<?x6x5xf32>) outs(%i : tensor<8x5xf32>)
    {indexing_maps = [#fwd_a, #fwd_b, #fwd_c]} -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}
