// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-plan-workspace | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-plan-workspace=reuse=false | FileCheck %s --check-prefix=SEPARATE

// %a is dead when %c is written, so both live at offset 0; %b meets both.
// SEPARATE: func @chain({{.*}}: memref<192xi8>) attributes {fp8.workspace_bytes = 192 : i64}
// CHECK-LABEL: func @chain
// CHECK-SAME: (%[[X:.*]]: memref<4xf32>, %[[W:.*]]: memref<128xi8>) attributes {fp8.workspace_bytes = 128 : i64}
// CHECK: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[A:.*]] = memref.view %[[W]][%[[C0]]][] : memref<128xi8> to memref<4xf32>
// CHECK: memref.copy %[[X]], %[[A]]
// CHECK: %[[C64:.*]] = arith.constant 64 : index
// CHECK: %[[B:.*]] = memref.view %[[W]][%[[C64]]][]
// CHECK: memref.copy %[[A]], %[[B]]
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[C:.*]] = memref.view %[[W]][%[[ZERO]]][]
// CHECK: memref.copy %[[B]], %[[C]]
// CHECK-NOT: memref.dealloc
func.func @chain(%x: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  memref.dealloc %a : memref<4xf32>
  %c = memref.alloc() : memref<4xf32>
  memref.copy %b, %c : memref<4xf32> to memref<4xf32>
  memref.copy %c, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// The largest buffer is the last one: placed first, it would leave a gap below %a that %c does not fit into, 448 bytes
// in all. %a, which lives longest, comes first.
// CHECK-LABEL: func @longest_first
// CHECK-SAME: fp8.workspace_bytes = 384
// CHECK: arith.constant 0 : index
// CHECK: arith.constant 128 : index
// CHECK: arith.constant 256 : index
// CHECK: arith.constant 128 : index
func.func @longest_first(%x: memref<32xf32>, %y: memref<48xf32>) {
  %a = memref.alloc() : memref<32xf32>
  memref.copy %x, %a : memref<32xf32> to memref<32xf32>
  %b = memref.alloc() : memref<32xf32>
  memref.copy %a, %b : memref<32xf32> to memref<32xf32>
  %c = memref.alloc() : memref<32xf32>
  memref.copy %b, %c : memref<32xf32> to memref<32xf32>
  memref.copy %c, %x : memref<32xf32> to memref<32xf32>
  %d = memref.alloc() : memref<48xf32>
  memref.copy %y, %d : memref<48xf32> to memref<48xf32>
  memref.copy %d, %y : memref<48xf32> to memref<48xf32>
  memref.copy %a, %x : memref<32xf32> to memref<32xf32>
  return
}

// -----

// A view keeps its buffer alive; so does the result of a conditional.
// CHECK-LABEL: func @views
// CHECK-SAME: fp8.workspace_bytes = 192
// CHECK: arith.constant 0 : index
// CHECK: arith.constant 64 : index
// CHECK: arith.constant 128 : index
func.func @views(%x: memref<2x2xf32>, %cond: i1) {
  %a = memref.alloc() : memref<4xf32>
  %view = memref.expand_shape %a [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
  %b = memref.alloc() : memref<2x2xf32>
  %either = scf.if %cond -> memref<2x2xf32> {
    scf.yield %view : memref<2x2xf32>
  } else {
    scf.yield %b : memref<2x2xf32>
  }
  %c = memref.alloc() : memref<2x2xf32>
  memref.copy %x, %c : memref<2x2xf32> to memref<2x2xf32>
  memref.copy %either, %x : memref<2x2xf32> to memref<2x2xf32>
  return
}

// -----

// Buffers in a loop live as long as it runs. Largest first: the 40 bytes take 64.
// CHECK-LABEL: func @loop
// CHECK-SAME: fp8.workspace_bytes = 1088
// CHECK: scf.for
// CHECK: arith.constant 1024 : index
// CHECK: memref.view {{.*}} to memref<10xf32>
// CHECK: arith.constant 0 : index
// CHECK: memref.view {{.*}} to memref<256xf32>
func.func @loop(%x: memref<10xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.alloc() : memref<10xf32>
    memref.copy %x, %a : memref<10xf32> to memref<10xf32>
    %b = memref.alloc() : memref<256xf32>
    linalg.exp ins(%b : memref<256xf32>) outs(%b : memref<256xf32>)
    memref.copy %a, %x : memref<10xf32> to memref<10xf32>
  }
  return
}

// -----

// One byte for an FP8 number and for a truth value.
// CHECK-LABEL: func @bytes
// CHECK-SAME: fp8.workspace_bytes = 256
func.func @bytes() {
  %a = memref.alloc() : memref<128xf8E4M3FN>
  %b = memref.alloc() : memref<128xi1>
  linalg.copy ins(%a : memref<128xf8E4M3FN>) outs(%a : memref<128xf8E4M3FN>)
  linalg.copy ins(%b : memref<128xi1>) outs(%b : memref<128xi1>)
  linalg.copy ins(%a : memref<128xf8E4M3FN>) outs(%a : memref<128xf8E4M3FN>)
  return
}

// -----

// A buffer without elements takes no place.
// CHECK-LABEL: func @empty(%arg0: memref<4x0xf32>) attributes {fp8.workspace_bytes = 0 : i64}
// CHECK: memref.alloca() : memref<4x0xf32>
func.func @empty(%x: memref<4x0xf32>) {
  %a = memref.alloc() : memref<4x0xf32>
  memref.copy %x, %a : memref<4x0xf32> to memref<4x0xf32>
  return
}

// -----

// CHECK-LABEL: func @nothing(%arg0: memref<4xf32>) attributes {fp8.workspace_bytes = 0 : i64}
func.func @nothing(%x: memref<4xf32>) {
  return
}

// -----

// A buffer of dynamic size is freed after its last use, but not if it is returned or leaves its block.
// CHECK-LABEL: func @dynamic
// CHECK-SAME: fp8.workspace_bytes = 0
// CHECK: %[[A:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK: %[[B:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK: %[[VIEW:.*]] = memref.expand_shape %[[A]]
// CHECK: memref.copy %[[VIEW]]
// CHECK-NEXT: memref.dealloc %[[A]]
// CHECK: %[[R:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK: scf.if
// CHECK-NEXT: memref.alloc
// CHECK-NEXT: scf.yield
// CHECK: memref.copy %{{.*}}, %[[R]]
// CHECK-NEXT: memref.dealloc %[[B]]
// CHECK-NEXT: return %[[R]]
func.func @dynamic(%x: memref<?x2xf32>, %n: index, %cond: i1) -> memref<?xf32> {
  %c2 = arith.constant 2 : index
  %half = arith.divui %n, %c2 : index
  %a = memref.alloc(%n) : memref<?xf32>
  %b = memref.alloc(%n) : memref<?xf32>
  %view = memref.expand_shape %a [[0, 1]] output_shape [%half, 2] : memref<?xf32> into memref<?x2xf32>
  memref.copy %view, %x : memref<?x2xf32> to memref<?x2xf32>
  %r = memref.alloc(%n) : memref<?xf32>
  %either = scf.if %cond -> memref<?xf32> {
    %c = memref.alloc(%n) : memref<?xf32>
    scf.yield %c : memref<?xf32>
  } else {
    scf.yield %b : memref<?xf32>
  }
  memref.copy %either, %r : memref<?xf32> to memref<?xf32>
  return %r : memref<?xf32>
}

// -----

func.func @carried(%x: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %x) -> memref<4xf32> {
    // expected-error @below {{temporary 'memref<4xf32>' is handed from one loop iteration to the next}}
    %new = memref.alloc() : memref<4xf32>
    linalg.exp ins(%old : memref<4xf32>) outs(%new : memref<4xf32>)
    scf.yield %new : memref<4xf32>
  }
  return
}

// -----

func.func @parallel(%x: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    // expected-error @below {{temporary 'memref<4xf32>' inside of a parallel loop, where every thread needs its own, is not supported yet}}
    %new = memref.alloc() : memref<4xf32>
    memref.copy %x, %new : memref<4xf32> to memref<4xf32>
  }
  return
}

// -----

// Complex numbers are two of their parts.
// CHECK-LABEL: func @complex
// CHECK-SAME: attributes {fp8.workspace_bytes = 128 : i64}
// CHECK: memref.view %{{.*}} to memref<9xcomplex<f32>>
func.func @complex(%x: memref<9xcomplex<f32>>) {
  %a = memref.alloc() : memref<9xcomplex<f32>>
  memref.copy %x, %a : memref<9xcomplex<f32>> to memref<9xcomplex<f32>>
  memref.copy %a, %x : memref<9xcomplex<f32>> to memref<9xcomplex<f32>>
  return
}

// -----

func.func @vectors(%x: memref<4xvector<3xf32>>) {
  // expected-error @below {{temporary 'memref<4xvector<3xf32>>' has elements that are neither numbers nor complex numbers, which is not supported}}
  %a = memref.alloc() : memref<4xvector<3xf32>>
  memref.copy %x, %a : memref<4xvector<3xf32>> to memref<4xvector<3xf32>>
  return
}

// -----

// A kernel gets the buffer of a view and an offset: the call is a use of the buffer.
// CHECK-LABEL: func @offset
// CHECK-SAME: attributes {fp8.workspace_bytes = 128 : i64}
func.func private @kernel(%base: memref<f32>, %offset: index)
func.func @offset(%x: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  %view = memref.subview %a[2] [1] [1] : memref<4xf32> to memref<f32, strided<[], offset: 2>>
  %base, %offset = memref.extract_strided_metadata %view : memref<f32, strided<[], offset: 2>> -> memref<f32>, index
  %b = memref.alloc() : memref<4xf32>
  memref.copy %x, %b : memref<4xf32> to memref<4xf32>
  call @kernel(%base, %offset) : (memref<f32>, index) -> ()
  return
}

// -----

func.func @too_large() {
  // expected-error @below {{temporary 'memref<9223372036854775807x24xf32>' is larger than any memory}}
  %0 = memref.alloc() : memref<9223372036854775807x24xf32>
  return
}

// -----

// expected-error @below {{the temporaries of this function are larger than any memory}}
func.func @too_large_together(%x: memref<4194304x4194304xf32>) {
  %0 = memref.alloc() : memref<4194304x4194304xf32>
  %1 = memref.alloc() : memref<4194304x4194304xf32>
  %2 = memref.alloc() : memref<4194304x4194304xf32>
  linalg.add ins(%0, %1 : memref<4194304x4194304xf32>, memref<4194304x4194304xf32>) outs(%2 : memref<4194304x4194304xf32>)
  linalg.copy ins(%2 : memref<4194304x4194304xf32>) outs(%x : memref<4194304x4194304xf32>)
  return
}
