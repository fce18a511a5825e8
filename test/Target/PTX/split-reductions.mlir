// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-split-reductions))' | FileCheck %s -enable-var-scope
// Values: test/python/gpu/test_map_reductions.py.

#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
#columns = affine_map<(i, j) -> (j)>
#none = affine_map<(i, j) -> ()>

// Both dimensions count as one. 120,300 has no number of parts near 58 that divides it but 50.
// CHECK-LABEL: func.func @norm(
// CHECK-SAME: %[[X:.*]]: memref<300x401xf32>, %[[Y:.*]]: memref<f32>)
// CHECK: %[[ALL:.*]] = memref.collapse_shape %[[X]]
// CHECK: %[[PARTS:.*]] = memref.alloc() : memref<50xf32>
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%[[PARTS]] : memref<50xf32>)
// CHECK: %[[DIVIDED:.*]] = memref.expand_shape %[[ALL]] {{.*}} : memref<120300xf32> into memref<50x2406xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[DIVIDED]] : {{.*}}) outs(%[[PARTS]] : {{.*}}) attrs = {fp8.site = "norm"}
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} ins(%[[PARTS]] : memref<50xf32>) outs(%[[Y]] : memref<f32>) attrs = {fp8.computes = "combine_parts"}
// CHECK-NOT: arith.mulf
// CHECK: arith.addf
func.func @norm(%x: memref<300x401xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%x : memref<300x401xf32>) outs(%y : memref<f32>)
      attrs = {fp8.site = "norm"} {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// A thread per column and part: parts come first. The last 5 rows are added on their own.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME: %[[X:.*]]: memref<2003x70xf32>, %[[Y:.*]]: memref<70xf32>)
// CHECK: %[[PARTS:.*]] = memref.alloc() : memref<[[N:.*]]x70xf32>
// CHECK: memref.subview %[[X]][0, 0]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "parallel"]} ins(%{{.*}} : memref<[[N]]x{{.*}}x70xf32, {{.*}}>) outs(%[[PARTS]] :
// CHECK: %[[REST:.*]] = memref.subview %[[X]]
// CHECK: linalg.generic {{.*}} ins(%[[REST]] : {{.*}}) outs(%[[Y]] :
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[PARTS]] : {{.*}}) outs(%[[Y]] :
func.func @columns(%x: memref<2003x70xf32>, %y: memref<70xf32>) {
  linalg.reduce {arith.addf} ins(%x : memref<2003x70xf32>) outs(%y : memref<70xf32>) dimensions = [0]
  return
}

// Elements that are not adjacent: a thread per part, and one for their values.
// CHECK-LABEL: func.func @apart(
// CHECK: memref.expand_shape {{.*}} into memref<200x200x
// CHECK: linalg.generic {indexing_maps = [#[[$IN:.*]], #[[$OUT:.*]]], iterator_types = ["parallel", "reduction"]}
func.func @apart(%x: memref<40000xf32, strided<[2]>>, %y: memref<i1>) {
  %most = arith.constant 3.0e38 : f32
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<40000xf32, strided<[2]>>) outs(%y : memref<i1>) {
  ^bb0(%a: f32, %all: i1):
    %0 = arith.cmpf ole, %a, %most : f32
    %1 = arith.andi %all, %0 : i1
    linalg.yield %1 : i1
  }
  return
}

// Sums of integers may wrap in another order.
// CHECK-LABEL: func.func @wraps(
// CHECK-NOT: overflow
// CHECK-LABEL: func.func @others(
func.func @wraps(%x: memref<99999xi32>, %y: memref<i32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<99999xi32>) outs(%y : memref<i32>) {
  ^bb0(%a: i32, %sum: i32):
    %0 = arith.addi %sum, %a overflow<nsw> : i32
    linalg.yield %0 : i32
  }
  return
}

// Reductions that stay: those of up to 65,536 adjacent elements, which a block takes, those with many
// results, those that use positions, sums of bf16, and what is a part of a kernel.
// CHECK-NOT: memref.expand_shape
// CHECK: return
func.func @others(%blocks: memref<4096x4096xf32, affine_map<(i, j) -> (j floordiv 128, i, j mod 128)>>, %x: memref<4096x4096xf32>, %b: memref<99999xbf16>, %short: memref<65536xf32>, %y: memref<4096xf32>, %z: memref<i32>, %s: memref<bf16>,
                  %t: memref<f32>) {
  linalg.reduce {arith.addf} ins(%x : memref<4096x4096xf32>) outs(%y : memref<4096xf32>) dimensions = [1]
  linalg.reduce {arith.addf} ins(%blocks : memref<4096x4096xf32, affine_map<(i, j) -> (j floordiv 128, i, j mod 128)>>) outs(%t : memref<f32>) dimensions = [0, 1]
  linalg.reduce {arith.addf} ins(%b : memref<99999xbf16>) outs(%s : memref<bf16>) dimensions = [0]
  linalg.reduce {arith.addf} ins(%short : memref<65536xf32>) outs(%t : memref<f32>) dimensions = [0]
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%b : memref<99999xbf16>) outs(%z : memref<i32>) {
  ^bb0(%a: bf16, %last: i32):
    %i = linalg.index 0 : index
    %0 = arith.index_cast %i : index to i32
    %1 = arith.maxsi %last, %0 : i32
    linalg.yield %1 : i32
  }
  scf.execute_region {
    linalg.reduce {arith.addf} ins(%b : memref<99999xbf16>) outs(%s : memref<bf16>) dimensions = [0]
    scf.yield
  } {fp8.kernel}
  return
}

// -----

// The order of the program.
// CHECK-LABEL: func.func @in_order(
// CHECK-NOT: memref.expand_shape
module attributes {fp8.program_order} {
  func.func @in_order(%x: memref<99999xf32>, %y: memref<f32>) {
    linalg.reduce {arith.addf} ins(%x : memref<99999xf32>) outs(%y : memref<f32>) dimensions = [0]
    return
  }
}
