// The op policy: which operations run in which type, and where casts are.
// RUN: fp8-opt %s --fp8-mixed-precision=dtype=bf16 -split-input-file | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A parameter that is read as it is and transposed is rounded once.
// CHECK-LABEL: func.func @parameter
// CHECK-SAME: (%[[X:.+]]: tensor<4x8xf32>, %[[W:.+]]: tensor<8x16xf32>,
func.func @parameter(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>, %j: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-COUNT-1: arith.truncf %[[W]]
  // CHECK-NOT: arith.truncf %[[W]]
  // CHECK: fp8.matmul ins(%{{.+}}, %{{.+}} : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%{{.+}} : tensor<4x16xbf16>)
  // CHECK: linalg.transpose ins(%{{.+}} : tensor<8x16xbf16>) outs(%{{.+}} : tensor<16x8xbf16>) permutation = [1, 0]
  // CHECK: fp8.matmul ins(%{{.+}}, %{{.+}} : tensor<4x16xbf16>, tensor<16x8xbf16>)
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %e = tensor.empty() : tensor<16x8xf32>
  %t = linalg.transpose ins(%w : tensor<8x16xf32>) outs(%e : tensor<16x8xf32>) permutation = [1, 0]
  %z = fp8.matmul ins(%y, %t : tensor<4x16xf32>, tensor<16x8xf32>) outs(%j : tensor<4x8xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  // CHECK: %[[WIDE:.+]] = arith.extf %{{.+}} : tensor<4x8xbf16> to tensor<4x8xf32>
  // CHECK: return %[[WIDE]]
  return %z : tensor<4x8xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Sums that a product is added to stay in f32, and so do products that the program wrote in other types.
// CHECK-LABEL: func.func @kept
func.func @kept(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>, %q: tensor<4x8xf16>, %v: tensor<8x16xf16>,
                %j: tensor<4x16xf16>) -> (tensor<4x16xf32>, tensor<4x16xf16>) {
  // CHECK: fp8.matmul accumulate ins(%{{.+}}, %{{.+}} : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%{{.+}} : tensor<4x16xf32>)
  %y = fp8.matmul accumulate ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  // CHECK: fp8.matmul ins(%{{.+}}, %{{.+}} : tensor<4x8xf16>, tensor<8x16xf16>) outs(%{{.+}} : tensor<4x16xf16>)
  %z = fp8.matmul ins(%q, %v : tensor<4x8xf16>, tensor<8x16xf16>) outs(%j : tensor<4x16xf16>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf16>
  return %y, %z : tensor<4x16xf32>, tensor<4x16xf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m)>

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>, %s: tensor<4xf32>)
    -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4xf32>, tensor<4x16xf32>) {
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %e = tensor.empty() : tensor<4x16xf32>
  // One value is narrow, the constant adapts: the result is narrow, and computed in f32.
  // CHECK: %[[NARROW:.+]] = linalg.generic {{.+}} ins(%{{.+}} : tensor<4x16xbf16>) outs(%{{.+}} : tensor<4x16xbf16>)
  // CHECK-NEXT: ^bb0(%[[IN:.+]]: bf16, %{{.+}}: bf16):
  // CHECK: %[[E:.+]] = arith.extf %[[IN]] : bf16 to f32
  // CHECK: %[[M:.+]] = arith.mulf %[[E]], %{{.+}} : f32
  // CHECK: %[[T:.+]] = arith.truncf %[[M]] : f32 to bf16
  // CHECK-NEXT: linalg.yield %[[T]] : bf16
  %half = arith.constant 0.5 : f32
  %a = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
    ^bb0(%p: f32, %r: f32):
      %m = arith.mulf %p, %half : f32
      linalg.yield %m : f32
  } -> tensor<4x16xf32>
  // exp in f32, and what follows it in the same body.
  // CHECK: linalg.generic {{.+}} ins(%[[NARROW]] : tensor<4x16xbf16>) outs(%{{.+}} : tensor<4x16xf32>)
  // CHECK: math.exp %{{.+}} : f32
  // CHECK-NEXT: %[[ONE:.+]] = arith.addf
  // CHECK-NEXT: linalg.yield %[[ONE]] : f32
  %b = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
    ^bb0(%p: f32, %r: f32):
      %x1 = math.exp %p : f32
      %m = arith.addf %x1, %half : f32
      linalg.yield %m : f32
  } -> tensor<4x16xf32>
  // Sums in f32, of narrow values.
  // CHECK: linalg.generic {{.+}} iterator_types = ["parallel", "reduction"]} ins(%[[NARROW]] : tensor<4x16xbf16>) outs(%{{.+}} : tensor<4xf32>)
  // CHECK: arith.addf %{{.+}}, %{{.+}} : f32
  // CHECK-NEXT: linalg.yield
  %c = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<4x16xf32>) outs(%s : tensor<4xf32>) {
    ^bb0(%p: f32, %r: f32):
      %m = arith.addf %r, %p : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  // With an operand in f32 the result is in f32.
  // CHECK: linalg.generic {{.+}} ins(%[[NARROW]], %{{.+}} : tensor<4x16xbf16>, tensor<4xf32>) outs(%{{.+}} : tensor<4x16xf32>)
  %d = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%a, %s : tensor<4x16xf32>, tensor<4xf32>) outs(%e : tensor<4x16xf32>) {
    ^bb0(%p: f32, %q: f32, %r: f32):
      %m = arith.addf %p, %q : f32
      linalg.yield %m : f32
  } -> tensor<4x16xf32>
  return %a, %b, %c, %d : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4xf32>, tensor<4x16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Slices, reshapes and concatenations move narrow values; loops hand on f32.
// CHECK-LABEL: func.func @moved
func.func @moved(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  // CHECK: tensor.extract_slice %{{.+}} : tensor<4x16xbf16> to tensor<4x8xbf16>
  %s = tensor.extract_slice %y[0, 0] [4, 8] [1, 1] : tensor<4x16xf32> to tensor<4x8xf32>
  %t = tensor.extract_slice %y[0, 8] [4, 8] [1, 1] : tensor<4x16xf32> to tensor<4x8xf32>
  // CHECK: tensor.concat dim(0) %{{.+}}, %{{.+}} : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<8x8xbf16>
  %c = tensor.concat dim(0) %s, %t : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  // CHECK: %[[WIDE:.+]] = arith.extf %{{.+}} : tensor<8x8xbf16> to tensor<8x8xf32>
  // CHECK: scf.for {{.+}} iter_args(%{{.+}} = %[[WIDE]]) -> (tensor<8x8xf32>)
  %l = scf.for %k = %c0 to %c3 step %c1 iter_args(%v = %c) -> tensor<8x8xf32> {
    %n = arith.addf %v, %v : tensor<8x8xf32>
    scf.yield %n : tensor<8x8xf32>
  }
  return %l : tensor<8x8xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Of bf16 and f16 neither is wider. The attributes are gone after the pass.
// CHECK-LABEL: func.func @both
// CHECK-NOT: fp8.mixed_precision
func.func @both(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
  // CHECK: fp8.matmul {{.+}} -> tensor<4x16xbf16>
  // CHECK: fp8.matmul {{.+}} -> tensor<4x16xf16>
  // CHECK: fp8.matmul {{.+}} -> tensor<4x16xf32>
  %a = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %b = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
      {indexing_maps = [#mk, #kn, #mn], fp8.mixed_precision = "f16"} -> tensor<4x16xf32>
  %c = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
      {indexing_maps = [#mk, #kn, #mn], fp8.mixed_precision = "off"} -> tensor<4x16xf32>
  // CHECK: %[[SUM:.+]] = arith.addf %{{.+}}, %{{.+}} : tensor<4x16xf32>
  // CHECK-NOT: arith.truncf %[[SUM]]
  %s = arith.addf %a, %b : tensor<4x16xf32>
  %r = arith.addf %s, %c : tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

// -----

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// The gradient of a parameter is rounded once; the optimizer's square of it is in f32.
// CHECK-LABEL: func.func @optimizer
func.func @optimizer(%x: tensor<4x8xf32>, %dy: tensor<4x16xf32>, %i: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK: %[[G:.+]] = fp8.matmul site("fc") role(wgrad) {{.+}} -> tensor<8x16xbf16>
  // CHECK: %[[WIDE:.+]] = arith.extf %[[G]] : tensor<8x16xbf16> to tensor<8x16xf32>
  // CHECK: %[[SQUARE:.+]] = arith.mulf %[[WIDE]], %[[WIDE]] : tensor<8x16xf32>
  // CHECK: return %[[SQUARE]]
  %g = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>)
      outs(%i : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  %s = arith.mulf %g, %g : tensor<8x16xf32>
  return %s : tensor<8x16xf32>
}

// -----

// Grouped products are products.
// CHECK-LABEL: func.func @grouped
func.func @grouped(%x: tensor<64x16xf32>, %w: tensor<4x16x32xf32>, %ends: tensor<4xi32>, %i: tensor<64x32xf32>) -> tensor<64x32xf32> {
  // CHECK: fp8.grouped_matmul {{.+}} : tensor<64x16xbf16>, tensor<4x16x32xbf16>, tensor<4xi32>) outs(%{{.+}} : tensor<64x32xbf16>)
  %y = fp8.grouped_matmul site("moe") role(fprop) ins(%x, %w, %ends : tensor<64x16xf32>, tensor<4x16x32xf32>, tensor<4xi32>)
      outs(%i : tensor<64x32xf32>)
      {indexing_maps = [affine_map<(t, n, k, g) -> (t, k)>, affine_map<(t, n, k, g) -> (g, k, n)>,
                        affine_map<(t, n, k, g) -> (t, n)>]} -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Pads keep the type, a constant adapts; TF32 is a precision of products, other operations in it are in f32.
// CHECK-LABEL: func.func @padded
func.func @padded(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>, %p: f32)
    -> (tensor<5x16xf32>, tensor<5x16xf32>, tensor<4x16xf32>, tensor<1xf32>) {
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  // CHECK: tensor.pad %{{.+}} low[0, 0] high[1, 0]
  // CHECK: tensor.yield %{{.+}} : bf16
  // CHECK-NEXT: : tensor<4x16xbf16> to tensor<5x16xbf16>
  %c = arith.constant 0.3 : f32
  %a = tensor.pad %y low[0, 0] high[1, 0] {
  ^bb0(%m: index, %n: index):
    tensor.yield %c : f32
  } : tensor<4x16xf32> to tensor<5x16xf32>
  // CHECK: tensor.pad {{.+}}
  // CHECK: : tensor<4x16xf32> to tensor<5x16xf32>
  %b = tensor.pad %y low[0, 0] high[1, 0] {
  ^bb0(%m: index, %n: index):
    tensor.yield %p : f32
  } : tensor<4x16xf32> to tensor<5x16xf32>
  // CHECK: arith.negf %{{.+}} : tensor<4x16xf32>
  // CHECK-NOT: arith.truncf
  %d = arith.negf %y {fp8.mixed_precision = "tf32"} : tensor<4x16xf32>
  // CHECK: tensor.from_elements %{{.+}} : tensor<1xbf16>
  %c0 = arith.constant 0 : index
  %s = tensor.extract %y[%c0, %c0] : tensor<4x16xf32>
  %e = tensor.from_elements %s : tensor<1xf32>
  return %a, %b, %d, %e : tensor<5x16xf32>, tensor<5x16xf32>, tensor<4x16xf32>, tensor<1xf32>
}
