// RUN: fp8-opt %s --pass-pipeline='builtin.module(llvm.func(fp8-narrow-float-bits))' | FileCheck %s -enable-var-scope

// CHECK-LABEL: llvm.func @bf16
// CHECK: %[[X:.*]] = llvm.load %arg1 : !llvm.ptr -> i16
// CHECK: %[[BX:.*]] = llvm.bitcast %[[X]] : i16 to bf16
// CHECK: %[[IX:.*]] = llvm.bitcast %[[BX]] : bf16 to i16
// CHECK: %[[IY:.*]] = llvm.bitcast %arg2 : bf16 to i16
// CHECK: %[[Z:.*]] = llvm.select %arg0, %[[IX]], %[[IY]] : i1, i16
// CHECK: %[[BZ:.*]] = llvm.bitcast %[[Z]] : i16 to bf16
// CHECK: %[[IZ:.*]] = llvm.bitcast %[[BZ]] : bf16 to i16
// CHECK: llvm.store %[[IZ]], %arg1 : i16, !llvm.ptr
llvm.func @bf16(%c: i1, %p: !llvm.ptr, %y: bf16) {
  %0 = llvm.load %p : !llvm.ptr -> bf16
  %1 = llvm.select %c, %0, %y : i1, bf16
  llvm.store %1, %p : bf16, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @vectors
// CHECK: llvm.select %arg0, %{{.*}}, %{{.*}} : vector<4xi1>, vector<4xi16>
llvm.func @vectors(%c: vector<4xi1>, %x: vector<4xbf16>, %y: vector<4xbf16>) -> vector<4xbf16> {
  %0 = llvm.select %c, %x, %y : vector<4xi1>, vector<4xbf16>
  llvm.return %0 : vector<4xbf16>
}

// CHECK-LABEL: llvm.func @masked
// CHECK: %[[ELSE:.*]] = llvm.bitcast %arg2 : vector<4xbf16> to vector<4xi16>
// CHECK: %[[BITS:.*]] = llvm.intr.masked.load %arg0, %arg1, %[[ELSE]] {alignment = 2 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xi16>) -> vector<4xi16>
// CHECK: llvm.bitcast %[[BITS]] : vector<4xi16> to vector<4xbf16>
llvm.func @masked(%p: !llvm.ptr, %mask: vector<4xi1>, %y: vector<4xbf16>) -> vector<4xbf16> {
  %0 = llvm.intr.masked.load %p, %mask, %y {alignment = 2 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xbf16>) -> vector<4xbf16>
  llvm.return %0 : vector<4xbf16>
}

// CHECK-LABEL: llvm.func @others
// CHECK-NOT: bitcast
// CHECK: llvm.return
llvm.func @others(%c: i1, %p: !llvm.ptr, %y: f16) {
  %0 = llvm.load %p : !llvm.ptr -> f16
  %1 = llvm.select %c, %0, %y : i1, f16
  llvm.store %1, %p : f16, !llvm.ptr
  llvm.return
}
