// Every operation, on tensors and on memrefs, with every optional part: what is printed
// reads back, as text and as bytecode.
// RUN: fp8-opt %s | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --emit-bytecode | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --mlir-print-op-generic | fp8-opt | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @matmul(
func.func @matmul(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xbf16>) -> tensor<8x32xbf16> {
  // CHECK: %[[Y:.+]] = fp8.matmul ins(%{{.+}}, %{{.+}} : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%{{.+}} : tensor<8x32xbf16>) {indexing_maps = [#{{.+}}, #{{.+}}, #{{.+}}]} -> tensor<8x32xbf16>
  %y = fp8.matmul ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%c : tensor<8x32xbf16>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xbf16>
  // CHECK: fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight) kept("--keep") accumulate ins(
  %z = fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight) kept("--keep") accumulate
      ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%y : tensor<8x32xbf16>)
      {indexing_maps = [#mk, #kn, #mn], fp8.role = "dgrad", fp8.site = "mine"} -> tensor<8x32xbf16>
  return %z : tensor<8x32xbf16>
}

// CHECK-LABEL: func.func @matmul_resume
func.func @matmul_resume(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // CHECK: fp8.matmul role(wgrad) resume ins(
  %y = fp8.matmul role(wgrad) resume ins(%a, %b : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// CHECK-LABEL: func.func @matmul_roles
func.func @matmul_roles(%a: tensor<8x16xf32>, %b: tensor<?x32xf64>, %c: tensor<8x?xf64>) -> tensor<8x?xf64> {
  // CHECK: role(dgrad) kinds(grad_output, weight)
  %0 = fp8.matmul role(dgrad) kinds(grad_output, weight) ins(%a, %b : tensor<8x16xf32>, tensor<?x32xf64>)
      outs(%c : tensor<8x?xf64>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x?xf64>
  // CHECK: role(wgrad) kinds(input, grad_output)
  %1 = fp8.matmul role(wgrad) kinds(input, grad_output) ins(%a, %b : tensor<8x16xf32>, tensor<?x32xf64>)
      outs(%0 : tensor<8x?xf64>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x?xf64>
  // CHECK: role(other) kinds(input, input)
  %2 = fp8.matmul role(other) kinds(input, input) ins(%a, %b : tensor<8x16xf32>, tensor<?x32xf64>)
      outs(%1 : tensor<8x?xf64>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x?xf64>
  return %2 : tensor<8x?xf64>
}

// CHECK-LABEL: func.func @matmul_memref
func.func @matmul_memref(%a: memref<8x16xbf16>, %b: memref<16x32xbf16, strided<[1, 16]>>, %c: memref<8x32xf32>) {
  // CHECK: fp8.matmul ins(%{{.+}}, %{{.+}} : memref<8x16xbf16>, memref<16x32xbf16, strided<[1, 16]>>) outs(%{{.+}} : memref<8x32xf32>) {indexing_maps = [{{.+}}]}{{$}}
  fp8.matmul ins(%a, %b : memref<8x16xbf16>, memref<16x32xbf16, strided<[1, 16]>>) outs(%c : memref<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]}
  return
}

// CHECK-LABEL: func.func @scaled_matmul(
func.func @scaled_matmul(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E5M2>, %s: tensor<f32>, %c: tensor<8x32xbf16>) -> tensor<8x32xbf16> {
  // CHECK: fp8.scaled_matmul site("h0/fc1") role(fprop) recipe(#fp8.delayed_scaling) fast ins(%{{.+}}, %{{.+}} : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E5M2>) scales(%{{.+}}, %{{.+}} : tensor<f32>, tensor<f32>) outs(%{{.+}} : tensor<8x32xbf16>) {indexing_maps = [{{.+}}]} -> tensor<8x32xbf16>
  %0 = fp8.scaled_matmul site("h0/fc1") role(fprop) recipe(#fp8.delayed_scaling) fast
      ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E5M2>) scales(%s, %s : tensor<f32>, tensor<f32>)
      outs(%c : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xbf16>
  // CHECK: fp8.scaled_matmul split accumulate ins(
  %1 = fp8.scaled_matmul split accumulate
      ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E5M2>) scales(%s, %s : tensor<f32>, tensor<f32>)
      outs(%0 : tensor<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x32xbf16>
  return %1 : tensor<8x32xbf16>
}

// CHECK-LABEL: func.func @scaled_matmul_blocks
func.func @scaled_matmul_blocks(%a: tensor<8x200xf8E4M3FN>, %b: tensor<200x32xf8E4M3FN>, %as: tensor<8x7xf8E8M0FNU>,
                                %bs: tensor<7x32xf8E8M0FNU>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  // CHECK: scales(%{{.+}}, %{{.+}} : tensor<8x7xf8E8M0FNU>, tensor<7x32xf8E8M0FNU>) outs(%{{.+}} : tensor<8x32xf32>) {indexing_maps = [{{.+}}], lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 32, 1>}
  %0 = fp8.scaled_matmul recipe(#fp8.mx_scaling) fast ins(%a, %b : tensor<8x200xf8E4M3FN>, tensor<200x32xf8E4M3FN>)
      scales(%as, %bs : tensor<8x7xf8E8M0FNU>, tensor<7x32xf8E8M0FNU>) outs(%c : tensor<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 32, 1>} -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// CHECK-LABEL: func.func @scaled_matmul_epilogue
func.func @scaled_matmul_epilogue(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E4M3FN>, %s: tensor<f32>,
                                  %bias: tensor<32xbf16>, %c: tensor<8x32xf8E4M3FN>) -> tensor<8x32xf8E4M3FN> {
  // CHECK: out_scale(%{{.+}} : tensor<f32>) epilogue_ins(%{{.+}} : tensor<32xbf16>)
  // CHECK-SAME: outs(%{{.+}}, %{{.+}}, %{{.+}} : tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<f32>)
  // CHECK-SAME: epilogue_maps = [#{{.+}}]
  // CHECK-SAME: epilogue {
  // CHECK-NEXT: ^bb0(%[[SUM:.+]]: f32, %[[BIAS:.+]]: bf16):
  // CHECK: fp8.yield %{{.+}} : f32
  // CHECK-NEXT: } -> tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<f32>
  %0:3 = fp8.scaled_matmul fast ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>)
      scales(%s, %s : tensor<f32>, tensor<f32>) out_scale(%s : tensor<f32>) epilogue_ins(%bias : tensor<32xbf16>)
      outs(%c, %s, %s : tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<f32>)
      {indexing_maps = [#mk, #kn, #mn], epilogue_maps = [#row]} epilogue {
    ^bb0(%sum: f32, %e: bf16):
      %wide = arith.extf %e : bf16 to f32
      %r = arith.addf %sum, %wide : f32
      fp8.yield %r : f32
  } -> tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %0#0 : tensor<8x32xf8E4M3FN>
}

// CHECK-LABEL: func.func @scaled_matmul_memref
func.func @scaled_matmul_memref(%a: memref<8x16xf8E4M3FN>, %b: memref<16x32xf8E4M3FN>, %s: memref<f32>, %c: memref<8x32xbf16>) {
  // CHECK: fp8.scaled_matmul fast ins({{.+}}) scales({{.+}} : memref<f32>, memref<f32>) outs({{.+}} : memref<8x32xbf16>) {indexing_maps = [{{.+}}]}{{$}}
  fp8.scaled_matmul fast ins(%a, %b : memref<8x16xf8E4M3FN>, memref<16x32xf8E4M3FN>)
      scales(%s, %s : memref<f32>, memref<f32>) outs(%c : memref<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]}
  return
}

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
#wgrad_a = affine_map<(g, k, n, t) -> (t, k)>
#wgrad_b = affine_map<(g, k, n, t) -> (t, n)>
#wgrad_c = affine_map<(g, k, n, t) -> (g, k, n)>

// CHECK-LABEL: func.func @grouped_matmul
func.func @grouped_matmul(%x: tensor<64x16xf32>, %w: tensor<4x16x32xbf16>, %ends: tensor<4xi32>, %init: tensor<64x32xbf16>,
                          %mx: memref<?x16xf32>, %my: memref<?x32xf32>, %mends: memref<?xi64>, %mw: memref<?x16x32xf32>) -> (tensor<4x64x16xf32>, tensor<64x32xbf16>) {
  // CHECK: fp8.group_rows ins(%{{.+}}, %{{.+}} : tensor<64x16xf32>, tensor<4xi32>) -> tensor<4x64x16xf32>
  %g = fp8.group_rows ins(%x, %ends : tensor<64x16xf32>, tensor<4xi32>) -> tensor<4x64x16xf32>
  // CHECK: fp8.grouped_matmul site("moe") role(fprop) kept("why") ins(%{{.+}}, %{{.+}}, %{{.+}} : tensor<64x16xf32>, tensor<4x16x32xbf16>, tensor<4xi32>) outs(%{{.+}} : tensor<64x32xbf16>) {indexing_maps = [{{.+}}]} -> tensor<64x32xbf16>
  %0 = fp8.grouped_matmul site("moe") role(fprop) kept("why") ins(%x, %w, %ends : tensor<64x16xf32>, tensor<4x16x32xbf16>, tensor<4xi32>)
      outs(%init : tensor<64x32xbf16>) {indexing_maps = [#tk, #gkn, #tn]} -> tensor<64x32xbf16>
  // CHECK: fp8.grouped_matmul ins({{.+}}) outs(%{{.+}} : memref<?x16x32xf32>) {indexing_maps = [{{.+}}]}{{$}}
  fp8.grouped_matmul ins(%mx, %my, %mends : memref<?x16xf32>, memref<?x32xf32>, memref<?xi64>)
      outs(%mw : memref<?x16x32xf32>) {indexing_maps = [#wgrad_a, #wgrad_b, #wgrad_c]}
  return %g, %0 : tensor<4x64x16xf32>, tensor<64x32xbf16>
}

// CHECK-LABEL: func.func @scaled_grouped_matmul
func.func @scaled_grouped_matmul(%x: tensor<64x16xf8E4M3FN>, %w: tensor<4x16x32xf8E4M3FN>, %ends: tensor<4xi32>,
                                 %xs: tensor<64x1xf32>, %ws: tensor<4x1x1xf32>, %init: tensor<64x32xbf16>,
                                 %mx: memref<64x16xf8E4M3FN>, %mw: memref<4x16x32xf8E4M3FN>, %mends: memref<4xi64>,
                                 %ms: memref<f32>, %mi: memref<64x32xf32>) -> tensor<64x32xbf16> {
  // CHECK: fp8.scaled_grouped_matmul site("moe") role(fprop) recipe(#fp8.row_scaling) fast ins(%{{.+}}, %{{.+}}, %{{.+}} : tensor<64x16xf8E4M3FN>, tensor<4x16x32xf8E4M3FN>, tensor<4xi32>) scales(%{{.+}}, %{{.+}} : tensor<64x1xf32>, tensor<4x1x1xf32>) outs(%{{.+}} : tensor<64x32xbf16>) {indexing_maps = [{{.+}}], lhs_block = array<i64: 1, 0>, rhs_block = array<i64: 1, 0, 0>} -> tensor<64x32xbf16>
  %0 = fp8.scaled_grouped_matmul site("moe") role(fprop) recipe(#fp8.row_scaling) fast
      ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<4x16x32xf8E4M3FN>, tensor<4xi32>)
      scales(%xs, %ws : tensor<64x1xf32>, tensor<4x1x1xf32>) outs(%init : tensor<64x32xbf16>)
      {indexing_maps = [#tk, #gkn, #tn], lhs_block = array<i64: 1, 0>, rhs_block = array<i64: 1, 0, 0>} -> tensor<64x32xbf16>
  // CHECK: fp8.scaled_grouped_matmul split ins({{.+}}) scales({{.+}}) outs(%{{.+}} : memref<64x32xf32>) {indexing_maps = [{{.+}}]}{{$}}
  fp8.scaled_grouped_matmul split
      ins(%mx, %mw, %mends : memref<64x16xf8E4M3FN>, memref<4x16x32xf8E4M3FN>, memref<4xi64>)
      scales(%ms, %ms : memref<f32>, memref<f32>) outs(%mi : memref<64x32xf32>) {indexing_maps = [#tk, #gkn, #tn]}
  return %0 : tensor<64x32xbf16>
}

//===----------------------------------------------------------------------===//
// Scaling
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @amax
func.func @amax(%x: tensor<8x200xbf16>, %i: tensor<f32>, %m: memref<?x4xf16>, %r: memref<f32>) -> tensor<f32> {
  // CHECK: fp8.amax ins(%{{.+}} : tensor<8x200xbf16>) outs(%{{.+}} : tensor<f32>) -> tensor<f32>
  %0 = fp8.amax ins(%x : tensor<8x200xbf16>) outs(%i : tensor<f32>) -> tensor<f32>
  // CHECK: fp8.amax ins(%{{.+}} : memref<?x4xf16>) outs(%{{.+}} : memref<f32>){{$}}
  fp8.amax ins(%m : memref<?x4xf16>) outs(%r : memref<f32>)
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @compute_scale
func.func @compute_scale(%a: tensor<f32>, %b: tensor<8x1xf32>, %m: memref<f32>) -> (tensor<f32>, tensor<8x1xf32>) {
  // CHECK: fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%{{.+}} : tensor<f32>) outs(%{{.+}} : tensor<f32>) -> tensor<f32>
  %0 = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%a : tensor<f32>) outs(%a : tensor<f32>) -> tensor<f32>
  // CHECK: fp8.compute_scale recipe(#fp8.row_scaling<eps = {{.+}}>) format(f8E5M2) input_type(bf16) ins(
  %1 = fp8.compute_scale recipe(#fp8.row_scaling<eps = 0.125>) format(f8E5M2) input_type(bf16)
      ins(%b : tensor<8x1xf32>) outs(%b : tensor<8x1xf32>) -> tensor<8x1xf32>
  // CHECK: fp8.compute_scale {{.+}} outs(%{{.+}} : memref<f32>){{$}}
  fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%m : memref<f32>) outs(%m : memref<f32>)
  return %0, %1 : tensor<f32>, tensor<8x1xf32>
}

// CHECK-LABEL: func.func @quantize(
func.func @quantize(%x: tensor<8x16xbf16>, %s: tensor<f32>, %q: tensor<8x16xf8E4M3FN>, %t: tensor<16x8xf8E4M3FN>) -> tensor<f32> {
  // CHECK: %{{.+}}:2 = fp8.quantize ins(%{{.+}} : tensor<8x16xbf16>) scale(%{{.+}} : tensor<f32>) outs(%{{.+}}, %{{.+}} : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
  %0:2 = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %s : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
  // CHECK: %[[ALL:.+]]:4 = fp8.quantize record_amax column(3) ins({{.+}}) scale({{.+}}) outs(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>, tensor<f32>) {transposition = array<i64: 1, 0>} ->
  %1:4 = fp8.quantize record_amax column(3) ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%q, %t, %s, %s : tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>, tensor<f32>)
      {transposition = array<i64: 1, 0>}
      -> tensor<8x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<f32>, tensor<f32>
  // CHECK: return %[[ALL]]#3
  return %1#3 : tensor<f32>
}

// CHECK-LABEL: func.func @quantize_producer
func.func @quantize_producer(%x: tensor<8x16xbf16>, %bias: tensor<16xf32>, %s: tensor<f32>, %q: tensor<8x16xf8E5M2>) -> tensor<8x16xf8E5M2> {
  // CHECK: fp8.quantize ins(%{{.+}}, %{{.+}} : tensor<8x16xbf16>, tensor<16xf32>) scale({{.+}}) outs({{.+}}) {indexing_maps = [#{{.+}}, #{{.+}}]} producer {
  // CHECK-NEXT: ^bb0(%{{.+}}: bf16, %{{.+}}: f32):
  // CHECK: fp8.yield %{{.+}} : f32
  // CHECK-NEXT: } -> tensor<8x16xf8E5M2>, tensor<f32>
  %0:2 = fp8.quantize ins(%x, %bias : tensor<8x16xbf16>, tensor<16xf32>) scale(%s : tensor<f32>)
      outs(%q, %s : tensor<8x16xf8E5M2>, tensor<f32>) {indexing_maps = [#id, #row]} producer {
    ^bb0(%e: bf16, %b: f32):
      %wide = arith.extf %e : bf16 to f32
      %r = arith.addf %wide, %b : f32
      fp8.yield %r : f32
  } -> tensor<8x16xf8E5M2>, tensor<f32>
  return %0#0 : tensor<8x16xf8E5M2>
}

// CHECK-LABEL: func.func @quantize_blocks
func.func @quantize_blocks(%x: tensor<8x200xbf16>, %q: tensor<8x200xf8E4M3FN>, %si: tensor<8x7xf8E8M0FNU>,
                           %qt: tensor<200x8xf8E4M3FN>, %sit: tensor<200x1xf8E8M0FNU>) -> tensor<8x200xf8E4M3FN> {
  // CHECK: fp8.quantize_blocks recipe(#fp8.mx_scaling) ins(%{{.+}} : tensor<8x200xbf16>) outs(%{{.+}}, %{{.+}} : tensor<8x200xf8E4M3FN>, tensor<8x7xf8E8M0FNU>) {blocks = [array<i64: 1, 32>]}
  %0:2 = fp8.quantize_blocks recipe(#fp8.mx_scaling) ins(%x : tensor<8x200xbf16>)
      outs(%q, %si : tensor<8x200xf8E4M3FN>, tensor<8x7xf8E8M0FNU>) {blocks = [array<i64: 1, 32>]}
      -> tensor<8x200xf8E4M3FN>, tensor<8x7xf8E8M0FNU>
  // CHECK: fp8.quantize_blocks {{.+}} {blocks = [array<i64: 1, 32>, array<i64: 32, 1>], indexing_maps = {{.+}}, transpositions = [array<i64: 0, 1>, array<i64: 1, 0>]} producer {
  %1:4 = fp8.quantize_blocks recipe(#fp8.mx_scaling) ins(%x : tensor<8x200xbf16>)
      outs(%q, %si, %qt, %sit : tensor<8x200xf8E4M3FN>, tensor<8x7xf8E8M0FNU>, tensor<200x8xf8E4M3FN>, tensor<200x1xf8E8M0FNU>)
      {blocks = [array<i64: 1, 32>, array<i64: 32, 1>], transpositions = [array<i64: 0, 1>, array<i64: 1, 0>],
       indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>]} producer {
    ^bb0(%e: bf16):
      %n = arith.negf %e : bf16
      fp8.yield %n : bf16
  } -> tensor<8x200xf8E4M3FN>, tensor<8x7xf8E8M0FNU>, tensor<200x8xf8E4M3FN>, tensor<200x1xf8E8M0FNU>
  return %0#0 : tensor<8x200xf8E4M3FN>
}

// CHECK-LABEL: func.func @quantize_memref
func.func @quantize_memref(%x: memref<8x16xbf16>, %s: memref<f32>, %q: memref<8x16xf8E4M3FN>, %a: memref<f32>) {
  // CHECK: fp8.quantize record_amax ins(%{{.+}} : memref<8x16xbf16>) scale({{.+}}) outs(%{{.+}}, %{{.+}}, %{{.+}} : memref<8x16xf8E4M3FN>, memref<f32>, memref<f32>){{$}}
  fp8.quantize record_amax ins(%x : memref<8x16xbf16>) scale(%s : memref<f32>)
      outs(%q, %s, %a : memref<8x16xf8E4M3FN>, memref<f32>, memref<f32>)
  return
}

// CHECK-LABEL: func.func @dequantize
func.func @dequantize(%q: tensor<8x200xf8E5M2>, %s: tensor<f32>, %b: tensor<8x2xf32>, %x: tensor<8x200xbf16>,
                      %mq: memref<4xf8E4M3FN>, %ms: memref<f32>, %mx: memref<4xf32>) -> tensor<8x200xbf16> {
  // CHECK: fp8.dequantize ins(%{{.+}} : tensor<8x200xf8E5M2>) scale_inv(%{{.+}} : tensor<f32>) outs(%{{.+}} : tensor<8x200xbf16>) -> tensor<8x200xbf16>
  %0 = fp8.dequantize ins(%q : tensor<8x200xf8E5M2>) scale_inv(%s : tensor<f32>) outs(%x : tensor<8x200xbf16>) -> tensor<8x200xbf16>
  // CHECK: fp8.dequantize {{.+}} {block = array<i64: 1, 128>}
  %1 = fp8.dequantize ins(%q : tensor<8x200xf8E5M2>) scale_inv(%b : tensor<8x2xf32>) outs(%0 : tensor<8x200xbf16>)
      {block = array<i64: 1, 128>} -> tensor<8x200xbf16>
  // CHECK: fp8.dequantize {{.+}} outs(%{{.+}} : memref<4xf32>){{$}}
  fp8.dequantize ins(%mq : memref<4xf8E4M3FN>) scale_inv(%ms : memref<f32>) outs(%mx : memref<4xf32>)
  return %1 : tensor<8x200xbf16>
}

// CHECK-LABEL: func.func @pack_scales
func.func @pack_scales(%s: tensor<130x5xf8E8M0FNU>, %i: tensor<2048xf8E8M0FNU>, %ms: memref<?x4xf8E8M0FNU>, %mi: memref<?xf8E8M0FNU>) -> tensor<2048xf8E8M0FNU> {
  // CHECK: fp8.pack_scales ins(%{{.+}} : tensor<130x5xf8E8M0FNU>) outs(%{{.+}} : tensor<2048xf8E8M0FNU>) -> tensor<2048xf8E8M0FNU>
  %0 = fp8.pack_scales ins(%s : tensor<130x5xf8E8M0FNU>) outs(%i : tensor<2048xf8E8M0FNU>) -> tensor<2048xf8E8M0FNU>
  // CHECK: fp8.pack_scales ins(%{{.+}} : memref<?x4xf8E8M0FNU>) outs(%{{.+}} : memref<?xf8E8M0FNU>){{$}}
  fp8.pack_scales ins(%ms : memref<?x4xf8E8M0FNU>) outs(%mi : memref<?xf8E8M0FNU>)
  return %0 : tensor<2048xf8E8M0FNU>
}

//===----------------------------------------------------------------------===//
// State, collectives, loss scaling
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @update_amax_history
func.func @update_amax_history(%a: tensor<3xf32>, %s: tensor<3xf32>, %h: tensor<4x3xf32>,
                               %ma: memref<1xf32>, %ms: memref<3xf32>, %mh: memref<4x3xf32>) -> tensor<4x3xf32> {
  // CHECK: fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0, 2, 0] formats [f8E4M3FN, f8E5M2, f8E4M3FN] ins(%{{.+}} : tensor<3xf32>) outs(%{{.+}}, %{{.+}} : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  %0:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
      columns [0, 2, 0] formats [f8E4M3FN, f8E5M2, f8E4M3FN] ins(%a : tensor<3xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  // CHECK: fp8.update_amax_history {{.+}} outs(%{{.+}}, %{{.+}} : memref<3xf32>, memref<4x3xf32>){{$}}
  fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [1] formats [f8E5M2]
      ins(%ma : memref<1xf32>) outs(%ms, %mh : memref<3xf32>, memref<4x3xf32>)
  return %0#1 : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @collectives
func.func @collectives(%v: tensor<5xf32>, %m: memref<5xf32>, %shard: tensor<4x8xf8E4M3FN>, %whole: tensor<16x8xf8E4M3FN>,
                       %ms: memref<4x8xi8>, %mw: memref<4x?xi8>) -> (tensor<5xf32>, tensor<16x8xf8E4M3FN>) {
  // CHECK: fp8.all_reduce max on(4) axes [0] ins(%{{.+}} : tensor<5xf32>) outs(%{{.+}} : tensor<5xf32>) -> tensor<5xf32>
  %0 = fp8.all_reduce max on(4) axes [0] ins(%v : tensor<5xf32>) outs(%v : tensor<5xf32>) -> tensor<5xf32>
  // CHECK: fp8.all_reduce sum on(?x2) axes [0, 1] of("data") ins(%{{.+}} : memref<5xf32>) outs(%{{.+}} : memref<5xf32>){{$}}
  fp8.all_reduce sum on(?x2) axes [0, 1] of("data") ins(%m : memref<5xf32>) outs(%m : memref<5xf32>)
  // CHECK: fp8.all_gather dim 0 on(4) axes [0] ins(%{{.+}} : tensor<4x8xf8E4M3FN>) outs(%{{.+}} : tensor<16x8xf8E4M3FN>) -> tensor<16x8xf8E4M3FN>
  %1 = fp8.all_gather dim 0 on(4) axes [0] ins(%shard : tensor<4x8xf8E4M3FN>) outs(%whole : tensor<16x8xf8E4M3FN>) -> tensor<16x8xf8E4M3FN>
  // CHECK: fp8.all_gather dim 1 on(4) axes [0] ins(%{{.+}} : memref<4x8xi8>) outs(%{{.+}} : memref<4x?xi8>){{$}}
  fp8.all_gather dim 1 on(4) axes [0] ins(%ms : memref<4x8xi8>) outs(%mw : memref<4x?xi8>)
  return %0, %1 : tensor<5xf32>, tensor<16x8xf8E4M3FN>
}

// CHECK-LABEL: func.func @loss_scaling
func.func @loss_scaling(%g: tensor<8xf32>, %h: tensor<4xbf16>, %s: tensor<f32>, %t: tensor<i32>, %mg: memref<8xf32>, %ms: memref<f32>, %mt: memref<i32>)
    -> (tensor<8xf32>, tensor<i32>) {
  // CHECK: %[[U:.+]]:3 = fp8.unscale ins(%{{.+}}, %{{.+}} : tensor<8xf32>, tensor<4xbf16>) scale(%{{.+}} : tensor<f32>) outs(%{{.+}}, %{{.+}}, %{{.+}} : tensor<8xf32>, tensor<4xbf16>, tensor<f32>) -> tensor<8xf32>, tensor<4xbf16>, tensor<f32>
  %0:3 = fp8.unscale ins(%g, %h : tensor<8xf32>, tensor<4xbf16>) scale(%s : tensor<f32>)
      outs(%g, %h, %s : tensor<8xf32>, tensor<4xbf16>, tensor<f32>) -> tensor<8xf32>, tensor<4xbf16>, tensor<f32>
  // CHECK: fp8.unscale {{.+}} outs(%{{.+}}, %{{.+}} : memref<8xf32>, memref<f32>){{$}}
  fp8.unscale ins(%mg : memref<8xf32>) scale(%ms : memref<f32>) outs(%mg, %ms : memref<8xf32>, memref<f32>)
  // CHECK: fp8.update_loss_scale ins(%[[U]]#2 : tensor<f32>) outs(%{{.+}}, %{{.+}} : tensor<f32>, tensor<i32>) -> tensor<f32>, tensor<i32>
  %1:2 = fp8.update_loss_scale ins(%0#2 : tensor<f32>) outs(%s, %t : tensor<f32>, tensor<i32>) -> tensor<f32>, tensor<i32>
  // CHECK: fp8.update_loss_scale ins(%{{.+}} : memref<f32>) outs(%{{.+}}, %{{.+}} : memref<f32>, memref<i32>) {backoff = 2.500000e-01 : f32, growth = 4.000000e+00 : f32, interval = 100 : i64}{{$}}
  fp8.update_loss_scale ins(%ms : memref<f32>) outs(%ms, %mt : memref<f32>, memref<i32>)
      {growth = 4.0 : f32, backoff = 0.25 : f32, interval = 100 : i64}
  return %0#0, %1#1 : tensor<8xf32>, tensor<i32>
}

// A producer that reads no tensor, only where it is.

// CHECK-LABEL: func.func @without_inputs
// CHECK: fp8.quantize scale(%{{.+}} : tensor<f32>) outs(
// CHECK-SAME: producer {
func.func @without_inputs(%s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>, %i: tensor<f32>)
    -> (tensor<4x8xf8E4M3FN>, tensor<f32>) {
  %q, %si = fp8.quantize scale(%s : tensor<f32>) outs(%d, %i : tensor<4x8xf8E4M3FN>, tensor<f32>) producer {
    %row = fp8.index 0
    %r = arith.index_cast %row : index to i32
    %f = arith.sitofp %r : i32 to f32
    fp8.yield %f : f32
  } -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return %q, %si : tensor<4x8xf8E4M3FN>, tensor<f32>
}

// Casts that round stochastically.

// CHECK-LABEL: func.func @random_bits
func.func @random_bits(%x: tensor<4x8xf32>, %s: tensor<f32>, %r: tensor<2xi64>, %part: tensor<3xi64>, %d: tensor<4x8xf8E4M3FN>, %i: tensor<f32>, %b: tensor<4x1xf32>)
    -> (tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>) {
  // CHECK: fp8.quantize ins(%{{.+}}) scale(%{{.+}}) random(%{{.+}} : tensor<2xi64>) stream(4294967295) outs(
  %q, %si = fp8.quantize ins(%x : tensor<4x8xf32>) scale(%s : tensor<f32>) random(%r : tensor<2xi64>) stream(4294967295)
      outs(%d, %i : tensor<4x8xf8E4M3FN>, tensor<f32>) -> tensor<4x8xf8E4M3FN>, tensor<f32>
  // CHECK: fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%{{.+}}) random(%{{.+}} : tensor<3xi64>) stream(0) outs(
  %qb, %sb = fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%x : tensor<4x8xf32>) random(%part : tensor<3xi64>) stream(0)
      outs(%d, %b : tensor<4x8xf8E4M3FN>, tensor<4x1xf32>) {blocks = [array<i64: 1, 0>]} -> tensor<4x8xf8E4M3FN>, tensor<4x1xf32>
  return %q, %qb : tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>
}
