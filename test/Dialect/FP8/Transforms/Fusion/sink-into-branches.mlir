// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-sink-into-branches))' | FileCheck %s -enable-var-scope

// A cast that one branch reads runs there.
// CHECK-LABEL: func @cast
// CHECK-NOT: fp8.quantize
// CHECK: scf.if
// CHECK-NEXT: fp8.quantize
// CHECK: else
// CHECK-NOT: fp8.quantize
func.func @cast(%p: i1, %x: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> {
  %q, %i = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %s : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  %r = scf.if %p -> tensor<4xf8E4M3FN> {
    scf.yield %q : tensor<4xf8E4M3FN>
  } else {
    scf.yield %d : tensor<4xf8E4M3FN>
  }
  return %r : tensor<4xf8E4M3FN>
}

// A branch per element is no place for a whole tensor.
// CHECK-LABEL: func @gather
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: scf.if
// CHECK-NEXT: tensor.extract
func.func @gather(%x: tensor<4xf32>, %e: tensor<8xf32>) -> tensor<8xf32> {
  %t = math.exp %x : tensor<4xf32>
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %inside = arith.cmpi ult, %i, %c4 : index
    %v = scf.if %inside -> f32 {
      %a = tensor.extract %t[%i] : tensor<4xf32>
      scf.yield %a : f32
    } else {
      scf.yield %zero : f32
    }
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
