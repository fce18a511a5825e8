// RUN: fp8-opt %s -split-input-file --mlir-print-local-scope --pass-pipeline='builtin.module(func.func(fp8-fuse-producers))' | FileCheck %s -enable-var-scope

#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (j)>

// Several deep, through a transposed read and a broadcast; the roundings stay.
// CHECK-LABEL: func @chain
// CHECK-SAME: %[[X:[^:]+]]: tensor<16x8xf32>, %[[B:[^:]+]]: tensor<16xbf16>
// CHECK-NOT: linalg.generic
// CHECK: fp8.quantize record_amax ins(%[[B]], %[[X]] :
// CHECK-SAME: indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1, d0)>]
// CHECK-NEXT: ^bb0(%[[BE:.+]]: bf16, %[[XE:.+]]: f32):
// CHECK-NEXT: %[[R:.+]] = arith.truncf %[[XE]] : f32 to bf16
// CHECK-NEXT: %[[A:.+]] = arith.addf %[[R]], %[[BE]] : bf16
// CHECK-NEXT: %[[T:.+]] = math.tanh %[[A]] : bf16
// CHECK-NEXT: fp8.yield %[[T]] : bf16
func.func @chain(%x: tensor<16x8xf32>, %b: tensor<16xbf16>, %s: tensor<f32>, %e: tensor<8x16xbf16>, %d: tensor<8x16xf8E4M3FN>)
    -> (tensor<8x16xf8E4M3FN>, tensor<f32>) {
  %0 = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<16x8xf32>) outs(%e : tensor<8x16xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %v = arith.truncf %in : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<8x16xbf16>
  %1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %b : tensor<8x16xbf16>, tensor<16xbf16>) outs(%e : tensor<8x16xbf16>) {
  ^bb0(%in: bf16, %c: bf16, %out: bf16):
    %v = arith.addf %in, %c : bf16
    %w = math.tanh %v : bf16
    linalg.yield %w : bf16
  } -> tensor<8x16xbf16>
  %q, %i, %a = fp8.quantize record_amax ins(%1 : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%d, %s, %s : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %q, %a : tensor<8x16xf8E4M3FN>, tensor<f32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// A bias gradient is summed where the gradient is computed; nobody reads the gradient again.
// CHECK-LABEL: func @bias_gradient
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x16xbf16>
// CHECK-NOT: linalg.generic
// CHECK: %[[Q:.+]]:3 = fp8.quantize ins(%[[X]] :
// CHECK-SAME: outs(%{{.+}}, %{{.+}}, %{{.+}} : tensor<8x16xf8E5M2>, tensor<f32>, tensor<16xf32>)
// CHECK-SAME: indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>]
// CHECK: %[[M:.+]] = arith.mulf %[[E:.+]], %[[E]] : bf16
// CHECK: %[[W:.+]] = arith.extf %[[M]] : bf16 to f32
// CHECK: fp8.yield %[[M]], %[[W]] : bf16, f32
// CHECK: return %[[Q]]#0, %[[Q]]#2
func.func @bias_gradient(%x: tensor<8x16xbf16>, %s: tensor<f32>, %e: tensor<8x16xbf16>, %d: tensor<8x16xf8E5M2>, %be: tensor<16xf32>)
    -> (tensor<8x16xf8E5M2>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x16xbf16>) outs(%e : tensor<8x16xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %v = arith.mulf %in, %in : bf16
    linalg.yield %v : bf16
  } -> tensor<8x16xbf16>
  %q, %i = fp8.quantize ins(%0 : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%d, %s : tensor<8x16xf8E5M2>, tensor<f32>) -> tensor<8x16xf8E5M2>, tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%be : tensor<16xf32>) -> tensor<16xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%0 : tensor<8x16xbf16>) outs(%z : tensor<16xf32>) {
  ^bb0(%in: bf16, %acc: f32):
    %w = arith.extf %in : bf16 to f32
    %n = arith.addf %acc, %w : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  return %q, %sum : tensor<8x16xf8E5M2>, tensor<16xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Current scaling: the tensor is written while its amax is taken, and read once more.
// CHECK-LABEL: func @current
// CHECK-NOT: linalg.generic
// CHECK: %[[A:.+]]:2 = fp8.amax
// CHECK: math.exp
// CHECK: fp8.yield %[[V:.+]], %[[V]] : bf16, bf16
// CHECK: fp8.compute_scale {{.*}} ins(%[[A]]#0
// CHECK: fp8.quantize ins(%[[A]]#1 : tensor<8x16xbf16>)
func.func @current(%x: tensor<8x16xbf16>, %e: tensor<8x16xbf16>, %d: tensor<8x16xf8E4M3FN>, %f: tensor<f32>) -> tensor<8x16xf8E4M3FN> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x16xbf16>) outs(%e : tensor<8x16xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %v = math.exp %in : bf16
    linalg.yield %v : bf16
  } -> tensor<8x16xbf16>
  %a = fp8.amax ins(%0 : tensor<8x16xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %s = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%a : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
  %q, %i = fp8.quantize ins(%0 : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%d, %f : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return %q : tensor<8x16xf8E4M3FN>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// An addition of a bias costs two reads where it is computed twice, and three accesses where
// it is stored: amax and cast both compute it.
// CHECK-LABEL: func @recompute
// CHECK-NOT: linalg.generic
// CHECK: fp8.amax ins(%{{.+}}, %{{.+}} : tensor<8x16xbf16>, tensor<16xbf16>)
// CHECK: arith.addf
// CHECK: fp8.quantize ins(%{{.+}}, %{{.+}} : tensor<8x16xbf16>, tensor<16xbf16>)
// CHECK: arith.addf
func.func @recompute(%x: tensor<8x16xbf16>, %b: tensor<16xbf16>, %e: tensor<8x16xbf16>, %d: tensor<8x16xf8E4M3FN>, %f: tensor<f32>) -> tensor<8x16xf8E4M3FN> {
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %b : tensor<8x16xbf16>, tensor<16xbf16>) outs(%e : tensor<8x16xbf16>) {
  ^bb0(%in: bf16, %c: bf16, %out: bf16):
    %v = arith.addf %in, %c : bf16
    linalg.yield %v : bf16
  } -> tensor<8x16xbf16>
  %a = fp8.amax ins(%0 : tensor<8x16xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %s = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%a : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
  %q, %i = fp8.quantize ins(%0 : tensor<8x16xbf16>) scale(%s : tensor<f32>)
      outs(%d, %f : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return %q : tensor<8x16xf8E4M3FN>
}

// -----

#id = affine_map<(i) -> (i)>

// An index is that of the tensor that is cast, not of the loops that computed it.
// CHECK-LABEL: func @index
// CHECK-NOT: linalg.generic
// CHECK: fp8.quantize ins(%{{.+}} : tensor<8x4xf32>)
// CHECK-SAME: indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>]
// CHECK-NEXT: ^bb0(%{{.+}}: f32):
// CHECK-NEXT: %[[ROW:.+]] = fp8.index 1
// CHECK-NEXT: %[[COLUMN:.+]] = fp8.index 0
// CHECK-NEXT: arith.cmpi ugt, %[[COLUMN]], %[[ROW]] : index
func.func @index(%x: tensor<8x4xf32>, %e: tensor<4x8xf32>, %d: tensor<4x8xf8E4M3FN>, %s: tensor<f32>) -> tensor<4x8xf8E4M3FN> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %later = arith.cmpi ugt, %column, %row : index
    %v = arith.select %later, %zero, %in : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %q, %i = fp8.quantize ins(%0 : tensor<4x8xf32>) scale(%s : tensor<f32>)
      outs(%d, %s : tensor<4x8xf8E4M3FN>, tensor<f32>) -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return %q : tensor<4x8xf8E4M3FN>
}

// -----

#id = affine_map<(i) -> (i)>

// Outside stay: a reader that must come before the cast and is not moved, and a sum that does
// not start from zero.
// CHECK-LABEL: func @needed_for_the_scale
// CHECK: math.exp
// CHECK: linalg.yield
// CHECK: math.absf
// CHECK: fp8.quantize
// CHECK-NOT: producer
func.func @needed_for_the_scale(%x: tensor<8xf32>, %e: tensor<8xf32>, %d: tensor<8xf8E4M3FN>, %si: tensor<f32>) -> tensor<8xf8E4M3FN> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %1 = math.absf %0 : tensor<8xf32>
  %s = tensor.extract_slice %1[0] [1] [1] : tensor<8xf32> to tensor<f32>
  %q, %i = fp8.quantize ins(%0 : tensor<8xf32>) scale(%s : tensor<f32>)
      outs(%d, %si : tensor<8xf8E4M3FN>, tensor<f32>) -> tensor<8xf8E4M3FN>, tensor<f32>
  return %q : tensor<8xf8E4M3FN>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
// CHECK-LABEL: func @sum_from_one
// CHECK: linalg.generic
// CHECK: fp8.quantize
// CHECK-NOT: producer
func.func @sum_from_one(%x: tensor<8x16xf32>, %one: tensor<16xf32>, %d: tensor<8x16xf8E4M3FN>, %s: tensor<f32>) -> (tensor<8x16xf8E4M3FN>, tensor<16xf32>) {
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x16xf32>) outs(%one : tensor<16xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %n = arith.addf %acc, %in : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  %q, %i = fp8.quantize ins(%x : tensor<8x16xf32>) scale(%s : tensor<f32>)
      outs(%d, %s : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return %q, %sum : tensor<8x16xf8E4M3FN>, tensor<16xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
// A sum that the code of the cast reads comes before it.
// CHECK-LABEL: func @divided_by_its_sum
// CHECK: %[[SUM:.+]] = linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]}
// CHECK: fp8.amax {{.+}}(%{{.+}}, %[[SUM]] :
func.func @divided_by_its_sum(%x: tensor<8x16xf32>, %e: tensor<8x16xf32>, %z: tensor<16xf32>, %s: tensor<f32>) -> (tensor<f32>, tensor<8x16xf32>) {
  %c0 = arith.constant 0.0 : f32
  %zero = linalg.fill ins(%c0 : f32) outs(%z : tensor<16xf32>) -> tensor<16xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x16xf32>) outs(%zero : tensor<16xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %n = arith.addf %acc, %in : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %sum : tensor<8x16xf32>, tensor<16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%in: f32, %total: f32, %out: f32):
    %v = arith.divf %in, %total : f32
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  %amax = fp8.amax ins(%0 : tensor<8x16xf32>) outs(%s : tensor<f32>) -> tensor<f32>
  return %amax, %0 : tensor<f32>, tensor<8x16xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
// An amax needs an input: code that reads nothing, here an identity matrix, stays.
// CHECK-LABEL: func @identity
// CHECK: %[[EYE:.+]] = linalg.generic
// CHECK: fp8.amax ins(%[[EYE]] : tensor<8x8xf32>)
func.func @identity(%e: tensor<8x8xf32>, %s: tensor<f32>) -> (tensor<f32>, tensor<8x8xf32>) {
  %0 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<8x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %same = arith.cmpi eq, %i, %j : index
    %v = arith.uitofp %same : i1 to f32
    linalg.yield %v : f32
  } -> tensor<8x8xf32>
  %amax = fp8.amax ins(%0 : tensor<8x8xf32>) outs(%s : tensor<f32>) -> tensor<f32>
  return %amax, %0 : tensor<f32>, tensor<8x8xf32>
}
