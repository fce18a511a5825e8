// RUN: fp8-opt --fp8-stack-casts --split-input-file %s | FileCheck -enable-var-scope %s

// Forward's own cast fills the stack; loops in loops, and views on the way. The stack of the
// outer loop is one of stacks.

// CHECK-LABEL: func.func @nested(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x4xbf16>, %[[S:.*]]: tensor<1xf32>
// CHECK:         %[[SCALE:.*]] = tensor.extract_slice %[[S]][0]
// CHECK:         %[[INVERSE:.*]] = arith.divf %{{.*}}, %[[SCALE]] : tensor<f32>
// CHECK:         %[[OUTER:.*]]:2 = scf.while ({{.*}}) : (index, tensor<2x3x4xf8E4M3FN>) -> (index, tensor<2x3x4xf8E4M3FN>) {
// CHECK:           %[[INNER:.*]] = scf.for {{.*}} -> (tensor<3x4xf8E4M3FN>) {
// CHECK:             %[[Q:.*]]:3 = fp8.quantize record_amax column(0) ins(%{{.*}} : tensor<4xbf16>)
// CHECK-NOT:         fp8.quantize
// CHECK:             %[[ROW:.*]] = tensor.expand_shape %[[Q]]#0 {{.*}} : tensor<4xf8E4M3FN> into tensor<1x4xf8E4M3FN>
// CHECK:             tensor.insert_slice %[[ROW]]
// CHECK:           tensor.insert_slice %[[INNER]]
// CHECK:         fp8.end_forward
// CHECK:         %[[PART:.*]] = tensor.extract_slice %[[OUTER]]#1[1, 0, 0] [1, 3, 4] [1, 1, 1] : tensor<2x3x4xf8E4M3FN>
// CHECK:         %[[SLICE:.*]] = tensor.extract_slice %[[PART]][2, 0] [1, 4] [1, 1] : tensor<3x4xf8E4M3FN>
// CHECK-NOT:     fp8.quantize
// CHECK:         return %[[SLICE]], %[[INVERSE]]
func.func @nested(%x: tensor<2x3x4xbf16>, %s: tensor<1xf32>, %h: tensor<4x1xf32>)
    -> (tensor<1x4xf8E4M3FN>, tensor<f32>, tensor<1xf32>, tensor<4x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zeros = arith.constant dense<0.0> : tensor<2x3x4xbf16>
  %empty = tensor.empty() : tensor<3x4xbf16>
  %state = tensor.extract_slice %s[0] [1] [1] : tensor<1xf32> to tensor<f32>
  %all:2 = scf.while (%i = %c0, %old = %zeros) : (index, tensor<2x3x4xbf16>) -> (index, tensor<2x3x4xbf16>) {
    %go = arith.cmpi slt, %i, %c2 : index
    scf.condition(%go) %i, %old : index, tensor<2x3x4xbf16>
  } do {
  ^bb0(%i: index, %old: tensor<2x3x4xbf16>):
    %rows = scf.for %j = %c0 to %c3 step %c1 iter_args(%before = %empty) -> (tensor<3x4xbf16>) {
      %v = tensor.extract_slice %x[%i, %j, 0] [1, 1, 4] [1, 1, 1] : tensor<2x3x4xbf16> to tensor<4xbf16>
      %e = tensor.empty() : tensor<4xf8E4M3FN>
      %f = tensor.empty() : tensor<f32>
      %q:3 = fp8.quantize record_amax column(0) ins(%v : tensor<4xbf16>) scale(%state : tensor<f32>)
          outs(%e, %f, %f : tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>)
          -> tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>
      %row = tensor.expand_shape %v [[0, 1]] output_shape [1, 4] : tensor<4xbf16> into tensor<1x4xbf16>
      %after = tensor.insert_slice %row into %before[%j, 0] [1, 4] [1, 1] : tensor<1x4xbf16> into tensor<3x4xbf16>
      scf.yield %after : tensor<3x4xbf16>
    }
    %new = tensor.insert_slice %rows into %old[%i, 0, 0] [1, 3, 4] [1, 1, 1] : tensor<3x4xbf16> into tensor<2x3x4xbf16>
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %new : index, tensor<2x3x4xbf16>
  }
  %scale = tensor.extract_slice %s[0] [1] [1] : tensor<1xf32> to tensor<f32>
  %s1, %h1 = fp8.end_forward @backward given(%s, %h : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  %part = tensor.extract_slice %all#1[1, 0, 0] [1, 3, 4] [1, 1, 1] : tensor<2x3x4xbf16> to tensor<3x4xbf16>
  %slice = tensor.extract_slice %part[2, 0] [1, 4] [1, 1] : tensor<3x4xbf16> to tensor<1x4xbf16>
  %d = tensor.empty() : tensor<1x4xf8E4M3FN>
  %g = tensor.empty() : tensor<f32>
  %bytes, %inverse = fp8.quantize column(0) ins(%slice : tensor<1x4xbf16>) scale(%scale : tensor<f32>)
      outs(%d, %g : tensor<1x4xf8E4M3FN>, tensor<f32>) -> tensor<1x4xf8E4M3FN>, tensor<f32>
  return %bytes, %inverse, %s1, %h1 : tensor<1x4xf8E4M3FN>, tensor<f32>, tensor<1xf32>, tensor<4x1xf32>
}
func.func @backward() -> (tensor<1x4xf8E4M3FN>, tensor<f32>) {
  %p = ub.poison : tensor<1x4xf8E4M3FN>
  %i = ub.poison : tensor<f32>
  return %p, %i : tensor<1x4xf8E4M3FN>, tensor<f32>
}

// -----

// Another reader needs the stack as it is; a second copy in bytes would be more, not less.

// CHECK-LABEL: func.func @shared(
// CHECK:         scf.for {{.*}} -> (tensor<2x4xbf16>)
// CHECK:         fp8.end_forward
// CHECK:         fp8.quantize column(0)
func.func @shared(%x: tensor<2x4xbf16>, %s: tensor<1xf32>, %h: tensor<4x1xf32>)
    -> (tensor<1x4xf8E4M3FN>, tensor<f32>, tensor<1x4xbf16>, tensor<1xf32>, tensor<4x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant dense<0.0> : tensor<2x4xbf16>
  %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %zero) -> (tensor<2x4xbf16>) {
    %v = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<2x4xbf16> to tensor<1x4xbf16>
    %w = arith.negf %v : tensor<1x4xbf16>
    %new = tensor.insert_slice %w into %old[%i, 0] [1, 4] [1, 1] : tensor<1x4xbf16> into tensor<2x4xbf16>
    scf.yield %new : tensor<2x4xbf16>
  }
  %scale = tensor.extract_slice %s[0] [1] [1] : tensor<1xf32> to tensor<f32>
  %s1, %h1 = fp8.end_forward @backward given(%s, %h : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  %slice = tensor.extract_slice %stack[1, 0] [1, 4] [1, 1] : tensor<2x4xbf16> to tensor<1x4xbf16>
  %sum = arith.addf %slice, %slice : tensor<1x4xbf16>
  %e = tensor.empty() : tensor<1x4xf8E4M3FN>
  %f = tensor.empty() : tensor<f32>
  %q, %inverse = fp8.quantize column(0) ins(%slice : tensor<1x4xbf16>) scale(%scale : tensor<f32>)
      outs(%e, %f : tensor<1x4xf8E4M3FN>, tensor<f32>) -> tensor<1x4xf8E4M3FN>, tensor<f32>
  return %q, %inverse, %sum, %s1, %h1
    : tensor<1x4xf8E4M3FN>, tensor<f32>, tensor<1x4xbf16>, tensor<1xf32>, tensor<4x1xf32>
}
func.func @backward() -> (tensor<1x4xf8E4M3FN>, tensor<f32>, tensor<1x4xbf16>) {
  %p = ub.poison : tensor<1x4xf8E4M3FN>
  %i = ub.poison : tensor<f32>
  %j = ub.poison : tensor<1x4xbf16>
  return %p, %i, %j : tensor<1x4xf8E4M3FN>, tensor<f32>, tensor<1x4xbf16>
}

// -----

// Backward narrows slices of an argument of forward: the whole is narrowed and cast in forward.

// CHECK-LABEL: func.func @narrowed(
// CHECK-SAME:    %[[W:.*]]: tensor<2x4xf32>, %[[S:.*]]: tensor<1xf32>
// CHECK:         %[[SCALE:.*]] = tensor.extract_slice %[[S]][0]
// CHECK:         %[[B:.*]] = arith.truncf %[[W]] : tensor<2x4xf32> to tensor<2x4xbf16>
// CHECK:         %[[Q:.*]]:2 = fp8.quantize column(0) ins(%[[B]] : tensor<2x4xbf16>) scale(%[[SCALE]] : tensor<f32>)
// CHECK:         fp8.end_forward
// CHECK:         scf.for %[[I:[^ ]*]] =
// CHECK:           %[[SLICE:.*]] = tensor.extract_slice %[[Q]]#0[%[[I]], 0] [1, 4] [1, 1] : tensor<2x4xf8E4M3FN>
// CHECK-NOT:       arith.truncf
// CHECK-NOT:       fp8.quantize
// CHECK:           tensor.insert_slice %[[SLICE]]
func.func @narrowed(%w: tensor<2x4xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>)
    -> (tensor<2x4xf8E4M3FN>, tensor<1xf32>, tensor<4x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %scale = tensor.extract_slice %s[0] [1] [1] : tensor<1xf32> to tensor<f32>
  %s1, %h1 = fp8.end_forward @backward given(%s, %h : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  %empty = tensor.empty() : tensor<2x4xf8E4M3FN>
  %all = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %empty) -> (tensor<2x4xf8E4M3FN>) {
    %v = tensor.extract_slice %w[%i, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<1x4xf32>
    %b = arith.truncf %v : tensor<1x4xf32> to tensor<1x4xbf16>
    %e = tensor.empty() : tensor<1x4xf8E4M3FN>
    %f = tensor.empty() : tensor<f32>
    %q, %inverse = fp8.quantize column(0) ins(%b : tensor<1x4xbf16>) scale(%scale : tensor<f32>)
        outs(%e, %f : tensor<1x4xf8E4M3FN>, tensor<f32>) -> tensor<1x4xf8E4M3FN>, tensor<f32>
    %new = tensor.insert_slice %q into %old[%i, 0] [1, 4] [1, 1] : tensor<1x4xf8E4M3FN> into tensor<2x4xf8E4M3FN>
    scf.yield %new : tensor<2x4xf8E4M3FN>
  }
  return %all, %s1, %h1 : tensor<2x4xf8E4M3FN>, tensor<1xf32>, tensor<4x1xf32>
}
func.func @backward() -> tensor<2x4xf8E4M3FN> {
  %p = ub.poison : tensor<2x4xf8E4M3FN>
  return %p : tensor<2x4xf8E4M3FN>
}

// -----

// Sizes known only at run time, and slices that are turned round before they are cast.

// CHECK-LABEL: func.func @turned(
// CHECK:         %[[STACK:.*]] = scf.for {{.*}} -> (tensor<2x?x4xf8E4M3FN>) {
// CHECK:         fp8.end_forward
// CHECK:         %[[SLICE:.*]] = tensor.extract_slice %[[STACK]]{{.*}} : tensor<2x?x4xf8E4M3FN> to tensor<?x4xf8E4M3FN>
// CHECK:         %[[TURNED:.*]] = linalg.transpose ins(%[[SLICE]] : tensor<?x4xf8E4M3FN>)
// CHECK:         return %[[TURNED]]
func.func @turned(%x: tensor<2x?x4xbf16>, %s: tensor<1xf32>, %h: tensor<4x1xf32>)
    -> (tensor<4x?xf8E4M3FN>, tensor<1xf32>, tensor<4x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c1 : tensor<2x?x4xbf16>
  %empty = tensor.empty(%n) : tensor<2x?x4xbf16>
  %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %empty) -> (tensor<2x?x4xbf16>) {
    %v = tensor.extract_slice %x[%i, 0, 0] [1, %n, 4] [1, 1, 1] : tensor<2x?x4xbf16> to tensor<?x4xbf16>
    %w = arith.negf %v : tensor<?x4xbf16>
    %new = tensor.insert_slice %w into %old[%i, 0, 0] [1, %n, 4] [1, 1, 1] : tensor<?x4xbf16> into tensor<2x?x4xbf16>
    scf.yield %new : tensor<2x?x4xbf16>
  }
  %scale = tensor.extract_slice %s[0] [1] [1] : tensor<1xf32> to tensor<f32>
  %s1, %h1 = fp8.end_forward @backward given(%s, %h : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  %slice = tensor.extract_slice %stack[1, 0, 0] [1, %n, 4] [1, 1, 1] : tensor<2x?x4xbf16> to tensor<?x4xbf16>
  %t = tensor.empty(%n) : tensor<4x?xbf16>
  %turned = linalg.transpose ins(%slice : tensor<?x4xbf16>) outs(%t : tensor<4x?xbf16>) permutation = [1, 0]
  %m = tensor.dim %turned, %c1 : tensor<4x?xbf16>
  %e = tensor.empty(%m) : tensor<4x?xf8E4M3FN>
  %f = tensor.empty() : tensor<f32>
  %q, %inverse = fp8.quantize column(0) ins(%turned : tensor<4x?xbf16>) scale(%scale : tensor<f32>)
      outs(%e, %f : tensor<4x?xf8E4M3FN>, tensor<f32>) -> tensor<4x?xf8E4M3FN>, tensor<f32>
  return %q, %s1, %h1 : tensor<4x?xf8E4M3FN>, tensor<1xf32>, tensor<4x1xf32>
}
func.func @backward() -> tensor<4x?xf8E4M3FN> {
  %p = ub.poison : tensor<4x?xf8E4M3FN>
  return %p : tensor<4x?xf8E4M3FN>
}
