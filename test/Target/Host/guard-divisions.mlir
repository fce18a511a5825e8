// RUN: fp8-opt %s --pass-pipeline='builtin.module(llvm.func(fp8-guard-divisions))' | FileCheck %s -enable-var-scope

// CHECK-LABEL: llvm.func @quotient
// CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0 : i8) : i8
// CHECK: %[[IS_ZERO:.*]] = llvm.icmp "eq" %arg1, %[[ZERO]] : i8
// CHECK-DAG: %[[LEAST:.*]] = llvm.mlir.constant(-128 : i8) : i8
// CHECK-DAG: %[[IS_LEAST:.*]] = llvm.icmp "eq" %arg0, %[[LEAST]] : i8
// CHECK-DAG: %[[MINUS:.*]] = llvm.mlir.constant(-1 : i8) : i8
// CHECK-DAG: %[[IS_MINUS:.*]] = llvm.icmp "eq" %arg1, %[[MINUS]] : i8
// CHECK-DAG: %[[OVERFLOWS:.*]] = llvm.and %[[IS_LEAST]], %[[IS_MINUS]] : i1
// CHECK: %[[OR:.*]] = llvm.or %[[IS_ZERO]], %[[OVERFLOWS]] : i1
// CHECK: %[[ONE:.*]] = llvm.mlir.constant(1 : i8) : i8
// CHECK: %[[BY:.*]] = llvm.select %[[OR]], %[[ONE]], %arg1 : i1, i8
// CHECK: %[[Q:.*]] = llvm.sdiv %arg0, %[[BY]] : i8
// CHECK: %[[ALL:.*]] = llvm.mlir.constant(-1 : i8) : i8
// CHECK: %[[RESULT:.*]] = llvm.select %[[IS_ZERO]], %[[ALL]], %[[Q]] : i1, i8
// CHECK: llvm.return %[[RESULT]]
llvm.func @quotient(%x: i8, %y: i8) -> i8 {
  %0 = llvm.sdiv %x, %y : i8
  llvm.return %0 : i8
}

// CHECK-LABEL: llvm.func @vectors
// CHECK: %[[IS_ZERO:.*]] = llvm.icmp "eq" %arg1, %{{.*}} : vector<4xi32>
// CHECK: %[[ONE:.*]] = llvm.mlir.constant(dense<1> : vector<4xi32>)
// CHECK: %[[BY:.*]] = llvm.select %[[IS_ZERO]], %[[ONE]], %arg1
// CHECK: %[[R:.*]] = llvm.urem %arg0, %[[BY]] : vector<4xi32>
// CHECK: llvm.select %[[IS_ZERO]], %arg0, %[[R]]
llvm.func @vectors(%x: vector<4xi32>, %y: vector<4xi32>) -> vector<4xi32> {
  %0 = llvm.urem %x, %y : vector<4xi32>
  llvm.return %0 : vector<4xi32>
}

// CHECK-LABEL: llvm.func @constants
// CHECK-NOT: llvm.select
// CHECK: llvm.udiv
// CHECK: llvm.sdiv
// CHECK: llvm.select
llvm.func @constants(%x: i32) -> i32 {
  %all = llvm.mlir.constant(-1 : i32) : i32
  %seven = llvm.mlir.constant(7 : i32) : i32
  %0 = llvm.srem %x, %seven : i32
  %1 = llvm.udiv %0, %all : i32
  %2 = llvm.sdiv %1, %all : i32
  llvm.return %2 : i32
}
