// RUN: fp8-opt %s --split-input-file --fp8-raise-contractions | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s --split-input-file --fp8-raise-contractions -mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// A named op on zeros: the zeros go, the location stays.
// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func @zero_fill
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xbf16>, %[[W:.*]]: tensor<8x16xbf16>)
// CHECK: %[[INIT:.*]] = tensor.empty() : tensor<4x16xbf16>
// CHECK-NEXT: %[[Y:.*]] = fp8.matmul ins(%[[X]], %[[W]] : {{.*}}) outs(%[[INIT]] : tensor<4x16xbf16>)
// CHECK-SAME: {indexing_maps = [#[[$A]], #[[$B]], #[[$C]]]} -> tensor<4x16xbf16>
// CHECK-NEXT: return %[[Y]]
// LOC-LABEL: func @zero_fill
// LOC: fp8.matmul {{.*}} loc(#[[FC1:.*]])
// LOC: #[[FC1]] = loc("jit(f)/fc1/dot_general")
func.func @zero_fill(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>) -> tensor<4x16xbf16> {
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<4x16xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%empty : tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>)
    outs(%init : tensor<4x16xbf16>) -> tensor<4x16xbf16> loc("jit(f)/fc1/dot_general")
  return %y : tensor<4x16xbf16>
}

// -----

// A generic with two K dimensions, a batch dimension, swapped factors and sum, and
// fast-math flags; what the user wrote on it is kept.
// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d4)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d4, d0, d2, d3)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1)>
// CHECK-LABEL: func @generic
// CHECK: fp8.matmul ins(%{{.*}}, %{{.*}} : tensor<2x3x4x5xf16>, tensor<5x2x6x3xf16>)
// CHECK-SAME: {fp8.role = "fprop", fp8.site = "mine", indexing_maps = [#[[$A]], #[[$B]], #[[$C]]]}
// CHECK-NOT: linalg.generic
func.func @generic(%x: tensor<2x3x4x5xf16>, %w: tensor<5x2x6x3xf16>) -> tensor<2x6x4xf32> {
  %init = arith.constant dense<0.0> : tensor<2x6x4xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k, l) -> (b, k, m, l)>, affine_map<(b, m, n, k, l) -> (l, b, n, k)>,
                       affine_map<(b, m, n, k, l) -> (b, n, m)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x3x4x5xf16>, tensor<5x2x6x3xf16>) outs(%init : tensor<2x6x4xf32>)
      attrs = {fp8.site = "mine", fp8.role = "fprop"} {
  ^bb0(%a: f16, %b: f16, %acc: f32):
    %a32 = arith.extf %a : f16 to f32
    %b32 = arith.extf %b : f16 to f32
    %p = arith.mulf %b32, %a32 fastmath<fast> : f32
    %s = arith.addf %p, %acc fastmath<contract> : f32
    linalg.yield %s : f32
  } -> tensor<2x6x4xf32>
  return %y : tensor<2x6x4xf32>
}

// -----

// Every named contraction, and linalg.contract.
// CHECK-LABEL: func @named
// CHECK-COUNT-7: fp8.matmul
// CHECK-NOT: linalg.{{.*}}mat
// CHECK-NOT: linalg.dot
// CHECK-NOT: linalg.contract
func.func @named(%m: tensor<4x4xf32>, %b: tensor<2x4x4xf32>, %v: tensor<4xf32>, %t: tensor<1x1x4x4xf32>)
    -> (tensor<2x4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<1x1x4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e3 = tensor.empty() : tensor<2x4x4xf32>
  %i3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %0 = linalg.batch_matmul ins(%b, %b : tensor<2x4x4xf32>, tensor<2x4x4xf32>) outs(%i3 : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %1 = linalg.matvec ins(%m, %v : tensor<4x4xf32>, tensor<4xf32>) outs(%v : tensor<4xf32>) -> tensor<4xf32>
  %2 = linalg.vecmat ins(%v, %m : tensor<4xf32>, tensor<4x4xf32>) outs(%v : tensor<4xf32>) -> tensor<4xf32>
  %e0 = tensor.empty() : tensor<f32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %3 = linalg.dot ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%i0 : tensor<f32>) -> tensor<f32>
  %4 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%m, %m : tensor<4x4xf32>, tensor<4x4xf32>) outs(%m : tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%m, %m : tensor<4x4xf32>, tensor<4x4xf32>) outs(%m : tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = linalg.mmt4d ins(%t, %t : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) outs(%t : tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<2x4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<1x1x4x4xf32>
}

// -----

// An initial value that is not zero is added to; zeros may be shared, negative, broadcast or a view.
// CHECK-LABEL: func @inits
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32>, %[[R:.*]]: tensor<4x4xf32>, %{{.*}}: tensor<4x4xf16>)
// CHECK: fp8.matmul accumulate ins(%[[X]], %[[X]] : {{.*}}) outs(%[[R]] : tensor<4x4xf32>)
// CHECK: %[[E1:.*]] = tensor.empty() : tensor<4x4xf32>
// CHECK-NEXT: fp8.matmul ins({{.*}}) outs(%[[E1]] :
// CHECK: %[[E2:.*]] = tensor.empty() : tensor<4x4xf32>
// CHECK-NEXT: fp8.matmul ins({{.*}}) outs(%[[E2]] :
// CHECK: %[[ONES:.*]] = linalg.fill
// CHECK: fp8.matmul accumulate ins({{.*}}) outs(%[[ONES]] :
func.func @inits(%x: tensor<4x4xf32>, %residual: tensor<4x4xf32>, %h: tensor<4x4xf16>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %zeros = arith.constant dense<-0.0> : tensor<4xf32>
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %broadcast = linalg.broadcast ins(%zeros : tensor<4xf32>) outs(%empty : tensor<4x4xf32>) dimensions = [0]
  %generic = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%empty : tensor<4x4xf32>) {
  ^bb0(%out: f32):
    %zero = arith.constant 0.0 : f32
    linalg.yield %zero : f32
  } -> tensor<4x4xf32>
  %0 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%residual : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%broadcast : tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = linalg.matmul ins(%h, %h : tensor<4x4xf16>, tensor<4x4xf16>) outs(%generic : tensor<4x4xf32>) -> tensor<4x4xf32>
  %ones = linalg.fill ins(%one : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%ones : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Sizes known only at run time.
// CHECK-LABEL: func @dynamic
// CHECK-SAME: %[[N:[a-z0-9]+]]: index
// CHECK: %[[E:.*]] = tensor.empty(%[[N]]) : tensor<?x16xf32>
// CHECK-NEXT: fp8.matmul ins({{.*}} : tensor<?x8xf32>, tensor<8x16xf32>) outs(%[[E]] : tensor<?x16xf32>)
func.func @dynamic(%x: tensor<?x8xf32>, %w: tensor<8x16xf32>, %n: index) -> tensor<?x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%n) : tensor<?x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x16xf32>) -> tensor<?x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x16xf32>) outs(%init : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// Operations of a body on one operand are done once per element, before the matmul; an
// extension to f64 stays, as fp8.matmul multiplies in f64 only what is f64.
// CHECK-LABEL: func @prologue
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x16xbf16>
// CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4x8xf32>)
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK-NOT: arith.extf
// CHECK: fp8.matmul accumulate ins(%[[ROUNDED]], %[[W]] : tensor<4x8xbf16>, tensor<8x16xbf16>)
// CHECK: arith.extf %{{.*}} : f32 to f64
// CHECK: arith.extf %{{.*}} : f32 to f64
// CHECK: fp8.matmul accumulate ins({{.*}} : tensor<4x8xf64>, tensor<8x4xf64>)
func.func @prologue(%x: tensor<4x8xf32>, %w: tensor<8x16xbf16>, %i: tensor<4x16xf32>, %v: tensor<8x4xf32>, %j: tensor<4x4xf64>)
    -> (tensor<4x16xf32>, tensor<4x4xf64>) {
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xf32>, tensor<8x16xbf16>) outs(%i : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: bf16, %acc: f32):
    %a16 = arith.truncf %a : f32 to bf16
    %a32 = arith.extf %a16 : bf16 to f32
    %b32 = arith.extf %b : bf16 to f32
    %p = arith.mulf %a32, %b32 : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  %z = linalg.matmul ins(%x, %v : tensor<4x8xf32>, tensor<8x4xf32>) outs(%j : tensor<4x4xf64>) -> tensor<4x4xf64>
  return %y, %z : tensor<4x16xf32>, tensor<4x4xf64>
}

// -----

// Look-alikes stay: integers, complex numbers, no common K dimension, a maximum
// instead of a sum, magnitudes of products, buffers.
// CHECK-LABEL: func @untouched
// CHECK-NOT: fp8.matmul
// CHECK: linalg.matmul
// CHECK: linalg.matmul
// CHECK-COUNT-3: linalg.generic
// CHECK: linalg.matmul
func.func @untouched(%i: tensor<4x4xi32>, %c: tensor<4x4xcomplex<f32>>, %x: tensor<4x4xf32>, %v: tensor<4xf32>, %m: memref<4x4xf32>)
    -> (tensor<4x4xi32>, tensor<4x4xcomplex<f32>>, tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = linalg.matmul ins(%i, %i : tensor<4x4xi32>, tensor<4x4xi32>) outs(%i : tensor<4x4xi32>) -> tensor<4x4xi32>
  %1 = linalg.matmul ins(%c, %c : tensor<4x4xcomplex<f32>>, tensor<4x4xcomplex<f32>>) outs(%c : tensor<4x4xcomplex<f32>>) -> tensor<4x4xcomplex<f32>>
  %2 = linalg.generic {
      indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x, %v : tensor<4x4xf32>, tensor<4xf32>) outs(%v : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %3 = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.maximumf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  %4 = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %n = math.absf %p : f32
    %s = arith.addf %acc, %n : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  linalg.matmul ins(%m, %m : memref<4x4xf32>, memref<4x4xf32>) outs(%m : memref<4x4xf32>)
  return %0, %1, %2, %3, %4 : tensor<4x4xi32>, tensor<4x4xcomplex<f32>>, tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A dimension that only the result has repeats the sums; one that an operand alone sums is
// one more of the other.
// CHECK-LABEL: func @repeated
// CHECK: %[[SUMS:.*]] = fp8.matmul ins({{.*}} : tensor<8xbf16>, tensor<8x16xbf16>) outs(%{{.*}} : tensor<16xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[SUMS]] : tensor<16xf32>) outs(%{{.*}} : tensor<4x16xbf16>)
// CHECK: arith.extf
// CHECK: arith.addf
// CHECK: arith.truncf
func.func @repeated(%v: tensor<8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%v, %w : tensor<8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xbf16>) -> tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}

// CHECK-LABEL: func @summed_in_one
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<8x16xf32>) outs(%{{.*}} : tensor<8x16x?xf32>)
// CHECK: fp8.matmul accumulate ins(%{{.*}}, %[[WIDE]] : tensor<4x8x?xf32>, tensor<8x16x?xf32>)
func.func @summed_in_one(%x: tensor<4x8x?xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k, l) -> (m, k, l)>, affine_map<(m, n, k, l) -> (k, n)>, affine_map<(m, n, k, l) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<4x8x?xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.subf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
