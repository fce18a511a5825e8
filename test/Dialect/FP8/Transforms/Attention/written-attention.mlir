// RUN: fp8-opt %s -split-input-file --remarks-filter=fp8-attention --pass-pipeline='builtin.module(func.func(fp8-fuse-attention))' -verify-diagnostics -o /dev/null

// A sigmoid of each score is no softmax.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @sigmoid(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-remark @+1 {{attention stays written out: no softmax is between its matmuls}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %n = arith.negf %s : tensor<2x4x6xf32>
  %e = math.exp %n : tensor<2x4x6xf32>
  %one = arith.constant dense<1.0> : tensor<2x4x6xf32>
  %d = arith.addf %e, %one : tensor<2x4x6xf32>
  %p = arith.divf %one, %d : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// Weights that the program also returns.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @returned(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-remark @+1 {{attention stays written out: its scores or probabilities are results of the program}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
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
  return %y, %p : tensor<2x4x8xf32>, tensor<2x4x6xf32>
}

// -----

// Sums that begin with a bias.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @resumed(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %bias: tensor<2x4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-remark @+1 {{attention stays written out: its matmuls add to another tensor, or have an epilogue}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) resume ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%bias : tensor<2x4x6xf32>)
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

// -----

// Scores that something else sums up.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @summed(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> (tensor<2x4x8xf32>, tensor<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-remark @+1 {{attention stays written out: its scores or probabilities are also read by 'linalg.reduce'}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %init = tensor.empty() : tensor<4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %total = linalg.reduce { arith.addf } ins(%p : tensor<2x4x6xf32>) outs(%start : tensor<4x6xf32>) dimensions = [0]
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y, %total : tensor<2x4x8xf32>, tensor<4x6xf32>
}

// -----

// A sum of exponentials that is not the one of the row's maximum.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @half(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-remark @+1 {{attention stays written out: the code between its matmuls is no softmax of the scores along the keys}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %half = arith.constant dense<0.5> : tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %full = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p = arith.mulf %full, %exp : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// A softmax over the queries.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @queries(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-remark @+1 {{attention stays written out: its softmax is along another dimension than the one that its second matmul sums over}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %colstats = tensor.empty() : tensor<2x6xf32>
  %cbelow = linalg.fill ins(%lowest : f32) outs(%colstats : tensor<2x6xf32>) -> tensor<2x6xf32>
  %cnone = linalg.fill ins(%zero : f32) outs(%colstats : tensor<2x6xf32>) -> tensor<2x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%cbelow : tensor<2x6xf32>) dimensions = [1]
  %maxes = linalg.broadcast ins(%max : tensor<2x6xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [1]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%cnone : tensor<2x6xf32>) dimensions = [1]
  %sums = linalg.broadcast ins(%sum : tensor<2x6xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [1]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// Probabilities whose keys are reversed.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @reversed(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-remark @+1 {{attention stays written out: the keys of its probabilities are not in the order of those of its scores}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %w = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
      outs(%rows : tensor<2x4x6xf32>) {
    ^bb0(%e: f32):
      %b = linalg.index 0 : index
      %i = linalg.index 1 : index
      %j = linalg.index 2 : index
      %five = arith.constant 5 : index
      %r = arith.subi %five, %j : index
      %x = tensor.extract %w[%b, %i, %r] : tensor<2x4x6xf32>
      linalg.yield %x : f32
  } -> tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// An operation that is no code on elements.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @scattered(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %bias: tensor<1x4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-remark @+1 {{attention stays written out: 'tensor.insert_slice' between its matmuls is no code on elements and rows}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %w = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p = tensor.insert_slice %bias into %w[0, 0, 0] [1, 4, 6] [1, 1, 1] : tensor<1x4x6xf32> into tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// A gradient of the keys without one of the queries.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
#do = affine_map<(b, j, e, i) -> (b, i, e)>
#pt = affine_map<(b, j, e, i) -> (b, i, j)>
#dv = affine_map<(b, j, e, i) -> (b, j, e)>
func.func @half_gradient(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %do: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-remark @+1 {{attention stays written out: its probabilities or their gradients are read by other matmuls than those of its backward pass}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %keys = tensor.empty() : tensor<2x6x8xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  %g = fp8.matmul site("h0#2") role(other) kinds(grad_output, input) ins(%do, %v : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %dv = fp8.matmul site("h0#2") role(other) kinds(grad_output, input) ins(%do, %p : tensor<2x4x8xf32>, tensor<2x4x6xf32>) outs(%keys : tensor<2x6x8xf32>)
    {indexing_maps = [#do, #pt, #dv]} -> tensor<2x6x8xf32>
  %pg = arith.mulf %p, %g : tensor<2x4x6xf32>
  %dot = linalg.reduce { arith.addf } ins(%pg : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %dots = linalg.broadcast ins(%dot : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %c = arith.subf %g, %dots : tensor<2x4x6xf32>
  %ds = arith.mulf %p, %c : tensor<2x4x6xf32>
  %dq = fp8.matmul site("h0") role(other) kinds(grad_output, input) ins(%ds, %k : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  %dk = fp8.matmul site("h0") role(other) kinds(grad_output, input) ins(%ds, %q : tensor<2x4x6xf32>, tensor<2x4x8xf32>) outs(%keys : tensor<2x6x8xf32>)
    {indexing_maps = [#pt, #do, #dv]} -> tensor<2x6x8xf32>
  return %y, %y, %dk, %dv : tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>
}
