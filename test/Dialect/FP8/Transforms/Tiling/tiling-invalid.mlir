// The first error at each operation refuses a tiling that would not compute the same; the other
// two are upstream's.
// RUN: fp8-opt %s --split-input-file --transform-interpreter --verify-diagnostics

func.func @k(%a: tensor<8x64xbf16>, %b: tensor<64x16xbf16>, %c: tensor<8x16xbf16>) -> tensor<8x16xbf16> {
  // expected-error @+3 {{'fp8.matmul' op cannot be tiled along dimension d2: its result #0 is reduced over it; leave that dimension whole (tile size 0)}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %0 = fp8.matmul ins(%a, %b : tensor<8x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<8x16xbf16>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
      -> tensor<8x16xbf16>
  return %0 : tensor<8x16xbf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [0, 0, 32]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @dynamic_k(%a: tensor<8x?xbf16>, %b: tensor<?x16xbf16>, %c: tensor<8x16xbf16>) -> tensor<8x16xbf16> {
  // expected-error @+3 {{'fp8.matmul' op cannot be tiled along dimension d2: its result #0 is reduced over it}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %0 = fp8.matmul ins(%a, %b : tensor<8x?xbf16>, tensor<?x16xbf16>) outs(%c : tensor<8x16xbf16>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
      -> tensor<8x16xbf16>
  return %0 : tensor<8x16xbf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [0, 0, 32]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The amax of an FP8 result is that of all of it.
func.func @fp8_result(%a: tensor<8x64xf8E4M3FN>, %b: tensor<64x16xf8E4M3FN>, %s: tensor<f32>,
                      %c: tensor<8x16xf8E4M3FN>) -> (tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>) {
  // expected-error @+3 {{'fp8.scaled_matmul' op cannot be tiled along dimension d0: its result #1 is reduced over it}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %0:3 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x64xf8E4M3FN>, tensor<64x16xf8E4M3FN>)
      scales(%s, %s : tensor<f32>, tensor<f32>) out_scale(%s : tensor<f32>)
      outs(%c, %s, %s : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
      -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %0#0, %0#1, %0#2 : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.scaled_matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @recorded_amax(%x: tensor<8x16xbf16>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>)
    -> (tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>) {
  // expected-error @+3 {{'fp8.quantize' op cannot be tiled along dimension d1: its result #2 is reduced over it}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %0:3 = fp8.quantize record_amax ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%d, %s, %s : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>)
      -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %0#0, %0#1, %0#2 : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.quantize"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [0, 4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @amax(%x: tensor<8x16xbf16>, %a: tensor<f32>) -> tensor<f32> {
  // expected-error @+3 {{'fp8.amax' op cannot be tiled along dimension d0: its result #0 is reduced over it}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %0 = fp8.amax ins(%x : tensor<8x16xbf16>) outs(%a : tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.amax"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Half a block.
func.func @block(%x: tensor<8x256xf8E4M3FN>, %s: tensor<8x2xf32>, %y: tensor<8x256xf32>) -> tensor<8x256xf32> {
  // expected-error @+3 {{'fp8.dequantize' op cannot be tiled along dimension d1 through the blocks of operand #1; give it a tile size that divides the dimension and is a multiple of 128}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %0 = fp8.dequantize ins(%x : tensor<8x256xf8E4M3FN>) scale_inv(%s : tensor<8x2xf32>) outs(%y : tensor<8x256xf32>)
      {block = array<i64: 1, 128>} -> tensor<8x256xf32>
  return %0 : tensor<8x256xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.dequantize"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l:2 = transform.structured.tile_using_for %op tile_sizes [4, 64]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The last tile would not be a whole one.
func.func @ragged(%x: tensor<8x200xf8E4M3FN>, %s: tensor<8x2xf32>, %y: tensor<8x200xf32>) -> tensor<8x200xf32> {
  // expected-error @+3 {{'fp8.dequantize' op cannot be tiled along dimension d1 through the blocks of operand #1}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %0 = fp8.dequantize ins(%x : tensor<8x200xf8E4M3FN>) scale_inv(%s : tensor<8x2xf32>) outs(%y : tensor<8x200xf32>)
      {block = array<i64: 1, 128>} -> tensor<8x200xf32>
  return %0 : tensor<8x200xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.dequantize"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [0, 128]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A producer that reads its input shifted has no slice that a tile could read the same way.
func.func @shifted(%x: tensor<9xbf16>, %s: tensor<f32>, %d: tensor<8xf8E4M3FN>) -> (tensor<8xf8E4M3FN>, tensor<f32>) {
  // expected-error @+3 {{'fp8.quantize' op cannot be tiled: its operand #0 is read at d0 + 1, which is neither a dimension nor a block of one}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %0:2 = fp8.quantize ins(%x : tensor<9xbf16>) scale(%s : tensor<f32>) outs(%d, %s : tensor<8xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [affine_map<(d0) -> (d0 + 1)>]} producer {
    ^bb0(%e: bf16):
      fp8.yield %e : bf16
    } -> tensor<8xf8E4M3FN>, tensor<f32>
  return %0#0, %0#1 : tensor<8xf8E4M3FN>, tensor<f32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.quantize"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @rows(%x: tensor<8x16xf32>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>) -> tensor<8x16xf8E4M3FN> {
  // expected-error @+3 {{'fp8.quantize' op cannot be tiled along dimension d1, which is in `rows`; leave that dimension whole (tile size 0)}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %q:2 = fp8.quantize ins(%x : tensor<8x16xf32>) scale(%s : tensor<f32>) outs(%d, %s : tensor<8x16xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [affine_map<(i, j) -> (i, j)>], rows = array<i64: 1>} producer {
  ^bb0(%r: index, %row: tensor<16xf32>):
    fp8.yield %row : tensor<16xf32>
  } -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return %q#0 : tensor<8x16xf8E4M3FN>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.quantize"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [0, 8]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @random_bits(%x: tensor<8x16xf32>, %s: tensor<f32>, %r: tensor<2xi64>, %d: tensor<8x16xf8E4M3FN>) -> tensor<8x16xf8E4M3FN> {
  // expected-error @+3 {{'fp8.quantize' op cannot be tiled: its random bits depend on the number of an element in the whole tensor}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %q:2 = fp8.quantize ins(%x : tensor<8x16xf32>) scale(%s : tensor<f32>) random(%r : tensor<2xi64>) stream(0)
      outs(%d, %s : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return %q#0 : tensor<8x16xf8E4M3FN>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.quantize"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
