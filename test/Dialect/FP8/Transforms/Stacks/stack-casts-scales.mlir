// RUN: fp8-opt --fp8-stack-casts --split-input-file %s | FileCheck -enable-var-scope %s

// Every slice has a scale of its own. Forward's cast fills the stack of bytes and, beside it, one
// of scale_inv; loops in loops, and views on the way.

// CHECK-LABEL: func.func @nested(
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<1xbf16>
// CHECK:         %[[AMAX:.*]] = fp8.amax ins(%[[ZERO]] : tensor<1xbf16>)
// CHECK:         %[[SCALE:.*]] = fp8.compute_scale {{.*}} ins(%[[AMAX]] : tensor<f32>)
// CHECK:         %[[INVERSE:.*]] = arith.divf %{{.*}}, %[[SCALE]] : tensor<f32>
// CHECK:         %[[NONE:.*]] = tensor.extract %[[INVERSE]][] : tensor<f32>
// CHECK:         linalg.fill ins(%[[NONE]] : f32) outs(%{{.*}} : tensor<2x3xf32>)
// CHECK:         %[[OUTER:.*]]:3 = scf.while {{.*}} -> (index, tensor<2x3x8xf8E4M3FN>, tensor<2x3xf32>) {
// CHECK:           linalg.fill ins(%[[NONE]] : f32) outs(%{{.*}} : tensor<3xf32>)
// CHECK:           %[[INNER:.*]]:2 = scf.for %[[J:[^ ]*]] = {{.*}} -> (tensor<3x8xf8E4M3FN>, tensor<3xf32>) {
// CHECK:             %[[Q:.*]]:2 = fp8.quantize ins(%{{.*}} : tensor<8xbf16>)
// CHECK-NOT:         fp8.quantize
// CHECK:             %[[ROW:.*]] = tensor.expand_shape %[[Q]]#0
// CHECK:             tensor.insert_slice %[[ROW]] into %{{.*}}[%[[J]], 0] [1, 8] [1, 1]
// CHECK:             tensor.insert_slice %[[Q]]#1 into %{{.*}}[%[[J]]] [1] [1] : tensor<f32> into tensor<3xf32>
// CHECK:           tensor.insert_slice %[[INNER]]#0 into
// CHECK:           tensor.insert_slice %[[INNER]]#1 into %{{.*}}[%{{.*}}, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<2x3xf32>
// CHECK:         fp8.end_forward
// CHECK-NOT:     fp8.amax
// CHECK-DAG:     %[[SCALES:.*]] = tensor.extract_slice %[[OUTER]]#2[1, 0] [1, 3] [1, 1] : tensor<2x3xf32> to tensor<3xf32>
// CHECK-DAG:     %[[OWN:.*]] = tensor.extract_slice %[[SCALES]][2] [1] [1] : tensor<3xf32> to tensor<f32>
// CHECK-DAG:     %[[PART:.*]] = tensor.extract_slice %[[OUTER]]#1[1, 0, 0] [1, 3, 8] [1, 1, 1] : tensor<2x3x8xf8E4M3FN>
// CHECK-DAG:     %[[SLICE:.*]] = tensor.extract_slice %[[PART]][2, 0] [1, 8] [1, 1] : tensor<3x8xf8E4M3FN>
// CHECK-NOT:     fp8.quantize
// CHECK:         return %[[SLICE]], %[[OWN]]
func.func @nested(%x: tensor<2x3x8xbf16>) -> (tensor<1x8xf8E4M3FN>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zeros = arith.constant dense<0.0> : tensor<2x3x8xbf16>
  %empty = tensor.empty() : tensor<3x8xbf16>
  %f = tensor.empty() : tensor<f32>
  %all:2 = scf.while (%i = %c0, %old = %zeros) : (index, tensor<2x3x8xbf16>) -> (index, tensor<2x3x8xbf16>) {
    %go = arith.cmpi slt, %i, %c2 : index
    scf.condition(%go) %i, %old : index, tensor<2x3x8xbf16>
  } do {
  ^bb0(%i: index, %old: tensor<2x3x8xbf16>):
    %rows = scf.for %j = %c0 to %c3 step %c1 iter_args(%before = %empty) -> (tensor<3x8xbf16>) {
      %v = tensor.extract_slice %x[%i, %j, 0] [1, 1, 8] [1, 1, 1] : tensor<2x3x8xbf16> to tensor<8xbf16>
      %amax = fp8.amax ins(%v : tensor<8xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
      %scale = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) input_type(bf16)
          ins(%amax : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
      %e = tensor.empty() : tensor<8xf8E4M3FN>
      %q:2 = fp8.quantize ins(%v : tensor<8xbf16>) scale(%scale : tensor<f32>)
          outs(%e, %f : tensor<8xf8E4M3FN>, tensor<f32>) -> tensor<8xf8E4M3FN>, tensor<f32>
      %row = tensor.expand_shape %v [[0, 1]] output_shape [1, 8] : tensor<8xbf16> into tensor<1x8xbf16>
      %after = tensor.insert_slice %row into %before[%j, 0] [1, 8] [1, 1] : tensor<1x8xbf16> into tensor<3x8xbf16>
      scf.yield %after : tensor<3x8xbf16>
    }
    %new = tensor.insert_slice %rows into %old[%i, 0, 0] [1, 3, 8] [1, 1, 1] : tensor<3x8xbf16> into tensor<2x3x8xbf16>
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %new : index, tensor<2x3x8xbf16>
  }
  fp8.end_forward @backward
  %part = tensor.extract_slice %all#1[1, 0, 0] [1, 3, 8] [1, 1, 1] : tensor<2x3x8xbf16> to tensor<3x8xbf16>
  %slice = tensor.extract_slice %part[2, 0] [1, 8] [1, 1] : tensor<3x8xbf16> to tensor<1x8xbf16>
  %again = fp8.amax ins(%slice : tensor<1x8xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %same = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) input_type(bf16)
      ins(%again : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
  %d = tensor.empty() : tensor<1x8xf8E4M3FN>
  %bytes, %inverse = fp8.quantize ins(%slice : tensor<1x8xbf16>) scale(%same : tensor<f32>)
      outs(%d, %f : tensor<1x8xf8E4M3FN>, tensor<f32>) -> tensor<1x8xf8E4M3FN>, tensor<f32>
  return %bytes, %inverse : tensor<1x8xf8E4M3FN>, tensor<f32>
}
func.func @backward() -> (tensor<1x8xf8E4M3FN>, tensor<f32>) {
  %p = ub.poison : tensor<1x8xf8E4M3FN>
  %i = ub.poison : tensor<f32>
  return %p, %i : tensor<1x8xf8E4M3FN>, tensor<f32>
}

// -----

// While the history is empty, scales follow from the tensors: slices are turned round before they
// are cast, and forward has no cast of its own.

// CHECK-LABEL: func.func @start(
// CHECK-SAME:    %[[X:.*]]: tensor<2x4x8xf32>, %{{.*}}: tensor<1xf32>, %{{.*}}: tensor<4x1xf32>
// CHECK:         %[[EMPTY:.*]] = arith.cmpf oeq
// CHECK:         %[[STATE:.*]] = tensor.extract_slice %{{.*}}[0] [1] [1] : tensor<1xf32> to tensor<f32>
// CHECK:         %[[STACKS:.*]]:2 = scf.for {{.*}} -> (tensor<2x4x8xf8E4M3FN>, tensor<2xf32>) {
// CHECK:           %[[W:.*]] = arith.truncf %{{.*}} : tensor<4x8xf32> to tensor<4x8xbf16>
// CHECK:           %[[SCALE:.*]] = scf.if %[[EMPTY]] -> (tensor<f32>) {
// CHECK:             fp8.amax ins(%[[W]] : tensor<4x8xbf16>)
// CHECK:             scf.yield %[[STATE]] : tensor<f32>
// CHECK:           %[[Q:.*]]:2 = fp8.quantize column(0) ins(%[[W]] : tensor<4x8xbf16>) scale(%[[SCALE]] : tensor<f32>)
// CHECK:           tensor.insert_slice %[[Q]]#0
// CHECK:           tensor.insert_slice %[[Q]]#1
// CHECK:         fp8.end_forward
// CHECK-NOT:     scf.if
// CHECK-DAG:     %[[OWN:.*]] = tensor.extract_slice %[[STACKS]]#1[1] [1] [1] : tensor<2xf32> to tensor<f32>
// CHECK-DAG:     %[[SLICE:.*]] = tensor.extract_slice %[[STACKS]]#0[1, 0, 0]
// CHECK:         %[[TURNED:.*]] = linalg.transpose ins(%[[SLICE]] : tensor<4x8xf8E4M3FN>)
// CHECK:         return %[[TURNED]], %[[OWN]]
func.func @start(%x: tensor<2x4x8xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>)
    -> (tensor<8x4xf8E4M3FN>, tensor<f32>, tensor<1xf32>, tensor<4x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %low = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<2x4x8xf32>
  %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %empty) -> (tensor<2x4x8xf32>) {
    %v = tensor.extract_slice %x[%i, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<2x4x8xf32> to tensor<4x8xf32>
    %w = arith.negf %v : tensor<4x8xf32>
    %new = tensor.insert_slice %w into %old[%i, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<4x8xf32> into tensor<2x4x8xf32>
    scf.yield %new : tensor<2x4x8xf32>
  }
  %known = tensor.extract_slice %s[0] [1] [1] : tensor<1xf32> to tensor<f32>
  %newest = tensor.extract %h[%c1, %c0] : tensor<4x1xf32>
  %none = arith.cmpf oeq, %newest, %low : f32
  %s1, %h1 = fp8.end_forward @backward given(%s, %h : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  %slice = tensor.extract_slice %stack[1, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<2x4x8xf32> to tensor<4x8xf32>
  %b = arith.truncf %slice : tensor<4x8xf32> to tensor<4x8xbf16>
  %t = tensor.empty() : tensor<8x4xbf16>
  %turned = linalg.transpose ins(%b : tensor<4x8xbf16>) outs(%t : tensor<8x4xbf16>) permutation = [1, 0]
  %scale = scf.if %none -> (tensor<f32>) {
    %amax = fp8.amax ins(%turned : tensor<8x4xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
    %own = fp8.compute_scale recipe(#fp8.delayed_scaling<init = current>) format(f8E4M3FN)
        ins(%amax : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
    scf.yield %own : tensor<f32>
  } else {
    scf.yield %known : tensor<f32>
  }
  %e = tensor.empty() : tensor<8x4xf8E4M3FN>
  %q, %inverse = fp8.quantize column(0) ins(%turned : tensor<8x4xbf16>) scale(%scale : tensor<f32>)
      outs(%e, %f : tensor<8x4xf8E4M3FN>, tensor<f32>) -> tensor<8x4xf8E4M3FN>, tensor<f32>
  return %q, %inverse, %s1, %h1 : tensor<8x4xf8E4M3FN>, tensor<f32>, tensor<1xf32>, tensor<4x1xf32>
}
func.func @backward() -> (tensor<8x4xf8E4M3FN>, tensor<f32>) {
  %p = ub.poison : tensor<8x4xf8E4M3FN>
  %i = ub.poison : tensor<f32>
  return %p, %i : tensor<8x4xf8E4M3FN>, tensor<f32>
}

// -----

// Half a slice has another amax than the slice.

// CHECK-LABEL: func.func @half(
// CHECK:         scf.for {{.*}} -> (tensor<2x8xbf16>)
// CHECK:         fp8.end_forward
// CHECK:         fp8.quantize
func.func @half(%x: tensor<2x8xbf16>) -> (tensor<1x4xf8E4M3FN>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<2x8xbf16>
  %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %empty) -> (tensor<2x8xbf16>) {
    %v = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<1x8xbf16>
    %w = arith.negf %v : tensor<1x8xbf16>
    %new = tensor.insert_slice %w into %old[%i, 0] [1, 8] [1, 1] : tensor<1x8xbf16> into tensor<2x8xbf16>
    scf.yield %new : tensor<2x8xbf16>
  }
  fp8.end_forward @backward
  %slice = tensor.extract_slice %stack[1, 0] [1, 4] [1, 1] : tensor<2x8xbf16> to tensor<1x4xbf16>
  %amax = fp8.amax ins(%slice : tensor<1x4xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %scale = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%amax : tensor<f32>)
      outs(%f : tensor<f32>) -> tensor<f32>
  %d = tensor.empty() : tensor<1x4xf8E4M3FN>
  %bytes, %inverse = fp8.quantize ins(%slice : tensor<1x4xbf16>) scale(%scale : tensor<f32>)
      outs(%d, %f : tensor<1x4xf8E4M3FN>, tensor<f32>) -> tensor<1x4xf8E4M3FN>, tensor<f32>
  return %bytes, %inverse : tensor<1x4xf8E4M3FN>, tensor<f32>
}
func.func @backward() -> (tensor<1x4xf8E4M3FN>, tensor<f32>) {
  %p = ub.poison : tensor<1x4xf8E4M3FN>
  %i = ub.poison : tensor<f32>
  return %p, %i : tensor<1x4xf8E4M3FN>, tensor<f32>
}

// -----

// Backward reads the amax for something else, which needs the elements.

// CHECK-LABEL: func.func @measured(
// CHECK:         scf.for {{.*}} -> (tensor<2x8xbf16>)
// CHECK:         fp8.end_forward
// CHECK:         fp8.quantize
func.func @measured(%x: tensor<2x8xbf16>) -> (tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<2x8xbf16>
  %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %empty) -> (tensor<2x8xbf16>) {
    %v = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<1x8xbf16>
    %w = arith.negf %v : tensor<1x8xbf16>
    %new = tensor.insert_slice %w into %old[%i, 0] [1, 8] [1, 1] : tensor<1x8xbf16> into tensor<2x8xbf16>
    scf.yield %new : tensor<2x8xbf16>
  }
  fp8.end_forward @backward
  %slice = tensor.extract_slice %stack[1, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<1x8xbf16>
  %amax = fp8.amax ins(%slice : tensor<1x8xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %scale = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%amax : tensor<f32>)
      outs(%f : tensor<f32>) -> tensor<f32>
  %d = tensor.empty() : tensor<1x8xf8E4M3FN>
  %bytes, %inverse = fp8.quantize ins(%slice : tensor<1x8xbf16>) scale(%scale : tensor<f32>)
      outs(%d, %f : tensor<1x8xf8E4M3FN>, tensor<f32>) -> tensor<1x8xf8E4M3FN>, tensor<f32>
  return %bytes, %inverse, %amax : tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<f32>
}
func.func @backward() -> (tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<f32>) {
  %p = ub.poison : tensor<1x8xf8E4M3FN>
  %i = ub.poison : tensor<f32>
  return %p, %i, %i : tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<f32>
}

// -----

// Four bytes and a scale are no less than four elements of two bytes.

// CHECK-LABEL: func.func @small(
// CHECK:         scf.for {{.*}} -> (tensor<2x4xbf16>)
// CHECK:         fp8.end_forward
// CHECK:         fp8.quantize
func.func @small(%x: tensor<2x4xbf16>) -> (tensor<1x4xf8E4M3FN>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<2x4xbf16>
  %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %empty) -> (tensor<2x4xbf16>) {
    %v = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<2x4xbf16> to tensor<1x4xbf16>
    %w = arith.negf %v : tensor<1x4xbf16>
    %new = tensor.insert_slice %w into %old[%i, 0] [1, 4] [1, 1] : tensor<1x4xbf16> into tensor<2x4xbf16>
    scf.yield %new : tensor<2x4xbf16>
  }
  fp8.end_forward @backward
  %slice = tensor.extract_slice %stack[1, 0] [1, 4] [1, 1] : tensor<2x4xbf16> to tensor<1x4xbf16>
  %amax = fp8.amax ins(%slice : tensor<1x4xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %scale = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%amax : tensor<f32>)
      outs(%f : tensor<f32>) -> tensor<f32>
  %d = tensor.empty() : tensor<1x4xf8E4M3FN>
  %bytes, %inverse = fp8.quantize ins(%slice : tensor<1x4xbf16>) scale(%scale : tensor<f32>)
      outs(%d, %f : tensor<1x4xf8E4M3FN>, tensor<f32>) -> tensor<1x4xf8E4M3FN>, tensor<f32>
  return %bytes, %inverse : tensor<1x4xf8E4M3FN>, tensor<f32>
}
func.func @backward() -> (tensor<1x4xf8E4M3FN>, tensor<f32>) {
  %p = ub.poison : tensor<1x4xf8E4M3FN>
  %i = ub.poison : tensor<f32>
  return %p, %i : tensor<1x4xf8E4M3FN>, tensor<f32>
}

// -----

// Forward narrows and stacks slices of an argument: each is a tensor of its own, which is cast there.

// CHECK-LABEL: func.func @slices(
// CHECK:         %[[STACKS:.*]]:2 = scf.for {{.*}} -> (tensor<2x8xf8E4M3FN>, tensor<2xf32>) {
// CHECK:           %[[SLICE:.*]] = tensor.extract_slice %{{.*}} : tensor<2x8xf32> to tensor<1x8xf32>
// CHECK:           %[[B:.*]] = arith.truncf %[[SLICE]] : tensor<1x8xf32> to tensor<1x8xbf16>
// CHECK:           %[[AMAX:.*]] = fp8.amax ins(%[[B]] : tensor<1x8xbf16>)
// CHECK:           fp8.compute_scale {{.*}} ins(%[[AMAX]] : tensor<f32>)
// CHECK:           fp8.quantize ins(%[[B]] : tensor<1x8xbf16>)
// CHECK:         fp8.end_forward
// CHECK-NOT:     fp8.quantize
func.func @slices(%x: tensor<2x8xf32>) -> (tensor<1x8xf8E4M3FN>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<2x8xbf16>
  %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %empty) -> (tensor<2x8xbf16>) {
    %v = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<1x8xf32>
    %w = arith.truncf %v : tensor<1x8xf32> to tensor<1x8xbf16>
    %new = tensor.insert_slice %w into %old[%i, 0] [1, 8] [1, 1] : tensor<1x8xbf16> into tensor<2x8xbf16>
    scf.yield %new : tensor<2x8xbf16>
  }
  fp8.end_forward @backward
  %slice = tensor.extract_slice %stack[1, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<1x8xbf16>
  %amax = fp8.amax ins(%slice : tensor<1x8xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %scale = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%amax : tensor<f32>)
      outs(%f : tensor<f32>) -> tensor<f32>
  %d = tensor.empty() : tensor<1x8xf8E4M3FN>
  %bytes, %inverse = fp8.quantize ins(%slice : tensor<1x8xbf16>) scale(%scale : tensor<f32>)
      outs(%d, %f : tensor<1x8xf8E4M3FN>, tensor<f32>) -> tensor<1x8xf8E4M3FN>, tensor<f32>
  return %bytes, %inverse : tensor<1x8xf8E4M3FN>, tensor<f32>
}
func.func @backward() -> (tensor<1x8xf8E4M3FN>, tensor<f32>) {
  %p = ub.poison : tensor<1x8xf8E4M3FN>
  %i = ub.poison : tensor<f32>
  return %p, %i : tensor<1x8xf8E4M3FN>, tensor<f32>
}
