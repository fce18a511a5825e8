// fp8.online_attention and fp8.online_attention_grad, on tensors and on memrefs, with every optional part: what is
// printed reads back, as text and as bytecode.
// RUN: fp8-opt %s | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --emit-bytecode | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --mlir-print-op-generic | fp8-opt | FileCheck %s

#query = affine_map<(b, i, j, d, e) -> (b, i, d)>
#key = affine_map<(b, i, j, d, e) -> (b, j, d)>
#value = affine_map<(b, i, j, d, e) -> (b, j, e)>
#output = affine_map<(b, i, j, d, e) -> (b, i, e)>
#statistic = affine_map<(b, i, j, d, e) -> (b, i)>

// CHECK-LABEL: func.func @forward
func.func @forward(%q: tensor<4x8x16xbf16>, %k: tensor<4x8x16xbf16>, %v: tensor<4x8x16xbf16>, %init: tensor<4x8x16xbf16>, %stat: tensor<4x8xf32>) -> (tensor<4x8x16xbf16>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: %[[O:.+]]:3 = fp8.online_attention ins(%{{.+}}, %{{.+}}, %{{.+}} : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>) outs(%{{.+}}, %{{.+}}, %{{.+}} : tensor<4x8x16xbf16>, tensor<4x8xf32>, tensor<4x8xf32>) {indexing_maps = [
  // CHECK-SAME: visible_keys = #{{[^ ]+}}} score {
  // CHECK-NEXT: ^bb0(%{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: f32):
  // CHECK: fp8.yield %{{.+}}, %{{.+}} : f32, f32
  // CHECK-NEXT: } statistics {
  // CHECK-NEXT: ^bb0(%{{.+}}: index, %{{.+}}: index, %[[M:.+]]: f32, %[[L:.+]]: f32):
  // CHECK-NEXT: fp8.yield %[[M]], %[[L]] : f32, f32
  // CHECK-NEXT: } -> tensor<4x8x16xbf16>, tensor<4x8xf32>, tensor<4x8xf32>
  // CHECK-NEXT: return %[[O]]#0, %[[O]]#1, %[[O]]#2
  %o, %max, %sum = fp8.online_attention
      ins(%q, %k, %v : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>)
      outs(%init, %stat, %stat : tensor<4x8x16xbf16>, tensor<4x8xf32>, tensor<4x8xf32>)
      {indexing_maps = [#query, #key, #value, #output, #statistic, #statistic],
       visible_keys = affine_map<(b, i, j, d, e) -> (0, i + 1)>} score {
    ^bb0(%b: index, %i: index, %j: index, %s: f32):
      %lowest = arith.constant 0xFF800000 : f32
      %one = arith.constant 1.0 : f32
      %scale = arith.constant 0.25 : f32
      %scaled = arith.mulf %s, %scale : f32
      %later = arith.cmpi ugt, %j, %i : index
      %x = arith.select %later, %lowest, %scaled : f32
      fp8.yield %x, %one : f32, f32
  } statistics {
    ^bb0(%b: index, %i: index, %m: f32, %l: f32):
      fp8.yield %m, %l : f32, f32
  } -> tensor<4x8x16xbf16>, tensor<4x8xf32>, tensor<4x8xf32>
  return %o, %max, %sum : tensor<4x8x16xbf16>, tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @backward
func.func @backward(%q: tensor<4x8x16xbf16>, %k: tensor<4x8x16xbf16>, %v: tensor<4x8x16xbf16>, %do: tensor<4x8x16xbf16>, %max: tensor<4x8xf32>, %sum: tensor<4x8xf32>, %delta: tensor<4x8xf32>, %init: tensor<4x8x16xbf16>) -> (tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>) {
  // CHECK: %[[G:.+]]:3 = fp8.online_attention_grad ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>) row_ins(%{{.+}}, %{{.+}}, %{{.+}} : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) outs(
  // CHECK-NEXT: ^bb0(%{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: f32, %{{.+}}: f32, %{{.+}}: f32, %{{.+}}: f32, %{{.+}}: f32):
  // CHECK: fp8.yield %{{.+}}, %{{.+}} : f32, f32
  // CHECK: return %[[G]]#0, %[[G]]#1, %[[G]]#2
  %dq, %dk, %dv = fp8.online_attention_grad
      ins(%q, %k, %v, %do : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>)
      row_ins(%max, %sum, %delta : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
      outs(%init, %init, %init : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>)
      {indexing_maps = [#query, #key, #value, #output, #statistic, #statistic, #statistic, #query, #key, #value]} elements {
    ^bb0(%b: index, %i: index, %j: index, %s: f32, %g: f32, %m: f32, %l: f32, %sum_pg: f32):
      %x = arith.subf %s, %m : f32
      %y = math.exp %x : f32
      %p = arith.divf %y, %l : f32
      %centered = arith.subf %g, %sum_pg : f32
      %d = arith.mulf %p, %centered : f32
      fp8.yield %p, %d : f32, f32
  } -> tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>
  return %dq, %dk, %dv : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>
}

// An input of each kind, sites, powers of two, no statistics.
// CHECK-LABEL: func.func @optional
func.func @optional(%q: tensor<4x8x16xbf16>, %k: tensor<4x8x16xbf16>, %v: tensor<4x8x16xbf16>, %bias: tensor<8x8xbf16>, %lengths: tensor<4xi32>, %init: tensor<4x8x16xbf16>) -> tensor<4x8x16xbf16> {
  // CHECK: fp8.online_attention ins(%{{.+}} : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>) row_ins(%{{.+}}, %{{.+}} : tensor<8x8xbf16>, tensor<4xi32>) outs(%{{.+}} : tensor<4x8x16xbf16>) {base_two, indexing_maps = [
  // CHECK-SAME: sites = [#fp8.matmul_site<site = "scores">, #fp8.matmul_site<>], zero_empty_rows} score {
  // CHECK-NEXT: ^bb0(%{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: f32, %{{.+}}: bf16, %{{.+}}: i32):
  // CHECK-NEXT: fp8.yield
  // CHECK-NEXT: } -> tensor<4x8x16xbf16>
  %o = fp8.online_attention ins(%q, %k, %v : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>)
      row_ins(%bias, %lengths : tensor<8x8xbf16>, tensor<4xi32>) outs(%init : tensor<4x8x16xbf16>)
      {indexing_maps = [#query, #key, #value, affine_map<(b, i, j, d, e) -> (i, j)>, affine_map<(b, i, j, d, e) -> (b)>, #output],
       sites = [#fp8.matmul_site<site = "scores">, #fp8.matmul_site<>], base_two, zero_empty_rows} score {
    ^bb0(%b: index, %i: index, %j: index, %s: f32, %more: bf16, %length: i32):
      fp8.yield %s, %s : f32, f32
  } -> tensor<4x8x16xbf16>
  return %o : tensor<4x8x16xbf16>
}

// CHECK-LABEL: func.func @forward_buffers
func.func @forward_buffers(%q: memref<4x8x16xbf16>, %k: memref<4x8x16xbf16>, %v: memref<4x8x16xbf16>, %init: memref<4x8x16xbf16>, %stat: memref<4x8xf32>) {
  // CHECK: fp8.online_attention ins(%{{.+}}, %{{.+}}, %{{.+}} : memref<4x8x16xbf16>, memref<4x8x16xbf16>, memref<4x8x16xbf16>) outs(%{{.+}}, %{{.+}}, %{{.+}} : memref<4x8x16xbf16>, memref<4x8xf32>, memref<4x8xf32>)
  // CHECK: } statistics {
  // CHECK: fp8.yield
  // CHECK-NEXT: }{{$}}
  fp8.online_attention
      ins(%q, %k, %v : memref<4x8x16xbf16>, memref<4x8x16xbf16>, memref<4x8x16xbf16>)
      outs(%init, %stat, %stat : memref<4x8x16xbf16>, memref<4x8xf32>, memref<4x8xf32>)
      {indexing_maps = [#query, #key, #value, #output, #statistic, #statistic],
       visible_keys = affine_map<(b, i, j, d, e) -> (0, i + 1)>} score {
    ^bb0(%b: index, %i: index, %j: index, %s: f32):
      %lowest = arith.constant 0xFF800000 : f32
      %one = arith.constant 1.0 : f32
      %scale = arith.constant 0.25 : f32
      %scaled = arith.mulf %s, %scale : f32
      %later = arith.cmpi ugt, %j, %i : index
      %x = arith.select %later, %lowest, %scaled : f32
      fp8.yield %x, %one : f32, f32
  } statistics {
    ^bb0(%b: index, %i: index, %m: f32, %l: f32):
      fp8.yield %m, %l : f32, f32
  }
  return
}

// CHECK-LABEL: func.func @backward_buffers
func.func @backward_buffers(%q: memref<4x8x16xbf16>, %k: memref<4x8x16xbf16>, %v: memref<4x8x16xbf16>, %do: memref<4x8x16xbf16>, %max: memref<4x8xf32>, %sum: memref<4x8xf32>, %delta: memref<4x8xf32>, %init: memref<4x8x16xbf16>) {
  // CHECK: fp8.online_attention_grad ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : memref<4x8x16xbf16>, memref<4x8x16xbf16>, memref<4x8x16xbf16>, memref<4x8x16xbf16>) row_ins(%{{.+}}, %{{.+}}, %{{.+}} : memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>)
  // CHECK: fp8.yield
  // CHECK-NEXT: }{{$}}
  fp8.online_attention_grad
      ins(%q, %k, %v, %do : memref<4x8x16xbf16>, memref<4x8x16xbf16>, memref<4x8x16xbf16>, memref<4x8x16xbf16>)
      row_ins(%max, %sum, %delta : memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>)
      outs(%init, %init, %init : memref<4x8x16xbf16>, memref<4x8x16xbf16>, memref<4x8x16xbf16>)
      {indexing_maps = [#query, #key, #value, #output, #statistic, #statistic, #statistic, #query, #key, #value]} elements {
    ^bb0(%b: index, %i: index, %j: index, %s: f32, %g: f32, %m: f32, %l: f32, %sum_pg: f32):
      %x = arith.subf %s, %m : f32
      %y = math.exp %x : f32
      %p = arith.divf %y, %l : f32
      %centered = arith.subf %g, %sum_pg : f32
      %d = arith.mulf %p, %centered : f32
      fp8.yield %p, %d : f32, f32
  }
  return
}
