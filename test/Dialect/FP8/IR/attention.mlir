// fp8.attention and fp8.attention_grad, with every optional part: what is printed reads back, as text and as
// bytecode; the shapes of results are those of the destinations.
// RUN: fp8-opt %s | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --emit-bytecode | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --mlir-print-op-generic | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize | FileCheck %s --check-prefix=SHAPE

#query = affine_map<(b, h, g, i, j, d, e) -> (b, i, h, g, d)>
#key = affine_map<(b, h, g, i, j, d, e) -> (b, j, h, d)>
#value = affine_map<(b, h, g, i, j, d, e) -> (b, j, h, e)>
#bias = affine_map<(b, h, g, i, j, d, e) -> (h, g, 0, i, j)>
#lengths = affine_map<(b, h, g, i, j, d, e) -> (b)>
#output = affine_map<(b, h, g, i, j, d, e) -> (b, i, h, g, e)>
#statistic = affine_map<(b, h, g, i, j, d, e) -> (b, h, g, i)>
#rows = affine_map<(b, h, g, i, j, d, e) -> (j, b, h, g, i)>
#repeated = affine_map<(b, h, g, i, j, d, e) -> (b, j, h, g, d)>

// Heads in groups, that share a key and a value; depth and width of different sizes; an input by rows and one by
// scalars; a statistic and a stored row.
// CHECK-LABEL: func.func @forward
func.func @forward(%q: tensor<2x?x3x4x16xbf16>, %k: tensor<2x10x3x16xbf16>, %v: tensor<2x10x3x24xbf16>,
                   %bias: tensor<3x4x1x?x10xf32>, %lengths: tensor<2xi32>, %o: tensor<2x?x3x4x24xbf16>,
                   %stat: tensor<2x3x4x?xf32>, %all: tensor<10x2x3x4x?xbf16>) -> tensor<2x?x3x4x24xbf16> {
  // CHECK: %[[O:.+]]:3 = fp8.attention ins(%{{.+}}, %{{.+}}, %{{.+}} : tensor<2x?x3x4x16xbf16>, tensor<2x10x3x16xbf16>, tensor<2x10x3x24xbf16>) row_ins(%{{.+}}, %{{.+}} : tensor<3x4x1x?x10xf32>, tensor<2xi32>) outs(%{{.+}}, %{{.+}}, %{{.+}} : tensor<2x?x3x4x24xbf16>, tensor<2x3x4x?xf32>, tensor<10x2x3x4x?xbf16>) {
  // CHECK-SAME: indexing_maps = [{{([^,]+, ){7}[^],]+}}]
  // CHECK-SAME: sites = [#fp8.matmul_site<site = "scores", rhs_kind = grad_output, kept = "small">, #fp8.matmul_site<>]} rows {
  // CHECK-NEXT: ^bb0(%{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: tensor<10xbf16>, %{{.+}}: tensor<10xf32>, %{{.+}}: i32):
  // CHECK: fp8.yield %{{.+}}, %{{.+}}, %{{.+}} : tensor<10xbf16>, f32, tensor<10xbf16>
  // CHECK-NEXT: } -> tensor<2x?x3x4x24xbf16>, tensor<2x3x4x?xf32>, tensor<10x2x3x4x?xbf16>
  // CHECK: return %[[O]]#0
  %0:3 = fp8.attention ins(%q, %k, %v : tensor<2x?x3x4x16xbf16>, tensor<2x10x3x16xbf16>, tensor<2x10x3x24xbf16>)
      row_ins(%bias, %lengths : tensor<3x4x1x?x10xf32>, tensor<2xi32>)
      outs(%o, %stat, %all : tensor<2x?x3x4x24xbf16>, tensor<2x3x4x?xf32>, tensor<10x2x3x4x?xbf16>)
      {indexing_maps = [#query, #key, #value, #bias, #lengths, #output, #statistic, #rows],
       sites = [#fp8.matmul_site<site = "scores", rhs_kind = grad_output, kept = "small">, #fp8.matmul_site<>]} rows {
    ^bb0(%b: index, %h: index, %g: index, %i: index, %s: tensor<10xbf16>, %row: tensor<10xf32>, %length: i32):
      %zero = arith.constant 0.0 : f32
      fp8.yield %s, %zero, %s : tensor<10xbf16>, f32, tensor<10xbf16>
  } -> tensor<2x?x3x4x24xbf16>, tensor<2x3x4x?xf32>, tensor<10x2x3x4x?xbf16>
  return %0#0 : tensor<2x?x3x4x24xbf16>
}

// The gradient of the key for each head of a group, which the program sums itself; that of the value for the group.
// CHECK-LABEL: func.func @backward
func.func @backward(%q: tensor<2x8x3x4x16xbf16>, %k: tensor<2x10x3x16xbf16>, %v: tensor<2x10x3x24xbf16>,
                    %do: tensor<2x8x3x4x24xf32>, %stat: tensor<2x3x4x8xf32>, %dk: tensor<2x10x3x4x16xf32>)
    -> (tensor<2x8x3x4x16xbf16>, tensor<2x10x3x4x16xf32>, tensor<2x10x3x24xbf16>) {
  // CHECK: %[[G:.+]]:3 = fp8.attention_grad ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<2x8x3x4x16xbf16>, tensor<2x10x3x16xbf16>, tensor<2x10x3x24xbf16>, tensor<2x8x3x4x24xf32>) row_ins(%{{.+}} : tensor<2x3x4x8xf32>) outs(
  // CHECK-NEXT: ^bb0(%{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: tensor<10xbf16>, %{{.+}}: tensor<10xf32>, %{{.+}}: f32):
  // CHECK: return %[[G]]#0, %[[G]]#1, %[[G]]#2
  %0:3 = fp8.attention_grad
      ins(%q, %k, %v, %do : tensor<2x8x3x4x16xbf16>, tensor<2x10x3x16xbf16>, tensor<2x10x3x24xbf16>, tensor<2x8x3x4x24xf32>)
      row_ins(%stat : tensor<2x3x4x8xf32>)
      outs(%q, %dk, %v : tensor<2x8x3x4x16xbf16>, tensor<2x10x3x4x16xf32>, tensor<2x10x3x24xbf16>)
      {indexing_maps = [#query, #key, #value, #output, #statistic, #query, #repeated, #value]} rows {
    ^bb0(%b: index, %h: index, %g: index, %i: index, %s: tensor<10xbf16>, %dp: tensor<10xf32>, %max: f32):
      fp8.yield %s, %dp : tensor<10xbf16>, tensor<10xf32>
  } -> tensor<2x8x3x4x16xbf16>, tensor<2x10x3x4x16xf32>, tensor<2x10x3x24xbf16>
  return %0#0, %0#1, %0#2 : tensor<2x8x3x4x16xbf16>, tensor<2x10x3x4x16xf32>, tensor<2x10x3x24xbf16>
}

// SHAPE-LABEL: func.func @shape
// SHAPE-SAME: %[[O:[^,]+]]: tensor<?x24xf32>) -> index
func.func @shape(%q: tensor<?x16xf32>, %k: tensor<?x16xf32>, %v: tensor<?x24xf32>, %o: tensor<?x24xf32>) -> index {
  // SHAPE: %[[DIM:.+]] = tensor.dim %[[O]], %{{.+}}
  // SHAPE: return %[[DIM]]
  %zero = arith.constant 0 : index
  %0 = fp8.attention ins(%q, %k, %v : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x24xf32>)
      outs(%o : tensor<?x24xf32>)
      {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>,
                        affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
    ^bb0(%i: index, %s: tensor<?xf32>):
      fp8.yield %s : tensor<?xf32>
  } -> tensor<?x24xf32>
  %dim = tensor.dim %0, %zero : tensor<?x24xf32>
  return %dim : index
}
