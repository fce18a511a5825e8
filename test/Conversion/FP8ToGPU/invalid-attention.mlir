// Attention that kernels cannot compute is an error at its line.
// RUN: fp8-opt %s -split-input-file -convert-fp8-to-gpu -verify-diagnostics

module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @type(%q: memref<4x16xf32>, %k: memref<6x16xf32>, %v: memref<6x16xf32>, %o: memref<4x16xf32>) {
  // expected-error @+1 {{has no kernel: query, key, value and the gradient of the output must be bf16 or f16, all of one type}}
  fp8.online_attention ins(%q, %k, %v : memref<4x16xf32>, memref<6x16xf32>, memref<6x16xf32>) outs(%o : memref<4x16xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>,
                        affine_map<(i, j, d, e) -> (i, e)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      %one = arith.constant 1.0 : f32
      fp8.yield %s, %one : f32, f32
  }
  return
}
}

// -----

module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @depth(%q: memref<4x12xbf16>, %k: memref<6x12xbf16>, %v: memref<6x16xbf16>, %o: memref<4x16xbf16>) {
  // expected-error @+1 {{has no kernel: depth and width must be static multiples of 8, at most 256}}
  fp8.online_attention ins(%q, %k, %v : memref<4x12xbf16>, memref<6x12xbf16>, memref<6x16xbf16>) outs(%o : memref<4x16xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>, affine_map<(i, j, d, e) -> (j, e)>,
                        affine_map<(i, j, d, e) -> (i, e)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      %one = arith.constant 1.0 : f32
      fp8.yield %s, %one : f32, f32
  }
  return
}
}

// -----

module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @queries(%q: memref<4x16xbf16>, %k: memref<4x6x16xbf16>, %v: memref<4x6x16xbf16>, %o: memref<4x16xbf16>) {
  // expected-error @+1 {{has no kernel: one outer dimension must be neither of the keys and values nor of their gradients}}
  fp8.online_attention ins(%q, %k, %v : memref<4x16xbf16>, memref<4x6x16xbf16>, memref<4x6x16xbf16>) outs(%o : memref<4x16xbf16>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (i, j, d)>, affine_map<(i, j, d, e) -> (i, j, e)>,
                        affine_map<(i, j, d, e) -> (i, e)>]} score {
    ^bb0(%i: index, %j: index, %s: f32):
      %one = arith.constant 1.0 : f32
      fp8.yield %s, %one : f32, f32
  }
  return
}
}
