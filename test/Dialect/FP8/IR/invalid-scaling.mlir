// Operations that the verifiers of amax, scale and cast refuse.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics

func.func @amax_shape(%x: tensor<8x16xbf16>, %i: tensor<1xf32>) {
  // expected-error@+1 {{amax has shape [1], expected [], one scale for the whole tensor}}
  %0 = fp8.amax ins(%x : tensor<8x16xbf16>) outs(%i : tensor<1xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @amax_input(%x: tensor<8xi32>, %i: tensor<f32>) {
  // expected-error@+1 {{the input is of 'i32', expected f64, f32, bf16, f16, f8E4M3FN or f8E5M2}}
  %0 = fp8.amax ins(%x : tensor<8xi32>) outs(%i : tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @amax_type(%x: tensor<8x16xbf16>, %i: tensor<bf16>) {
  // expected-error@+1 {{amax must be f32}}
  %0 = fp8.amax ins(%x : tensor<8x16xbf16>) outs(%i : tensor<bf16>) -> tensor<bf16>
  return
}

// -----

func.func @scale_format(%a: tensor<f32>, %i: tensor<f32>) {
  // expected-error@+1 {{format 'f8E8M0FNU' must be f8E4M3FN or f8E5M2}}
  %0 = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E8M0FNU) ins(%a : tensor<f32>) outs(%i : tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @scale_shape(%a: tensor<4xf32>, %i: tensor<5xf32>) {
  // expected-error@+1 {{amax 'tensor<4xf32>' and scale 'tensor<5xf32>' must have one shape}}
  %0 = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%a : tensor<4xf32>) outs(%i : tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @scale_input_type(%a: tensor<f32>, %i: tensor<f32>) {
  // expected-error@+1 {{input_type 'i32' must be a float type}}
  %0 = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) input_type(i32) ins(%a : tensor<f32>) outs(%i : tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @scale_recipe(%a: tensor<f32>, %i: tensor<f32>) {
  // expected-error@+1 {{recipe #fp8.delayed_scaling takes its scales from state, not from this step's amax}}
  %0 = fp8.compute_scale recipe(#fp8.delayed_scaling) format(f8E4M3FN) ins(%a : tensor<f32>) outs(%i : tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @quantize_outs(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{has 2 outs, expected 4: data, data_t, scale_inv, amax}}
  %0:2 = fp8.quantize record_amax ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>) {transposition = array<i64: 1, 0>}
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @quantize_too_many(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>, %a: tensor<f32>) {
  // expected-error@+1 {{has 3 outs, expected 2: data, scale_inv}}
  %0:3 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si, %a : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>)
      -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
  return
}

// -----

func.func @quantize_format(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xbf16>, %si: tensor<f32>) {
  // expected-error@+1 {{format 'bf16' must be f8E4M3FN or f8E5M2}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xbf16>, tensor<f32>)
      -> tensor<8x16xbf16>, tensor<f32>
  return
}

// -----

func.func @quantize_scale(%x: tensor<8x16xbf16>, %s: tensor<8xf32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{the scale has shape [8], expected [], one scale for the whole tensor}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<8xf32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>)
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @quantize_blocks_shape(%x: tensor<8x16xbf16>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<8x2xf32>) {
  // expected-error@+1 {{scale_inv 0 has shape [8, 2], expected [8, 1], one entry per block}}
  %0:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<8x16xbf16>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<8x2xf32>) {blocks = [array<i64: 1, 16>]}
      -> tensor<8x16xf8E4M3FN>, tensor<8x2xf32>
  return
}

// -----

func.func @quantize_blocks_rank(%x: tensor<8x16xbf16>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<8x1xf32>) {
  // expected-error@+1 {{block has 1 entries for a tensor of rank 2}}
  %0:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<8x16xbf16>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<8x1xf32>) {blocks = [array<i64: 16>]}
      -> tensor<8x16xf8E4M3FN>, tensor<8x1xf32>
  return
}

// -----

func.func @quantize_blocks_type(%x: tensor<8x32xbf16>, %q: tensor<8x32xf8E4M3FN>, %si: tensor<8x1xf32>) {
  // expected-error@+1 {{scale_inv 0 must be of 'f8E8M0FNU', the type of #fp8.mx_scaling}}
  %0:2 = fp8.quantize_blocks recipe(#fp8.mx_scaling) ins(%x : tensor<8x32xbf16>)
      outs(%q, %si : tensor<8x32xf8E4M3FN>, tensor<8x1xf32>) {blocks = [array<i64: 1, 32>]}
      -> tensor<8x32xf8E4M3FN>, tensor<8x1xf32>
  return
}

// -----

func.func @quantize_blocks_state(%x: tensor<8x32xbf16>, %q: tensor<8x32xf8E4M3FN>, %si: tensor<8x1xf32>) {
  // expected-error@+1 {{recipe #fp8.delayed_scaling takes its scales from state, not from blocks}}
  %0:2 = fp8.quantize_blocks recipe(#fp8.delayed_scaling) ins(%x : tensor<8x32xbf16>)
      outs(%q, %si : tensor<8x32xf8E4M3FN>, tensor<8x1xf32>) {blocks = [array<i64: 1, 32>]}
      -> tensor<8x32xf8E4M3FN>, tensor<8x1xf32>
  return
}

// -----

func.func @quantize_blocks_directions(%x: tensor<8x32xbf16>, %q: tensor<8x32xf8E4M3FN>, %si: tensor<8x1xf32>) {
  // expected-error@+1 {{has 2 outs, expected data and scale_inv for each of 2 directions}}
  %0:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<8x32xbf16>)
      outs(%q, %si : tensor<8x32xf8E4M3FN>, tensor<8x1xf32>) {blocks = [array<i64: 1, 128>, array<i64: 128, 1>]}
      -> tensor<8x32xf8E4M3FN>, tensor<8x1xf32>
  return
}

// -----

func.func @quantize_blocks_layout(%x: tensor<8x32xbf16>, %q: tensor<8x32xf8E4M3FN>, %si: tensor<8x1xf32>) {
  // expected-error@+1 {{transposition 0 must be a permutation of the 2 dimensions}}
  %0:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<8x32xbf16>)
      outs(%q, %si : tensor<8x32xf8E4M3FN>, tensor<8x1xf32>)
      {blocks = [array<i64: 1, 128>], transpositions = [array<i64: 1, 1>]}
      -> tensor<8x32xf8E4M3FN>, tensor<8x1xf32>
  return
}

// -----

func.func @quantize_scale_inv(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<8xf32>) {
  // expected-error@+1 {{scale_inv has shape [8], expected [], one scale for the whole tensor}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<8xf32>)
      -> tensor<8x16xf8E4M3FN>, tensor<8xf32>
  return
}

// -----

func.func @quantize_scale_inv_type(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<bf16>) {
  // expected-error@+1 {{scale_inv must be f32}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<bf16>)
      -> tensor<8x16xf8E4M3FN>, tensor<bf16>
  return
}

// -----

func.func @quantize_amax(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>, %a: tensor<1xf32>) {
  // expected-error@+1 {{the recorded amax must be f32 of rank 0}}
  %0:3 = fp8.quantize record_amax ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si, %a : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<1xf32>)
      -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<1xf32>
  return
}

// -----

func.func @quantize_permutation(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %t: tensor<16x8xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{transposition must be a permutation of the 2 dimensions}}
  %0:3 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %t, %si : tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>) {transposition = array<i64: 1, 1>}
      -> tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @quantize_transposed_type(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %t: tensor<16x8xf8E5M2>, %si: tensor<f32>) {
  // expected-error@+1 {{the transposed data must have the rank and element type of the data}}
  %0:3 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %t, %si : tensor<8x16xf8E4M3FN>, tensor<16x8xf8E5M2>, tensor<f32>) {transposition = array<i64: 1, 0>}
      -> tensor<8x16xf8E4M3FN>, tensor<16x8xf8E5M2>, tensor<f32>
  return
}

// -----

func.func @quantize_transposed_size(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %t: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{dimension 0 of the transposed data has size 8, expected 16}}
  %0:3 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %t, %si : tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<f32>) {transposition = array<i64: 1, 0>}
      -> tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @quantize_two_inputs(%x: tensor<8x16xbf16>, %y: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{without a producer region there is one input and no indexing_maps}}
  %0:2 = fp8.quantize ins(%x, %y : tensor<8x16xbf16>, tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>)
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @quantize_maps(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{without a producer region there is one input and no indexing_maps}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id]}
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @quantize_input_of_another_fp8(%x: tensor<8x16xf8E4M3FNUZ>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{the input is of 'f8E4M3FNUZ', expected f64}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xf8E4M3FNUZ>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>)
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @quantize_yields(%x: tensor<8x16xi32>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{the producer yields 'i32', expected f64, f32}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xi32>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id]} producer {
    ^bb0(%e: i32):
      fp8.yield %e : i32
  } -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @quantize_input(%x: tensor<8x16xi32>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{the input is of 'i32', expected f64, f32, bf16, f16, f8E4M3FN or f8E5M2}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xi32>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>)
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @quantize_shape(%x: tensor<8x17xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{input 'tensor<8x17xbf16>' and data 'tensor<8x16xf8E4M3FN>' must have one shape}}
  %0:2 = fp8.quantize ins(%x : tensor<8x17xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>)
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @producer_arguments(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{the producer must be one block of 1 arguments: one element of each input}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id]} producer {
    ^bb0(%e: bf16, %f: bf16):
      fp8.yield %e : bf16
  }
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @producer_maps(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{has 1 inputs of its producer and 0 maps; each input needs one}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>) producer {
    ^bb0(%e: bf16):
      fp8.yield %e : bf16
  }
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @producer_map(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{producer map 0 must read an input of rank 2 in the 2 dimensions of the tensor}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>) {indexing_maps = [#row]} producer {
    ^bb0(%e: bf16):
      fp8.yield %e : bf16
  }
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @producer_type(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{producer argument 0 must be of type 'bf16'}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id]} producer {
    ^bb0(%e: f32):
      fp8.yield %e : f32
  }
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @producer_end(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{the producer must end in fp8.yield}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id]} producer {
    ^bb0(%e: bf16):
      func.return
  }
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @dequantize_shape(%q: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %x: tensor<8x17xbf16>) {
  // expected-error@+1 {{data 'tensor<8x16xf8E4M3FN>' and result 'tensor<8x17xbf16>' must have one shape}}
  %0 = fp8.dequantize ins(%q : tensor<8x16xf8E4M3FN>) scale_inv(%s : tensor<f32>) outs(%x : tensor<8x17xbf16>) -> tensor<8x17xbf16>
  return
}

// -----

func.func @dequantize_scale(%q: tensor<8x16xf8E4M3FN>, %s: tensor<8xf32>, %x: tensor<8x16xbf16>) {
  // expected-error@+1 {{scale_inv has shape [8], expected [], one scale for the whole tensor}}
  %0 = fp8.dequantize ins(%q : tensor<8x16xf8E4M3FN>) scale_inv(%s : tensor<8xf32>) outs(%x : tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return
}

// -----

func.func @pack_rank(%s: tensor<512xf8E8M0FNU>, %i: tensor<512xf8E8M0FNU>) {
  // expected-error@+1 {{needs scales of rank 2 or more and a packed result of rank 1}}
  %0 = fp8.pack_scales ins(%s : tensor<512xf8E8M0FNU>) outs(%i : tensor<512xf8E8M0FNU>) -> tensor<512xf8E8M0FNU>
  return
}

// -----

func.func @pack_size(%s: tensor<129x4xf8E8M0FNU>, %i: tensor<512xf8E8M0FNU>) {
  // expected-error@+1 {{the packed result has 512 entries, expected 1024: 512 for each tile of 128 x 4}}
  %0 = fp8.pack_scales ins(%s : tensor<129x4xf8E8M0FNU>) outs(%i : tensor<512xf8E8M0FNU>) -> tensor<512xf8E8M0FNU>
  return
}

// -----

#id = affine_map<(d0, d1)[s0] -> (d0 + s0, d1)>
func.func @producer_symbols(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %si: tensor<f32>) {
  // expected-error@+1 {{producer map 0 must be in the 2 dimensions of the tensor, without symbols}}
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id]} producer {
    ^bb0(%e: bf16):
      fp8.yield %e : bf16
  }
      -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return
}

// -----

// expected-error@+1 {{'f' is the recipe's function for scale and must be (amax: f32, fp8_max: f32, old: f32) -> f32}}
func.func @f(%amax: f32) -> f32 {
  return %amax : f32
}
func.func @main(%a: tensor<f32>, %e: tensor<f32>) -> tensor<f32> {
  %s = fp8.compute_scale recipe(#fp8.custom<base = #fp8.current_scaling, scale = @f>) format(f8E5M2)
      ins(%a : tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

func.func @sum_of_last(%x: tensor<8x16xbf16>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>, %b: tensor<8xf32>) {
  // expected-error@+1 {{producer map 1 must store an extra result of rank 1 at a permutation of the 2 dimensions, or keep the last ones to sum over the others}}
  %0:3 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %s, %b : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8xf32>)
    {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>]} producer {
    ^bb0(%e: bf16):
      %w = arith.extf %e : bf16 to f32
      fp8.yield %e, %w : bf16, f32
  } -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8xf32>
  return
}

// -----

func.func @sum_type(%x: tensor<8x16xbf16>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>, %b: tensor<16xbf16>) {
  // expected-error@+1 {{extra result 0 is a sum and must be f32}}
  %0:3 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %s, %b : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<16xbf16>)
    {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>]} producer {
    ^bb0(%e: bf16):
      %w = arith.extf %e : bf16 to f32
      fp8.yield %e, %e : bf16, bf16
  } -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<16xbf16>
  return
}

// -----

func.func @extra_type(%x: tensor<8x16xbf16>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>, %b: tensor<8x16xbf16>) {
  // expected-error@+1 {{the producer yields 'f32' for an extra result of 'bf16'}}
  %0:3 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %s, %b : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8x16xbf16>)
    {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>]} producer {
    ^bb0(%e: bf16):
      %w = arith.extf %e : bf16 to f32
      fp8.yield %e, %w : bf16, f32
  } -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8x16xbf16>
  return
}

// -----

func.func @extra_rank(%x: tensor<8x16xbf16>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>, %b: tensor<8x16x1xf32>) {
  // expected-error@+1 {{producer map 1 must store an extra result of rank 3 at a permutation of the 2 dimensions, or keep the last ones to sum over the others}}
  %0:3 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %s, %b : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8x16x1xf32>)
    {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>]} producer {
    ^bb0(%e: bf16):
      %w = arith.extf %e : bf16 to f32
      fp8.yield %e, %w : bf16, f32
  } -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8x16x1xf32>
  return
}

// -----

func.func @amax_dimension(%x: tensor<8xbf16>, %a: tensor<f32>) {
  // expected-error@+1 {{dimension d1 is a dimension of no input and no extra result}}
  %0 = fp8.amax ins(%x : tensor<8xbf16>) outs(%a : tensor<f32>) {indexing_maps = [affine_map<(d0, d1) -> (d0)>]} producer {
    ^bb0(%e: bf16):
      fp8.yield %e : bf16
  } -> tensor<f32>
  return
}

// -----

func.func @amax_outs(%x: tensor<8xbf16>, %a: tensor<f32>) {
  // expected-error@+1 {{has 1 ins and 2 outs, expected an input, and amax and the extra results of a producer}}
  %0:2 = fp8.amax ins(%x : tensor<8xbf16>) outs(%a, %a : tensor<f32>, tensor<f32>) -> tensor<f32>, tensor<f32>
  return
}

// -----

func.func @index_outside() -> index {
  // expected-error@+1 {{must be in a region of fp8.amax, fp8.quantize, fp8.quantize_blocks, fp8.matmul or fp8.scaled_matmul}}
  %0 = fp8.index 0
  return %0 : index
}

// -----

func.func @index_of_no_dimension(%x: tensor<8xf32>, %s: tensor<f32>, %d: tensor<8xf8E4M3FN>) {
  %q, %i = fp8.quantize ins(%x : tensor<8xf32>) scale(%s : tensor<f32>) outs(%d, %s : tensor<8xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [affine_map<(d0) -> (d0)>]} producer {
    ^bb0(%e: f32):
      // expected-error@+1 {{asks for dimension 1 of a tensor of 1}}
      %j = fp8.index 1
      fp8.yield %e : f32
  } -> tensor<8xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @quantize_of_nothing(%s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>, %i: tensor<f32>) {
  // expected-error@+1 {{has neither an input nor a producer region that computes the tensor}}
  %q, %si = fp8.quantize scale(%s : tensor<f32>) outs(%d, %i : tensor<4x8xf8E4M3FN>, tensor<f32>) -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @random_of_one(%x: tensor<8xf32>, %s: tensor<f32>, %r: tensor<1xi64>, %d: tensor<8xf8E4M3FN>) {
  // expected-error@+1 {{random 'tensor<1xi64>' must hold seed and step, and the number of the first element where that is not 0}}
  %q, %i = fp8.quantize ins(%x : tensor<8xf32>) scale(%s : tensor<f32>) random(%r : tensor<1xi64>) stream(0)
      outs(%d, %s : tensor<8xf8E4M3FN>, tensor<f32>) -> tensor<8xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @negative_stream(%x: tensor<8xf32>, %s: tensor<f32>, %r: tensor<2xi64>, %d: tensor<8xf8E4M3FN>) {
  // expected-error@+1 {{stream -1 must be from 0 to 2^32 - 1}}
  %q, %i = fp8.quantize ins(%x : tensor<8xf32>) scale(%s : tensor<f32>) random(%r : tensor<2xi64>) stream(-1)
      outs(%d, %s : tensor<8xf8E4M3FN>, tensor<f32>) -> tensor<8xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @stream_without_random(%x: tensor<8xf32>, %s: tensor<f32>, %d: tensor<8xf8E4M3FN>) {
  // expected-error@+1 {{needs `random` and `stream` together}}
  %q, %i = fp8.quantize ins(%x : tensor<8xf32>) scale(%s : tensor<f32>)
      outs(%d, %s : tensor<8xf8E4M3FN>, tensor<f32>) {stream = 3 : i64} -> tensor<8xf8E4M3FN>, tensor<f32>
  return
}

// -----

func.func @blocks_of_random_of_four(%x: tensor<8x4xf32>, %r: tensor<4xi64>, %d: tensor<8x4xf8E4M3FN>, %s: tensor<8x1xf32>) {
  // expected-error@+1 {{random 'tensor<4xi64>' must hold seed and step}}
  %q, %i = fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%x : tensor<8x4xf32>) random(%r : tensor<4xi64>) stream(0)
      outs(%d, %s : tensor<8x4xf8E4M3FN>, tensor<8x1xf32>) {blocks = [array<i64: 1, 0>]} -> tensor<8x4xf8E4M3FN>, tensor<8x1xf32>
  return
}
