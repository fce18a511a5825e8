// Collectives start behind the last operation that touches their buffers, and end before the next one. They
// start in the order of the program, and buffers with gaps are copied.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-overlap-collectives))' | FileCheck %s -enable-var-scope

// CHECK-LABEL: func.func @order
func.func @order(%other: memref<8xf32>, %zero: f32) {
  %a = memref.alloc() : memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  // CHECK: linalg.fill {{.+}} outs(%[[B:.+]] :
  // CHECK-NEXT: linalg.fill {{.+}} outs(%[[A:.+]] :
  // CHECK-NEXT: %[[TA:.+]] = fp8.start_collective all_reduce sum root 0 on(4) axes [0] of("a") from(%[[A]]
  // CHECK-NEXT: %[[TB:.+]] = fp8.start_collective all_reduce max root 0 on(4) axes [0] of("all_reduce") from(%[[B]]
  // CHECK-NEXT: linalg.fill {{.+}} outs(%arg0
  // CHECK-NEXT: fp8.wait_collective %[[TB]]
  // CHECK-NEXT: linalg.copy ins(%[[B]]
  // CHECK-NEXT: fp8.wait_collective %[[TA]]
  // CHECK-NEXT: linalg.copy ins(%[[A]]
  linalg.fill ins(%zero : f32) outs(%b : memref<8xf32>)
  linalg.fill ins(%zero : f32) outs(%a : memref<8xf32>)
  fp8.all_reduce sum on(4) axes [0] of("a") ins(%a : memref<8xf32>) outs(%a : memref<8xf32>)
  linalg.fill ins(%zero : f32) outs(%other : memref<8xf32>)
  fp8.all_reduce max on(4) axes [0] ins(%b : memref<8xf32>) outs(%b : memref<8xf32>)
  linalg.copy ins(%b : memref<8xf32>) outs(%other : memref<8xf32>)
  linalg.copy ins(%a : memref<8xf32>) outs(%other : memref<8xf32>)
  return
}

// CHECK-LABEL: func.func @gaps
func.func @gaps(%x: memref<8x2xf32>) {
  // CHECK: %[[COLUMN:.+]] = memref.subview
  %column = memref.subview %x[0, 1] [8, 1] [1, 1] : memref<8x2xf32> to memref<8x1xf32, strided<[2, 1], offset: 1>>
  // CHECK: %[[COPY:.+]] = memref.alloc() : memref<8x1xf32>
  // CHECK: memref.copy %[[COLUMN]], %[[COPY]]
  // CHECK: %[[T:.+]] = fp8.start_collective broadcast sum root 2 on(4) axes [0] of("broadcast") from(%[[COPY]] : memref<8x1xf32>) to(%[[COPY]] :
  // CHECK: fp8.wait_collective %[[T]]
  // CHECK: memref.copy %[[COPY]], %[[COLUMN]]
  fp8.broadcast 2 on(4) axes [0] ins(%column : memref<8x1xf32, strided<[2, 1], offset: 1>>)
      outs(%column : memref<8x1xf32, strided<[2, 1], offset: 1>>)
  return
}
