// RUN: fp8-opt %s -split-input-file --remarks-filter=fp8-fusion --pass-pipeline='builtin.module(func.func(fp8-fuse-epilogues,fp8-fuse-producers,fp8-fuse-rows,fp8-explain-fusion))' -verify-diagnostics -o /dev/null

#id = affine_map<(i, j) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// A reader that transposes.
func.func @transposed(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>, %t: tensor<16x4xf32>)
    -> tensor<16x4xf32> {
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [#lhs, #rhs, #out]} -> tensor<4x16xf32>
  // expected-remark @+1 {{'linalg.generic' reads the result of 'fp8.matmul' from memory: it writes its result in another order than the matmul}}
  %z = linalg.generic {indexing_maps = [#transposed, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x16xf32>) outs(%t : tensor<16x4xf32>) {
    ^bb0(%e: f32, %o: f32):
      linalg.yield %e : f32
  } -> tensor<16x4xf32>
  return %z : tensor<16x4xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// A result in a type that no matmul writes; a sum of rows, and one that is not in f32.
func.func @types(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>, %wide: tensor<4x16xf64>,
                 %rows: tensor<4xf32>) -> (tensor<4x16xf64>, tensor<4xf32>) {
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [#lhs, #rhs, #out]} -> tensor<4x16xf32>
  // expected-remark @+1 {{its result has a type that the matmul cannot write}}
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x16xf32>) outs(%wide : tensor<4x16xf64>) {
    ^bb0(%e: f32, %o: f64):
      %v = arith.extf %e : f32 to f64
      linalg.yield %v : f64
  } -> tensor<4x16xf64>
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  // expected-remark @+1 {{it does not sum over the leading dimensions in their order}}
  %sum = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<4x16xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%e: f32, %o: f32):
      %v = arith.addf %o, %e : f32
      linalg.yield %v : f32
  } -> tensor<4xf32>
  return %z, %sum : tensor<4x16xf64>, tensor<4xf32>
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// A scale that is computed from the amax of the result (current scaling).
func.func @scale(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>, %f: tensor<f32>,
                 %d: tensor<4x16xf8E4M3FN>) -> (tensor<4x16xf8E4M3FN>, tensor<f32>) {
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [#lhs, #rhs, #out]} -> tensor<4x16xf32>
  %amax = fp8.amax ins(%y : tensor<4x16xf32>) outs(%f : tensor<f32>) -> tensor<f32>
  // expected-remark @+1 {{'fp8.quantize' reads the result of 'fp8.matmul' from memory: its scale is computed from what the matmul writes}}
  %q, %s = fp8.quantize ins(%y : tensor<4x16xf32>) scale(%amax : tensor<f32>)
    outs(%d, %f : tensor<4x16xf8E4M3FN>, tensor<f32>) -> tensor<4x16xf8E4M3FN>, tensor<f32>
  return %q, %s : tensor<4x16xf8E4M3FN>, tensor<f32>
}

// -----

#id = affine_map<(i) -> (i)>

// A producer with a gather.
func.func @gather(%x: tensor<4xindex>, %table: tensor<9xf32>, %e: tensor<4xf32>, %s: tensor<f32>,
                  %d: tensor<4xf8E4M3FN>, %f: tensor<f32>) -> (tensor<4xf8E4M3FN>, tensor<f32>) {
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xindex>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: index, %o: f32):
      %v = tensor.extract %table[%a] : tensor<9xf32>
      linalg.yield %v : f32
  } -> tensor<4xf32>
  // expected-remark @+1 {{the code that computes the tensor is more than arithmetic on single elements}}
  %q, %si = fp8.quantize ins(%n : tensor<4xf32>) scale(%s : tensor<f32>)
    outs(%d, %f : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  return %q, %si : tensor<4xf8E4M3FN>, tensor<f32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Rows of a size that is not known.
func.func @dynamic(%x: tensor<4x?xf32>, %e: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4x?xf8E4M3FN>, %f: tensor<f32>)
    -> (tensor<4x?xf8E4M3FN>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x?xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %v = arith.addf %o, %a : f32
      linalg.yield %v : f32
  } -> tensor<4xf32>
  // expected-remark @+1 {{'fp8.quantize' reads the result of 'linalg.generic' from memory: the size of its rows is not known}}
  %q, %si = fp8.quantize ins(%x, %sum : tensor<4x?xf32>, tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %f : tensor<4x?xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id, #row]} producer {
    ^bb0(%a: f32, %m: f32):
      %v = arith.subf %a, %m : f32
      fp8.yield %v : f32
  } -> tensor<4x?xf8E4M3FN>, tensor<f32>
  return %q, %si : tensor<4x?xf8E4M3FN>, tensor<f32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Rows that are larger than what the target computes at once.
func.func @large(%x: tensor<4x100000xf32>, %e: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4x100000xf8E4M3FN>, %f: tensor<f32>)
    -> (tensor<4x100000xf8E4M3FN>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x100000xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %v = arith.addf %o, %a : f32
      linalg.yield %v : f32
  } -> tensor<4xf32>
  // expected-remark @+1 {{'fp8.quantize' reads the result of 'linalg.generic' from memory: a row takes more memory than the target allows}}
  %q, %si = fp8.quantize ins(%x, %sum : tensor<4x100000xf32>, tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %f : tensor<4x100000xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id, #row]} producer {
    ^bb0(%a: f32, %m: f32):
      %v = arith.subf %a, %m : f32
      fp8.yield %v : f32
  } -> tensor<4x100000xf8E4M3FN>, tensor<f32>
  return %q, %si : tensor<4x100000xf8E4M3FN>, tensor<f32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A reduction that looks each element up.
func.func @lookup(%x: tensor<4x8xf32>, %e: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>, %f: tensor<f32>, %table: tensor<256xf32>)
    -> (tensor<4x8xf8E4M3FN>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %i = arith.fptoui %a : f32 to i8
      %n = arith.index_castui %i : i8 to index
      %t = tensor.extract %table[%n] : tensor<256xf32>
      %v = arith.addf %o, %t : f32
      linalg.yield %v : f32
  } -> tensor<4xf32>
  // expected-remark @+1 {{'fp8.quantize' reads the result of 'linalg.generic' from memory: the code that computes the tensor is more than arithmetic on single elements}}
  %q, %si = fp8.quantize ins(%x, %sum : tensor<4x8xf32>, tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %f : tensor<4x8xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id, #row]} producer {
    ^bb0(%a: f32, %m: f32):
      %v = arith.subf %a, %m : f32
      fp8.yield %v : f32
  } -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return %q, %si : tensor<4x8xf8E4M3FN>, tensor<f32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Sums that begin with other values than one for all.
func.func @filled(%x: tensor<4x8xf32>, %e: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>, %f: tensor<f32>)
    -> (tensor<4x8xf8E4M3FN>, tensor<f32>) {
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %v = arith.addf %o, %a : f32
      linalg.yield %v : f32
  } -> tensor<4xf32>
  // expected-remark @+1 {{'fp8.quantize' reads the result of 'linalg.generic' from memory: it adds to a tensor that is not filled with one value}}
  %q, %si = fp8.quantize ins(%x, %sum : tensor<4x8xf32>, tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %f : tensor<4x8xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id, #row]} producer {
    ^bb0(%a: f32, %m: f32):
      %v = arith.subf %a, %m : f32
      fp8.yield %v : f32
  } -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return %q, %si : tensor<4x8xf8E4M3FN>, tensor<f32>
}
