// RUN: fp8-opt %s -split-input-file --mlir-print-local-scope --pass-pipeline='builtin.module(func.func(fp8-fuse-epilogues))' | FileCheck %s -enable-var-scope

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>

// Activation, then the cast with a scale that is known: the product writes FP8. The value
// before the activation has another reader and is stored on the way.
// CHECK-LABEL: func @activation
// CHECK-NOT: linalg.generic
// CHECK-NOT: fp8.quantize
// CHECK: %[[Y:.+]]:4 = fp8.scaled_matmul site("fc1") fast
// CHECK-SAME: out_scale(%{{.+}} : tensor<f32>) outs(%{{.+}} : tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<4x16xbf16>)
// CHECK-SAME: epilogue_maps = [affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-NEXT: ^bb0(%[[SUM:.+]]: f32):
// CHECK-NEXT: %[[H:.+]] = arith.truncf %[[SUM]] : f32 to bf16
// CHECK-NEXT: %[[G:.+]] = math.tanh %[[H]] : bf16
// CHECK-NEXT: fp8.yield %[[G]], %[[H]] : bf16, bf16
// CHECK: return %[[Y]]#0, %[[Y]]#1, %[[Y]]#3
func.func @activation(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %state: tensor<3xf32>, %i: tensor<4x16xbf16>, %d: tensor<4x16xf8E4M3FN>)
    -> (tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<4x16xbf16>) {
  %y = fp8.scaled_matmul site("fc1") fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x16xbf16>) outs(%i : tensor<4x16xbf16>) {
  ^bb0(%e: bf16, %o: bf16):
    %v = math.tanh %e : bf16
    linalg.yield %v : bf16
  } -> tensor<4x16xbf16>
  %scale = tensor.extract_slice %state[1] [1] [1] : tensor<3xf32> to tensor<f32>
  %q, %qi, %a = fp8.quantize record_amax ins(%g : tensor<4x16xbf16>) scale(%scale : tensor<f32>)
    outs(%d, %s, %s : tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %q, %qi, %y : tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<4x16xbf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// A gradient through an activation, its bias gradient and its cast: one operation.
// CHECK-LABEL: func @gradient
// CHECK-NOT: linalg.generic
// CHECK-NOT: fp8.quantize
// CHECK: %[[Y:.+]]:4 = fp8.scaled_matmul split
// CHECK-SAME: epilogue_ins(%{{.+}} : tensor<4x16xbf16>) outs(%{{.+}} : tensor<4x16xf8E5M2>, tensor<f32>, tensor<f32>, tensor<16xf32>)
// CHECK-SAME: epilogue_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>]
// CHECK: %[[M:.+]] = arith.mulf
// CHECK: %[[W:.+]] = arith.extf %[[M]] : bf16 to f32
// CHECK: fp8.yield %[[M]], %[[W]] : bf16, f32
// CHECK: return %[[Y]]#0, %[[Y]]#2, %[[Y]]#3
func.func @gradient(%x: tensor<4x8xf8E5M2>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %h: tensor<4x16xbf16>, %i: tensor<4x16xbf16>, %d: tensor<4x16xf8E5M2>, %b: tensor<16xf32>)
    -> (tensor<4x16xf8E5M2>, tensor<f32>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %y = fp8.scaled_matmul split ins(%x, %w : tensor<4x8xf8E5M2>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %g = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %h : tensor<4x16xbf16>, tensor<4x16xbf16>) outs(%i : tensor<4x16xbf16>) {
  ^bb0(%e: bf16, %f: bf16, %o: bf16):
    %v = arith.mulf %e, %f : bf16
    linalg.yield %v : bf16
  } -> tensor<4x16xbf16>
  %q, %qi, %a = fp8.quantize record_amax ins(%g : tensor<4x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %s, %s : tensor<4x16xf8E5M2>, tensor<f32>, tensor<f32>) -> tensor<4x16xf8E5M2>, tensor<f32>, tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%b : tensor<16xf32>) -> tensor<16xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%g : tensor<4x16xbf16>) outs(%z : tensor<16xf32>) {
  ^bb0(%in: bf16, %acc: f32):
    %e = arith.extf %in : bf16 to f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  return %q, %a, %sum : tensor<4x16xf8E5M2>, tensor<f32>, tensor<16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>

// Outside stay: a transposed result, and the cast of a sum that is accumulated.
// CHECK-LABEL: func @transposed
// CHECK: fp8.scaled_matmul
// CHECK-NOT: epilogue
// CHECK: linalg.generic
func.func @transposed(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %i: tensor<4x16xbf16>, %o: tensor<16x4xbf16>) -> tensor<16x4xbf16> {
  %y = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %g = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x16xbf16>) outs(%o : tensor<16x4xbf16>) {
  ^bb0(%e: bf16, %out: bf16):
    %v = arith.negf %e : bf16
    linalg.yield %v : bf16
  } -> tensor<16x4xbf16>
  return %g : tensor<16x4xbf16>
}
// CHECK-LABEL: func @accumulated
// CHECK: fp8.scaled_matmul fast accumulate
// CHECK-NOT: epilogue
// CHECK: fp8.quantize
func.func @accumulated(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %c: tensor<4x16xf32>, %d: tensor<4x16xf8E4M3FN>) -> tensor<4x16xf8E4M3FN> {
  %y = fp8.scaled_matmul fast accumulate ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%c : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %q, %qi = fp8.quantize ins(%y : tensor<4x16xf32>) scale(%s : tensor<f32>)
    outs(%d, %s : tensor<4x16xf8E4M3FN>, tensor<f32>) -> tensor<4x16xf8E4M3FN>, tensor<f32>
  return %q : tensor<4x16xf8E4M3FN>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>

// Current scaling: the amax is that of the result, after its activation, taken while it is written.
// CHECK-LABEL: func @own_scale
// CHECK-NOT: linalg.generic
// CHECK: %[[Y:.+]]:3 = fp8.scaled_matmul fast record_amax[0]
// CHECK-SAME: outs(%{{.+}}, %{{.+}}, %{{.+}} : tensor<4x16xbf16>, tensor<f32>, tensor<4x16xbf16>)
// CHECK: math.tanh
// CHECK-NOT: fp8.amax
// CHECK: fp8.compute_scale {{.*}} ins(%[[Y]]#1 : tensor<f32>)
// CHECK: fp8.quantize ins(%[[Y]]#0 : tensor<4x16xbf16>)
// CHECK: return %{{.+}}, %[[Y]]#2
func.func @own_scale(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %i: tensor<4x16xbf16>, %d: tensor<4x16xf8E4M3FN>)
    -> (tensor<4x16xf8E4M3FN>, tensor<4x16xbf16>) {
  %y = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x16xbf16>) outs(%i : tensor<4x16xbf16>) {
  ^bb0(%e: bf16, %o: bf16):
    %v = math.tanh %e : bf16
    linalg.yield %v : bf16
  } -> tensor<4x16xbf16>
  %a = fp8.amax ins(%g : tensor<4x16xbf16>) outs(%s : tensor<f32>) -> tensor<f32>
  %scale = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%a : tensor<f32>) outs(%s : tensor<f32>) -> tensor<f32>
  %q, %qi = fp8.quantize ins(%g : tensor<4x16xbf16>) scale(%scale : tensor<f32>)
    outs(%d, %s : tensor<4x16xf8E4M3FN>, tensor<f32>) -> tensor<4x16xf8E4M3FN>, tensor<f32>
  return %q, %y : tensor<4x16xf8E4M3FN>, tensor<4x16xbf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// Products that stay in high precision have the same epilogue: bias, its gradient's sum, amax. A
// mask knows where it is.
// CHECK-LABEL: func @kept
// CHECK-NOT: linalg.generic
// CHECK-NOT: fp8.amax
// CHECK: %[[Y:.+]]:3 = fp8.matmul site("head") kept("--keep=head") record_amax[0]
// CHECK-SAME: epilogue_ins(%{{.+}} : tensor<16xbf16>) outs(%{{.+}}, %{{.+}}, %{{.+}} : tensor<4x16xbf16>, tensor<f32>, tensor<16xf32>)
// CHECK-SAME: epilogue_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>]
// CHECK-NEXT: ^bb0(%[[SUM:.+]]: f32, %{{.+}}: bf16):
// CHECK-NEXT: arith.truncf %[[SUM]] : f32 to bf16
// CHECK: fp8.index 0
// CHECK-NEXT: fp8.index 1
// CHECK: return %[[Y]]#0, %[[Y]]#1, %[[Y]]#2
func.func @kept(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %b: tensor<16xbf16>, %i: tensor<4x16xbf16>, %s: tensor<f32>, %g: tensor<16xf32>)
    -> (tensor<4x16xbf16>, tensor<f32>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : bf16
  %y = fp8.matmul site("head") kept("--keep=head") ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>)
    outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %z = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : tensor<4x16xbf16>, tensor<16xbf16>) outs(%i : tensor<4x16xbf16>) {
  ^bb0(%e: bf16, %c: bf16, %o: bf16):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %later = arith.cmpi ugt, %column, %row : index
    %v = arith.addf %e, %c : bf16
    %m = arith.select %later, %none, %v : bf16
    linalg.yield %m : bf16
  } -> tensor<4x16xbf16>
  %f = linalg.fill ins(%zero : f32) outs(%g : tensor<16xf32>) -> tensor<16xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%z : tensor<4x16xbf16>) outs(%f : tensor<16xf32>) {
  ^bb0(%in: bf16, %acc: f32):
    %e = arith.extf %in : bf16 to f32
    %t = arith.addf %acc, %e : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  %a = fp8.amax ins(%z : tensor<4x16xbf16>) outs(%s : tensor<f32>) -> tensor<f32>
  return %z, %a, %sum : tensor<4x16xbf16>, tensor<f32>, tensor<16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>

// A kept product casts its result where the scale is known.
// CHECK-LABEL: func @kept_to_fp8
// CHECK: fp8.matmul {{.*}} out_scale(%{{.+}} : tensor<f32>) outs(%{{.+}} : tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<f32>)
// CHECK-NOT: fp8.quantize
// Sums of f64 have no epilogue.
// CHECK-LABEL: func @f64
// CHECK: fp8.matmul
// CHECK-NOT: epilogue
// CHECK: linalg.generic
func.func @kept_to_fp8(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>, %s: tensor<f32>, %d: tensor<4x16xf8E4M3FN>) -> tensor<4x16xf8E4M3FN> {
  %y = fp8.matmul ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %q, %qi = fp8.quantize ins(%y : tensor<4x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %s : tensor<4x16xf8E4M3FN>, tensor<f32>) -> tensor<4x16xf8E4M3FN>, tensor<f32>
  return %q : tensor<4x16xf8E4M3FN>
}
func.func @f64(%x: tensor<4x8xf64>, %w: tensor<8x16xf64>, %i: tensor<4x16xf64>, %o: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf64>, tensor<8x16xf64>) outs(%i : tensor<4x16xf64>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf64>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x16xf64>) outs(%o : tensor<4x16xf32>) {
  ^bb0(%e: f64, %out: f32):
    %v = arith.truncf %e : f64 to f32
    linalg.yield %v : f32
  } -> tensor<4x16xf32>
  return %z : tensor<4x16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>

// A result that is cast has its amax, whatever else is computed from it: here a sum with another gradient.
// CHECK-LABEL: func @cast_and_added
// CHECK-NOT: linalg.generic
// CHECK: %[[Y:.+]]:3 = fp8.scaled_matmul fast record_amax[1]
// CHECK-SAME: outs(%{{.+}}, %{{.+}}, %{{.+}} : tensor<4x16xf32>, tensor<f32>, tensor<4x16xbf16>)
// CHECK: %[[H:.+]] = arith.truncf %{{.+}} : f32 to bf16
// CHECK: %[[Z:.+]] = arith.addf
// CHECK: fp8.yield %[[Z]], %[[H]] : f32, bf16
// CHECK-NOT: fp8.amax
// CHECK: fp8.compute_scale {{.*}} ins(%[[Y]]#1 : tensor<f32>)
// CHECK: fp8.quantize ins(%[[Y]]#2 : tensor<4x16xbf16>)
// CHECK: return %{{.+}}, %[[Y]]#0
// With a known scale it is the first result, and FP8.
// CHECK-LABEL: func @known_and_added
// CHECK-NOT: linalg.generic
// CHECK: %[[Y:.+]]:4 = fp8.scaled_matmul fast ins({{.+}}) scales({{.+}}) out_scale(%{{.+}} : tensor<f32>)
// CHECK-SAME: outs(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<4x16xf8E5M2>, tensor<f32>, tensor<f32>, tensor<4x16xf32>)
// CHECK-NOT: fp8.quantize
// CHECK: return %[[Y]]#0, %[[Y]]#3
func.func @cast_and_added(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %i: tensor<4x16xbf16>, %c: tensor<4x16xf32>, %d: tensor<4x16xf8E5M2>)
    -> (tensor<4x16xf8E5M2>, tensor<4x16xf32>) {
  %y = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %c : tensor<4x16xbf16>, tensor<4x16xf32>) outs(%c : tensor<4x16xf32>) {
  ^bb0(%e: bf16, %f: f32, %o: f32):
    %v = arith.extf %e : bf16 to f32
    %r = arith.addf %v, %f : f32
    linalg.yield %r : f32
  } -> tensor<4x16xf32>
  %a = fp8.amax ins(%y : tensor<4x16xbf16>) outs(%s : tensor<f32>) -> tensor<f32>
  %scale = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E5M2) ins(%a : tensor<f32>) outs(%s : tensor<f32>) -> tensor<f32>
  %q, %qi = fp8.quantize ins(%y : tensor<4x16xbf16>) scale(%scale : tensor<f32>)
    outs(%d, %s : tensor<4x16xf8E5M2>, tensor<f32>) -> tensor<4x16xf8E5M2>, tensor<f32>
  return %q, %z : tensor<4x16xf8E5M2>, tensor<4x16xf32>
}
func.func @known_and_added(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %i: tensor<4x16xbf16>, %c: tensor<4x16xf32>, %d: tensor<4x16xf8E5M2>)
    -> (tensor<4x16xf8E5M2>, tensor<4x16xf32>) {
  %y = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %c : tensor<4x16xbf16>, tensor<4x16xf32>) outs(%c : tensor<4x16xf32>) {
  ^bb0(%e: bf16, %f: f32, %o: f32):
    %v = arith.extf %e : bf16 to f32
    %r = arith.addf %v, %f : f32
    linalg.yield %r : f32
  } -> tensor<4x16xf32>
  %q, %qi = fp8.quantize ins(%y : tensor<4x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %s : tensor<4x16xf8E5M2>, tensor<f32>) -> tensor<4x16xf8E5M2>, tensor<f32>
  return %q, %z : tensor<4x16xf8E5M2>, tensor<4x16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// Behind a norm: the gradient of its gain is a sum of f32, that of its bias one of what was
// rounded before. Nothing reads the f32 any more: the result is what the norm's backward reads.
// CHECK-LABEL: func @gain_and_bias
// CHECK-NOT: linalg.generic
// CHECK: %[[Y:.+]]:4 = fp8.scaled_matmul fast
// CHECK-SAME: outs(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<4x16xbf16>, tensor<4x16xf32>, tensor<16xf32>, tensor<16xf32>)
// CHECK: %[[H:.+]] = arith.truncf %{{.+}} : f32 to bf16
// CHECK: %[[W:.+]] = arith.extf %[[H]] : bf16 to f32
// CHECK: %[[G:.+]] = arith.mulf %[[W]]
// CHECK: %[[B:.+]] = arith.extf %[[H]] : bf16 to f32
// CHECK: fp8.yield %[[H]], %[[W]], %[[G]], %[[B]] : bf16, f32, f32, f32
// CHECK: return %[[Y]]#0, %[[Y]]#2, %[[Y]]#3
func.func @gain_and_bias(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %i: tensor<4x16xbf16>, %f: tensor<4x16xf32>, %n: tensor<4x16xf32>, %b: tensor<16xf32>)
    -> (tensor<4x16xbf16>, tensor<16xf32>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %y = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x16xbf16>) outs(%f : tensor<4x16xf32>) {
  ^bb0(%e: bf16, %o: f32):
    %r = arith.extf %e : bf16 to f32
    linalg.yield %r : f32
  } -> tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%b : tensor<16xf32>) -> tensor<16xf32>
  %gain = linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["reduction", "parallel"]} ins(%v, %n : tensor<4x16xf32>, tensor<4x16xf32>) outs(%init : tensor<16xf32>) {
  ^bb0(%e: f32, %m: f32, %o: f32):
    %p = arith.mulf %e, %m : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<16xf32>
  %bias = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%y : tensor<4x16xbf16>) outs(%init : tensor<16xf32>) {
  ^bb0(%e: bf16, %o: f32):
    %p = arith.extf %e : bf16 to f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<16xf32>
  return %y, %gain, %bias : tensor<4x16xbf16>, tensor<16xf32>, tensor<16xf32>
}
