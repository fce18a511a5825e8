// RUN: fp8-opt %s -split-input-file --remarks-filter=fp8-kernels -verify-diagnostics --pass-pipeline='builtin.module(func.func(fp8-vectorize-rows,canonicalize,cse))' | FileCheck %s -enable-var-scope

#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
#stat = affine_map<(m, n) -> (m)>

// A softmax with its maxima, a sum over the rows, and the index in the row.
// CHECK-LABEL: func @softmax
// CHECK: fp8.quantize
// CHECK: ^bb0(%[[M:.+]]: index, %[[X:.+]]: vector<32xbf16>, %[[F:.+]]: f32):
// CHECK: %[[WIDE:.+]] = arith.extf %[[X]] : vector<32xbf16> to vector<32xf32>
// CHECK: %[[MAX:.+]] = vector.reduction <maximumf>, %[[WIDE]], %{{.+}} : vector<32xf32> into f32
// CHECK: %[[MAXES:.+]] = vector.broadcast %[[MAX]] : f32 to vector<32xf32>
// CHECK: %[[BELOW:.+]] = arith.subf %[[WIDE]], %[[MAXES]] : vector<32xf32>
// CHECK: %[[STEP:.+]] = vector.step : vector<32xindex>
// CHECK: arith.cmpi ult, %[[STEP]], %{{.+}} : vector<32xindex>
// CHECK: fp8.yield %{{.+}}, %[[MAX]], %{{.+}} : vector<32xf32>, f32, vector<32xf32>
module attributes {fp8.target = #fp8.chip<"sm_89">} {
func.func @softmax(%x: tensor<8x32xbf16>, %f: tensor<8xf32>, %s: tensor<f32>, %d: tensor<8x32xf8E4M3FN>, %i: tensor<f32>,
                   %m: tensor<8xf32>, %b: tensor<32xf32>) -> (tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<8xf32>, tensor<32xf32>) {
  %lowest = arith.constant 0xFF800000 : f32
  %outside = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%lowest : f32) outs(%outside : tensor<f32>) -> tensor<f32>
  %q:4 = fp8.quantize ins(%x, %f : tensor<8x32xbf16>, tensor<8xf32>) scale(%s : tensor<f32>)
      outs(%d, %i, %m, %b : tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<8xf32>, tensor<32xf32>)
      {indexing_maps = [#id, #stat, #stat, #row], rows = array<i64: 1>} producer {
  ^bb0(%p: index, %e: tensor<32xbf16>, %w: f32):
    %largest = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> ()>], iterator_types = ["reduction"]}
        ins(%e : tensor<32xbf16>) outs(%start : tensor<f32>) {
      ^bb0(%in: bf16, %out: f32):
        %wide = arith.extf %in : bf16 to f32
        %max = arith.maximumf %out, %wide : f32
        linalg.yield %max : f32
    } -> tensor<f32>
    %top = tensor.extract %largest[] : tensor<f32>
    %init = tensor.empty() : tensor<32xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]}
        ins(%e : tensor<32xbf16>) outs(%init : tensor<32xf32>) {
      ^bb0(%in: bf16, %out: f32):
        %wide = arith.extf %in : bf16 to f32
        %below = arith.subf %wide, %top : f32
        %column = linalg.index 0 : index
        %early = arith.cmpi ult, %column, %p : index
        %masked = arith.select %early, %below, %w : f32
        linalg.yield %masked : f32
    } -> tensor<32xf32>
    fp8.yield %r, %top, %r : tensor<32xf32>, f32, tensor<32xf32>
  } -> tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<8xf32>, tensor<32xf32>
  return %q#0, %q#1, %q#2, %q#3 : tensor<8x32xf8E4M3FN>, tensor<f32>, tensor<8xf32>, tensor<32xf32>
}
}

// -----

// For the CPU, and for sums in the order of the program, regions stay on tensors.
// CHECK-LABEL: func @cpu
// CHECK: ^bb0(%{{.+}}: index, %{{.+}}: tensor<16xf32>):
func.func @cpu(%x: tensor<8x16xf32>, %a: tensor<f32>) -> tensor<f32> {
  %r = fp8.amax ins(%x : tensor<8x16xf32>) outs(%a : tensor<f32>)
      {indexing_maps = [affine_map<(m, n) -> (m, n)>], rows = array<i64: 1>} producer {
    ^bb0(%row: index, %e: tensor<16xf32>):
      fp8.yield %e : tensor<16xf32>
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// CHECK-LABEL: func @order
// CHECK: ^bb0(%{{.+}}: index, %{{.+}}: tensor<16xf32>):
module attributes {fp8.target = #fp8.chip<"sm_89">, fp8.program_order} {
func.func @order(%x: tensor<8x16xf32>, %a: tensor<f32>) -> tensor<f32> {
  %r = fp8.amax ins(%x : tensor<8x16xf32>) outs(%a : tensor<f32>)
      {indexing_maps = [affine_map<(m, n) -> (m, n)>], rows = array<i64: 1>} producer {
    ^bb0(%row: index, %e: tensor<16xf32>):
      fp8.yield %e : tensor<16xf32>
  } -> tensor<f32>
  return %r : tensor<f32>
}
}

// -----

// Rows that lanes cannot share, and the reason.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
// CHECK-LABEL: func @first_dimension
// CHECK: tensor<8xf32>):
func.func @first_dimension(%x: tensor<8x16xf32>, %a: tensor<f32>) -> tensor<f32> {
  // expected-remark@+1 {{'fp8.amax' becomes a loop over its rows: its rows are not the last dimension}}
  %r = fp8.amax ins(%x : tensor<8x16xf32>) outs(%a : tensor<f32>)
      {indexing_maps = [affine_map<(m, n) -> (m, n)>], rows = array<i64: 0>} producer {
    ^bb0(%row: index, %e: tensor<8xf32>):
      fp8.yield %e : tensor<8xf32>
  } -> tensor<f32>
  return %r : tensor<f32>
}

// Any number of rows.
// CHECK-LABEL: func @dynamic
// CHECK: ^bb0(%{{.+}}: index, %{{.+}}: vector<16xf32>):
func.func @dynamic(%x: tensor<?x16xf32>, %a: tensor<f32>) -> tensor<f32> {
  %r = fp8.amax ins(%x : tensor<?x16xf32>) outs(%a : tensor<f32>)
      {indexing_maps = [affine_map<(m, n) -> (m, n)>], rows = array<i64: 1>} producer {
    ^bb0(%row: index, %e: tensor<16xf32>):
      fp8.yield %e : tensor<16xf32>
  } -> tensor<f32>
  return %r : tensor<f32>
}

// CHECK-LABEL: func @long_row
func.func @long_row(%x: tensor<8x40000xf32>, %a: tensor<f32>) -> tensor<f32> {
  // expected-remark@+1 {{becomes a loop over its rows: a row does not fit in registers}}
  %r = fp8.amax ins(%x : tensor<8x40000xf32>) outs(%a : tensor<f32>)
      {indexing_maps = [affine_map<(m, n) -> (m, n)>], rows = array<i64: 1>} producer {
    ^bb0(%row: index, %e: tensor<40000xf32>):
      fp8.yield %e : tensor<40000xf32>
  } -> tensor<f32>
  return %r : tensor<f32>
}

// CHECK-LABEL: func @outside
func.func @outside(%x: tensor<8x16xf32>, %t: tensor<f32>, %a: tensor<f32>) -> tensor<f32> {
  %w = tensor.extract %t[] : tensor<f32>
  // expected-remark@+1 {{becomes a loop over its rows: its producer uses a scalar from outside}}
  %r = fp8.amax ins(%x : tensor<8x16xf32>) outs(%a : tensor<f32>)
      {indexing_maps = [affine_map<(m, n) -> (m, n)>], rows = array<i64: 1>} producer {
    ^bb0(%row: index, %e: tensor<16xf32>):
      %i = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%w : f32) outs(%i : tensor<16xf32>) -> tensor<16xf32>
      fp8.yield %f : tensor<16xf32>
  } -> tensor<f32>
  return %r : tensor<f32>
}

// A sum with another operation on it in each iteration.
// CHECK-LABEL: func @scan
func.func @scan(%x: tensor<8x16xf32>, %a: tensor<f32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{becomes a loop over its rows: lanes cannot share 'linalg.generic' of its producer}}
  %r = fp8.amax ins(%x : tensor<8x16xf32>) outs(%a : tensor<f32>)
      {indexing_maps = [affine_map<(m, n) -> (m, n)>], rows = array<i64: 1>} producer {
    ^bb0(%row: index, %e: tensor<16xf32>):
      %i = tensor.empty() : tensor<f32>
      %z = linalg.fill ins(%zero : f32) outs(%i : tensor<f32>) -> tensor<f32>
      %s = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> ()>], iterator_types = ["reduction"]}
          ins(%e : tensor<16xf32>) outs(%z : tensor<f32>) {
        ^bb0(%in: f32, %out: f32):
          %half = arith.divf %out, %in : f32
          %sum = arith.addf %half, %in : f32
          linalg.yield %sum : f32
      } -> tensor<f32>
      %sum = tensor.extract %s[] : tensor<f32>
      %init = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%sum : f32) outs(%init : tensor<16xf32>) -> tensor<16xf32>
      fp8.yield %f : tensor<16xf32>
  } -> tensor<f32>
  return %r : tensor<f32>
}
}
