// Operations that the verifiers of the matmuls on scaled FP8 refuse.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#m = affine_map<(m, n) -> (m)>
#n = affine_map<(m, n) -> (n)>
#d = affine_map<(m, n) -> (m, n)>
func.func @no_k(%a: tensor<8xf8E4M3FN>, %b: tensor<32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{has no K dimension: nothing is summed}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8xf8E4M3FN>, tensor<32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#m, #n, #d]} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @wide_operand(%a: tensor<8x16xbf16>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{operand #0 must be ranked tensor or memref of f8E4M3FN or f8E5M2}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @scale_without_block(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<8x1xf32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{the scale_inv of the first operand has shape [8, 1], expected [], one scale for the whole tensor}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<8x1xf32>, tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @scale_of_other_blocks(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<16x32xf32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{the scale_inv of the second operand has shape [16, 32], expected [1, 32], one entry per block}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<16x32xf32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn], rhs_block = array<i64: 0, 1>} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @block_rank(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{block has 1 entries for a tensor of rank 2}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1>} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @negative_block(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{block extents must be positive, or 0 for a whole dimension}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1, -1>} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @result_type(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xf64>) {
  // expected-error@+1 {{result element type 'f64' must be f32, bf16, f16, f8E4M3FN or f8E5M2}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      outs(%c : tensor<8x32xf64>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf64>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @fp8_without_scale(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xf8E4M3FN>) {
  // expected-error@+1 {{an FP8 result needs an out_scale}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      outs(%c : tensor<8x32xf8E4M3FN>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf8E4M3FN>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @scale_without_fp8(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>, %os: tensor<f32>) {
  // expected-error@+1 {{out_scale goes with an FP8 result}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      out_scale(%os : tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @too_many_outs(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>, %d: tensor<f32>) {
  // expected-error@+1 {{has 2 outs, expected 1}}
  %0:2 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      outs(%c, %d : tensor<8x32xbf16>, tensor<f32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xbf16>, tensor<f32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @too_few_outs(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xf8E4M3FN>, %os: tensor<f32>) {
  // expected-error@+1 {{has 1 outs, expected 3: data, scale_inv and amax}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      out_scale(%os : tensor<f32>)
      outs(%c : tensor<8x32xf8E4M3FN>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf8E4M3FN>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @amax_rank(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xf8E4M3FN>, %d: tensor<f32>, %e: tensor<1xf32>, %os: tensor<f32>) {
  // expected-error@+1 {{scale_inv and amax of an FP8 result must be f32 of rank 0}}
  %0:3 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      out_scale(%os : tensor<f32>)
      outs(%c, %d, %e : tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<1xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<1xf32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @out_scale_rank(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xf8E4M3FN>, %d: tensor<f32>, %e: tensor<f32>, %os: tensor<1xf32>) {
  // expected-error@+1 {{out_scale must be of rank 0}}
  %0:3 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      out_scale(%os : tensor<1xf32>)
      outs(%c, %d, %e : tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<f32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<f32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @epilogue_maps(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>, %bias: tensor<32xbf16>) {
  // expected-error@+1 {{epilogue inputs and epilogue_maps need an epilogue region}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      epilogue_ins(%bias : tensor<32xbf16>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
func.func @epilogue_region(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>, %bias: tensor<32xbf16>) {
  // expected-error@+1 {{epilogue inputs and epilogue_maps need an epilogue region}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      epilogue_ins(%bias : tensor<32xbf16>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn], epilogue_maps = [#row]} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
func.func @epilogue_arguments(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>, %bias: tensor<32xbf16>) {
  // expected-error@+1 {{the epilogue must be one block of 2 arguments: the scaled sum and one element of each input}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      epilogue_ins(%bias : tensor<32xbf16>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn], epilogue_maps = [#row]} epilogue {
    ^bb0(%e: bf16):
      fp8.yield %e : bf16
  } -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @epilogue_sum(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{the first argument of the epilogue, the scaled sum, must be f32}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]} epilogue {
    ^bb0(%e: bf16):
      fp8.yield %e : bf16
  } -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @epilogue_map(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>, %bias: tensor<32xbf16>) {
  // expected-error@+1 {{epilogue map 0 must be in the 2 dimensions of the tensor, without symbols}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      epilogue_ins(%bias : tensor<32xbf16>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn], epilogue_maps = [#mk]} epilogue {
    ^bb0(%s: f32, %e: bf16):
      fp8.yield %e : bf16
  } -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
func.func @epilogue_type(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>, %bias: tensor<32xbf16>) {
  // expected-error@+1 {{epilogue argument 1 must be of type 'bf16'}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      epilogue_ins(%bias : tensor<32xbf16>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn], epilogue_maps = [#row]} epilogue {
    ^bb0(%s: f32, %e: f32):
      fp8.yield %s : f32
  } -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @epilogue_end(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{the epilogue must end in fp8.yield}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]} epilogue {
    ^bb0(%s: f32):
      func.return
  } -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @epilogue_yield(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %ls: tensor<f32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{the epilogue yields 'f32', expected 'bf16'}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) scales(%ls, %rs : tensor<f32>, tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]} epilogue {
    ^bb0(%s: f32):
      fp8.yield %s : f32
  } -> tensor<8x32xbf16>
  return
}

// -----

func.func @no_outs(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %s: tensor<f32>) {
  // expected-error@+1 {{needs a destination in outs}}
  "fp8.scaled_matmul"(%a, %b, %s, %s) <{accumulation = #fp8<accumulation fast>,
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0>}> ({})
      : (tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>, tensor<f32>, tensor<f32>) -> ()
  return
}

// -----

func.func @yield_elsewhere(%x: f32) {
  // expected-error@+1 {{expects parent op to be one of 'fp8.amax, fp8.quantize, fp8.quantize_blocks, fp8.matmul, fp8.scaled_matmul, fp8.attention, fp8.attention_grad, fp8.online_attention, fp8.online_attention_grad'}}
  fp8.yield %x : f32
}

// -----

#mkl = affine_map<(m, n, k, l) -> (m, k, l)>
#kln = affine_map<(m, n, k, l) -> (k, l, n)>
#mn = affine_map<(m, n, k, l) -> (m, n)>
func.func @blocks_of_several_k(%a: tensor<8x4x64xf8E4M3FN>, %b: tensor<4x64x32xf8E4M3FN>, %ls: tensor<8x4x2xf32>, %rs: tensor<f32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{has blocks along d2, which must be the only K dimension, but has 2 of them; collapse the K dimensions into one}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x4x64xf8E4M3FN>, tensor<4x64x32xf8E4M3FN>) scales(%ls, %rs : tensor<8x4x2xf32>, tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mkl, #kln, #mn], lhs_block = array<i64: 1, 1, 32>} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @blocks_of_two_extents(%a: tensor<8x64xf8E4M3FN>, %b: tensor<64x32xf8E4M3FN>, %ls: tensor<8x2xf32>, %rs: tensor<4x32xf32>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{has blocks of 32 and of 16 elements along d2; both operands need one extent, or 0}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x64xf8E4M3FN>, tensor<64x32xf8E4M3FN>) scales(%ls, %rs : tensor<8x2xf32>, tensor<4x32xf32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 16, 1>} -> tensor<8x32xbf16>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @blocks_of_two_types(%a: tensor<8x64xf8E4M3FN>, %b: tensor<64x32xf8E4M3FN>, %ls: tensor<8x2xf32>, %rs: tensor<2x32xf8E8M0FNU>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{has scales of 'f32' and of 'f8E8M0FNU' along d2; both operands need one type}}
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x64xf8E4M3FN>, tensor<64x32xf8E4M3FN>) scales(%ls, %rs : tensor<8x2xf32>, tensor<2x32xf8E8M0FNU>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 32, 1>} -> tensor<8x32xbf16>
  return
}
