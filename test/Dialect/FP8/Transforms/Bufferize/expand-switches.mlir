// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-expand-switches))' | FileCheck %s -enable-var-scope

// CHECK-LABEL: func.func @cases
// CHECK-SAME:    (%[[I:.+]]: index, %[[X:.+]]: tensor<4xf32>, %[[Y:.+]]: tensor<4xf32>)
// CHECK:         %[[C7:.+]] = arith.constant 7 : index
// CHECK:         %[[IS7:.+]] = arith.cmpi eq, %[[I]], %[[C7]] : index
// CHECK:         %[[R:.+]]:2 = scf.if %[[IS7]] -> (tensor<4xf32>, index) {
// CHECK:           scf.yield %[[X]], %[[I]]
// CHECK:         } else {
// CHECK:           %[[CM:.+]] = arith.constant -1 : index
// CHECK:           %[[ISM:.+]] = arith.cmpi eq, %[[I]], %[[CM]] : index
// CHECK:           %[[S:.+]]:2 = scf.if %[[ISM]] -> (tensor<4xf32>, index) {
// CHECK:             scf.yield %[[Y]], %[[I]]
// CHECK:           } else {
// CHECK:             %[[E:.+]] = math.exp %[[X]]
// CHECK:             scf.yield %[[E]], %[[I]]
// CHECK:           }
// CHECK:           scf.yield %[[S]]#0, %[[S]]#1
// CHECK:         } {mark}
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @cases(%i: index, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, index) {
  %0:2 = scf.index_switch %i {mark} -> tensor<4xf32>, index
  case 7 {
    scf.yield %x, %i : tensor<4xf32>, index
  }
  case -1 {
    scf.yield %y, %i : tensor<4xf32>, index
  }
  default {
    %1 = math.exp %x : tensor<4xf32>
    scf.yield %1, %i : tensor<4xf32>, index
  }
  return %0#0, %0#1 : tensor<4xf32>, index
}

// CHECK-LABEL: func.func @nested
// CHECK-NOT:     scf.index_switch
// CHECK:         return
func.func @nested(%i: index, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = scf.index_switch %i -> tensor<4xf32>
  case 0 {
    %1 = scf.index_switch %i -> tensor<4xf32>
    case 1 {
      scf.yield %x : tensor<4xf32>
    }
    default {
      %2 = math.exp %x : tensor<4xf32>
      scf.yield %2 : tensor<4xf32>
    }
    scf.yield %1 : tensor<4xf32>
  }
  default {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// A switch without cases.
// CHECK-LABEL: func.func @default
// CHECK-SAME:    (%{{.+}}: index, %[[X:.+]]: tensor<4xf32>)
// CHECK-NEXT:    %[[E:.+]] = math.exp %[[X]]
// CHECK-NEXT:    return %[[E]]
func.func @default(%i: index, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = scf.index_switch %i -> tensor<4xf32>
  default {
    %1 = math.exp %x : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// Scalars have no memory.
// CHECK-LABEL: func.func @scalars
// CHECK:         scf.index_switch
func.func @scalars(%i: index, %x: f32, %y: f32) -> f32 {
  %0 = scf.index_switch %i -> f32
  case 0 {
    scf.yield %x : f32
  }
  default {
    scf.yield %y : f32
  }
  return %0 : f32
}
