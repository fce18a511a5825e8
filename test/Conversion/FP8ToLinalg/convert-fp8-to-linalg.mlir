// The shape of what each operation becomes; the values are checked in python/test_numerics.py.
// RUN: fp8-opt %s --convert-fp8-to-linalg | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// All products of one tile call one kernel for packed panels; operands of one type are packed by the same
// functions.
// CHECK-LABEL: func.func private @fp8_cpu_gemm_f32_4x16
// CHECK-SAME: %[[LEFT:[^:]+]]: memref<?x?x4xf32, {{.+}}, %[[RIGHT:[^:]+]]: memref<?x?x16xf32
// The tiles of a panel of the second operand divide among them what they prefetch of the next one: a line for
// the 128 elements of this one, 8 indices of K, that they read in an iteration.
// CHECK: arith.select
// CHECK: %[[TILES:.+]] = memref.dim %[[LEFT]]
// CHECK: %[[INTERVAL:.+]] = arith.constant 128 : index
// CHECK: %[[STEP:.+]] = arith.ceildivui %[[INTERVAL]], %[[TILES]]
// CHECK: scf.for %[[B:[^ ]+]] = {{.+}} step %c128{{[^ ]*}} iter_args(%[[A:[^ ]+]] = %{{[^ ]+}}, %[[ELEMENT:[^ ]+]] = %{{[^ ,]+}},
// CHECK: memref.prefetch %[[RIGHT]][%{{.+}}, %{{.+}}, %[[ELEMENT]]], read
// CHECK-COUNT-32: vector.fma
// CHECK-NOT: memref.prefetch
// CHECK: scf.yield
// Packing prefetches the rows of the next panel, a line of each at a time; or, along rows, what is some rows on.
// CHECK-LABEL: func.func private @fp8_cpu_pack_bf16_k_4(
// CHECK: %[[STEP:.+]] = arith.constant 32 : index
// CHECK: scf.for %[[BEGIN:.+]] = %{{.+}} to %{{.+}} step %[[STEP]]
// CHECK-COUNT-4: memref.prefetch %{{.+}}[%{{.+}}, %[[BEGIN]]], read
// CHECK: scf.for
// CHECK: arith.extf %{{.+}} : vector<8xbf16> to vector<8xf32>
// CHECK: vector.shuffle
// CHECK-LABEL: func.func private @fp8_cpu_pack_bf16_rows_16(
// CHECK: scf.for %[[GROUP:.+]] =
// CHECK: scf.for %[[K:[^ ]+]] =
// CHECK: %[[AHEAD:.+]] = arith.addi %[[K]], %c24
// CHECK-COUNT-2: memref.prefetch %{{.+}}[%[[AHEAD]], %{{.+}}], read
// CHECK: arith.extf %{{.+}} : vector<8xbf16> to vector<8xf32>
// CHECK-NOT: vector.shuffle

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: %[[A:[^:]+]]: memref<8x16xbf16>, %[[B:[^:]+]]: memref<16x32xbf16>, %[[C:[^:]+]]: memref<8x32xbf16>
func.func @matmul(%a: memref<8x16xbf16>, %b: memref<16x32xbf16>, %c: memref<8x32xbf16>) {
  // CHECK: scf.execute_region
  // CHECK: extract_strided_metadata %[[B]]
  // CHECK: call @fp8_cpu_pack_bf16_rows_16
  // CHECK: extract_strided_metadata %[[A]]
  // CHECK: call @fp8_cpu_pack_bf16_k_4
  // CHECK: call @fp8_cpu_gemm_f32_4x16
  // CHECK: linalg.generic {{.+}} outs(%[[C]] : memref<8x32xbf16>)
  // CHECK: arith.truncf %{{.+}} : f32 to bf16
  // CHECK-NOT: arith.addf
  fp8.matmul ins(%a, %b : memref<8x16xbf16>, memref<16x32xbf16>) outs(%c : memref<8x32xbf16>)
      {indexing_maps = [#mk, #kn, #mn]}
  return
}

// A large product has tasks; workers take them one by one.
// CHECK-LABEL: func.func @tasks
func.func @tasks(%a: memref<2048x16xbf16>, %b: memref<16x128xbf16>, %c: memref<2048x128xbf16>) {
  // CHECK: %[[TAKEN:.+]] = memref.alloc() {alignment = 64 : i64} : memref<1xi64>
  // CHECK: memref.store %{{.+}}, %[[TAKEN]]
  // CHECK: scf.parallel
  // CHECK: scf.while : () -> index {
  // CHECK: %[[NEXT:.+]] = memref.atomic_rmw addi %{{.+}}, %[[TAKEN]]
  // CHECK: %[[TASK:.+]] = arith.index_cast %[[NEXT]]
  // CHECK: arith.cmpi ult, %[[TASK]]
  // CHECK: call @fp8_cpu_gemm_f32
  fp8.matmul ins(%a, %b : memref<2048x16xbf16>, memref<16x128xbf16>) outs(%c : memref<2048x128xbf16>)
      {indexing_maps = [#mk, #kn, #mn]}
  return
}

// CHECK-LABEL: func.func @accumulate
func.func @accumulate(%a: memref<8x16xbf16>, %b: memref<16x32xbf16>, %c: memref<8x32xf32>) {
  // CHECK: call @fp8_cpu_gemm_f32
  // CHECK: linalg.generic
  // CHECK: arith.addf
  fp8.matmul accumulate ins(%a, %b : memref<8x16xbf16>, memref<16x32xbf16>) outs(%c : memref<8x32xf32>)
      {indexing_maps = [#mk, #kn, #mn]}
  return
}

// Both scales are multiplied first; the sum is scaled once, and rounded once.
// CHECK-LABEL: func.func @scaled_matmul
// CHECK-SAME: %[[A:[^:]+]]: memref<8x16xf8E4M3FN>, %[[B:[^:]+]]: memref<16x32xf8E5M2>, %[[AS:[^:]+]]: memref<f32>, %[[BS:[^:]+]]: memref<f32>
func.func @scaled_matmul(%a: memref<8x16xf8E4M3FN>, %b: memref<16x32xf8E5M2>, %as: memref<f32>, %bs: memref<f32>, %c: memref<8x32xbf16>) {
  // CHECK-DAG: %[[S0:.+]] = memref.load %[[AS]][]
  // CHECK-DAG: %[[S1:.+]] = memref.load %[[BS]][]
  // CHECK: %[[S:.+]] = arith.mulf %[[S0]], %[[S1]] : f32
  // CHECK: linalg.generic
  // CHECK-NEXT: ^bb0(%[[SUM:.+]]: f32, %{{.+}}: bf16):
  // CHECK-NEXT: %[[R:.+]] = arith.mulf %[[S]], %[[SUM]] : f32
  // CHECK-NEXT: arith.truncf %[[R]] : f32 to bf16
  fp8.scaled_matmul fast ins(%a, %b : memref<8x16xf8E4M3FN>, memref<16x32xf8E5M2>)
      scales(%as, %bs : memref<f32>, memref<f32>) outs(%c : memref<8x32xbf16>) {indexing_maps = [#mk, #kn, #mn]}
  return
}

// One read of the tensor makes bytes, transposed bytes and amax.
// CHECK-LABEL: func.func @quantize
// CHECK-SAME: %[[X:[^:]+]]: memref<8x16xbf16>, %{{[^:]+}}: memref<f32>, %[[Q:[^:]+]]: memref<8x16xf8E4M3FN>, %[[T:[^:]+]]: memref<16x8xf8E4M3FN>, %[[SI:[^:]+]]: memref<f32>, %[[AMAX:[^:]+]]: memref<f32>
func.func @quantize(%x: memref<8x16xbf16>, %s: memref<f32>, %q: memref<8x16xf8E4M3FN>, %t: memref<16x8xf8E4M3FN>, %si: memref<f32>, %a: memref<f32>) {
  // CHECK: memref.store %{{.+}}, %[[SI]][]
  // CHECK-COUNT-1: memref.load %[[X]]
  // CHECK: memref.store %[[BYTE:.+]], %[[Q]][%[[I:.+]], %[[J:.+]]]
  // CHECK: memref.store %[[BYTE]], %[[T]][%[[J]], %[[I]]]
  // CHECK-NOT: memref.load %[[X]]
  // CHECK: memref.store %{{.+}}, %[[AMAX]][]
  fp8.quantize record_amax ins(%x : memref<8x16xbf16>) scale(%s : memref<f32>)
      outs(%q, %t, %si, %a : memref<8x16xf8E4M3FN>, memref<16x8xf8E4M3FN>, memref<f32>, memref<f32>)
      {transposition = array<i64: 1, 0>}
  return
}

// CHECK-LABEL: func.func @dequantize
func.func @dequantize(%q: memref<8x16xf8E4M3FN>, %s: memref<f32>, %x: memref<8x16xbf16>) {
  // CHECK: linalg.generic
  // CHECK: %[[VALUE:.+]] = arith.mulf %{{.+}}, %{{in.*}} : f32
  // CHECK-NEXT: arith.truncf %[[VALUE]] : f32 to bf16
  fp8.dequantize ins(%q : memref<8x16xf8E4M3FN>) scale_inv(%s : memref<f32>) outs(%x : memref<8x16xbf16>)
  return
}

// A result of f64 is summed in f64; the products of f32 stay what they are.
// CHECK-LABEL: func.func @wide_sum
func.func @wide_sum(%a: memref<8x16xf32>, %b: memref<16x32xbf16>, %c: memref<8x32xf64>) {
  // CHECK: linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : memref<8x16xf32>, memref<16x32xbf16>) outs(%{{.+}} : memref<8x32xf64>)
  // CHECK: %[[B:.+]] = arith.extf %{{.+}} : bf16 to f32
  // CHECK: %[[PRODUCT:.+]] = arith.mulf %{{.+}}, %[[B]] : f32
  // CHECK: %[[WIDE:.+]] = arith.extf %[[PRODUCT]] : f32 to f64
  // CHECK: arith.addf %{{.+}}, %[[WIDE]] : f64
  fp8.matmul accumulate ins(%a, %b : memref<8x16xf32>, memref<16x32xbf16>) outs(%c : memref<8x32xf64>)
      {indexing_maps = [#mk, #kn, #mn]}
  return
}

// A producer's values are stored and summed where they are computed; a sum over rows runs
// down groups of columns, each in the order of the rows.
// CHECK-LABEL: func.func @quantize_extras
// CHECK-SAME: %[[X:[^:]+]]: memref<8x100xf32>, %{{[^:]+}}: memref<f32>, %[[Q:[^:]+]]: memref<8x100xf8E5M2>, %{{[^:]+}}: memref<f32>, %[[N:[^:]+]]: memref<8x100xbf16>, %[[B:[^:]+]]: memref<100xf32>
// CHECK-COUNT-1: linalg.fill {{.+}} outs(%[[B]]
// CHECK: scf.for %[[GROUP:.+]] =
// CHECK: scf.for %[[I:.+]] =
// CHECK: scf.for %[[J:.+]] =
// CHECK: %[[E:.+]] = memref.load %[[X]][%[[I]], %[[J]]]
// CHECK: %[[V:.+]] = arith.truncf %[[E]] : f32 to bf16
// CHECK: memref.store %[[V]], %[[N]][%[[I]], %[[J]]]
// CHECK: %[[OLD:.+]] = memref.load %[[B]][%[[J]]]
// CHECK: %[[NEW:.+]] = arith.addf %[[OLD]], %{{.+}} : f32
// CHECK: memref.store %[[NEW]], %[[B]][%[[J]]]
// CHECK: memref.store %{{.+}}, %[[Q]][%[[I]], %[[J]]]
func.func @quantize_extras(%x: memref<8x100xf32>, %s: memref<f32>, %q: memref<8x100xf8E5M2>, %si: memref<f32>, %n: memref<8x100xbf16>, %b: memref<100xf32>) {
  fp8.quantize ins(%x : memref<8x100xf32>) scale(%s : memref<f32>)
      outs(%q, %si, %n, %b : memref<8x100xf8E5M2>, memref<f32>, memref<8x100xbf16>, memref<100xf32>)
      {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>]} producer {
    ^bb0(%e: f32):
      %v = arith.truncf %e : f32 to bf16
      %w = arith.extf %v : bf16 to f32
      fp8.yield %v, %v, %w : bf16, bf16, f32
  }
  return
}

// Groups of as many columns each are loops of constant length, of which LLVM computes several vectors at a time.
// CHECK-LABEL: func.func @even_groups
// CHECK-SAME: %[[X:[^:]+]]: memref<8x256xf32>
// CHECK: %[[WIDTH:.+]] = arith.constant 128 : index
// CHECK: %[[FIRST:.+]] = arith.muli %{{.+}}, %[[WIDTH]]
// CHECK: scf.for %[[I:.+]] =
// CHECK: memref.prefetch %[[X]]
// CHECK: scf.for %[[J:.+]] = %c0{{[^ ]*}} to %c128
// CHECK: %[[COLUMN:.+]] = arith.addi %[[FIRST]], %[[J]]
// CHECK: memref.load %[[X]][%[[I]], %[[COLUMN]]]
func.func @even_groups(%x: memref<8x256xf32>, %s: memref<f32>, %q: memref<8x256xf8E5M2>, %si: memref<f32>, %b: memref<256xf32>) {
  fp8.quantize ins(%x : memref<8x256xf32>) scale(%s : memref<f32>)
      outs(%q, %si, %b : memref<8x256xf8E5M2>, memref<f32>, memref<256xf32>)
      {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>]} producer {
    ^bb0(%e: f32):
      fp8.yield %e, %e : f32, f32
  }
  return
}

// Several groups of columns prefetch what they read of a later row, one cache line of f32 elements at a time.
// CHECK-LABEL: func.func @prefetch
// CHECK-SAME: %[[X:[^:]+]]: memref<8x200xf32>
// CHECK: scf.for %[[GROUP:.+]] =
// CHECK: scf.for %[[I:.+]] =
// CHECK: %[[TWO:.+]] = arith.constant 2 : index
// CHECK: %[[LATER:.+]] = arith.addi %[[I]], %[[TWO]] : index
// CHECK: %[[LINE:.+]] = arith.constant 16 : index
// CHECK: scf.for %[[J:.+]] = %[[BEGIN:.+]] to %[[END:.+]] step %[[LINE]]
// CHECK-NEXT: memref.prefetch %[[X]][%[[LATER]], %[[J]]], read, locality<3>, data
// CHECK-NEXT: }
// CHECK-NEXT: scf.for %[[K:.+]] = %[[BEGIN]] to %[[END]] step
// CHECK: memref.load %[[X]][%[[I]], %[[K]]]
func.func @prefetch(%x: memref<8x200xf32>, %s: memref<f32>, %q: memref<8x200xf8E5M2>, %si: memref<f32>, %b: memref<200xf32>) {
  fp8.quantize ins(%x : memref<8x200xf32>) scale(%s : memref<f32>)
      outs(%q, %si, %b : memref<8x200xf8E5M2>, memref<f32>, memref<200xf32>)
      {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>]} producer {
    ^bb0(%e: f32):
      fp8.yield %e, %e : f32, f32
  }
  return
}

// The dimensions of an operand without elements are not merged: upstream's collapse takes 0 times a run-time
// size for static, and its verifier does not.
// CHECK-LABEL: func.func @empty
// CHECK-NOT: memref.collapse_shape
func.func @empty(%a: memref<0x?x16xbf16>, %b: memref<16x8xbf16>, %c: memref<0x?x8xbf16>) {
  fp8.matmul ins(%a, %b : memref<0x?x16xbf16>, memref<16x8xbf16>) outs(%c : memref<0x?x8xbf16>)
      {indexing_maps = [affine_map<(z, m, n, k) -> (z, m, k)>, affine_map<(z, m, n, k) -> (k, n)>,
                        affine_map<(z, m, n, k) -> (z, m, n)>]}
  return
}
