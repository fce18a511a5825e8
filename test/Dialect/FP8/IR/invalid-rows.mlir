// Regions on rows that the verifiers of amax and cast refuse.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics

#id = affine_map<(i, j) -> (i, j)>
func.func @no_region(%x: tensor<4x8xf32>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>) {
  // expected-error@+1 {{without a producer region there is one input and no indexing_maps or rows}}
  %q:2 = fp8.quantize ins(%x : tensor<4x8xf32>) scale(%s : tensor<f32>) outs(%d, %s : tensor<4x8xf8E4M3FN>, tensor<f32>)
      {rows = array<i64: 1>} -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @all_dimensions(%x: tensor<4x8xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{`rows` must be some of the 2 dimensions of the tensor, not all, in increasing order}}
  %m = fp8.amax ins(%x : tensor<4x8xf32>) outs(%a : tensor<f32>) {indexing_maps = [#id], rows = array<i64: 0, 1>} producer {
  ^bb0(%r: tensor<4x8xf32>):
    fp8.yield %r : tensor<4x8xf32>
  } -> tensor<f32>
  return
}

// -----

#id = affine_map<(i, j, k) -> (i, j, k)>
func.func @order(%x: tensor<4x8x2xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{`rows` must be some of the 3 dimensions of the tensor, not all, in increasing order}}
  %m = fp8.amax ins(%x : tensor<4x8x2xf32>) outs(%a : tensor<f32>) {indexing_maps = [#id], rows = array<i64: 2, 1>} producer {
  ^bb0(%i: index, %r: tensor<8x2xf32>):
    fp8.yield %r : tensor<8x2xf32>
  } -> tensor<f32>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @memory(%x: memref<4x8xf32>, %a: memref<f32>) {
  // expected-error@+1 {{with `rows` on memrefs computes with vectors, not tensors; run fp8-expand-rows or fp8-vectorize-rows before bufferization}}
  fp8.amax ins(%x : memref<4x8xf32>) outs(%a : memref<f32>) {indexing_maps = [#id], rows = array<i64: 1>} producer {
  ^bb0(%i: index, %r: tensor<8xf32>):
    fp8.yield %r : tensor<8xf32>
  }
  return
}

// -----

#reversed = affine_map<(i, j) -> (i, 7 - j)>
func.func @part(%x: tensor<4x8xf32>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>) {
  // expected-error@+1 {{producer map 0 computes with a dimension in `rows`; those are read whole}}
  %q:2 = fp8.quantize ins(%x : tensor<4x8xf32>) scale(%s : tensor<f32>) outs(%d, %s : tensor<4x8xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [#reversed], rows = array<i64: 1>} producer {
  ^bb0(%i: index, %r: tensor<8xf32>):
    fp8.yield %r : tensor<8xf32>
  } -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @unknown_size(%x: tensor<4x?xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{dimension d1 is in `rows` and of unknown size}}
  %m = fp8.amax ins(%x : tensor<4x?xf32>) outs(%a : tensor<f32>) {indexing_maps = [#id], rows = array<i64: 1>} producer {
  ^bb0(%i: index, %r: tensor<?xf32>):
    fp8.yield %r : tensor<?xf32>
  } -> tensor<f32>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @argument_count(%x: tensor<4x8xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{the producer must be one block of 2 arguments: the index of the row in each other dimension and the slice of each input along `rows`}}
  %m = fp8.amax ins(%x : tensor<4x8xf32>) outs(%a : tensor<f32>) {indexing_maps = [#id], rows = array<i64: 1>} producer {
  ^bb0(%r: tensor<8xf32>):
    fp8.yield %r : tensor<8xf32>
  } -> tensor<f32>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @index(%x: tensor<4x8xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{the first 1 arguments of the producer are the index of the row and must be of type index}}
  %m = fp8.amax ins(%x : tensor<4x8xf32>) outs(%a : tensor<f32>) {indexing_maps = [#id], rows = array<i64: 1>} producer {
  ^bb0(%i: i64, %r: tensor<8xf32>):
    fp8.yield %r : tensor<8xf32>
  } -> tensor<f32>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @argument(%x: tensor<4x8xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{producer argument 1 must be of type 'tensor<8xf32>'}}
  %m = fp8.amax ins(%x : tensor<4x8xf32>) outs(%a : tensor<f32>) {indexing_maps = [#id], rows = array<i64: 1>} producer {
  ^bb0(%i: index, %r: f32):
    %t = tensor.splat %r : tensor<8xf32>
    fp8.yield %t : tensor<8xf32>
  } -> tensor<f32>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @yields_element(%x: tensor<4x8xf32>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>) {
  // expected-error@+1 {{the producer yields 'f32', expected a row of shape [8]}}
  %q:2 = fp8.quantize ins(%x : tensor<4x8xf32>) scale(%s : tensor<f32>) outs(%d, %s : tensor<4x8xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [#id], rows = array<i64: 1>} producer {
  ^bb0(%i: index, %r: tensor<8xf32>):
    %v = arith.constant 1.0 : f32
    fp8.yield %v : f32
  } -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @yields_row(%x: tensor<4x8xf32>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>) {
  // expected-error@+1 {{the producer yields 'tensor<8xf32>', expected one element}}
  %q:2 = fp8.quantize ins(%x : tensor<4x8xf32>) scale(%s : tensor<f32>) outs(%d, %s : tensor<4x8xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [#id]} producer {
  ^bb0(%r: f32):
    %t = tensor.splat %r : tensor<8xf32>
    fp8.yield %t : tensor<8xf32>
  } -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return
}

// -----

#id = affine_map<(i, j, k) -> (i, j, k)>
#first = affine_map<(i, j, k) -> (i)>
func.func @statistic_of_one_dimension(%x: tensor<4x8x2xf32>, %a: tensor<f32>, %e: tensor<4xf32>) {
  // expected-error@+1 {{producer map 1 must store an extra result of rank 1 at a permutation of the 3 dimensions, a statistic at those outside of `rows`, or a sum at those of `rows`}}
  %m:2 = fp8.amax ins(%x : tensor<4x8x2xf32>) outs(%a, %e : tensor<f32>, tensor<4xf32>) {indexing_maps = [#id, #first], rows = array<i64: 2>} producer {
  ^bb0(%i: index, %j: index, %r: tensor<2xf32>):
    %v = arith.constant 1.0 : f32
    fp8.yield %r, %v : tensor<2xf32>, f32
  } -> tensor<f32>, tensor<4xf32>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#stat = affine_map<(i, j) -> (i)>
func.func @statistic_type(%x: tensor<4x8xf32>, %a: tensor<f32>, %e: tensor<4xbf16>) {
  // expected-error@+1 {{the producer yields 'f32' for an extra result of 'bf16'}}
  %m:2 = fp8.amax ins(%x : tensor<4x8xf32>) outs(%a, %e : tensor<f32>, tensor<4xbf16>) {indexing_maps = [#id, #stat], rows = array<i64: 1>} producer {
  ^bb0(%i: index, %r: tensor<8xf32>):
    %v = arith.constant 1.0 : f32
    fp8.yield %r, %v : tensor<8xf32>, f32
  } -> tensor<f32>, tensor<4xbf16>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @sum_type(%x: tensor<4x8xbf16>, %a: tensor<f32>, %e: tensor<8xbf16>) {
  // expected-error@+1 {{extra result 0 is a sum and must be f32}}
  %m:2 = fp8.amax ins(%x : tensor<4x8xbf16>) outs(%a, %e : tensor<f32>, tensor<8xbf16>) {indexing_maps = [#id, #column], rows = array<i64: 1>} producer {
  ^bb0(%i: index, %r: tensor<8xbf16>):
    fp8.yield %r, %r : tensor<8xbf16>, tensor<8xbf16>
  } -> tensor<f32>, tensor<8xbf16>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#m = affine_map<(m, n, k) -> (m, k)>
func.func @epilogue(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x8xf8E4M3FN>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>) {
  // expected-error@+1 {{the epilogue yields 'tensor<8xf32>', expected f64, f32}}
  %y:3 = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>) scales(%s, %s : tensor<f32>, tensor<f32>)
      out_scale(%s : tensor<f32>) outs(%d, %s, %s : tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<f32>)
      {indexing_maps = [#m, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} epilogue {
  ^bb0(%sum: f32):
    %t = tensor.splat %sum : tensor<8xf32>
    fp8.yield %t : tensor<8xf32>
  } -> tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<f32>
  return
}
