// RUN: fp8-opt %s -split-input-file --mlir-print-local-scope --pass-pipeline='builtin.module(func.func(fp8-expand-rows,canonicalize,cse))' | FileCheck %s -enable-var-scope

#id = affine_map<(i, j, k) -> (i, j, k)>
#stat = affine_map<(i, j, k) -> (j, i)>

// A cast in two layouts with its amax, a statistic stored at permuted dimensions, an input with one
// scalar per row, and the row's place.
// CHECK-LABEL: func @cast
// CHECK-SAME: %[[X:[^:]+]]: tensor<4x6x32xf32>, %[[V:[^:]+]]: tensor<6x4xf32>, %[[S:[^:]+]]: tensor<f32>
// CHECK: %[[AMAXES:.+]] = tensor.empty() : tensor<4x6xf32>
// CHECK: %[[ALL:.+]]:4 = scf.forall (%[[I:.+]], %[[J:.+]]) in (4, 6) shared_outs(%[[D:.+]] = %{{.+}}, %[[T:.+]] = %{{.+}}, %[[M:.+]] = %{{.+}}, %[[A:.+]] = %[[AMAXES]])
// CHECK-DAG: %[[ROW:.+]] = tensor.extract_slice %[[X]][%[[I]], %[[J]], 0] [1, 1, 32] [1, 1, 1] : tensor<4x6x32xf32> to tensor<32xf32>
// CHECK-DAG: %[[SCALAR:.+]] = tensor.extract %[[V]][%[[J]], %[[I]]]
// CHECK-DAG: arith.index_cast %[[J]]
// CHECK: %[[PART:.+]] = tensor.extract_slice %[[D]][%[[I]], %[[J]], 0] [1, 1, 32] [1, 1, 1]
// CHECK: %[[PART_T:.+]] = tensor.extract_slice %[[T]][0, %[[I]], %[[J]]] [32, 1, 1] [1, 1, 1] : tensor<32x4x6xf8E4M3FN> to tensor<32xf8E4M3FN>
// CHECK: %[[STAT:.+]] = tensor.insert %{{.+}} into %{{.+}}[] : tensor<f32>
// CHECK: %[[OWN:.+]] = tensor.extract_slice %[[A]][%[[I]], %[[J]]] [1, 1] [1, 1] : tensor<4x6xf32> to tensor<f32>
// CHECK: %[[Q:.+]]:4 = fp8.quantize record_amax column(3) ins(%{{.+}} : tensor<32xf32>) scale(%[[S]] : tensor<f32>) outs(%[[PART]], %[[PART_T]], %{{.+}}, %[[OWN]] :
// CHECK-SAME: transposition = array<i64: 0>
// CHECK: scf.forall.in_parallel
// CHECK: parallel_insert_slice %[[Q]]#0 into %[[D]][%[[I]], %[[J]], 0]
// CHECK: parallel_insert_slice %[[Q]]#1 into %[[T]][0, %[[I]], %[[J]]]
// CHECK: parallel_insert_slice %[[STAT]] into %[[M]][%[[J]], %[[I]]]
// CHECK: parallel_insert_slice %[[Q]]#3 into %[[A]][%[[I]], %[[J]]]
// CHECK: {fp8.row_elements = 32 : i64}
// CHECK: fp8.amax ins(%[[ALL]]#3 : tensor<4x6xf32>)
// CHECK: %[[SCALE:.+]] = tensor.extract %[[S]][]
// CHECK: arith.divf %{{.+}}, %[[SCALE]]
func.func @cast(%x: tensor<4x6x32xf32>, %v: tensor<6x4xf32>, %s: tensor<f32>, %d: tensor<4x6x32xf8E4M3FN>, %t: tensor<32x4x6xf8E4M3FN>,
                %i: tensor<f32>, %a: tensor<f32>, %m: tensor<6x4xf32>)
    -> (tensor<4x6x32xf8E4M3FN>, tensor<32x4x6xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<6x4xf32>) {
  %q:5 = fp8.quantize record_amax column(3) ins(%x, %v : tensor<4x6x32xf32>, tensor<6x4xf32>) scale(%s : tensor<f32>)
      outs(%d, %t, %i, %a, %m : tensor<4x6x32xf8E4M3FN>, tensor<32x4x6xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<6x4xf32>)
      {indexing_maps = [#id, #stat, #stat], rows = array<i64: 2>, transposition = array<i64: 2, 0, 1>} producer {
  ^bb0(%p: index, %r: index, %row: tensor<32xf32>, %w: f32):
    %place = arith.index_cast %r : index to i32
    %float = arith.sitofp %place : i32 to f32
    %sum = arith.addf %float, %w : f32
    %e = tensor.empty() : tensor<32xf32>
    %n = linalg.exp ins(%row : tensor<32xf32>) outs(%e : tensor<32xf32>) -> tensor<32xf32>
    fp8.yield %n, %sum : tensor<32xf32>, f32
  } -> tensor<4x6x32xf8E4M3FN>, tensor<32x4x6xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<6x4xf32>
  return %q#0, %q#1, %q#2, %q#3, %q#4 : tensor<4x6x32xf8E4M3FN>, tensor<32x4x6xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<6x4xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// The amax of a tensor that is stored on the way, of as many rows as there are.
// CHECK-LABEL: func @measure
// CHECK-SAME: %[[X:[^:]+]]: tensor<?x16xf32>, %[[OUT:[^:]+]]: tensor<f32>, %[[N:[^:]+]]: tensor<?x16xbf16>
// CHECK: %[[COUNT:.+]] = tensor.dim %[[X]], %{{.+}}
// CHECK: tensor.empty(%[[COUNT]]) : tensor<?xf32>
// CHECK: %[[ALL:.+]]:2 = scf.forall (%[[I:.+]]) in (%[[COUNT]])
// CHECK: %[[ROW:.+]] = linalg.generic
// CHECK: fp8.amax ins(%[[ROW]] : tensor<16xbf16>) outs(%{{.+}} : tensor<f32>) -> tensor<f32>
// CHECK: parallel_insert_slice %[[ROW]] into
// CHECK: fp8.amax ins(%[[ALL]]#1 : tensor<?xf32>) outs(%[[OUT]] : tensor<f32>)
func.func @measure(%x: tensor<?x16xf32>, %a: tensor<f32>, %n: tensor<?x16xbf16>) -> (tensor<f32>, tensor<?x16xbf16>) {
  %m:2 = fp8.amax ins(%x : tensor<?x16xf32>) outs(%a, %n : tensor<f32>, tensor<?x16xbf16>) {indexing_maps = [#id, #id], rows = array<i64: 1>} producer {
  ^bb0(%i: index, %row: tensor<16xf32>):
    %e = tensor.empty() : tensor<16xbf16>
    %t = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]}
        ins(%row : tensor<16xf32>) outs(%e : tensor<16xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %v = arith.truncf %in : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<16xbf16>
    fp8.yield %t, %t : tensor<16xbf16>, tensor<16xbf16>
  } -> tensor<f32>, tensor<?x16xbf16>
  return %m#0, %m#1 : tensor<f32>, tensor<?x16xbf16>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// A sum over the rows: 32 of 1,000 rows at a time fill the buffer, the last time 8.
// CHECK-LABEL: func @sum
// CHECK-DAG: %[[C32:.+]] = arith.constant 32 : index
// CHECK-DAG: %[[C1000:.+]] = arith.constant 1000 : index
// CHECK: linalg.fill
// CHECK: scf.for %[[START:.+]] = %{{.+}} to %[[C1000]] step %[[C32]] iter_args(%{{.+}} = %{{.+}}, %[[SUM:.+]] = %{{.+}})
// CHECK: %[[COUNT:.+]] = affine.min affine_map<(d0) -> (-d0 + 1000, 32)>(%[[START]])
// CHECK: %[[BUFFER:.+]] = tensor.empty() : tensor<32x1024xf32>
// CHECK: %[[ALL:.+]]:2 = scf.forall (%[[ROW:.+]]) in (%[[COUNT]]) shared_outs(%{{.+}} = %{{.+}}, %[[ADDENDS:.+]] = %[[BUFFER]])
// CHECK: affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%[[START]], %[[ROW]])
// CHECK: parallel_insert_slice %{{.+}} into %[[ADDENDS]][%[[ROW]], 0] [1, 1024]
// CHECK: %[[FILLED:.+]] = tensor.extract_slice %[[ALL]]#1[0, 0] [%[[COUNT]], 1024] [1, 1]
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%[[FILLED]] : tensor<?x1024xf32>) outs(%[[SUM]] : tensor<1024xf32>)
// CHECK: arith.addf %out, %in
func.func @sum(%x: tensor<1000x1024xf32>, %s: tensor<f32>, %d: tensor<1000x1024xf8E5M2>, %i: tensor<f32>, %b: tensor<1024xf32>)
    -> (tensor<1000x1024xf8E5M2>, tensor<1024xf32>) {
  %q:3 = fp8.quantize ins(%x : tensor<1000x1024xf32>) scale(%s : tensor<f32>)
      outs(%d, %i, %b : tensor<1000x1024xf8E5M2>, tensor<f32>, tensor<1024xf32>)
      {indexing_maps = [#id, #column], rows = array<i64: 1>} producer {
  ^bb0(%p: index, %row: tensor<1024xf32>):
    fp8.yield %row, %row : tensor<1024xf32>, tensor<1024xf32>
  } -> tensor<1000x1024xf8E5M2>, tensor<f32>, tensor<1024xf32>
  return %q#0, %q#2 : tensor<1000x1024xf8E5M2>, tensor<1024xf32>
}
