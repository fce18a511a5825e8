// RUN: fp8-opt %s --fp8-make-signless | FileCheck %s

// CHECK-LABEL: func.func @boundary
// CHECK-SAME: (%[[KEY:.+]]: tensor<2xi32> {fp8.unsigned}, %[[X:.+]]: tensor<2xi32>, %{{.+}}: i8)
// CHECK-SAME: -> (tensor<2xi32> {fp8.unsigned}, tensor<2xi32>)
// CHECK-NEXT: %[[SUM:.+]] = arith.addi %[[KEY]], %[[X]]
// CHECK-NEXT: return %[[SUM]], %[[SUM]]
func.func @boundary(%key: tensor<2xui32>, %x: tensor<2xi32>, %s: si8) -> (tensor<2xui32>, tensor<2xsi32>) {
  %k = tensor.bitcast %key : tensor<2xui32> to tensor<2xi32>
  %sum = arith.addi %k, %x : tensor<2xi32>
  %r = builtin.unrealized_conversion_cast %sum : tensor<2xi32> to tensor<2xui32>
  %t = tensor.bitcast %sum : tensor<2xi32> to tensor<2xsi32>
  return %r, %t : tensor<2xui32>, tensor<2xsi32>
}

// Constants keep their bits. A function that only the program calls needs no marks.

// CHECK-LABEL: func.func private @loop
// CHECK-SAME: (%[[KEY:.+]]: tensor<i8>, %[[N:.+]]: index) -> tensor<i8>
// CHECK: %[[C:.+]] = arith.constant dense<-56> : tensor<i8>
// CHECK: scf.for {{.*}} iter_args(%[[K:.+]] = %[[KEY]]) -> (tensor<i8>)
// CHECK-NEXT: arith.xori %[[K]], %[[C]] : tensor<i8>
func.func private @loop(%key: tensor<ui8>, %n: index) -> tensor<ui8> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c = arith.constant dense<200> : tensor<ui8>
  %cs = builtin.unrealized_conversion_cast %c : tensor<ui8> to tensor<i8>
  %r = scf.for %i = %zero to %n step %one iter_args(%k = %key) -> tensor<ui8> {
    %s = builtin.unrealized_conversion_cast %k : tensor<ui8> to tensor<i8>
    %x = arith.xori %s, %cs : tensor<i8>
    %u = builtin.unrealized_conversion_cast %x : tensor<i8> to tensor<ui8>
    scf.yield %u : tensor<ui8>
  }
  return %r : tensor<ui8>
}

// Casts that do something stay.

// CHECK-LABEL: func.func @others
// CHECK: tensor.bitcast %{{.+}} : tensor<4xi8> to tensor<4xf8E4M3FN>
func.func @others(%x: tensor<4xi8>) -> tensor<4xf8E4M3FN> {
  %y = tensor.bitcast %x : tensor<4xi8> to tensor<4xf8E4M3FN>
  return %y : tensor<4xf8E4M3FN>
}
