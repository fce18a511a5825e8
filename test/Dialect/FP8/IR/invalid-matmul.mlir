// Operations that the verifiers of the matmuls refuse.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @mixed(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: memref<8x32xf32>) {
  // expected-error@+1 {{'fp8.matmul' op mixes tensors and memrefs; all operands must be of one kind}}
  fp8.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%c : memref<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @no_result(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x32xf32>) {
  // expected-error@+1 {{has 0 results, expected 1, one per tensor in outs}}
  fp8.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @result_of_memref(%a: memref<8x16xf32>, %b: memref<16x32xf32>, %c: memref<8x32xf32>) {
  // expected-error@+1 {{has 1 results, expected 0: memrefs in outs are written in place}}
  %0 = fp8.matmul ins(%a, %b : memref<8x16xf32>, memref<16x32xf32>) outs(%c : memref<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @integers(%a: tensor<8x16xi32>, %b: tensor<16x32xi32>, %c: tensor<8x32xi32>) {
  // expected-error@+1 {{operand #0 must be ranked tensor or memref of floats}}
  %0 = fp8.matmul ins(%a, %b : tensor<8x16xi32>, tensor<16x32xi32>) outs(%c : tensor<8x32xi32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xi32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @sizes(%a: tensor<8x16xf32>, %b: tensor<17x32xf32>, %c: tensor<8x32xf32>) {
  // expected-error@+1 {{dimension d2 has size 16 and, in the second operand, 17}}
  %0 = fp8.matmul ins(%a, %b : tensor<8x16xf32>, tensor<17x32xf32>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @result_sizes(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x33xf32>) {
  // expected-error@+1 {{dimension d1 has size 32 and, in the result, 33}}
  %0 = fp8.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%c : tensor<8x33xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x33xf32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
func.func @two_maps(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x32xf32>) {
  // expected-error@+1 {{needs 3 indexing_maps (two operands and the result), got 2}}
  %0 = fp8.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn]} -> tensor<8x32xf32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @rank(%a: tensor<2x8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x32xf32>) {
  // expected-error@+1 {{indexing map of the first operand has 2 results for rank 3}}
  %0 = fp8.matmul ins(%a, %b : tensor<2x8x16xf32>, tensor<16x32xf32>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m + 1, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @computed_index(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x32xf32>) {
  // expected-error@+1 {{indexing_maps must be projected permutations of one iteration space, in which every dimension is a batch, M, N or K dimension}}
  %0 = fp8.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf32>
  return
}

// -----

#m = affine_map<(m, n) -> (m)>
#n = affine_map<(m, n) -> (n)>
#mn = affine_map<(m, n) -> (m, n)>
func.func @no_k(%a: tensor<8xf32>, %b: tensor<32xf32>, %c: tensor<8x32xf32>) {
  // expected-error@+1 {{has no K dimension: nothing is summed}}
  %0 = fp8.matmul ins(%a, %b : tensor<8xf32>, tensor<32xf32>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [#m, #n, #mn]} -> tensor<8x32xf32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @one_kind(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x32xf32>) {
  // expected-error@+1 {{gives the kind of one operand only}}
  %0 = "fp8.matmul"(%a, %b, %c) <{indexing_maps = [#mk, #kn, #mn], lhs_kind = #fp8<tensor_kind input>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}> ({})
      : (tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @unknown_role(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x32xf32>) {
  // expected-error@+1 {{expected one of [fprop, dgrad, wgrad, other] for what a matmul computes in a training step, got: forward}}
  %0 = fp8.matmul role(forward) ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf32>
  return
}

// -----

func.func @site_attribute(%a: tensor<4xf32>) {
  // expected-error@+1 {{attribute 'fp8.site' must be a non-empty string, the site's name}}
  %0 = arith.negf %a {fp8.site = ""} : tensor<4xf32>
  return
}

// -----

func.func @role_attribute(%a: tensor<4xf32>) {
  // expected-error@+1 {{attribute 'fp8.role' must be "fprop", "dgrad", "wgrad" or "other"}}
  %0 = arith.negf %a {fp8.role = "forward"} : tensor<4xf32>
  return
}

// -----

func.func @outs_of_an_amax(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{has 1 outs, expected 2: the result and its amax}}
  %0 = fp8.matmul record_amax[0] ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%c : tensor<8x32xbf16>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x32xbf16>
  return
}

// -----

func.func @rank_of_an_amax(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xbf16>, %m: tensor<1xf32>) {
  // expected-error@+1 {{the amax must be f32 of rank 0}}
  %0:2 = fp8.matmul record_amax[0] ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%c, %m : tensor<8x32xbf16>, tensor<1xf32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x32xbf16>, tensor<1xf32>
  return
}

// -----

func.func @f64_amax(%a: tensor<8x16xf64>, %b: tensor<16x32xf64>, %c: tensor<8x32xf64>, %m: tensor<f32>) {
  // expected-error@+1 {{of f64 has neither an epilogue nor an amax}}
  %0:2 = fp8.matmul record_amax[0] ins(%a, %b : tensor<8x16xf64>, tensor<16x32xf64>) outs(%c, %m : tensor<8x32xf64>, tensor<f32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x32xf64>, tensor<f32>
  return
}

// -----

func.func @two_amaxes(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xf8E4M3FN>, %s: tensor<f32>) {
  // expected-error@+1 {{record_amax lists the result, which has an out_scale and so an amax anyway}}
  %0:4 = fp8.matmul record_amax[0] ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) out_scale(%s : tensor<f32>)
      outs(%c, %s, %s, %s : tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<f32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<f32>
  return
}

// -----

func.func @amaxes_out_of_order(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xbf16>, %s: tensor<f32>, %x: tensor<8x32xf32>) {
  // expected-error@+1 {{record_amax must be in increasing order}}
  %0:4 = fp8.matmul record_amax[1, 0] ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%c, %s, %s, %x : tensor<8x32xbf16>, tensor<f32>, tensor<f32>, tensor<8x32xf32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
       epilogue_maps = [affine_map<(i, j) -> (i, j)>]} epilogue {
  ^bb0(%v: f32):
    %r = arith.truncf %v : f32 to bf16
    %p = arith.cmpf olt, %v, %v : f32
    fp8.yield %r, %v : bf16, f32
  } -> tensor<8x32xbf16>, tensor<f32>, tensor<f32>, tensor<8x32xf32>
  return
}

// -----

func.func @amax_of_nothing(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xbf16>, %s: tensor<f32>, %x: tensor<8x32xf32>) {
  // expected-error@+1 {{record_amax lists value 2 of 2}}
  %0:3 = fp8.matmul record_amax[2] ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%c, %s, %x : tensor<8x32xbf16>, tensor<f32>, tensor<8x32xf32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
       epilogue_maps = [affine_map<(i, j) -> (i, j)>]} epilogue {
  ^bb0(%v: f32):
    %r = arith.truncf %v : f32 to bf16
    %p = arith.cmpf olt, %v, %v : f32
    fp8.yield %r, %v : bf16, f32
  } -> tensor<8x32xbf16>, tensor<f32>, tensor<8x32xf32>
  return
}

// -----

func.func @amax_of_a_sum(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xbf16>, %s: tensor<f32>, %x: tensor<32xf32>) {
  // expected-error@+1 {{record_amax lists value 1, which must be stored, as a float of at most 32 bits}}
  %0:3 = fp8.matmul record_amax[1] ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%c, %s, %x : tensor<8x32xbf16>, tensor<f32>, tensor<32xf32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
       epilogue_maps = [affine_map<(i, j) -> (j)>]} epilogue {
  ^bb0(%v: f32):
    %r = arith.truncf %v : f32 to bf16
    %p = arith.cmpf olt, %v, %v : f32
    fp8.yield %r, %v : bf16, f32
  } -> tensor<8x32xbf16>, tensor<f32>, tensor<32xf32>
  return
}

// -----

func.func @amax_of_a_mask(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xbf16>, %s: tensor<f32>, %x: tensor<8x32xi1>) {
  // expected-error@+1 {{record_amax lists value 1, which must be stored, as a float of at most 32 bits}}
  %0:3 = fp8.matmul record_amax[1] ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%c, %s, %x : tensor<8x32xbf16>, tensor<f32>, tensor<8x32xi1>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
       epilogue_maps = [affine_map<(i, j) -> (i, j)>]} epilogue {
  ^bb0(%v: f32):
    %r = arith.truncf %v : f32 to bf16
    %p = arith.cmpf olt, %v, %v : f32
    fp8.yield %r, %p : bf16, i1
  } -> tensor<8x32xbf16>, tensor<f32>, tensor<8x32xi1>
  return
}

// -----

func.func @recipe_of_a_kept_product(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xbf16>) {
  // expected-error@+1 {{has a recipe, and a reason in `kept` why it stays in high precision}}
  %0 = fp8.matmul recipe(#fp8.current_scaling) kept("no weight operand") ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%c : tensor<8x32xbf16>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x32xbf16>
  return
}

// -----

func.func @resume_narrow(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xbf16>) -> tensor<8x32xbf16> {
  // expected-error@+1 {{resumes sums, which goes with an f32 result, operands of at most 32 bits, and neither `accumulate`, an epilogue nor an amax}}
  %0 = fp8.matmul resume ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%c : tensor<8x32xbf16>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
      -> tensor<8x32xbf16>
  return %0 : tensor<8x32xbf16>
}

// -----

func.func @resume_wide(%a: tensor<8x16xf64>, %b: tensor<16x32xf64>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // expected-error@+1 {{resumes sums, which goes with an f32 result, operands of at most 32 bits, and neither `accumulate`, an epilogue nor an amax}}
  %0 = fp8.matmul resume ins(%a, %b : tensor<8x16xf64>, tensor<16x32xf64>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
      -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// -----

func.func @resume_accumulate(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // expected-error@+1 {{resumes sums, which goes with an f32 result, operands of at most 32 bits, and neither `accumulate`, an epilogue nor an amax}}
  %0 = fp8.matmul accumulate resume ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
      -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
