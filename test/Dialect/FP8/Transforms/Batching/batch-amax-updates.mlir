// A chain of updates becomes one, on one vector that is reduced over the ranks once.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-batch-amax-updates))' | FileCheck %s

// CHECK-LABEL: func.func @chain
// CHECK-SAME: %[[A:[^:]+]]: tensor<1xf32>, %[[B:[^:]+]]: tensor<2xf32>, %{{[^:]+}}: tensor<1xf32>, %{{[^:]+}}: tensor<2xf32>, %[[S:[^:]+]]: tensor<2xf32>, %[[H:[^:]+]]: tensor<4x2xf32>
func.func @chain(%a: tensor<1xf32>, %b: tensor<2xf32>, %e1: tensor<1xf32>, %e2: tensor<2xf32>, %s: tensor<2xf32>, %h: tensor<4x2xf32>)
    -> (tensor<2xf32>, tensor<4x2xf32>) {
  // CHECK: %[[V0:.+]] = tensor.insert_slice %[[A]] into %{{.+}}[0] [1] [1]
  // CHECK: %[[V1:.+]] = tensor.insert_slice %[[B]] into %[[V0]][1] [2] [1]
  // CHECK: %[[R:.+]] = fp8.all_reduce max on(4) axes [0] ins(%[[V1]] : tensor<3xf32>)
  // CHECK-NOT: fp8.all_reduce
  // CHECK: %[[U:.+]]:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0, 1, 1] formats [f8E4M3FN, f8E5M2, f8E5M2] ins(%[[R]] : tensor<3xf32>) outs(%[[S]], %[[H]] :
  // CHECK-NOT: fp8.update_amax_history
  // CHECK: return %[[U]]#0, %[[U]]#1
  %ra = fp8.all_reduce max on(4) axes [0] ins(%a : tensor<1xf32>) outs(%e1 : tensor<1xf32>) -> tensor<1xf32>
  %s0, %h0 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0] formats [f8E4M3FN]
      ins(%ra : tensor<1xf32>) outs(%s, %h : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
  %rb = fp8.all_reduce max on(4) axes [0] ins(%b : tensor<2xf32>) outs(%e2 : tensor<2xf32>) -> tensor<2xf32>
  %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [1, 1] formats [f8E5M2, f8E5M2]
      ins(%rb : tensor<2xf32>) outs(%s0, %h0 : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
  return %s1, %h1 : tensor<2xf32>, tensor<4x2xf32>
}

// Without a reduction over the ranks none appears.
// CHECK-LABEL: func.func @unreduced
func.func @unreduced(%a: tensor<1xf32>, %b: tensor<1xf32>, %s: tensor<2xf32>, %h: tensor<4x2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>) {
  // CHECK-NOT: fp8.all_reduce
  // CHECK: fp8.update_amax_history {{.+}} columns [0, 1]
  // CHECK-NOT: fp8.update_amax_history
  %s0, %h0 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4, reduce_amax = false>) columns [0] formats [f8E4M3FN]
      ins(%a : tensor<1xf32>) outs(%s, %h : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
  %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4, reduce_amax = false>) columns [1] formats [f8E5M2]
      ins(%b : tensor<1xf32>) outs(%s0, %h0 : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
  return %s1, %h1 : tensor<2xf32>, tensor<4x2xf32>
}

// Two recipes: one vector and one reduction, of which each update reads its part.
// CHECK-LABEL: func.func @two_recipes
// CHECK: %[[ALL:.*]] = fp8.all_reduce max on(4) axes [0] {{.*}} -> tensor<3xf32>
// CHECK: %[[FIRST:.*]] = tensor.extract_slice %[[ALL]][0] [2] [1] : tensor<3xf32> to tensor<2xf32>
// CHECK: %[[S1:.*]]:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0, 2] {{.*}} ins(%[[FIRST]] : tensor<2xf32>)
// CHECK: %[[SECOND:.*]] = tensor.extract_slice %[[ALL]][2] [1] [1] : tensor<3xf32> to tensor<1xf32>
// CHECK: fp8.update_amax_history recipe(#fp8.delayed_scaling<margin = 1, amax_history_len = 4>) columns [1] {{.*}} ins(%[[SECOND]] : tensor<1xf32>) outs(%[[S1]]#0, %[[S1]]#1 :
// CHECK-NOT: fp8.all_reduce
func.func @two_recipes(%a: tensor<1xf32>, %b: tensor<1xf32>, %c: tensor<1xf32>, %s: tensor<3xf32>, %h: tensor<4x3xf32>)
    -> (tensor<3xf32>, tensor<4x3xf32>) {
  %e = tensor.empty() : tensor<1xf32>
  %0 = fp8.all_reduce max on(4) axes [0] ins(%a : tensor<1xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %s0, %h0 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0] formats [f8E4M3FN]
      ins(%0 : tensor<1xf32>) outs(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  %1 = fp8.all_reduce max on(4) axes [0] ins(%b : tensor<1xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [2] formats [f8E5M2]
      ins(%1 : tensor<1xf32>) outs(%s0, %h0 : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  %2 = fp8.all_reduce max on(4) axes [0] ins(%c : tensor<1xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %s2, %h2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<margin = 1, amax_history_len = 4>) columns [1] formats [f8E4M3FN]
      ins(%2 : tensor<1xf32>) outs(%s1, %h1 : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  return %s2, %h2 : tensor<3xf32>, tensor<4x3xf32>
}
