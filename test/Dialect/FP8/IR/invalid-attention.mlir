// The errors of the verifiers of attention.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

func.func @number_of_maps(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{has 4 operands and 3 indexing_maps; each operand needs one}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @other_space(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{indexing map 1 must be in the 4 dimensions of the first map, without symbols}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(j, d) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @rank(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{indexing map 2 has 3 results for rank 2}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e, d)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @summed_everywhere(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{the indexing_maps of query, key, value and output must be projected permutations, in which every dimension is an outer one}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, j)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @no_outer(%q: tensor<16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<24xf32>) {
  // expected-error@+1 {{there must be outer dimensions, keys and depth}}
  %r = fp8.attention ins(%q, %k, %v : tensor<16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<24xf32>)
      {indexing_maps = [affine_map<(j, d, e) -> (d)>, affine_map<(j, d, e) -> (j, d)>, affine_map<(j, d, e) -> (j, e)>, affine_map<(j, d, e) -> (e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<24xf32>
  return
}

// -----

func.func @sizes(%q: tensor<4x16xf32>, %k: tensor<8x12xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{dimension d2 has size 16 and, in operand 1, 12}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x12xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @sites(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{has 1 sites for 2 matmuls}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>],
       sites = [#fp8.matmul_site<>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @no_index(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{`rows` must have 2 arguments: the index of the row in each of 1 outer dimensions, the row of scores, and the part of each input}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @index_type(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{argument 0 of `rows` is an index of the row and must be of type index}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: i32, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @row_of_scores(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{argument 1 of `rows` must be a row of floats, such as 'tensor<8xf32>'}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<4xf32>):
      fp8.yield %s : tensor<4xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @input_part(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>, %x: tensor<8x4xf16>) {
  // expected-error@+1 {{argument 2 of `rows` must be of type 'tensor<8xf16>'}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      row_ins(%x : tensor<8x4xf16>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (j, i)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>, %x_row: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @input_diagonal(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>, %x: tensor<8x8xf32>) {
  // expected-error@+1 {{indexing map 3 reads a diagonal of key dimension d1}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      row_ins(%x : tensor<8x8xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (j, j)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>, %x_row: tensor<8x8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @input_part_of_keys(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>, %x: tensor<12xf32>) {
  // expected-error@+1 {{indexing map 3 of an input of the rows computes with d1, which is no outer dimension; key dimensions are read whole}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      row_ins(%x : tensor<12xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i + j)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>, %x_row: f32):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @input_depth(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>, %x: tensor<16xf32>) {
  // expected-error@+1 {{indexing map 3 of an input of the rows computes with d2}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      row_ins(%x : tensor<16xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (d)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>, %x_row: f32):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @further_result(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{indexing map 4 of a further result must have each outer dimension once, and each key dimension or none of them}}
  %r:2 = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o, %y : tensor<4x24xf32>, tensor<8xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (j)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s, %s : tensor<8xf32>, tensor<8xf32>
  } -> tensor<4x24xf32>, tensor<8xf32>
  return
}

// -----

// A row of each index is stored; only sums of rows may leave keys out.
func.func @visible_keys_and_stored_gradient(%q: tensor<2x4x16xf32>, %k: tensor<2x8x16xf32>, %y: tensor<2x4x8xf32>) {
  // expected-error@+1 {{has `visible_keys` and a further result that is a row of all keys}}
  %r:4 = fp8.attention_grad ins(%q, %k, %k, %q : tensor<2x4x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x4x16xf32>)
      outs(%q, %k, %k, %y : tensor<2x4x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x4x8xf32>)
      {indexing_maps = [affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>, affine_map<(b, i, j, d, e) -> (b, j, e)>,
                        affine_map<(b, i, j, d, e) -> (b, i, e)>, affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>,
                        affine_map<(b, i, j, d, e) -> (b, j, e)>, affine_map<(b, i, j, d, e) -> (b, i, j)>],
       visible_keys = affine_map<(b, i, j, d, e) -> (0, i + 1)>} rows {
    ^bb0(%b: index, %i: index, %s: tensor<8xf32>, %g: tensor<8xf32>):
      fp8.yield %s, %g, %g : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  } -> tensor<2x4x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @statistic_of_some_rows(%q: tensor<2x4x16xf32>, %k: tensor<2x8x16xf32>, %y: tensor<2xf32>) {
  // expected-error@+1 {{indexing map 7 of a further result must have each outer dimension once, and each key dimension or none of them; a row may lack outer dimensions}}
  %r:4 = fp8.attention_grad ins(%q, %k, %k, %q : tensor<2x4x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x4x16xf32>)
      outs(%q, %k, %k, %y : tensor<2x4x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2xf32>)
      {indexing_maps = [affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>, affine_map<(b, i, j, d, e) -> (b, j, e)>,
                        affine_map<(b, i, j, d, e) -> (b, i, e)>, affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>,
                        affine_map<(b, i, j, d, e) -> (b, j, e)>, affine_map<(b, i, j, d, e) -> (b)>]} rows {
    ^bb0(%b: index, %i: index, %s: tensor<8xf32>, %g: tensor<8xf32>):
      %x = arith.constant 0.0 : f32
      fp8.yield %s, %g, %x : tensor<8xf32>, tensor<8xf32>, f32
  } -> tensor<2x4x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2xf32>
  return
}

// -----

func.func @yield_count(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{`rows` yields 1 values, expected 2: the row of probabilities, and one for each further result}}
  %r:2 = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o, %y : tensor<4x24xf32>, tensor<4xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>, tensor<4xf32>
  return
}

// -----

func.func @yield_row(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{`rows` yields 'f32' as value 0, expected a row of floats, such as 'tensor<8xf32>'}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      %c = arith.constant 0.0 : f32
      fp8.yield %c : f32
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @yield_statistic(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{`rows` yields 'tensor<8xf32>' for result 1, expected 'f32'}}
  %r:2 = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o, %y : tensor<4x24xf32>, tensor<4xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s, %s : tensor<8xf32>, tensor<8xf32>
  } -> tensor<4x24xf32>, tensor<4xf32>
  return
}

// -----

func.func @terminator(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{`rows` must end in fp8.yield}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      "test.end"() : () -> ()
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @gradient_map(%q: tensor<2x4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %do: tensor<2x4x24xf32>,
                        %dq: tensor<4x16xf32>) {
  // expected-error@+1 {{the map of the gradient of the query must have the dimensions of the query, and may have outer dimensions}}
  %r:3 = fp8.attention_grad
      ins(%q, %k, %v, %do : tensor<2x4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>, tensor<2x4x24xf32>)
      outs(%dq, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      {indexing_maps = [affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (j, d)>,
                        affine_map<(b, i, j, d, e) -> (j, e)>, affine_map<(b, i, j, d, e) -> (b, i, e)>,
                        affine_map<(b, i, j, d, e) -> (i, d)>, affine_map<(b, i, j, d, e) -> (j, d)>,
                        affine_map<(b, i, j, d, e) -> (j, e)>]} rows {
    ^bb0(%b: index, %i: index, %s: tensor<8xf32>, %g: tensor<8xf32>):
      fp8.yield %s, %g : tensor<8xf32>, tensor<8xf32>
  } -> tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>
  return
}

// -----

func.func @gradients(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %do: tensor<4x24xf32>) {
  // expected-error@+1 {{has 2 outs, expected at least 3}}
  %r:2 = fp8.attention_grad
      ins(%q, %k, %v, %do : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>, tensor<4x24xf32>)
      outs(%q, %k : tensor<4x16xf32>, tensor<8x16xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>,
                        affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>,
                        affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>, %g: tensor<8xf32>):
      fp8.yield %s, %g : tensor<8xf32>, tensor<8xf32>
  } -> tensor<4x16xf32>, tensor<8x16xf32>
  return
}

// -----

func.func @visible_keys_of_keys(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{`visible_keys` must be the first key and the end, functions of outer dimensions, for one dimension of keys}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>],
       visible_keys = affine_map<(i, j, d, e) -> (0, j + 1)>} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @visible_keys_without_end(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>) {
  // expected-error@+1 {{`visible_keys` must be the first key and the end, functions of outer dimensions, for one dimension of keys}}
  %r = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o : tensor<4x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>],
       visible_keys = affine_map<(i, j, d, e) -> (i + 1)>} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<4x24xf32>
  return
}

// -----

func.func @visible_keys_and_row(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x24xf32>, %o: tensor<4x24xf32>, %p: tensor<4x8xf32>) {
  // expected-error@+1 {{has `visible_keys` and a further result that is a row of all keys}}
  %r:2 = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x24xf32>)
      outs(%o, %p : tensor<4x24xf32>, tensor<4x8xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i, j)>],
       visible_keys = affine_map<(i, j, d, e) -> (0, i + 1)>} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s, %s : tensor<8xf32>, tensor<8xf32>
  } -> tensor<4x24xf32>, tensor<4x8xf32>
  return
}
