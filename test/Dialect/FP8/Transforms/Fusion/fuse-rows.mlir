// RUN: fp8-opt %s -split-input-file --mlir-print-local-scope --pass-pipeline='builtin.module(func.func(fp8-fuse-rows))' | FileCheck %s -enable-var-scope

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#keep = affine_map<(i, j) -> (i, 0)>
#column = affine_map<(i, j) -> (j)>

// The mean with its dimension kept, the centred tensor, and the column sum of what is cast. The
// reader of the mean stands before the cast and comes after it.
// CHECK-LABEL: func @norm
// CHECK-SAME: %[[X:[^:]+]]: tensor<4x8xf32>, %[[G:[^:]+]]: tensor<8xf32>
// CHECK-NOT: linalg.generic
// CHECK: %[[Q:.+]]:6 = fp8.quantize record_amax ins(%[[X]], %[[G]] : tensor<4x8xf32>, tensor<8xf32>)
// CHECK-SAME: tensor<8xf32>, tensor<4x1xf32>, tensor<4x8xf32>)
// CHECK-SAME: indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], rows = array<i64: 1>
// CHECK: ^bb0(%{{.+}}: index, %[[ROW:.+]]: tensor<8xf32>, %[[GAIN:.+]]: tensor<8xf32>):
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%[[ROW]] : tensor<8xf32>)
// CHECK: %[[TOTAL:.+]] = tensor.extract %[[SUM]][]
// CHECK: %[[MEAN:.+]] = arith.divf %[[TOTAL]], %{{.+}} : f32
// CHECK: %[[CENTRED:.+]] = linalg.generic {{.*}}ins(%[[ROW]] : tensor<8xf32>)
// CHECK: arith.subf %{{.+}}, %[[MEAN]]
// CHECK: %[[OUT:.+]]:2 = linalg.generic {{.*}}ins(%[[CENTRED]], %[[GAIN]] : tensor<8xf32>, tensor<8xf32>)
// CHECK: fp8.yield %[[OUT]]#0, %[[OUT]]#1, %[[MEAN]], %[[CENTRED]] : tensor<8xf32>, tensor<8xf32>, f32, tensor<8xf32>
// CHECK: %[[READER:.+]] = math.absf %[[Q]]#4 : tensor<4x1xf32>
// CHECK: return %[[Q]]#0, %[[Q]]#3, %[[READER]], %[[Q]]#5
func.func @norm(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>, %b: tensor<8xf32>)
    -> (tensor<4x8xf8E4M3FN>, tensor<8xf32>, tensor<4x1xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %size = arith.constant 8.0 : f32
  %e0 = tensor.empty() : tensor<4xf32>
  %e1 = tensor.empty() : tensor<4x1xf32>
  %e2 = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %kept = tensor.expand_shape %sum [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  %mean = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%kept : tensor<4x1xf32>) outs(%e1 : tensor<4x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.divf %in, %size : f32
    linalg.yield %v : f32
  } -> tensor<4x1xf32>
  %reader = math.absf %mean : tensor<4x1xf32>
  %centred = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean : tensor<4x8xf32>, tensor<4x1xf32>) outs(%e2 : tensor<4x8xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %v = arith.subf %in, %m : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %q:4 = fp8.quantize record_amax ins(%centred, %g : tensor<4x8xf32>, tensor<8xf32>) scale(%s : tensor<f32>)
      outs(%d, %s, %s, %b : tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<8xf32>) {indexing_maps = [#id, #column, #column]} producer {
  ^bb0(%c: f32, %w: f32):
    %v = arith.mulf %c, %w : f32
    fp8.yield %v, %v : f32, f32
  } -> tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<8xf32>
  return %q#0, %q#3, %reader, %centred : tensor<4x8xf8E4M3FN>, tensor<8xf32>, tensor<4x1xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A mask by positions: the row's own index is an argument of the region. Rows are dimension 0 here.
// CHECK-LABEL: func @positions
// CHECK-NOT: linalg.generic
// CHECK: fp8.amax ins(%{{.+}} : tensor<8x4xf32>)
// CHECK-SAME: rows = array<i64: 0>
// CHECK: ^bb0(%[[PLACE:.+]]: index, %{{.+}}: tensor<8xf32>):
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]
// CHECK: %[[IN_ROW:.+]] = linalg.index 0 : index
// CHECK: arith.cmpi ule, %[[PLACE]], %[[IN_ROW]]
#t = affine_map<(i, j) -> (j, i)>
#c = affine_map<(i, j) -> (j)>
func.func @positions(%x: tensor<8x4xf32>, %a: tensor<f32>) -> tensor<f32> {
  %lowest = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%lowest : f32) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %top = linalg.generic {indexing_maps = [#t, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %past = arith.cmpi ule, %i, %j : index
    %m = arith.select %past, %in, %lowest : f32
    %v = arith.maximumf %out, %m : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %m = fp8.amax ins(%x, %top : tensor<8x4xf32>, tensor<4xf32>) outs(%a : tensor<f32>) {indexing_maps = [#id, #c]} producer {
  ^bb0(%in: f32, %t: f32):
    %v = arith.subf %in, %t : f32
    fp8.yield %v : f32
  } -> tensor<f32>
  return %m : tensor<f32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// An operation that the cast's scale depends on comes before the cast: it cannot move in.
// CHECK-LABEL: func @around
// CHECK: linalg.generic
// CHECK: fp8.amax
// CHECK: fp8.quantize
// CHECK-NOT: rows
func.func @around(%x: tensor<4x8xf32>, %d: tensor<4x8xf8E4M3FN>, %s: tensor<f32>) -> tensor<4x8xf8E4M3FN> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %scale = fp8.amax ins(%sum : tensor<4xf32>) outs(%s : tensor<f32>) -> tensor<f32>
  %q:2 = fp8.quantize ins(%x, %sum : tensor<4x8xf32>, tensor<4xf32>) scale(%scale : tensor<f32>) outs(%d, %s : tensor<4x8xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [#id, #row]} producer {
  ^bb0(%in: f32, %t: f32):
    %v = arith.subf %in, %t : f32
    fp8.yield %v : f32
  } -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return %q#0 : tensor<4x8xf8E4M3FN>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Two temporaries of 40,000 f32 elements are more than 256 KiB, one is not: the cast has one of its
// own, and the sum needs one element.
// CHECK-LABEL: func @large_row
// CHECK: %[[POWER:.+]] = linalg.generic
// CHECK: %[[TWICE:.+]] = linalg.generic {{.*}}ins(%[[POWER]] :
// CHECK: fp8.quantize ins(%[[TWICE]] :
// CHECK-SAME: rows = array<i64: 1>
func.func @large_row(%x: tensor<4x40000xf32>, %d: tensor<4x40000xf8E4M3FN>, %s: tensor<f32>) -> tensor<4x40000xf8E4M3FN> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x40000xf32>
  %e0 = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x40000xf32>) outs(%e : tensor<4x40000xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4x40000xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<4x40000xf32>) outs(%e : tensor<4x40000xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %in : f32
    linalg.yield %v : f32
  } -> tensor<4x40000xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<4x40000xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %q:2 = fp8.quantize ins(%1, %sum : tensor<4x40000xf32>, tensor<4xf32>) scale(%s : tensor<f32>) outs(%d, %s : tensor<4x40000xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [#id, #row]} producer {
  ^bb0(%in: f32, %t: f32):
    %v = arith.divf %in, %t : f32
    fp8.yield %v : f32
  } -> tensor<4x40000xf8E4M3FN>, tensor<f32>
  return %q#0 : tensor<4x40000xf8E4M3FN>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A statistic of each column is none of a row, nor is the cast of a vector for all rows.
// CHECK-LABEL: func @columns
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK: fp8.quantize
// CHECK-NOT: rows
#column = affine_map<(i, j) -> (j)>
#v = affine_map<(i) -> (i)>
func.func @columns(%x: tensor<4x8xf32>, %y: tensor<4xf32>, %d: tensor<4x8xf8E4M3FN>, %s: tensor<f32>) -> tensor<4x8xf8E4M3FN> {
  %e = tensor.empty() : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%y : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%f : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  %q:2 = fp8.quantize ins(%x, %sum, %0 : tensor<4x8xf32>, tensor<f32>, tensor<4xf32>) scale(%s : tensor<f32>) outs(%d, %s : tensor<4x8xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [#id, affine_map<(i, j) -> ()>, #row]} producer {
  ^bb0(%in: f32, %t: f32, %u: f32):
    %v = arith.subf %in, %t : f32
    %w = arith.mulf %v, %u : f32
    fp8.yield %w : f32
  } -> tensor<4x8xf8E4M3FN>, tensor<f32>
  return %q#0 : tensor<4x8xf8E4M3FN>
}

// -----

// Random bits follow from the number of a row's first element where the elements of a row follow each other.
// CHECK-LABEL: func @random_bits_of_rows
// CHECK: fp8.quantize {{.+}} random(%{{.+}} : tensor<2xi64>) stream(0) {{.+}} rows = array<i64: 1>
func.func @random_bits_of_rows(%x: tensor<8x8xf32>, %r: tensor<2xi64>, %d: tensor<8x8xf8E4M3FN>, %s: tensor<f32>) -> tensor<8x8xf8E4M3FN> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %q:2 = fp8.quantize ins(%x, %sum : tensor<8x8xf32>, tensor<8xf32>) scale(%s : tensor<f32>) random(%r : tensor<2xi64>) stream(0) outs(%d, %s : tensor<8x8xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>]} producer {
  ^bb0(%in: f32, %t: f32):
    %v = arith.divf %in, %t : f32
    fp8.yield %v : f32
  } -> tensor<8x8xf8E4M3FN>, tensor<f32>
  return %q#0 : tensor<8x8xf8E4M3FN>
}

// CHECK-LABEL: func @random_bits_of_columns
// CHECK: fp8.quantize {{.+}} random(%{{.+}} : tensor<2xi64>) stream(0)
// CHECK-NOT: rows
func.func @random_bits_of_columns(%x: tensor<8x8xf32>, %r: tensor<2xi64>, %d: tensor<8x8xf8E4M3FN>, %s: tensor<f32>) -> tensor<8x8xf8E4M3FN> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %q:2 = fp8.quantize ins(%x, %sum : tensor<8x8xf32>, tensor<8xf32>) scale(%s : tensor<f32>) random(%r : tensor<2xi64>) stream(0) outs(%d, %s : tensor<8x8xf8E4M3FN>, tensor<f32>)
      {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>]} producer {
  ^bb0(%in: f32, %t: f32):
    %v = arith.divf %in, %t : f32
    fp8.yield %v : f32
  } -> tensor<8x8xf8E4M3FN>, tensor<f32>
  return %q#0 : tensor<8x8xf8E4M3FN>
}
