// RUN: fp8-opt %s --fp8-mark-costs | FileCheck %s

// 1 read and 1 written buffer of 32 bytes, an operation per element; per call, whatever later passes do to the kernel.
// CHECK-LABEL: func.func @entry
// CHECK: call @kernel_exp(%arg0, %arg1) {fp8.kernel_cost = {operations = 8 : i64, read = 32 : i64, written = 32 : i64}}
// CHECK: call @kernel_copy(%arg0, %{{.*}}) {fp8.kernel_cost = {operations = 0 : i64}}
// CHECK: call @elsewhere() : () -> ()
func.func @entry(%a: memref<8xf32>, %b: memref<8xf32>, %d: memref<?xf32>) {
  call @kernel_exp(%a, %b) : (memref<8xf32>, memref<8xf32>) -> ()
  call @kernel_copy(%a, %d) : (memref<8xf32>, memref<?xf32>) -> ()
  call @elsewhere() : () -> ()
  return
}
func.func private @elsewhere()
func.func private @kernel_exp(%x: memref<8xf32>, %y: memref<8xf32>) {
  linalg.exp ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
// CHECK-LABEL: func.func private @kernel_copy
func.func private @kernel_copy(%x: memref<8xf32>, %y: memref<?xf32>) {
  memref.copy %y, %y : memref<?xf32> to memref<?xf32>
  return
}
