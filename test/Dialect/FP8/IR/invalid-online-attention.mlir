// The errors of the verifiers of attention with an online softmax.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

func.func @two_depths(%q: tensor<4x2x16xbf16>, %k: tensor<8x2x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{must have one dimension each of keys, depth and width}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x2x16xbf16>, tensor<8x2x16xbf16>, tensor<8x24xbf16>)
      outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, c, d, e) -> (i, c, d)>, affine_map<(i, j, c, d, e) -> (j, c, d)>, affine_map<(i, j, c, d, e) -> (j, e)>, affine_map<(i, j, c, d, e) -> (i, e)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @number_of_sites(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{has 1 sites for 2 matmuls}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>], sites = [#fp8.matmul_site<>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @sizes(%q: tensor<4x16xbf16>, %k: tensor<8x12xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{dimension d2 has size 16 and, in operand 1, 12}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x12xbf16>, tensor<8x24xbf16>)
      outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @of_keys(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{`visible_keys` must be the first key and the end, functions of outer dimensions}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>], visible_keys = affine_map<(i, j, d, e) -> (0, j + 1)>} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @no_key(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{`score` must have the arguments ('index', 'index', 'f32'): the index of the row in each outer dimension and of the key, the score, and the element of each input}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} score {
    ^bb0(%i: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @score_type(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{`score` must have the arguments ('index', 'index', 'f32')}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} score {
    ^bb0(%i: index, %j: index, %s: bf16):
      fp8.yield %s, %s : bf16, bf16
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @no_factor(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{`score` yields ('f32'), expected ('f32', 'f32')}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s : f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @no_yield(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{`score` must end in fp8.yield}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      "test.end"() : () -> ()
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @no_block(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{`score` must be one block}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} score {} -> tensor<4x24xbf16>
  return
}

// -----

func.func @no_statistics(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>, %x: tensor<4xf32>) {
  // expected-error@+1 {{`statistics` must be one block}}
  %r:2 = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o, %x : tensor<4x24xbf16>, tensor<4xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>, tensor<4xf32>
  return
}

// -----

func.func @more_statistics(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{`statistics` yields ('f32'), expected ()}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } statistics {
    ^bb0(%i: index, %m: f32, %l: f32):
      fp8.yield %m : f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @statistic_arguments(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>, %x: tensor<4xf32>) {
  // expected-error@+1 {{`statistics` must have the arguments ('index', 'f32', 'f32'): the index of the row in each outer dimension, the maximum and the sum of the row}}
  %r:2 = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o, %x : tensor<4x24xbf16>, tensor<4xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } statistics {
    ^bb0(%i: index, %l: f32):
      fp8.yield %l : f32
  } -> tensor<4x24xbf16>, tensor<4xf32>
  return
}

// -----

func.func @statistic_type(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>, %x: tensor<4xf16>) {
  // expected-error@+1 {{`statistics` yields ('f32'), expected ('f16')}}
  %r:2 = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o, %x : tensor<4x24xbf16>, tensor<4xf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } statistics {
    ^bb0(%i: index, %m: f32, %l: f32):
      fp8.yield %m : f32
  } -> tensor<4x24xbf16>, tensor<4xf16>
  return
}

// -----

func.func @row(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>, %x: tensor<4x8xf32>) {
  // expected-error@+1 {{has a further result that is a row of all keys, and no statistic}}
  %r:2 = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      outs(%o, %x : tensor<4x24xbf16>, tensor<4x8xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i, j)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } statistics {
    ^bb0(%i: index, %m: f32, %l: f32):
      fp8.yield %m : f32
  } -> tensor<4x24xbf16>, tensor<4x8xf32>
  return
}

// -----

func.func @no_gradient(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %do: tensor<4x24xbf16>) {
  // expected-error@+1 {{`elements` must have the arguments ('index', 'index', 'f32', 'f32'): the index of the row in each outer dimension and of the key, the score, the gradient of the probability, and the element of each input}}
  %r:3 = fp8.online_attention_grad ins(%q, %k, %v, %do : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4x24xbf16>)
      outs(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>]} elements {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>
  return
}

// -----

func.func @one_element(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %do: tensor<4x24xbf16>) {
  // expected-error@+1 {{`elements` yields ('f32'), expected ('f32', 'f32')}}
  %r:3 = fp8.online_attention_grad ins(%q, %k, %v, %do : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4x24xbf16>)
      outs(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>]} elements {
    ^bb0(%i: index, %j: index, %s: f32, %g: f32):
      fp8.yield %s : f32
  } -> tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>
  return
}

// -----

func.func @condition_of_nothing(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>, %x: tensor<i1>) {
  // expected-error@+1 {{has `visible_if` without `visible_keys`}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>) row_ins(%x : tensor<i1>) outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> ()>, affine_map<(i, j, d, e) -> (i, e)>], visible_if = 0 : i64} score {
    ^bb0(%i: index, %j: index, %s: f32, %x0: i1):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @condition_of_rows(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>, %x: tensor<4xi1>) {
  // expected-error@+1 {{`visible_if` is 0, and must be the number of an input that is one i1}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>) row_ins(%x : tensor<4xi1>) outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i)>, affine_map<(i, j, d, e) -> (i, e)>], visible_keys = affine_map<(i, j, d, e) -> (0, i + 1)>, visible_if = 0 : i64} score {
    ^bb0(%i: index, %j: index, %s: f32, %x0: i1):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @no_input(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>) {
  // expected-error@+1 {{`sink` is input 0, and there are 0}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>) outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>], sink = 0 : i64} score {
    ^bb0(%i: index, %j: index, %s: f32):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @sink_of_bf16(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>, %x: tensor<4xbf16>) {
  // expected-error@+1 {{`sink` must be an input of f32}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>) row_ins(%x : tensor<4xbf16>) outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i)>, affine_map<(i, j, d, e) -> (i, e)>], sink = 0 : i64} score {
    ^bb0(%i: index, %j: index, %s: f32, %x0: bf16):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @sink_of_keys(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %o: tensor<4x24xbf16>, %x: tensor<8xf32>) {
  // expected-error@+1 {{`sink` must be an input without a dimension of keys}}
  %r = fp8.online_attention ins(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>) row_ins(%x : tensor<8xf32>) outs(%o : tensor<4x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (j)>, affine_map<(i, j, d, e) -> (i, e)>], sink = 0 : i64} score {
    ^bb0(%i: index, %j: index, %s: f32, %x0: f32):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x24xbf16>
  return
}

// -----

func.func @further_result(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %do: tensor<4x24xbf16>, %x: tensor<4xi32>) {
  // expected-error@+1 {{result 3 must be of floats}}
  %r:4 = fp8.online_attention_grad ins(%q, %k, %v, %do : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4x24xbf16>)
      outs(%q, %k, %v, %x : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4xi32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i)>]} elements {
    ^bb0(%i: index, %j: index, %s: f32, %g: f32):
      fp8.yield %s, %g, %s : f32, f32, f32
  } -> tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4xi32>
  return
}

// -----

func.func @gradient_map(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %do: tensor<4x24xbf16>) {
  // expected-error@+1 {{the map of the gradient of the key must have the dimensions of the key}}
  %r:3 = fp8.online_attention_grad ins(%q, %k, %v, %do : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4x24xbf16>)
      outs(%q, %k, %v : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (j, e)>]} elements {
    ^bb0(%i: index, %j: index, %s: f32, %g: f32):
      fp8.yield %s, %g : f32, f32
  } -> tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>
  return
}

// -----

func.func @further_value(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %do: tensor<4x24xbf16>, %x: tensor<4x8xf32>) {
  // expected-error@+1 {{`elements` yields ('f32', 'f32'), expected ('f32', 'f32', 'f32')}}
  %r:4 = fp8.online_attention_grad ins(%q, %k, %v, %do : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4x24xbf16>)
      outs(%q, %k, %v, %x : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4x8xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, j)>]} elements {
    ^bb0(%i: index, %j: index, %s: f32, %g: f32):
      fp8.yield %s, %g : f32, f32
  } -> tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4x8xf32>
  return
}

// -----

func.func @further_integers(%q: tensor<4x16xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x24xbf16>, %do: tensor<4x24xbf16>, %x: tensor<4x8xi32>) {
  // expected-error@+1 {{result 3 must be of floats}}
  %r:4 = fp8.online_attention_grad ins(%q, %k, %v, %do : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4x24xbf16>)
      outs(%q, %k, %v, %x : tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4x8xi32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>, affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, j)>]} elements {
    ^bb0(%i: index, %j: index, %s: f32, %g: f32):
      fp8.yield %s, %g, %s : f32, f32, f32
  } -> tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<8x24xbf16>, tensor<4x8xi32>
  return
}
