// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-bind-elements))' | FileCheck %s -enable-var-scope

// A scale becomes a view of the state, and an amax of the vector of amaxes.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[STATE:.*]]: memref<4xf32>,
// CHECK: %[[SCALE:.*]] = memref.subview %[[STATE]][2] [1] [1]
// CHECK-NOT: memref.store
// CHECK: %[[AMAXES:.*]] = memref.alloc() : memref<2xf32>
// CHECK: %[[AMAX:.*]] = memref.subview %[[AMAXES]][1] [1] [1]
// CHECK: fp8.quantize {{.*}} scale(%[[SCALE]] {{.*}} outs(%{{.*}}, %{{.*}}, %[[AMAX]] :
// CHECK-NOT: memref.load
// CHECK: memref.store %{{.*}}, %[[AMAXES]][%{{.*}}]
// CHECK-NOT: memref.store
func.func @step(%state: memref<4xf32>, %x: memref<8x8xf32>, %q: memref<8x8xf8E4M3FN>, %new: memref<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %0 = memref.load %state[%c2] : memref<4xf32>
  %scale = memref.alloc() : memref<f32>
  memref.store %0, %scale[] : memref<f32>
  %inv = memref.alloc() : memref<f32>
  %amax = memref.alloc() : memref<f32>
  fp8.quantize record_amax column(2) ins(%x : memref<8x8xf32>) scale(%scale : memref<f32>) outs(%q, %inv, %amax : memref<8x8xf8E4M3FN>, memref<f32>, memref<f32>)
  %1 = memref.load %amax[] : memref<f32>
  %amaxes = memref.alloc() : memref<2xf32>
  memref.store %zero, %amaxes[%c0] : memref<2xf32>
  memref.store %1, %amaxes[%c1] : memref<2xf32>
  memref.copy %amaxes, %new : memref<2xf32> to memref<2xf32>
  return
}

// The vector changes before the copy is used; the copy changes afterwards; the vector is used before: all stay.
// CHECK-LABEL: func.func @changes(
// CHECK-NOT: memref.subview
// CHECK: return
func.func @changes(%state: memref<4xf32>, %x: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %0 = memref.load %state[%c0] : memref<4xf32>
  %early = memref.alloc() : memref<f32>
  memref.store %0, %early[] : memref<f32>
  linalg.fill ins(%zero : f32) outs(%state : memref<4xf32>)
  linalg.broadcast ins(%early : memref<f32>) outs(%x : memref<8xf32>) dimensions = [0]
  %1 = memref.load %state[%c0] : memref<4xf32>
  %written = memref.alloc() : memref<f32>
  memref.store %1, %written[] : memref<f32>
  linalg.fill ins(%zero : f32) outs(%written : memref<f32>)
  linalg.broadcast ins(%written : memref<f32>) outs(%y : memref<8xf32>) dimensions = [0]
  %used = memref.alloc() : memref<2xf32>
  %late = memref.alloc() : memref<f32>
  linalg.fill ins(%zero : f32) outs(%used : memref<2xf32>)
  linalg.fill ins(%zero : f32) outs(%late : memref<f32>)
  %2 = memref.load %late[] : memref<f32>
  memref.store %2, %used[%c0] : memref<2xf32>
  memref.copy %used, %used : memref<2xf32> to memref<2xf32>
  return
}
