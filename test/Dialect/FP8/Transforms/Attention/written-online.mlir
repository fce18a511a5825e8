// Attention that kernels cannot compute stays written out, and says why.
// RUN: fp8-opt %s -split-input-file --remarks-filter=fp8-attention --pass-pipeline='builtin.module(func.func(fp8-fuse-attention))' -verify-diagnostics -o /dev/null

// Operands that tensor cores would round.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @f32(%q: tensor<2x4x16xf32>, %k: tensor<2x6x16xf32>, %v: tensor<2x6x8xf32>) -> (tensor<2x4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-remark @+1 {{attention stays written out: its operands are f32: tensor cores would round them to TF32}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xf32>, tensor<2x6x16xf32>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
}

// -----

// Operands of two types.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @mixed(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  // expected-remark @+1 {{attention stays written out: its operands are of different types}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}

// -----

// Heads that are too large for registers.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @deep(%q: tensor<2x4x320xbf16>, %k: tensor<2x6x320xbf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  // expected-remark @+1 {{attention stays written out: the depth of its heads is 320: kernels have at most 256}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x320xbf16>, tensor<2x6x320xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}

// -----

// Heads that loads of 16 bytes do not fit.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @odd(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x12xbf16>) -> (tensor<2x4x12xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x12xbf16>
  // expected-remark @+1 {{attention stays written out: the width of its heads is 12: kernels have multiples of 8}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x12xbf16>) outs(%out : tensor<2x4x12xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x12xbf16>
  return %y : tensor<2x4x12xbf16>
}
}

// -----

// Exponentials that overflow.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @no_maximum(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  // expected-remark @+1 {{attention stays written out: its softmax subtracts no maximum, and a kernel's does}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %exp = math.exp %s : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}

// -----

// A softmax in f64.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @doubles(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>) {
  %zero = arith.constant 0.0 : f64
  %lowest = arith.constant 0xFFF0000000000000 : f64
  %rows = tensor.empty() : tensor<2x4x6xf64>
  %stats = tensor.empty() : tensor<2x4xf64>
  %below = linalg.fill ins(%lowest : f64) outs(%stats : tensor<2x4xf64>) -> tensor<2x4xf64>
  %none = linalg.fill ins(%zero : f64) outs(%stats : tensor<2x4xf64>) -> tensor<2x4xf64>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  // expected-remark @+1 {{attention stays written out: its code on rows computes in f64, and that of a kernel in f32}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf64>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf64>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf64>) outs(%below : tensor<2x4xf64>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf64>) outs(%rows : tensor<2x4x6xf64>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf64>
  %exp = math.exp %shifted : tensor<2x4x6xf64>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf64>) outs(%none : tensor<2x4xf64>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf64>) outs(%rows : tensor<2x4x6xf64>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf64>
  %p16 = arith.truncf %p : tensor<2x4x6xf64> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}

// -----

// A statistic that is no maximum and no sum of exponentials.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @squares(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  // expected-remark @+1 {{attention stays written out: a statistic of its rows reduces its rows to another number than a kernel does}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %sq = arith.mulf %s, %s : tensor<2x4x6xf32>
  %norm = linalg.reduce { arith.addf } ins(%sq : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y, %norm : tensor<2x4x8xbf16>, tensor<2x4xf32>
}
}

// -----

// A statistic that reads a tensor.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @read_statistic(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>, %more: tensor<2x4xf32>) -> (tensor<2x4x8xbf16>, tensor<2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  // expected-remark @+1 {{attention stays written out: a statistic of its rows is more than code on their maximum and sum}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %scaled = arith.mulf %max, %more : tensor<2x4xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y, %scaled : tensor<2x4x8xbf16>, tensor<2x4xf32>
}
}

// -----

// Probabilities that are no factor times a softmax.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @root(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  // expected-remark @+1 {{attention stays written out: its probabilities are more than a factor times their softmax}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %full = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p = math.sqrt %full : tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}

// -----

// Rows without a key that have equal probabilities.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @uniform(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  // expected-remark @+1 {{attention stays written out: its rows in which all keys are hidden have neither the probability 0 nor NaN}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %lowests = arith.constant dense<0xFF800000> : tensor<2x4x6xf32>
  %sixths = arith.constant dense<0.166666667> : tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %full = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %all = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %hidden = arith.cmpf oeq, %all, %lowests : tensor<2x4x6xf32>
  %p = arith.select %hidden, %sixths, %full : tensor<2x4x6xi1>, tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}

// -----

// A backward pass that sums gradients without their probabilities.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
#do = affine_map<(b, j, e, i) -> (b, i, e)>
#pt = affine_map<(b, j, e, i) -> (b, i, j)>
#dv = affine_map<(b, j, e, i) -> (b, j, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @other_sum(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>, %do: tensor<2x4x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  // expected-remark @+1 {{attention stays written out: its backward pass reduces its rows to another number than a kernel does}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  %keys = tensor.empty() : tensor<2x6x16xbf16>
  %values = tensor.empty() : tensor<2x6x8xbf16>
  %queries = tensor.empty() : tensor<2x4x16xbf16>
  %g = fp8.matmul site("h0#2") role(other) kinds(grad_output, input) ins(%do, %v : tensor<2x4x8xbf16>, tensor<2x6x8xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %dv = fp8.matmul site("h0#2") role(other) kinds(grad_output, input) ins(%do, %p16 : tensor<2x4x8xbf16>, tensor<2x4x6xbf16>) outs(%values : tensor<2x6x8xbf16>)
      {indexing_maps = [#do, #pt, #dv]} -> tensor<2x6x8xbf16>
  %dot = linalg.reduce { arith.addf } ins(%g : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %dots = linalg.broadcast ins(%dot : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %centered = arith.subf %g, %dots : tensor<2x4x6xf32>
  %ds = arith.mulf %p, %centered : tensor<2x4x6xf32>
  %ds16 = arith.truncf %ds : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %dq = fp8.matmul site("h0") role(other) kinds(grad_output, input) ins(%ds16, %k : tensor<2x4x6xbf16>, tensor<2x6x16xbf16>) outs(%queries : tensor<2x4x16xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x16xbf16>
  %dk = fp8.matmul site("h0") role(other) kinds(grad_output, input) ins(%ds16, %q : tensor<2x4x6xbf16>, tensor<2x4x16xbf16>) outs(%keys : tensor<2x6x16xbf16>)
      {indexing_maps = [#pt, #do, #dv]} -> tensor<2x6x16xbf16>
  return %y, %dq, %dk, %dv : tensor<2x4x8xbf16>, tensor<2x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x8xbf16>
}
}

// -----

// Values that are scaled would need a scaled output.
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @scaled_values(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> tensor<2x4x8xbf16> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %wv = arith.extf %v : tensor<2x6x8xbf16> to tensor<2x6x8xf32>
  %halves = arith.constant dense<0.5> : tensor<2x6x8xf32>
  %sv = arith.mulf %wv, %halves : tensor<2x6x8xf32>
  // expected-remark @+1 {{attention stays written out: its operands are scaled by different constants}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %sv : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [affine_map<(b, i, e, j) -> (b, i, j)>, affine_map<(b, i, e, j) -> (b, j, e)>, affine_map<(b, i, e, j) -> (b, i, e)>]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}
