// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-recompute-elements,canonicalize))' | FileCheck %s
// RUN: fp8-opt %s -split-input-file --remarks-filter=fp8-fusion --pass-pipeline='builtin.module(func.func(fp8-recompute-elements))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK --implicit-check-not=remark:

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#turned = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// The bf16 result of the first matmul is kept, and the two tensors of f32 that backward reads are computed from it again.
// REMARK: remark: [Passed] ComputedAgain {{.*}}backward computes 128 bytes again
// REMARK: remark: [Passed] ComputedAgain {{.*}}backward computes 128 bytes again
// CHECK-LABEL: @from_fewer_bytes
// CHECK: %[[H:.+]] = fp8.matmul role(fprop)
// CHECK: %[[WIDE:.+]] = linalg.generic {{.*}} ins(%[[H]] : tensor<4x8xbf16>)
// CHECK: %[[T:.+]] = linalg.generic {{.*}} ins(%[[WIDE]] : tensor<4x8xf32>)
// CHECK: fp8.matmul role(fprop) ins(%[[T]],
// CHECK: %[[DT:.+]] = fp8.matmul role(dgrad)
// CHECK: %[[AGAIN:.+]] = linalg.generic {{.*}} ins(%[[H]] : tensor<4x8xbf16>)
// CHECK: %[[T_AGAIN:.+]] = linalg.generic {{.*}} ins(%[[AGAIN]] : tensor<4x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[DT]], %[[T_AGAIN]], %[[AGAIN]] :
func.func @from_fewer_bytes(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %dy: tensor<4x8xf32>, %h: tensor<4x8xbf16>, %e: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %up = fp8.matmul role(fprop) ins(%x, %w : tensor<4x8xbf16>, tensor<8x8xbf16>) outs(%h : tensor<4x8xbf16>)
    {indexing_maps = [#lhs, #rhs, #out]} -> tensor<4x8xbf16>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%up : tensor<4x8xbf16>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: bf16, %o: f32):
      %v = arith.extf %a : bf16 to f32
      linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%wide : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %v = math.tanh %a : f32
      linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %y = fp8.matmul role(fprop) ins(%t, %w : tensor<4x8xf32>, tensor<8x8xbf16>) outs(%e : tensor<4x8xf32>)
    {indexing_maps = [#lhs, #rhs, #out]} -> tensor<4x8xf32>
  %dt = fp8.matmul role(dgrad) ins(%dy, %w : tensor<4x8xf32>, tensor<8x8xbf16>) outs(%e : tensor<4x8xf32>)
    {indexing_maps = [#lhs, #turned, #out]} -> tensor<4x8xf32>
  %dx = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dt, %t, %wide : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
      %u = arith.mulf %a, %b : f32
      %v = arith.mulf %u, %c : f32
      linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %y, %dx : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#turned = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// One byte of a mask is kept, because nine operations on numbers cost more.
// CHECK-LABEL: @long_code
// CHECK: %[[MASK:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<4x8xi1>)
// CHECK: fp8.matmul role(dgrad)
// CHECK-NEXT: linalg.generic {{.*}} ins(%{{.+}}, %[[MASK]] :
func.func @long_code(%x: tensor<4x8xi32>, %w: tensor<8x8xf32>, %dy: tensor<4x8xf32>, %b: tensor<4x8xi1>, %e: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %mask = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xi32>) outs(%b : tensor<4x8xi1>) {
    ^bb0(%a: i32, %o: i1):
      %0 = arith.muli %a, %a : i32
      %1 = arith.xori %0, %a : i32
      %2 = arith.muli %1, %1 : i32
      %3 = arith.xori %2, %a : i32
      %4 = arith.muli %3, %3 : i32
      %5 = arith.xori %4, %a : i32
      %6 = arith.muli %5, %5 : i32
      %7 = arith.xori %6, %a : i32
      %8 = arith.cmpi slt, %7, %a : i32
      linalg.yield %8 : i1
  } -> tensor<4x8xi1>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%dy, %mask : tensor<4x8xf32>, tensor<4x8xi1>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %m: i1, %o: f32):
      %v = arith.select %m, %a, %zero : f32
      linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %dt = fp8.matmul role(dgrad) ins(%dy, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%e : tensor<4x8xf32>)
    {indexing_maps = [#lhs, #turned, #out]} -> tensor<4x8xf32>
  %dx = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%dt, %mask : tensor<4x8xf32>, tensor<4x8xi1>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %m: i1, %o: f32):
      %v = arith.select %m, %a, %zero : f32
      linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %y, %dx : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#flat = affine_map<(i) -> (i)>
#left = affine_map<(m, n, k) -> (k, m)>
#right = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// A matmul of backward reads the tensor, which is in memory in any case; code that backward runs on a view of it reads it, too.
// CHECK-LABEL: @kept
// CHECK: %[[T:.+]] = linalg.generic
// CHECK: fp8.matmul role(wgrad) ins(%[[T]],
// CHECK-NEXT: %[[FLAT:.+]] = tensor.collapse_shape %[[T]]
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[FLAT]] : tensor<32xf32>)
func.func @kept(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>, %e: tensor<4x8xf32>, %d: tensor<8x8xf32>, %f: tensor<32xf32>) -> (tensor<8x8xf32>, tensor<32xf32>) {
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %v = arith.negf %a : f32
      linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %dw = fp8.matmul role(wgrad) ins(%t, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%d : tensor<8x8xf32>) {indexing_maps = [#left, #right, #out]} -> tensor<8x8xf32>
  %view = tensor.collapse_shape %t [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %dx = linalg.generic {indexing_maps = [#flat, #flat], iterator_types = ["parallel"]} ins(%view : tensor<32xf32>) outs(%f : tensor<32xf32>) {
    ^bb0(%a: f32, %o: f32):
      %v = arith.addf %a, %a : f32
      linalg.yield %v : f32
  } -> tensor<32xf32>
  return %dw, %dx : tensor<8x8xf32>, tensor<32xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#lhs = affine_map<(m, n, k) -> (m, k)>
#turned = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// The code of a sum stays kept with it: forward computes both by rows.
// CHECK-LABEL: @sum
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}} "reduction"]} ins(%[[X:.+]] : tensor<4x8xf32>)
// CHECK: %[[CENTERED:.+]] = linalg.generic {{.*}} ins(%[[X]], %[[SUM]] :
// CHECK: fp8.matmul role(dgrad)
// CHECK-NEXT: linalg.generic {{.*}} ins(%{{.+}}, %[[CENTERED]] :
func.func @sum(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %dy: tensor<4x8xf32>, %r: tensor<4xf32>, %e: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%r : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %v = arith.addf %a, %o : f32
      linalg.yield %v : f32
  } -> tensor<4xf32>
  %centered = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %sum : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %s: f32, %o: f32):
      %v = arith.subf %a, %s : f32
      linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%centered : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %v = arith.negf %a : f32
      linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %dt = fp8.matmul role(dgrad) ins(%dy, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%e : tensor<4x8xf32>) {indexing_maps = [#lhs, #turned, #out]} -> tensor<4x8xf32>
  %dx = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%dt, %centered : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %v = arith.mulf %a, %b : f32
      linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %y, %dx : tensor<4x8xf32>, tensor<4x8xf32>
}
