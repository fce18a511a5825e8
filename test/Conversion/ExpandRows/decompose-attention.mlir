// fp8-decompose-attention: matmuls and a loop over rows, one block of rows after the other.
// RUN: fp8-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(fp8-decompose-attention{block-elements=128},canonicalize,cse))' -verify-diagnostics | FileCheck %s
// RUN: fp8-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(fp8-decompose-attention{block-elements=100000},canonicalize,cse))' -verify-diagnostics | FileCheck %s --check-prefix=WHOLE
// RUN: fp8-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(fp8-decompose-attention{block-elements=16384},canonicalize,cse))' -verify-diagnostics | FileCheck %s --check-prefix=LONG

#query = affine_map<(b, h, i, j, d, e) -> (b, i, h, d)>
#key = affine_map<(b, h, i, j, d, e) -> (b, j, d)>
#value = affine_map<(b, h, i, j, d, e) -> (b, j, e)>
#bias = affine_map<(b, h, i, j, d, e) -> (h, i, j)>
#output = affine_map<(b, h, i, j, d, e) -> (b, i, h, e)>
#statistic = affine_map<(b, h, i, j, d, e) -> (b, h, i)>

// 20 queries and 8 keys: blocks of 10 rows of a head, a task for each batch and head. Heads read one key and value. The
// products keep their sites.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[Q:.+]]: tensor<2x20x3x16xbf16>, %[[K:.+]]: tensor<2x8x16xbf16>, %[[V:.+]]: tensor<2x8x24xbf16>, %[[BIAS:.+]]: tensor<3x20x8xf32>,
// CHECK: scf.forall (%[[B:.+]], %[[H:.+]]) in (2, 3) shared_outs(
// CHECK: scf.for %[[I:.+]] = %{{.+}} to %c20 step %c10
// CHECK: %[[QS:.+]] = tensor.extract_slice %[[Q]][%[[B]], %[[I]], %[[H]], 0] [1, 10, 1, 16]
// CHECK: %[[KS:.+]] = tensor.extract_slice %[[K]][%[[B]], 0, 0] [1, 8, 16]
// CHECK: %[[S:.+]] = fp8.matmul site("scores") role(other) kinds(input, input) kept("small") ins(%[[QS]], %[[KS]] : {{.+}}) outs(%{{.+}} : tensor<1x1x10x8xbf16>)
// CHECK: %[[ROWS:.+]]:2 = scf.forall (%[[Z:.+]]) in (10) shared_outs(
// CHECK-DAG: %[[ROW:.+]] = tensor.extract_slice %[[S]][0, 0, %[[Z]], 0] [1, 1, 1, 8] {{.+}} to tensor<8xbf16>
// CHECK-DAG: tensor.extract_slice %[[BIAS]][{{.+}}] [1, 1, 8] [1, 1, 1] : tensor<3x20x8xf32> to tensor<8xf32>
// CHECK: tensor.parallel_insert_slice
// CHECK: } {fp8.row_elements = 8 : i64}
// CHECK: fp8.matmul site("output") role(other) kinds(input, input) kept("small") ins(%[[ROWS]]#0, %{{.+}} : tensor<1x1x10x8xbf16>, tensor<1x8x24xbf16>) outs(%{{.+}} : tensor<1x10x1x24xbf16>)
// CHECK: scf.forall.in_parallel
// CHECK: tensor.parallel_insert_slice %{{.+}} into %{{.+}}[%[[B]], 0, %[[H]], 0] [1, 20, 1, 24]
// CHECK: tensor.parallel_insert_slice %{{.+}} into %{{.+}}[%[[B]], %[[H]], 0] [1, 1, 20]
// CHECK: } {fp8.computes = "attention", fp8.tasks}
// CHECK-NOT: fp8.attention

// WHOLE-LABEL: func.func @forward
// WHOLE-NOT: scf.for %
// WHOLE: fp8.matmul {{.+}} outs(%{{.+}} : tensor<2x3x20x8xbf16>)
// WHOLE: scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) in (2, 3, 20)
// WHOLE: fp8.matmul {{.+}} outs(%{{.+}} : tensor<2x20x3x24xbf16>)
func.func @forward(%q: tensor<2x20x3x16xbf16>, %k: tensor<2x8x16xbf16>, %v: tensor<2x8x24xbf16>,
                   %bias: tensor<3x20x8xf32>, %o: tensor<2x20x3x24xbf16>, %stat: tensor<2x3x20xf32>)
    -> (tensor<2x20x3x24xbf16>, tensor<2x3x20xf32>) {
  %0:2 = fp8.attention ins(%q, %k, %v : tensor<2x20x3x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x24xbf16>)
      row_ins(%bias : tensor<3x20x8xf32>) outs(%o, %stat : tensor<2x20x3x24xbf16>, tensor<2x3x20xf32>)
      {indexing_maps = [#query, #key, #value, #bias, #output, #statistic],
       sites = [#fp8.matmul_site<site = "scores", kept = "small">, #fp8.matmul_site<site = "output", kept = "small">]} rows {
    ^bb0(%b: index, %h: index, %i: index, %s: tensor<8xbf16>, %row: tensor<8xf32>):
      %c0 = arith.constant 0 : index
      %first = tensor.extract %row[%c0] : tensor<8xf32>
      fp8.yield %s, %first : tensor<8xbf16>, f32
  } -> tensor<2x20x3x24xbf16>, tensor<2x3x20xf32>
  return %0#0, %0#1 : tensor<2x20x3x24xbf16>, tensor<2x3x20xf32>
}

// -----

#query = affine_map<(b, h, i, j, d, e) -> (b, i, h, d)>
#key = affine_map<(b, h, i, j, d, e) -> (b, j, d)>
#value = affine_map<(b, h, i, j, d, e) -> (b, j, e)>
#output = affine_map<(b, h, i, j, d, e) -> (b, i, h, e)>

// Key and value of all heads: their gradients are sums over blocks, in f32, that each block resumes; the gradient of
// the query is complete in each block. 25 queries: blocks of 13 and 12. Heads add to one gradient: a batch is a task.
// CHECK-LABEL: func.func @backward
// CHECK-DAG: %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: linalg.fill ins(%[[ZERO]] : f32) outs(%{{.+}} : tensor<2x8x16xf32>)
// CHECK-DAG: linalg.fill ins(%[[ZERO]] : f32) outs(%{{.+}} : tensor<2x8x24xf32>)
// CHECK: scf.forall (%{{.+}}) in (2)
// CHECK: scf.for %{{.+}} = %c0 to %c3
// CHECK-NOT: scf.for %
// CHECK: fp8.matmul ins({{.+}}) outs(%{{.+}} : tensor<1x1x13x8xbf16>)
// CHECK: fp8.matmul ins({{.+}}) outs(%{{.+}} : tensor<1x1x13x8xf32>)
// CHECK: scf.forall (%{{.+}}) in (13)
// CHECK: fp8.matmul resume ins({{.+}}) outs(%{{.+}} : tensor<1x8x24xf32>)
// CHECK: fp8.matmul ins({{.+}}) outs(%{{.+}} : tensor<1x13x1x16xbf16>)
// CHECK: fp8.matmul resume ins({{.+}}) outs(%{{.+}} : tensor<1x8x16xf32>)
// CHECK: scf.forall (%{{.+}}) in (12)
// CHECK: fp8.matmul resume
// CHECK: fp8.matmul ins
// CHECK: fp8.matmul resume
// CHECK: scf.yield
// CHECK: scf.forall.in_parallel
// CHECK: } {fp8.computes = "attention_grad", fp8.tasks}
// CHECK: linalg.generic {{.+}} ins(%{{.+}} : tensor<2x8x16xf32>) outs(%{{.+}} : tensor<2x8x16xbf16>)
// CHECK-NOT: fp8.attention_grad

// WHOLE-LABEL: func.func @backward
// WHOLE-NOT: resume
func.func @backward(%q: tensor<2x25x3x16xbf16>, %k: tensor<2x8x16xbf16>, %v: tensor<2x8x24xbf16>,
                    %do: tensor<2x25x3x24xbf16>, %dv: tensor<2x8x24xf32>)
    -> (tensor<2x25x3x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x24xf32>) {
  %0:3 = fp8.attention_grad
      ins(%q, %k, %v, %do : tensor<2x25x3x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x24xbf16>, tensor<2x25x3x24xbf16>)
      outs(%q, %k, %dv : tensor<2x25x3x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x24xf32>)
      {indexing_maps = [#query, #key, #value, #output, #query, #key, #value]} rows {
    ^bb0(%b: index, %h: index, %i: index, %s: tensor<8xbf16>, %g: tensor<8xf32>):
      fp8.yield %s, %g : tensor<8xbf16>, tensor<8xf32>
  } -> tensor<2x25x3x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x24xf32>
  return %0#0, %0#1, %0#2 : tensor<2x25x3x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x24xf32>
}

// -----

// A row sees the keys up to its own: a block of 64 rows those of its last one, if no operand has a NaN, an infinity or a
// number so large that scores could be beyond 2^24. Memory is that of all keys.
// LONG-LABEL: func.func @causal
// LONG-SAME: %[[Q:.+]]: tensor<256x16xf32>, %[[K:.+]]: tensor<256x16xf32>, %[[V:[a-z0-9]+]]: tensor<256x24xf32>,
// LONG: fp8.amax ins(%[[Q]] : tensor<256x16xf32>)
// LONG: arith.cmpf uno
// LONG: fp8.amax ins(%[[K]] : tensor<256x16xf32>)
// LONG: fp8.amax ins(%[[V]] : tensor<256x24xf32>)
// LONG: arith.cmpf ole, %{{.+}}, %cst
// LONG: arith.cmpf ole
// LONG: %[[VALID:.+]] = arith.andi
// LONG: scf.for %[[I:.+]] = %c0 to %c256 step %c64
// LONG: %[[LAST:.+]] = affine.min #{{.+}}(%[[I]])
// LONG: %[[END:.+]] = arith.select %[[VALID]], %[[LAST]], %c256
// LONG: tensor.extract_slice %[[K]][0, 0] [%[[END]], 16]
// LONG: %[[S:.+]] = fp8.matmul {{.+}} outs(%{{.+}} : tensor<64x?xf32>)
// LONG: scf.forall (%[[Z:.+]]) in (64)
// LONG: tensor.extract_slice %[[S]][%[[Z]], 0] [1, %[[END]]] [1, 1] : tensor<64x?xf32> to tensor<?xf32>
// LONG: linalg.exp ins(%{{.+}} : tensor<?xf32>) outs(%{{.+}} : tensor<?xf32>)
// LONG: fp8.matmul ins(%{{.+}}, %{{.+}} : tensor<64x?xf32>, tensor<?x24xf32>) outs(%{{.+}} : tensor<64x24xf32>)
#q = affine_map<(i, j, d, e) -> (i, d)>
#k = affine_map<(i, j, d, e) -> (j, d)>
#v = affine_map<(i, j, d, e) -> (j, e)>
#o = affine_map<(i, j, d, e) -> (i, e)>
func.func @causal(%q: tensor<256x16xf32>, %k: tensor<256x16xf32>, %v: tensor<256x24xf32>, %o: tensor<256x24xf32>) -> tensor<256x24xf32> {
  %0 = fp8.attention ins(%q, %k, %v : tensor<256x16xf32>, tensor<256x16xf32>, tensor<256x24xf32>) outs(%o : tensor<256x24xf32>)
      {indexing_maps = [#q, #k, #v, #o], visible_keys = affine_map<(i, j, d, e) -> (0, i + 1)>} rows {
    ^bb0(%i: index, %s: tensor<256xf32>):
      %init = tensor.empty() : tensor<256xf32>
      %p = linalg.exp ins(%s : tensor<256xf32>) outs(%init : tensor<256xf32>) -> tensor<256xf32>
      fp8.yield %p : tensor<256xf32>
  } -> tensor<256x24xf32>
  return %0 : tensor<256x24xf32>
}

// -----

// In a window rows begin with a whole group of 64 keys, and the index of a key is counted from there.
// LONG-LABEL: func.func @window
// LONG: %[[VALID:.+]] = arith.andi
// LONG: scf.for %[[I:[^ ]+]] =
// LONG: %[[FROM:.+]] = affine.max #{{.+}}(%[[I]])
// LONG: %[[COUNT:.+]] = affine.min #{{.+}}(%[[FROM]], %[[I]])
// LONG: %[[SIZE:.+]] = arith.select %[[VALID]], %[[COUNT]], %{{.+}} : index
// LONG: %[[FIRST:.+]] = arith.select %[[VALID]], %[[FROM]], %{{.+}} : index
// LONG: tensor.extract_slice %{{.+}}[%[[FIRST]], 0] [%[[SIZE]], 16] [1, 1] : tensor<512x16xf32> to tensor<?x16xf32>
// LONG: scf.forall
// LONG: tensor.extract_slice %{{.+}}[%[[FIRST]]] [%[[SIZE]]] [1] : tensor<512xf32> to tensor<?xf32>
// LONG: %[[J:.+]] = linalg.index 0
// LONG: %[[KEY:.+]] = arith.addi %[[J]], %[[FIRST]] : index
// LONG: arith.cmpi ugt, %[[KEY]]
// LONG: tensor.extract_slice %{{.+}}[%[[FIRST]], 0] [%[[SIZE]], 24] [1, 1] : tensor<512x24xf32> to tensor<?x24xf32>
#q = affine_map<(i, j, d, e) -> (i, d)>
#k = affine_map<(i, j, d, e) -> (j, d)>
#v = affine_map<(i, j, d, e) -> (j, e)>
#o = affine_map<(i, j, d, e) -> (i, e)>
func.func @window(%q: tensor<512x16xf32>, %k: tensor<512x16xf32>, %v: tensor<512x24xf32>, %b: tensor<512xf32>, %o: tensor<512x24xf32>) -> tensor<512x24xf32> {
  %0 = fp8.attention ins(%q, %k, %v : tensor<512x16xf32>, tensor<512x16xf32>, tensor<512x24xf32>) row_ins(%b : tensor<512xf32>) outs(%o : tensor<512x24xf32>)
      {indexing_maps = [#q, #k, #v, affine_map<(i, j, d, e) -> (j)>, #o], visible_keys = affine_map<(i, j, d, e) -> (i - 99, i + 1)>} rows {
    ^bb0(%i: index, %s: tensor<512xf32>, %factors: tensor<512xf32>):
      %zero = arith.constant 0.0 : f32
      %init = tensor.empty() : tensor<512xf32>
      %p = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]}
          ins(%s, %factors : tensor<512xf32>, tensor<512xf32>) outs(%init : tensor<512xf32>) {
        ^bb0(%x: f32, %f: f32, %out: f32):
          %j = linalg.index 0 : index
          %later = arith.cmpi ugt, %j, %i : index
          %y = arith.mulf %x, %f : f32
          %z = arith.select %later, %zero, %y : f32
          linalg.yield %z : f32
      } -> tensor<512xf32>
      fp8.yield %p : tensor<512xf32>
  } -> tensor<512x24xf32>
  return %0 : tensor<512x24xf32>
}

// -----

// Whole rows from outside of the code, as CSE leaves them, are cut like its own. `visible_if` joins what is measured.
// LONG-LABEL: func.func @outside
// LONG-SAME: %[[Q:[^ ]+]]: tensor<256x16xf32>, %[[K:[^ ]+]]: tensor<256x16xf32>, %{{[^ ]+}}: tensor<256x24xf32>, %{{[^ ]+}}: tensor<256x24xf32>, %[[HOLDS:[^ ]+]]: tensor<i1>
// LONG: %[[MEMORY:.+]] = tensor.empty() : tensor<256xf32>
// LONG: %[[FACTORS:.+]] = linalg.fill {{.+}} -> tensor<256xf32>
// LONG: %[[MEASURED:.+]] = arith.andi
// LONG: %[[GIVEN:.+]] = tensor.extract %[[HOLDS]][]
// LONG: arith.andi %[[MEASURED]], %[[GIVEN]]
// LONG: scf.forall
// LONG: %[[CUT:.+]] = tensor.extract_slice %[[MEMORY]][0] [%{{.+}}] [1] : tensor<256xf32> to tensor<?xf32>
// LONG: %[[E:.+]] = linalg.exp ins(%{{.+}} : tensor<?xf32>) outs(%[[CUT]] : tensor<?xf32>)
// LONG: %[[SEEN:.+]] = tensor.extract_slice %[[FACTORS]][0] [%{{.+}}] [1] : tensor<256xf32> to tensor<?xf32>
// LONG: linalg.mul ins(%[[E]], %[[SEEN]] : tensor<?xf32>, tensor<?xf32>)
#q = affine_map<(i, j, d, e) -> (i, d)>
#k = affine_map<(i, j, d, e) -> (j, d)>
#v = affine_map<(i, j, d, e) -> (j, e)>
#o = affine_map<(i, j, d, e) -> (i, e)>
func.func @outside(%q: tensor<256x16xf32>, %k: tensor<256x16xf32>, %v: tensor<256x24xf32>, %o: tensor<256x24xf32>, %holds: tensor<i1>) -> tensor<256x24xf32> {
  %two = arith.constant 2.0 : f32
  %memory = tensor.empty() : tensor<256xf32>
  %factors = linalg.fill ins(%two : f32) outs(%memory : tensor<256xf32>) -> tensor<256xf32>
  %0 = fp8.attention ins(%q, %k, %v : tensor<256x16xf32>, tensor<256x16xf32>, tensor<256x24xf32>) row_ins(%holds : tensor<i1>) outs(%o : tensor<256x24xf32>)
      {indexing_maps = [#q, #k, #v, affine_map<(i, j, d, e) -> ()>, #o], visible_keys = affine_map<(i, j, d, e) -> (0, i + 1)>, visible_if = 0 : i64} rows {
    ^bb0(%i: index, %s: tensor<256xf32>, %ignored: i1):
      %e = linalg.exp ins(%s : tensor<256xf32>) outs(%memory : tensor<256xf32>) -> tensor<256xf32>
      %init = tensor.empty() : tensor<256xf32>
      %p = linalg.mul ins(%e, %factors : tensor<256xf32>, tensor<256xf32>) outs(%init : tensor<256xf32>) -> tensor<256xf32>
      fp8.yield %p : tensor<256xf32>
  } -> tensor<256x24xf32>
  return %0 : tensor<256x24xf32>
}

// -----

// Nothing is left out where rows see all keys or none, or where the code has tensors that are no rows.
// LONG-LABEL: func.func @not_cut
// LONG-NOT: fp8.amax
// LONG-NOT: arith.select
// LONG: return
#q = affine_map<(i, j, d, e) -> (i, d)>
#k = affine_map<(i, j, d, e) -> (j, d)>
#v = affine_map<(i, j, d, e) -> (j, e)>
#o = affine_map<(i, j, d, e) -> (i, e)>
func.func @not_cut(%q: tensor<256x16xf32>, %k: tensor<256x16xf32>, %o: tensor<256x16xf32>)
    -> (tensor<256x16xf32>, tensor<256x16xf32>, tensor<256x16xf32>) {
  %0 = fp8.attention ins(%q, %k, %k : tensor<256x16xf32>, tensor<256x16xf32>, tensor<256x16xf32>) outs(%o : tensor<256x16xf32>)
      {indexing_maps = [#q, #k, #v, #o], visible_keys = affine_map<(i, j, d, e) -> (0, i - 100)>} rows {
    ^bb0(%i: index, %s: tensor<256xf32>):
      fp8.yield %s : tensor<256xf32>
  } -> tensor<256x16xf32>
  %1 = fp8.attention ins(%q, %k, %k : tensor<256x16xf32>, tensor<256x16xf32>, tensor<256x16xf32>) outs(%o : tensor<256x16xf32>)
      {indexing_maps = [#q, #k, #v, #o], visible_keys = affine_map<(i, j, d, e) -> (0, i + 9223372036854775807)>} rows {
    ^bb0(%i: index, %s: tensor<256xf32>):
      fp8.yield %s : tensor<256xf32>
  } -> tensor<256x16xf32>
  %2 = fp8.attention ins(%q, %k, %k : tensor<256x16xf32>, tensor<256x16xf32>, tensor<256x16xf32>) outs(%o : tensor<256x16xf32>)
      {indexing_maps = [#q, #k, #v, #o], visible_keys = affine_map<(i, j, d, e) -> (0, i + 1)>} rows {
    ^bb0(%i: index, %s: tensor<256xf32>):
      %two = arith.constant 2.0 : f32
      %c0 = arith.constant 0 : index
      %few = tensor.empty() : tensor<4xf32>
      %filled = linalg.fill ins(%two : f32) outs(%few : tensor<4xf32>) -> tensor<4xf32>
      %factor = tensor.extract %filled[%c0] : tensor<4xf32>
      %row = tensor.empty() : tensor<256xf32>
      %p = linalg.fill ins(%factor : f32) outs(%row : tensor<256xf32>) -> tensor<256xf32>
      fp8.yield %p : tensor<256xf32>
  } -> tensor<256x16xf32>
  return %0, %1, %2 : tensor<256x16xf32>, tensor<256x16xf32>, tensor<256x16xf32>
}

// -----

// f64 sums cannot be resumed: the rows are one block.
// CHECK-LABEL: func.func @wide
// CHECK-NOT: scf.for %
// CHECK-NOT: resume
// CHECK: return
#q = affine_map<(i, j, d, e) -> (i, d)>
#k = affine_map<(i, j, d, e) -> (j, d)>
#v = affine_map<(i, j, d, e) -> (j, e)>
#o = affine_map<(i, j, d, e) -> (i, e)>
func.func @wide(%q: tensor<64x16xf64>, %k: tensor<8x16xf64>) -> tensor<8x16xf64> {
  %0:3 = fp8.attention_grad
      ins(%q, %k, %k, %q : tensor<64x16xf64>, tensor<8x16xf64>, tensor<8x16xf64>, tensor<64x16xf64>)
      outs(%q, %k, %k : tensor<64x16xf64>, tensor<8x16xf64>, tensor<8x16xf64>)
      {indexing_maps = [#q, #k, #v, #o, #q, #k, #v]} rows {
    ^bb0(%i: index, %s: tensor<8xf64>, %g: tensor<8xf64>):
      fp8.yield %s, %g : tensor<8xf64>, tensor<8xf64>
  } -> tensor<64x16xf64>, tensor<8x16xf64>, tensor<8x16xf64>
  return %0#1 : tensor<8x16xf64>
}

// -----

// Keys come before the batch, and the gradient of a query that all batches read is summed over both: blocks of
// batches would change the order of the sum.
// CHECK-LABEL: func.func @order
// CHECK-NOT: scf.for %
// CHECK-NOT: resume
// CHECK: return
#q = affine_map<(j, b, i, d, e) -> (i, d)>
#k = affine_map<(j, b, i, d, e) -> (b, j, d)>
#v = affine_map<(j, b, i, d, e) -> (b, j, e)>
#o = affine_map<(j, b, i, d, e) -> (b, i, e)>
func.func @order(%q: tensor<32x16xf32>, %k: tensor<4x8x16xf32>, %do: tensor<4x32x16xf32>) -> tensor<32x16xf32> {
  %0:3 = fp8.attention_grad
      ins(%q, %k, %k, %do : tensor<32x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x32x16xf32>)
      outs(%q, %k, %k : tensor<32x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>)
      {indexing_maps = [#q, #k, #v, #o, #q, #k, #v]} rows {
    ^bb0(%b: index, %i: index, %s: tensor<8xf32>, %g: tensor<8xf32>):
      fp8.yield %s, %g : tensor<8xf32>, tensor<8xf32>
  } -> tensor<32x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>
  return %0#0 : tensor<32x16xf32>
}

// -----

// A number of queries that is not known: the last block has those that are left.
// CHECK-LABEL: func.func @dynamic_queries
// CHECK: %[[SIZE:.+]] = tensor.dim
// CHECK: scf.for %{{.+}} = %{{.+}} to %[[SIZE]] step %c16
// CHECK: affine.min
// CHECK: fp8.matmul {{.+}} outs(%{{.+}} : tensor<?x8xf32>)
#q = affine_map<(i, j, d, e) -> (i, d)>
#k = affine_map<(i, j, d, e) -> (j, d)>
#v = affine_map<(i, j, d, e) -> (j, e)>
#o = affine_map<(i, j, d, e) -> (i, e)>
func.func @dynamic_queries(%q: tensor<?x16xf32>, %k: tensor<8x16xf32>, %o: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %0 = fp8.attention ins(%q, %k, %k : tensor<?x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) outs(%o : tensor<?x16xf32>)
      {indexing_maps = [#q, #k, #v, #o]} rows {
    ^bb0(%i: index, %s: tensor<8xf32>):
      fp8.yield %s : tensor<8xf32>
  } -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// -----

// Rows of unknown size, and rows whose temporaries are too large for a loop: operations on all rows of a block. A
// scalar of the row is a tensor of the block's rows, and the index of a row that of a loop, from the block's first row on.
// CHECK-LABEL: func.func @dynamic_keys
// CHECK-SAME: %[[Q:.+]]: tensor<40x16xf32>, %[[K:.+]]: tensor<?x16xf32>, %[[BIAS:.+]]: tensor<?x40xf32>, %[[SINK:.+]]: tensor<40xf32>,
// CHECK: scf.for %[[I:.+]] = %c0 to %c40 step %c1 iter_args
// CHECK: %[[S:.+]] = fp8.matmul {{.+}} outs(%{{.+}} : tensor<1x?xf32>)
// CHECK-DAG: %[[B:.+]] = tensor.extract_slice %[[BIAS]][0, %[[I]]] [%{{.+}}, 1]
// CHECK-DAG: %[[SINKS:.+]] = tensor.extract_slice %[[SINK]][%[[I]]] [1]
// CHECK: linalg.generic {indexing_maps = [#[[ROW:.+]], #[[BIAS:.+]], #[[ROW]]], iterator_types = ["parallel", "parallel"]} ins(%[[S]], %[[B]] :
// CHECK: %[[TOP:.+]] = linalg.generic {{.+}}, iterator_types = ["parallel", "reduction"]} ins(%{{.+}} : tensor<1x?xf32>) outs(%{{.+}} : tensor<1xf32>)
// CHECK: arith.maximumf
// CHECK: %[[WITH:.+]] = linalg.generic {{.+}}, iterator_types = ["parallel"]} ins(%[[TOP]], %[[SINKS]] : tensor<1xf32>, tensor<1xf32>)
// CHECK: %[[P:.+]] = linalg.generic {{.+}}, iterator_types = ["parallel", "parallel"]} ins(%{{.+}}, %[[WITH]] : tensor<1x?xf32>, tensor<1xf32>)
// CHECK: fp8.matmul ins(%[[P]],
// CHECK-NOT: scf.forall
// CHECK-NOT: fp8.attention

// LONG-LABEL: func.func @dynamic_keys
// LONG: scf.for %[[I:.+]] = %c0 to %c40 step %c8 iter_args
// LONG: linalg.generic
// LONG: %[[FIRST:.+]] = linalg.index 0
// LONG: %[[QUERY:.+]] = arith.addi %[[I]], %[[FIRST]]
// LONG: %[[KEY:.+]] = linalg.index 1
// LONG: arith.cmpi ugt, %[[KEY]], %[[QUERY]]
#q = affine_map<(i, j, d, e) -> (i, d)>
#k = affine_map<(i, j, d, e) -> (j, d)>
#v = affine_map<(i, j, d, e) -> (j, e)>
#b = affine_map<(i, j, d, e) -> (j, i)>
#s = affine_map<(i, j, d, e) -> (i)>
#o = affine_map<(i, j, d, e) -> (i, e)>
#row = affine_map<(j) -> (j)>
func.func @dynamic_keys(%q: tensor<40x16xf32>, %k: tensor<?x16xf32>, %bias: tensor<?x40xf32>, %sink: tensor<40xf32>,
                        %o: tensor<40x16xf32>) -> (tensor<40x16xf32>, tensor<40xf32>) {
  %0:2 = fp8.attention ins(%q, %k, %k : tensor<40x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
      row_ins(%bias, %sink : tensor<?x40xf32>, tensor<40xf32>) outs(%o, %sink : tensor<40x16xf32>, tensor<40xf32>)
      {indexing_maps = [#q, #k, #v, #b, #s, #o, #s]} rows {
    ^bb0(%i: index, %s: tensor<?xf32>, %b: tensor<?xf32>, %extra: f32):
      %lowest = arith.constant 0xFF800000 : f32
      %c0 = arith.constant 0 : index
      %size = tensor.dim %s, %c0 : tensor<?xf32>
      %init = tensor.empty(%size) : tensor<?xf32>
      %masked = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel"]}
          ins(%s, %b : tensor<?xf32>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
        ^bb0(%x: f32, %y: f32, %out: f32):
          %j = linalg.index 0 : index
          %later = arith.cmpi ugt, %j, %i : index
          %sum = arith.addf %x, %y : f32
          %m = arith.select %later, %lowest, %sum : f32
          linalg.yield %m : f32
      } -> tensor<?xf32>
      %scalar = tensor.empty() : tensor<f32>
      %below = linalg.fill ins(%lowest : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
      %largest = linalg.reduce {arith.maximumf} ins(%masked : tensor<?xf32>) outs(%below : tensor<f32>) dimensions = [0]
      %top = tensor.extract %largest[] : tensor<f32>
      %with = arith.maximumf %top, %extra : f32
      %p = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
          ins(%masked : tensor<?xf32>) outs(%init : tensor<?xf32>) {
        ^bb0(%x: f32, %out: f32):
          %y = arith.subf %x, %with : f32
          linalg.yield %y : f32
      } -> tensor<?xf32>
      fp8.yield %p, %with : tensor<?xf32>, f32
  } -> tensor<40x16xf32>, tensor<40xf32>
  return %0#0, %0#1 : tensor<40x16xf32>, tensor<40xf32>
}

// -----

// The gradient of a bias that all batches share, which is that of the scores: each block adds its rows, which are
// in memory once.
#row = affine_map<(j) -> (j)>
// CHECK-LABEL: func @bias_gradient
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[SUM:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<4x8xf32>)
// CHECK: scf.for {{.*}}, %[[CARRIED:[a-z0-9]*]] = %[[SUM]])
// CHECK: %[[ROWS:.*]]:2 = scf.forall
// CHECK: %[[ADDED:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]} ins(%[[ROWS]]#1 : tensor<{{.*}}x8xf32>) outs(%[[CARRIED]] : tensor<4x8xf32>)
// CHECK: arith.addf
// CHECK: scf.yield {{.*}}, %[[ADDED]] :
func.func @bias_gradient(%q: tensor<6x4x16xf32>, %k: tensor<6x8x16xf32>, %o: tensor<6x4x16xf32>, %g: tensor<6x8x16xf32>, %bias: tensor<4x8xf32>)
    -> (tensor<6x4x16xf32>, tensor<6x8x16xf32>, tensor<6x8x16xf32>, tensor<4x8xf32>) {
  %0:4 = fp8.attention_grad ins(%q, %k, %k, %q : tensor<6x4x16xf32>, tensor<6x8x16xf32>, tensor<6x8x16xf32>, tensor<6x4x16xf32>)
      outs(%o, %g, %g, %bias : tensor<6x4x16xf32>, tensor<6x8x16xf32>, tensor<6x8x16xf32>, tensor<4x8xf32>)
      {indexing_maps = [affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>, affine_map<(b, i, j, d, e) -> (b, j, e)>,
                        affine_map<(b, i, j, d, e) -> (b, i, e)>, affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>,
                        affine_map<(b, i, j, d, e) -> (b, j, e)>, affine_map<(b, i, j, d, e) -> (i, j)>]} rows {
    ^bb0(%b: index, %i: index, %s: tensor<8xf32>, %p: tensor<8xf32>):
      %init = tensor.empty() : tensor<8xf32>
      %d = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel"]}
          ins(%s, %p : tensor<8xf32>, tensor<8xf32>) outs(%init : tensor<8xf32>) {
        ^bb0(%x: f32, %y: f32, %out: f32):
          %z = arith.mulf %x, %y : f32
          linalg.yield %z : f32
      } -> tensor<8xf32>
      fp8.yield %s, %d, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  } -> tensor<6x4x16xf32>, tensor<6x8x16xf32>, tensor<6x8x16xf32>, tensor<4x8xf32>
  return %0#0, %0#1, %0#2, %0#3 : tensor<6x4x16xf32>, tensor<6x8x16xf32>, tensor<6x8x16xf32>, tensor<4x8xf32>
}

// -----

#q = affine_map<(i, j, d, e) -> (i, d)>
#k = affine_map<(i, j, d, e) -> (j, d)>
#v = affine_map<(i, j, d, e) -> (j, e)>
#o = affine_map<(i, j, d, e) -> (i, e)>
func.func @no_code(%q: tensor<4x16xf32>, %k: tensor<?x16xf32>, %o: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = fp8.attention ins(%q, %k, %k : tensor<4x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) outs(%o : tensor<4x16xf32>)
      {indexing_maps = [#q, #k, #v, #o]} rows {
    ^bb0(%i: index, %s: tensor<?xf32>):
      // expected-error@+1 {{in code of a row has no code for rows of this size: linalg operations, matmuls, scalars, and reads of elements at constant indices have}}
      %r = tensor.cast %s : tensor<?xf32> to tensor<?xf32>
      fp8.yield %r : tensor<?xf32>
  } -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
