// Upstream tiles the operations and fuses them into loops, knowing them by TilingInterface alone.
// RUN: fp8-opt %s --split-input-file --transform-interpreter --canonicalize --cse | FileCheck %s --enable-var-scope

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#nm = affine_map<(m, n, k) -> (n, m)>

// A transposed operand and result; the second tile of N is short. The tensor that is added to is sliced too.
// CHECK: #[[$MIN:.+]] = affine_map<(d0) -> (-d0 + 24, 16)>
// CHECK-LABEL: func.func @matmul
// CHECK-SAME: (%[[A:[^ :]+]]: tensor<8x64xbf16>, %[[B:[^ :]+]]: tensor<24x64xbf16>, %[[C:[^ :]+]]: tensor<24x8xbf16>)
func.func @matmul(%a: tensor<8x64xbf16>, %b: tensor<24x64xbf16>, %c: tensor<24x8xbf16>) -> tensor<24x8xbf16> {
  // CHECK: scf.for %[[M:.+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args
  // CHECK: scf.for %[[N:.+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args(%[[OUT:.+]] = %{{.+}}) -> (tensor<24x8xbf16>)
  // CHECK: %[[SIZE:.+]] = affine.min #[[$MIN]](%[[N]])
  // CHECK-DAG: %[[ATILE:.+]] = tensor.extract_slice %[[A]][%[[M]], 0] [4, 64] [1, 1]
  // CHECK-DAG: %[[BTILE:.+]] = tensor.extract_slice %[[B]][%[[N]], 0] [%[[SIZE]], 64] [1, 1]
  // CHECK-DAG: %[[CTILE:.+]] = tensor.extract_slice %[[OUT]][%[[N]], %[[M]]] [%[[SIZE]], 4] [1, 1]
  // CHECK: %[[TILE:.+]] = fp8.matmul site("fc") role(fprop) accumulate ins(%[[ATILE]], %[[BTILE]]
  // CHECK-SAME: outs(%[[CTILE]] : tensor<?x4xbf16>)
  // CHECK: tensor.insert_slice %[[TILE]] into %[[OUT]][%[[N]], %[[M]]] [%[[SIZE]], 4] [1, 1]
  %0 = fp8.matmul site("fc") role(fprop) accumulate ins(%a, %b : tensor<8x64xbf16>, tensor<24x64xbf16>)
      outs(%c : tensor<24x8xbf16>) {indexing_maps = [#mk, #nk, #nm]} -> tensor<24x8xbf16>
  return %0 : tensor<24x8xbf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l:2 = transform.structured.tile_using_for %op tile_sizes [4, 16, 0]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Sizes known when the program runs; a dimension that is not tiled is whole, K among them, also of a tile.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: (%[[A:[^ :]+]]: tensor<?x?xf32>, %[[B:[^ :]+]]: tensor<?x?xf32>, %[[C:[^ :]+]]: tensor<?x?xf32>)
func.func @dynamic(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // CHECK-DAG: %[[N:.+]] = tensor.dim %[[B]], %c1
  // CHECK-DAG: %[[K:.+]] = tensor.dim %[[A]], %c1
  // CHECK: scf.for %[[M:.+]] = %c0 to %{{.+}} step %c4
  // CHECK: tensor.extract_slice %[[A]][%[[M]], 0] [%[[SIZE:.+]], %[[K]]] [1, 1]
  // CHECK: tensor.extract_slice %[[B]][0, 0] [%[[K]], %[[N]]] [1, 1]
  // CHECK: tensor.extract_slice %{{.+}}[%[[M]], 0] [%[[SIZE]], %[[N]]] [1, 1]
  // CHECK: scf.for %{{.+}} = %c0 to %[[N]] step %c16
  // CHECK: fp8.matmul ins
  %0 = fp8.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %u, %m = transform.structured.tile_using_for %t tile_sizes [0, 16]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#bmk = affine_map<(b, m, n, k) -> (b, m, k)>
#bkn = affine_map<(b, m, n, k) -> (b, k, n)>
#bmn = affine_map<(b, m, n, k) -> (b, m, n)>

// Threads instead of loops; scales of tensors pass whole, epilogue inputs are read where the
// tile reads them: a bias along N, and a residual of the result's shape.
// CHECK-LABEL: func.func @scaled_matmul
// CHECK-SAME: %[[A:[^ :]+]]: tensor<2x8x16xf8E4M3FN>, %[[B:[^ :]+]]: tensor<2x16x32xf8E5M2>, %[[S:[^ :]+]]: tensor<f32>, %[[BIAS:[^ :]+]]: tensor<32xbf16>, %[[X:[^ :]+]]: tensor<2x8x32xf32>
func.func @scaled_matmul(%a: tensor<2x8x16xf8E4M3FN>, %b: tensor<2x16x32xf8E5M2>, %s: tensor<f32>,
                         %bias: tensor<32xbf16>, %x: tensor<2x8x32xf32>, %c: tensor<2x8x32xf32>) -> tensor<2x8x32xf32> {
  // CHECK: scf.forall (%[[I:.+]], %[[J:.+]]) in (2, 4) shared_outs(%[[OUT:.+]] = %{{.+}})
  // CHECK: %[[N:.+]] = affine.apply #{{.+}}(%[[J]])
  // CHECK-DAG: %[[ATILE:.+]] = tensor.extract_slice %[[A]][%[[I]], 0, 0] [1, 8, 16]
  // CHECK-DAG: %[[BTILE:.+]] = tensor.extract_slice %[[B]][%[[I]], 0, %[[N]]] [1, 16, 8]
  // CHECK-DAG: %[[BIASTILE:.+]] = tensor.extract_slice %[[BIAS]][%[[N]]] [8] [1]
  // CHECK-DAG: %[[XTILE:.+]] = tensor.extract_slice %[[X]][%[[I]], 0, %[[N]]] [1, 8, 8]
  // CHECK-DAG: %[[CTILE:.+]] = tensor.extract_slice %[[OUT]][%[[I]], 0, %[[N]]] [1, 8, 8]
  // CHECK: %[[TILE:.+]] = fp8.scaled_matmul split ins(%[[ATILE]], %[[BTILE]]
  // CHECK-SAME: scales(%[[S]], %[[S]]
  // CHECK-SAME: epilogue_ins(%[[BIASTILE]], %[[XTILE]]
  // CHECK-SAME: outs(%[[CTILE]]
  // CHECK: arith.extf
  // CHECK: tensor.parallel_insert_slice %[[TILE]] into %[[OUT]][%[[I]], 0, %[[N]]] [1, 8, 8]
  %0 = fp8.scaled_matmul split ins(%a, %b : tensor<2x8x16xf8E4M3FN>, tensor<2x16x32xf8E5M2>)
      scales(%s, %s : tensor<f32>, tensor<f32>)
      epilogue_ins(%bias, %x : tensor<32xbf16>, tensor<2x8x32xf32>) outs(%c : tensor<2x8x32xf32>)
      {indexing_maps = [#bmk, #bkn, #bmn],
       epilogue_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]} epilogue {
    ^bb0(%sum: f32, %e: bf16, %f: f32):
      %w = arith.extf %e : bf16 to f32
      %g = arith.addf %sum, %w : f32
      %h = arith.addf %g, %f : f32
      fp8.yield %h : f32
    } -> tensor<2x8x32xf32>
  return %0 : tensor<2x8x32xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.scaled_matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_forall %op tile_sizes [1, 0, 8]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Tiles of whole blocks take the scales of their blocks, and of all of K.
// CHECK-LABEL: func.func @block_scales
// CHECK-SAME: %[[S:[^ :]+]]: tensor<64x3xf32>, %[[T:[^ :]+]]: tensor<3x4xf32>
func.func @block_scales(%a: tensor<64x300xf8E4M3FN>, %b: tensor<300x512xf8E4M3FN>, %s: tensor<64x3xf32>,
                        %t: tensor<3x4xf32>, %c: tensor<64x512xf32>) -> tensor<64x512xf32> {
  // CHECK: scf.for %[[M:.+]] = %c0 to %c64 step %c8
  // CHECK: scf.for %[[N:.+]] = %c0 to %c512 step %c256
  // CHECK-DAG: %[[STILE:.+]] = tensor.extract_slice %[[S]][%[[M]], 0] [8, 3]
  // CHECK-DAG: %[[BLOCK:.+]] = affine.apply #{{.+}}(%[[N]])
  // CHECK-DAG: %[[TTILE:.+]] = tensor.extract_slice %[[T]][0, %[[BLOCK]]] [3, 2]
  // CHECK: fp8.scaled_matmul fast ins({{.+}} : tensor<8x300xf8E4M3FN>, tensor<300x256xf8E4M3FN>) scales(%[[STILE]], %[[TTILE]]
  %0 = fp8.scaled_matmul fast ins(%a, %b : tensor<64x300xf8E4M3FN>, tensor<300x512xf8E4M3FN>)
      scales(%s, %t : tensor<64x3xf32>, tensor<3x4xf32>) outs(%c : tensor<64x512xf32>)
      {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1, 128>, rhs_block = array<i64: 128, 128>}
      -> tensor<64x512xf32>
  return %0 : tensor<64x512xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.scaled_matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l:2 = transform.structured.tile_using_for %op tile_sizes [8, 256]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Both layouts of the data, the inputs of the producer, and a scale_inv that all tiles agree on.
// CHECK-LABEL: func.func @quantize
// CHECK-SAME: %[[X:[^ :]+]]: tensor<8x16xbf16>, %[[G:[^ :]+]]: tensor<16xbf16>, %[[S:[^ :]+]]: tensor<f32>
func.func @quantize(%x: tensor<8x16xbf16>, %gain: tensor<16xbf16>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>,
                    %t: tensor<16x8xf8E4M3FN>, %i: tensor<f32>)
    -> (tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>) {
  // CHECK: scf.for %[[M:.+]] = %c0 to %c8 step %c2 iter_args
  // CHECK: scf.for %[[N:.+]] = %c0 to %c16 step %c4 iter_args(%[[D:.+]] = %{{.+}}, %[[T:.+]] = %{{.+}}, %[[I:.+]] = %{{.+}})
  // CHECK-DAG: %[[XTILE:.+]] = tensor.extract_slice %[[X]][%[[M]], %[[N]]] [2, 4]
  // CHECK-DAG: %[[GTILE:.+]] = tensor.extract_slice %[[G]][%[[N]]] [4]
  // CHECK-DAG: %[[DTILE:.+]] = tensor.extract_slice %[[D]][%[[M]], %[[N]]] [2, 4]
  // CHECK-DAG: %[[TTILE:.+]] = tensor.extract_slice %[[T]][%[[N]], %[[M]]] [4, 2]
  // CHECK: %[[TILE:.+]]:3 = fp8.quantize ins(%[[XTILE]], %[[GTILE]] : {{.+}}) scale(%[[S]] : tensor<f32>) outs(%[[DTILE]], %[[TTILE]], %[[I]] :
  // CHECK: arith.mulf
  // CHECK-DAG: tensor.insert_slice %[[TILE]]#0 into %[[D]][%[[M]], %[[N]]] [2, 4]
  // CHECK-DAG: tensor.insert_slice %[[TILE]]#1 into %[[T]][%[[N]], %[[M]]] [4, 2]
  %0:3 = fp8.quantize ins(%x, %gain : tensor<8x16xbf16>, tensor<16xbf16>) scale(%s : tensor<f32>)
      outs(%d, %t, %i : tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>)
      {transposition = array<i64: 1, 0>,
       indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>]} producer {
    ^bb0(%e: bf16, %f: bf16):
      %p = arith.mulf %e, %f : bf16
      fp8.yield %p : bf16
    } -> tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>
  return %0#0, %0#1, %0#2 : tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.quantize"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l:2 = transform.structured.tile_using_for %op tile_sizes [2, 4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Block scaling, tile by tile: a thread has whole blocks, which its index says.
// CHECK-LABEL: func.func @blocks
// CHECK-SAME: %[[X:[^ :]+]]: tensor<8x512xf32>
func.func @blocks(%x: tensor<8x512xf32>, %a: tensor<8x4xf32>, %d: tensor<8x512xf8E4M3FN>)
    -> (tensor<8x512xf8E4M3FN>, tensor<8x4xf32>) {
  // CHECK: scf.forall (%[[I:.+]]) in (2)
  // CHECK: %[[N:.+]] = affine.apply #{{.+}}(%[[I]])
  // CHECK: fp8.quantize_blocks {{.+}} ins(%{{.+}} : tensor<8x256xf32>) outs(%{{.+}}, %{{.+}} : tensor<8x256xf8E4M3FN>, tensor<8x2xf32>)
  %0:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<8x512xf32>)
      outs(%d, %a : tensor<8x512xf8E4M3FN>, tensor<8x4xf32>) {blocks = [array<i64: 1, 128>]}
      -> tensor<8x512xf8E4M3FN>, tensor<8x4xf32>
  return %0#0, %0#1 : tensor<8x512xf8E4M3FN>, tensor<8x4xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %cast = transform.structured.match ops{["fp8.quantize_blocks"]} in %root : (!transform.any_op) -> !transform.any_op
    %t0, %l0 = transform.structured.tile_using_forall %cast num_threads [0, 2]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Tiling a consumer computes what it reads in its loop, back to the cast.
// CHECK-LABEL: func.func @fuse
// CHECK-SAME: %[[X:[^ :]+]]: tensor<8x16xbf16>, %[[S:[^ :]+]]: tensor<f32>, %[[D:[^ :]+]]: tensor<8x16xf8E4M3FN>
func.func @fuse(%x: tensor<8x16xbf16>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>, %w: tensor<16x32xf8E4M3FN>,
                %si: tensor<f32>, %ws: tensor<f32>, %c: tensor<8x32xf32>, %r: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // CHECK: scf.for %[[M:.+]] = %c0 to %c8 step %c2
  // CHECK: %[[XTILE:.+]] = tensor.extract_slice %[[X]][%[[M]], 0] [2, 16]
  // CHECK: %[[DTILE:.+]] = tensor.extract_slice %[[D]][%[[M]], 0] [2, 16]
  // CHECK: %[[Q:.+]]:2 = fp8.quantize ins(%[[XTILE]] : {{.+}} outs(%[[DTILE]],
  // CHECK: %[[Y:.+]] = fp8.scaled_matmul fast ins(%[[Q]]#0,
  // CHECK: linalg.exp ins(%[[Y]]
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%d, %si : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
  %1 = fp8.scaled_matmul fast ins(%0#0, %w : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>)
      scales(%si, %ws : tensor<f32>, tensor<f32>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
      -> tensor<8x32xf32>
  %2 = linalg.exp ins(%1 : tensor<8x32xf32>) outs(%r : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

// The transposed data is fused as well, and dequantized in the loop.
// CHECK-LABEL: func.func @fuse_transposed
// CHECK-SAME: %[[X:[^ :]+]]: tensor<8x16xbf16>
func.func @fuse_transposed(%x: tensor<8x16xbf16>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>, %t: tensor<16x8xf8E4M3FN>,
                           %si: tensor<f32>, %y: tensor<16x8xf32>, %r: tensor<16x8xf32>) -> tensor<16x8xf32> {
  // CHECK: scf.for %[[N:.+]] = %c0 to %c16 step %c2
  // CHECK: tensor.extract_slice %[[X]][0, %[[N]]] [8, 2]
  // CHECK: %[[Q:.+]]:3 = fp8.quantize
  // CHECK: %[[Y:.+]] = fp8.dequantize ins(%[[Q]]#1 : tensor<2x8xf8E4M3FN>)
  // CHECK: linalg.exp ins(%[[Y]]
  %0:3 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%d, %t, %si : tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>) {transposition = array<i64: 1, 0>}
      -> tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>
  %1 = fp8.dequantize ins(%0#1 : tensor<16x8xf8E4M3FN>) scale_inv(%si : tensor<f32>) outs(%y : tensor<16x8xf32>) -> tensor<16x8xf32>
  %2 = linalg.exp ins(%1 : tensor<16x8xf32>) outs(%r : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %2 : tensor<16x8xf32>
}

// A cast that records the amax of its tensor cannot be fused and stays outside, without an error.
// CHECK-LABEL: func.func @keep_outside
func.func @keep_outside(%x: tensor<8x16xbf16>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>, %si: tensor<f32>,
                        %a: tensor<f32>, %y: tensor<8x16xf32>, %r: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<f32>) {
  // CHECK: %[[Q:.+]]:3 = fp8.quantize record_amax ins(%{{.+}} : tensor<8x16xbf16>)
  // CHECK: scf.for
  // CHECK: %[[TILE:.+]] = tensor.extract_slice %[[Q]]#0
  // CHECK: fp8.dequantize ins(%[[TILE]] : tensor<2x16xf8E4M3FN>)
  %0:3 = fp8.quantize record_amax ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%d, %si, %a : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
  %1 = fp8.dequantize ins(%0#0 : tensor<8x16xf8E4M3FN>) scale_inv(%0#1 : tensor<f32>) outs(%y : tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = linalg.exp ins(%1 : tensor<8x16xf32>) outs(%r : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %2, %0#2 : tensor<8x16xf32>, tensor<f32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.fuse %op tile_sizes [2, 0]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Blocks stay whole where the consumer reads whole blocks.
// CHECK-LABEL: func.func @fuse_blocks
// CHECK-SAME: %[[X:[^ :]+]]: tensor<8x512xf8E4M3FN>, %[[S:[^ :]+]]: tensor<8x4xf32>
func.func @fuse_blocks(%x: tensor<8x512xf8E4M3FN>, %s: tensor<8x4xf32>, %y: tensor<8x512xf32>, %r: tensor<8x512xf32>)
    -> tensor<8x512xf32> {
  // CHECK: scf.for %[[N:.+]] = %c0 to %c512 step %c128
  // CHECK-DAG: tensor.extract_slice %[[X]][0, %[[N]]] [8, 128]
  // CHECK-DAG: %[[BLOCK:.+]] = affine.apply #{{.+}}(%[[N]])
  // CHECK-DAG: %[[STILE:.+]] = tensor.extract_slice %[[S]][0, %[[BLOCK]]] [8, 1]
  // CHECK: fp8.dequantize ins({{.+}}) scale_inv(%[[STILE]] :
  // CHECK: linalg.exp
  %0 = fp8.dequantize ins(%x : tensor<8x512xf8E4M3FN>) scale_inv(%s : tensor<8x4xf32>) outs(%y : tensor<8x512xf32>)
      {block = array<i64: 1, 128>} -> tensor<8x512xf32>
  %1 = linalg.exp ins(%0 : tensor<8x512xf32>) outs(%r : tensor<8x512xf32>) -> tensor<8x512xf32>
  return %1 : tensor<8x512xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.fuse %op tile_sizes [0, 128]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// On memrefs too, with views for slices; nothing is returned.
// CHECK-LABEL: func.func @memrefs
// CHECK-SAME: %[[X:[^ :]+]]: memref<8x16xf8E4M3FN>, %[[S:[^ :]+]]: memref<f32>, %[[Y:[^ :]+]]: memref<8x16xf32>
func.func @memrefs(%x: memref<8x16xf8E4M3FN>, %s: memref<f32>, %y: memref<8x16xf32>) {
  // CHECK: scf.for %[[M:.+]] = %c0 to %c8 step %c2
  // CHECK-DAG: %[[XTILE:.+]] = memref.subview %[[X]][%[[M]], 0] [2, 16]
  // CHECK-DAG: %[[YTILE:.+]] = memref.subview %[[Y]][%[[M]], 0] [2, 16]
  // CHECK: fp8.dequantize ins(%[[XTILE]] : {{.+}}) scale_inv(%[[S]] : memref<f32>) outs(%[[YTILE]] : {{.+}})
  // CHECK-NOT: fp8.dequantize
  // CHECK: return
  fp8.dequantize ins(%x : memref<8x16xf8E4M3FN>) scale_inv(%s : memref<f32>) outs(%y : memref<8x16xf32>)
  return
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.dequantize"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [2]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Rows stay whole; the index of a row counts from the start of the tensor.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x16xf32>
// CHECK: scf.for %[[I:[^ ]+]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(
// CHECK: %[[ROWS:.+]] = tensor.extract_slice %[[X]][%[[I]], 0] [2, 16] [1, 1]
// CHECK: fp8.quantize ins(%[[ROWS]] : tensor<2x16xf32>)
// CHECK-SAME: rows = array<i64: 1>
// CHECK: ^bb0(%[[R:.+]]: index, %{{.+}}: tensor<16xf32>):
// CHECK: %[[PLACE:.+]] = affine.apply #{{.+}}(%[[R]], %[[I]])
// CHECK: arith.index_cast %[[PLACE]]
func.func @rows(%x: tensor<8x16xf32>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>, %i: tensor<f32>, %e: tensor<8xi32>)
    -> (tensor<8x16xf8E4M3FN>, tensor<8xi32>) {
  %q:3 = fp8.quantize ins(%x : tensor<8x16xf32>) scale(%s : tensor<f32>) outs(%d, %i, %e : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8xi32>)
      {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], rows = array<i64: 1>} producer {
  ^bb0(%r: index, %row: tensor<16xf32>):
    %place = arith.index_cast %r : index to i32
    fp8.yield %row, %place : tensor<16xf32>, i32
  } -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8xi32>
  return %q#0, %q#2 : tensor<8x16xf8E4M3FN>, tensor<8xi32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp8.quantize"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %op tile_sizes [2]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
