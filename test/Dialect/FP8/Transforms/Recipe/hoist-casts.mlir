// Casts, transposes and reshapes of tensors from outside a loop move out of it.
// RUN: fp8-opt %s --fp8-hoist-casts | FileCheck %s

// Out of both loops, with its destination; the slice that differs stays.
// CHECK-LABEL: func.func @nested
// CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<3x8xbf16>
// CHECK: %[[W:.+]] = linalg.generic {{.+}} ins(%{{.+}} : tensor<8x3xf32>) outs(%[[EMPTY]]
// CHECK: scf.for
// CHECK: scf.while
// CHECK: tensor.extract_slice %[[W]]
func.func @nested(%w: tensor<8x3xf32>, %x: tensor<8xbf16>, %n: index, %more: i1) -> tensor<8xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<8xbf16>) {
    %u = scf.while (%v = %y) : (tensor<8xbf16>) -> tensor<8xbf16> {
      scf.condition(%more) %v : tensor<8xbf16>
    } do {
    ^bb0(%v: tensor<8xbf16>):
      %e = tensor.empty() : tensor<3x8xbf16>
      %b = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%w : tensor<8x3xf32>) outs(%e : tensor<3x8xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %t = arith.truncf %in : f32 to bf16
        linalg.yield %t : bf16
      } -> tensor<3x8xbf16>
      %s = tensor.extract_slice %b[%i, 0] [1, 8] [1, 1] : tensor<3x8xbf16> to tensor<8xbf16>
      %z = arith.mulf %v, %s : tensor<8xbf16>
      scf.yield %z : tensor<8xbf16>
    }
    scf.yield %u : tensor<8xbf16>
  }
  return %r : tensor<8xbf16>
}

// A value that the loop hands on is not the loop's own.
// CHECK-LABEL: func.func @handed_on(%arg0: tensor<8xf32>
// CHECK: %[[B:.+]] = arith.truncf %arg0
// CHECK: scf.while
// CHECK: arith.mulf %{{.+}}, %[[B]]
func.func @handed_on(%w: tensor<8xf32>, %x: tensor<8xbf16>, %more: i1) -> tensor<8xbf16> {
  %r:2 = scf.while (%y = %x, %v = %w) : (tensor<8xbf16>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>) {
    scf.condition(%more) %v, %y : tensor<8xf32>, tensor<8xbf16>
  } do {
  ^bb0(%v: tensor<8xf32>, %y: tensor<8xbf16>):
    %b = arith.truncf %v : tensor<8xf32> to tensor<8xbf16>
    %z = arith.mulf %y, %b : tensor<8xbf16>
    scf.yield %z, %v : tensor<8xbf16>, tensor<8xf32>
  }
  return %r#1 : tensor<8xbf16>
}

// An operation that repeats elements, computes, or lies in a branch stays.
// CHECK-LABEL: func.func @stays
// CHECK: scf.for
// CHECK: tensor.empty
// CHECK: linalg.broadcast
// CHECK: math.exp
// CHECK-LABEL: func.func @branch
// CHECK: scf.if
// CHECK: arith.truncf
func.func @stays(%w: tensor<8xf32>, %x: tensor<4x8xf32>, %n: index) -> tensor<4x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<4x8xf32>) {
    %e = tensor.empty() : tensor<4x8xf32>
    %b = linalg.broadcast ins(%w : tensor<8xf32>) outs(%e : tensor<4x8xf32>) dimensions = [0]
    %f = math.exp %b : tensor<4x8xf32>
    %z = arith.mulf %y, %f : tensor<4x8xf32>
    scf.yield %z : tensor<4x8xf32>
  }
  return %r : tensor<4x8xf32>
}
func.func @branch(%w: tensor<8xf32>, %x: tensor<8xbf16>, %c: i1) -> tensor<8xbf16> {
  %r = scf.if %c -> tensor<8xbf16> {
    %b = arith.truncf %w : tensor<8xf32> to tensor<8xbf16>
    scf.yield %b : tensor<8xbf16>
  } else {
    scf.yield %x : tensor<8xbf16>
  }
  return %r : tensor<8xbf16>
}
