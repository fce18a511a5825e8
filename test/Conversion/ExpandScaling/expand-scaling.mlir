// Values are checked by test/python/recipe/test_scale_rules.py.
// RUN: fp8-opt %s --fp8-expand-scaling | FileCheck %s

// Columns that no amax belongs to (here 1) are stepped over.
// CHECK-LABEL: func.func @update_amax_history
func.func @update_amax_history(%a: memref<2xf32>, %s: memref<3xf32>, %h: memref<4x3xf32>) {
  // CHECK-NOT: {{^ *(%.* = )?fp8\.}}
  // CHECK: return
  fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0, 2] formats [f8E4M3FN, f8E5M2]
      ins(%a : memref<2xf32>) outs(%s, %h : memref<3xf32>, memref<4x3xf32>)
  return
}

// One loop per dimension, also of dynamic size, around the rule of the recipe.
// CHECK-LABEL: func.func @scale_per_row
// CHECK-SAME: %[[AMAX:.+]]: memref<?x1xf32>, %[[SCALE:.+]]: memref<?x1xf32>
func.func @scale_per_row(%a: memref<?x1xf32>, %s: memref<?x1xf32>) {
  // CHECK: %[[ROWS:.+]] = memref.dim %[[AMAX]]
  // CHECK: scf.for %[[ROW:.+]] = %{{.+}} to %[[ROWS]]
  // CHECK: scf.for %[[COLUMN:.+]] =
  // CHECK: %[[A:.+]] = memref.load %[[AMAX]][%[[ROW]], %[[COLUMN]]]
  // CHECK: arith.divf %{{.+}}, %[[A]] : f32
  // CHECK: memref.store %{{.+}}, %[[SCALE]][%[[ROW]], %[[COLUMN]]]
  // CHECK-NOT: fp8.compute_scale
  fp8.compute_scale recipe(#fp8.row_scaling) format(f8E4M3FN) ins(%a : memref<?x1xf32>) outs(%s : memref<?x1xf32>)
  return
}
