// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-vectorize-threads,canonicalize)' | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-vectorize-threads,fp8-map-threads,fp8-ptx-pipeline)' | FileCheck %s --check-prefix=PTX

// Eight bf16 are 16 bytes. Values that points share are loaded once, operations of one point are repeated;
// the index of a point is one of these. An operand that is read and written is in place.
// CHECK-LABEL: func.func private @update(
// CHECK-SAME: %[[X:.*]]: memref<1024x512xbf16>, %[[S:.*]]: memref<1024xbf16>
// CHECK-SAME: fp8.threads = 256 : i32
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK: scf.parallel (%[[I:.*]], %[[J:.*]]) = {{.*}} step (%{{.*}}, %[[C8]])
// CHECK: %[[SEVENTH:.*]] = arith.addi %[[J]], %c7
// CHECK: %[[V:.*]] = vector.load %[[X]][%[[I]], %[[J]]] {alignment = 16 : i64} : memref<1024x512xbf16>, vector<8xbf16>
// CHECK: %[[ALL:.*]]:8 = vector.to_elements %[[V]]
// CHECK: %[[FACTOR:.*]] = memref.load %[[S]][%[[I]]] : memref<1024xbf16>
// CHECK-NOT: memref.load
// CHECK: arith.mulf %[[ALL]]#7, %[[FACTOR]] : bf16
// CHECK: arith.index_cast %[[SEVENTH]]
// CHECK: %[[R:.*]] = vector.from_elements {{.*}} : vector<8xbf16>
// CHECK: vector.store %[[R]], %[[X]][%[[I]], %[[J]]] {alignment = 16 : i64} : memref<1024x512xbf16>, vector<8xbf16>
// PTX: ld.global.v4.b32
// PTX: st.global.v4.b32
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func private @update(%x: memref<1024x512xbf16>, %s: memref<1024xbf16>) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c512 = arith.constant 512 : index
    %c1024 = arith.constant 1024 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c1024, %c512) step (%c1, %c1) {
      %0 = memref.load %x[%i, %j] : memref<1024x512xbf16>
      %1 = memref.load %s[%i] : memref<1024xbf16>
      %2 = arith.mulf %0, %1 : bf16
      %3 = arith.index_cast %j : index to i32
      %4 = arith.sitofp %3 : i32 to bf16
      %5 = arith.addf %2, %4 : bf16
      memref.store %5, %x[%i, %j] : memref<1024x512xbf16>
      scf.reduce
    }
    return
  }
  func.func @main(%x: memref<1024x512xbf16>, %s: memref<1024xbf16>) {
    call @update(%x, %s) : (memref<1024x512xbf16>, memref<1024xbf16>) -> ()
    return
  }
}

// -----

// The widest element has 16 bytes; a row that all rows share is a vector too. FP8 elements are words.
// CHECK-LABEL: func.func private @widths(
// CHECK: vector.load {{.*}} {alignment = 4 : i64} : memref<?x1024xf8E4M3FN>, vector<4xf8E4M3FN>
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<1024xf32>, vector<4xf32>
// CHECK: vector.store {{.*}} {alignment = 8 : i64} : memref<?x1024xbf16>, vector<4xbf16>
// PTX: ld.global.b32
// PTX: ld.global.v4.b32
// PTX: st.global.{{v4.b16|v2.b32}}
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func private @widths(%x: memref<?x1024xf8E4M3FN>, %b: memref<1024xf32>, %y: memref<?x1024xbf16>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c1024 = arith.constant 1024 : index
    %rows = memref.dim %x, %c0 : memref<?x1024xf8E4M3FN>
    scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %c1024) step (%c1, %c1) {
      %0 = memref.load %x[%i, %j] : memref<?x1024xf8E4M3FN>
      %1 = memref.load %b[%j] : memref<1024xf32>
      %2 = arith.bitcast %0 : f8E4M3FN to i8
      %3 = arith.sitofp %2 : i8 to f32
      %4 = arith.addf %3, %1 : f32
      %5 = arith.truncf %4 : f32 to bf16
      memref.store %5, %y[%i, %j] : memref<?x1024xbf16>
      scf.reduce
    }
    return
  }
  func.func @main(%x: memref<?x1024xf8E4M3FN>, %b: memref<1024xf32>, %y: memref<?x1024xbf16>) {
    call @widths(%x, %b, %y) : (memref<?x1024xf8E4M3FN>, memref<1024xf32>, memref<?x1024xbf16>) -> ()
    return
  }
}

// -----

// Every call counts: the second one's buffer begins 8 bytes after a multiple of 16, so that two points fit.
// CHECK-LABEL: func.func private @copy(
// CHECK: vector.load {{.*}} {alignment = 8 : i64} : memref<262144xf32, strided<[1], offset: ?>>, vector<2xf32>
// CHECK: vector.store {{.*}} {alignment = 8 : i64} : memref<262144xf32>, vector<2xf32>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func private @copy(%x: memref<f32>, %y: memref<262144xf32>, %offset: index) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 262144 : index
    %view = memref.reinterpret_cast %x to offset: [%offset], sizes: [262144], strides: [1]
        : memref<f32> to memref<262144xf32, strided<[1], offset: ?>>
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %0 = memref.load %view[%i] : memref<262144xf32, strided<[1], offset: ?>>
      memref.store %0, %y[%i] : memref<262144xf32>
      scf.reduce
    }
    return
  }
  func.func @main(%x: memref<524288xf32>, %y: memref<262144xf32>, %i: index) {
    %base, %start, %size, %stride = memref.extract_strided_metadata %x : memref<524288xf32> -> memref<f32>, index, index, index
    %c2 = arith.constant 2 : index
    call @copy(%base, %y, %start) : (memref<f32>, memref<262144xf32>, index) -> ()
    call @copy(%base, %y, %c2) : (memref<f32>, memref<262144xf32>, index) -> ()
    return
  }
}

// -----

// One call begins at any element.
// CHECK-LABEL: func.func private @copy(
// CHECK-NOT: vector
// CHECK-LABEL: func.func @main(
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func private @copy(%x: memref<262144xf32, strided<[1], offset: ?>>, %y: memref<262144xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 262144 : index
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %0 = memref.load %x[%i] : memref<262144xf32, strided<[1], offset: ?>>
      memref.store %0, %y[%i] : memref<262144xf32>
      scf.reduce
    }
    return
  }
  func.func @main(%x: memref<524288xf32>, %y: memref<262144xf32>, %i: index) {
    %view = memref.subview %x[%i] [262144] [1] : memref<524288xf32> to memref<262144xf32, strided<[1], offset: ?>>
    call @copy(%view, %y) : (memref<262144xf32, strided<[1], offset: ?>>, memref<262144xf32>) -> ()
    return
  }
}

// -----

// Fewer threads of a block where 256 leave multiprocessors without one, and fewer points where 64 do.
// CHECK-LABEL: func.func private @half(
// CHECK-SAME: fp8.threads = 64 : i32
// CHECK: vector.load {{.*}} vector<4xf32>
// CHECK-LABEL: func.func private @quarter(
// CHECK-SAME: fp8.threads = 64 : i32
// CHECK: vector.load {{.*}} vector<2xf32>
// CHECK-LABEL: func.func private @eighth(
// CHECK-NOT: vector
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func private @half(%x: memref<65536xf32>) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 65536 : index
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %0 = memref.load %x[%i] : memref<65536xf32>
      %1 = arith.negf %0 : f32
      memref.store %1, %x[%i] : memref<65536xf32>
      scf.reduce
    }
    return
  }
  func.func private @quarter(%x: memref<32768xf32>) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 32768 : index
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %0 = memref.load %x[%i] : memref<32768xf32>
      %1 = arith.negf %0 : f32
      memref.store %1, %x[%i] : memref<32768xf32>
      scf.reduce
    }
    return
  }
  func.func private @eighth(%x: memref<16384xf32>) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 16384 : index
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %0 = memref.load %x[%i] : memref<16384xf32>
      %1 = arith.negf %0 : f32
      memref.store %1, %x[%i] : memref<16384xf32>
      scf.reduce
    }
    return
  }
  func.func @main(%x: memref<65536xf32>, %y: memref<32768xf32>, %z: memref<16384xf32>) {
    call @half(%x) : (memref<65536xf32>) -> ()
    call @quarter(%y) : (memref<32768xf32>) -> ()
    call @eighth(%z) : (memref<16384xf32>) -> ()
    return
  }
}

// -----

// Parts of a row begin at multiples of 16, so that all points of a thread are in one: they take one branch, whose
// results are vectors.
// CHECK-LABEL: func.func private @concat(
// CHECK: scf.parallel (%[[I:.*]], %[[J:.*]]) =
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[J]], %c256
// CHECK: %[[V:.*]] = scf.if %[[FIRST]] -> (vector<8xbf16>) {
// CHECK: vector.load %{{.*}}[%[[I]], %[[J]]] {alignment = 16 : i64} : memref<1024x256xbf16>, vector<8xbf16>
// CHECK: } else {
// CHECK: %[[REST:.*]] = arith.subi %[[J]], %c256
// CHECK: vector.load %{{.*}}[%[[I]], %[[REST]]] {alignment = 16 : i64} : memref<1024x256xbf16>, vector<8xbf16>
// CHECK: }
// CHECK: vector.store %[[V]], %{{.*}}[%[[I]], %[[J]]] {alignment = 16 : i64}
// One part begins within the points of a thread.
// CHECK-LABEL: func.func private @odd_concat(
// CHECK-NOT: vector
// CHECK-LABEL: func.func @main(
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func private @concat(%x: memref<1024x256xbf16>, %y: memref<1024x256xbf16>, %z: memref<1024x512xbf16>) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %c512 = arith.constant 512 : index
    %c1024 = arith.constant 1024 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c1024, %c512) step (%c1, %c1) {
      %0 = arith.cmpi ult, %j, %c256 : index
      %1 = scf.if %0 -> (bf16) {
        %2 = memref.load %x[%i, %j] : memref<1024x256xbf16>
        scf.yield %2 : bf16
      } else {
        %2 = arith.subi %j, %c256 : index
        %3 = memref.load %y[%i, %2] : memref<1024x256xbf16>
        scf.yield %3 : bf16
      }
      memref.store %1, %z[%i, %j] : memref<1024x512xbf16>
      scf.reduce
    }
    return
  }
  func.func private @odd_concat(%x: memref<1024x252xbf16>, %y: memref<1024x260xbf16>, %z: memref<1024x512xbf16>) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c252 = arith.constant 252 : index
    %c512 = arith.constant 512 : index
    %c1024 = arith.constant 1024 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c1024, %c512) step (%c1, %c1) {
      %0 = arith.cmpi ult, %j, %c252 : index
      %1 = scf.if %0 -> (bf16) {
        %2 = memref.load %x[%i, %j] : memref<1024x252xbf16>
        scf.yield %2 : bf16
      } else {
        %2 = arith.subi %j, %c252 : index
        %3 = memref.load %y[%i, %2] : memref<1024x260xbf16>
        scf.yield %3 : bf16
      }
      memref.store %1, %z[%i, %j] : memref<1024x512xbf16>
      scf.reduce
    }
    return
  }
  func.func @main(%x: memref<1024x256xbf16>, %z: memref<1024x512xbf16>, %v: memref<1024x252xbf16>, %w: memref<1024x260xbf16>) {
    call @concat(%x, %x, %z) : (memref<1024x256xbf16>, memref<1024x256xbf16>, memref<1024x512xbf16>) -> ()
    call @odd_concat(%v, %w, %z) : (memref<1024x252xbf16>, memref<1024x260xbf16>, memref<1024x512xbf16>) -> ()
    return
  }
}

// -----

// One point where the last dimension, or the pitch of rows, is odd; where neighbours load what is not
// adjacent, or i1; and a constant whose alignment is its element's.
// CHECK-NOT: vector.
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  memref.global "private" constant @table : memref<512xf32> = dense<1.0>
  func.func private @odd(%x: memref<?x511xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c511 = arith.constant 511 : index
    %rows = memref.dim %x, %c0 : memref<?x511xf32>
    scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %c511) step (%c1, %c1) {
      %0 = memref.load %x[%i, %j] : memref<?x511xf32>
      memref.store %0, %x[%i, %j] : memref<?x511xf32>
      scf.reduce
    }
    return
  }
  func.func private @pitch(%x: memref<?x512xf32, strided<[513, 1]>>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c512 = arith.constant 512 : index
    %rows = memref.dim %x, %c0 : memref<?x512xf32, strided<[513, 1]>>
    scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %c512) step (%c1, %c1) {
      %0 = memref.load %x[%i, %j] : memref<?x512xf32, strided<[513, 1]>>
      memref.store %0, %x[%i, %j] : memref<?x512xf32, strided<[513, 1]>>
      scf.reduce
    }
    return
  }
  func.func private @transposed(%x: memref<512x1024xf32>, %y: memref<1024x512xf32>) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c512 = arith.constant 512 : index
    %c1024 = arith.constant 1024 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c1024, %c512) step (%c1, %c1) {
      %0 = memref.load %x[%j, %i] : memref<512x1024xf32>
      memref.store %0, %y[%i, %j] : memref<1024x512xf32>
      scf.reduce
    }
    return
  }
  func.func private @gather(%x: memref<512xf32>, %at: memref<1024x512xi32>, %y: memref<1024x512xf32>) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c512 = arith.constant 512 : index
    %c1024 = arith.constant 1024 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c1024, %c512) step (%c1, %c1) {
      %0 = memref.load %at[%i, %j] : memref<1024x512xi32>
      %1 = arith.index_cast %0 : i32 to index
      %2 = memref.load %x[%1] : memref<512xf32>
      memref.store %2, %y[%i, %j] : memref<1024x512xf32>
      scf.reduce
    }
    return
  }
  func.func private @bits(%x: memref<1024x512xi1>, %y: memref<1024x512xi8>) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c512 = arith.constant 512 : index
    %c1024 = arith.constant 1024 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c1024, %c512) step (%c1, %c1) {
      %0 = memref.load %x[%i, %j] : memref<1024x512xi1>
      %1 = arith.extui %0 : i1 to i8
      memref.store %1, %y[%i, %j] : memref<1024x512xi8>
      scf.reduce
    }
    return
  }
  func.func private @constant(%x: memref<512xf32>, %y: memref<1024x512xf32>) attributes {llvm.bareptr} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c512 = arith.constant 512 : index
    %c1024 = arith.constant 1024 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c1024, %c512) step (%c1, %c1) {
      %0 = memref.load %x[%j] : memref<512xf32>
      memref.store %0, %y[%i, %j] : memref<1024x512xf32>
      scf.reduce
    }
    return
  }
  func.func @main(%x: memref<?x511xf32>, %p: memref<?x512xf32, strided<[513, 1]>>, %a: memref<512x1024xf32>, %y: memref<1024x512xf32>,
                  %at: memref<1024x512xi32>, %v: memref<512xf32>, %b: memref<1024x512xi1>, %c: memref<1024x512xi8>) {
    %table = memref.get_global @table : memref<512xf32>
    call @odd(%x) : (memref<?x511xf32>) -> ()
    call @pitch(%p) : (memref<?x512xf32, strided<[513, 1]>>) -> ()
    call @transposed(%a, %y) : (memref<512x1024xf32>, memref<1024x512xf32>) -> ()
    call @gather(%v, %at, %y) : (memref<512xf32>, memref<1024x512xi32>, memref<1024x512xf32>) -> ()
    call @bits(%b, %c) : (memref<1024x512xi1>, memref<1024x512xi8>) -> ()
    call @constant(%table, %y) : (memref<512xf32>, memref<1024x512xf32>) -> ()
    return
  }
}
