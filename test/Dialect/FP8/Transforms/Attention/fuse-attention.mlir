// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-fuse-attention))' | FileCheck %s

// A causal mask is computed in the region from the indices: no tensor of masks is left. The operation says what it
// hides.
// CHECK: #[[$VISIBLE:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d1 + 1)>
// CHECK-LABEL: @causal
// CHECK-NOT: fp8.matmul site
// CHECK: fp8.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>)
// CHECK-NOT: row_ins
// CHECK-SAME: visible_keys = #[[$VISIBLE]]}
// CHECK: ^bb0(%{{.*}}: index, %[[I:.*]]: index, %[[S:.*]]: tensor<6xf32>):
// CHECK: %[[J:.*]] = linalg.index 0 : index
// CHECK: arith.cmpi sge, %[[I]], %[[J]] : index
// CHECK: arith.mulf
// CHECK: arith.select
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK: fp8.yield
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @causal(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %index = tensor.empty() : tensor<4x6xi1>
  %seen = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%index : tensor<4x6xi1>) {
    ^bb0(%b: i1):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %c = arith.cmpi sge, %i, %j : index
      linalg.yield %c : i1
  } -> tensor<4x6xi1>
  %bits = tensor.empty() : tensor<2x4x6xi1>
  %mask = linalg.broadcast ins(%seen : tensor<4x6xi1>) outs(%bits : tensor<2x4x6xi1>) dimensions = [0]
  %scale = arith.constant dense<0.25> : tensor<2x4x6xf32>
  %scaled = arith.mulf %s, %scale : tensor<2x4x6xf32>
  %lowests = arith.constant dense<0xFF800000> : tensor<2x4x6xf32>
  %m = arith.select %mask, %scaled, %lowests : tensor<2x4x6xi1>, tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%m : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %m, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// A bias of the positions, and keys that a mask of the batch's padding hides; scores divided by the scale.
// CHECK-LABEL: @biased
// CHECK-NOT: fp8.matmul site
// CHECK: fp8.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>)
// CHECK-SAME: row_ins(%{{.*}}, %{{.*}} : tensor<2x6xi1>, tensor<4x6xf32>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: tensor<6xf32>, %{{.*}}: tensor<6xi1>, %{{.*}}: tensor<6xf32>):
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @biased(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %padding: tensor<2x6xi1>, %bias: tensor<4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %pad = tensor.empty() : tensor<2x4x6xi1>
  %mask = linalg.broadcast ins(%padding : tensor<2x6xi1>) outs(%pad : tensor<2x4x6xi1>) dimensions = [1]
  %biases = linalg.broadcast ins(%bias : tensor<4x6xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [0]
  %scale = arith.constant dense<4.0> : tensor<2x4x6xf32>
  %scaled = arith.divf %s, %scale : tensor<2x4x6xf32>
  %sum0 = arith.addf %biases, %scaled : tensor<2x4x6xf32>
  %lowests = arith.constant dense<-3.40282347E+38> : tensor<2x4x6xf32>
  %m = arith.select %mask, %sum0, %lowests : tensor<2x4x6xi1>, tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%m : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %m, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// The exponential of a logarithm of a softmax.
// CHECK-LABEL: @logarithm
// CHECK-NOT: fp8.matmul site
// CHECK: fp8.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>)
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @logarithm(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %log = math.log %sum : tensor<2x4xf32>
  %logs = linalg.broadcast ins(%log : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %l = arith.subf %shifted, %logs : tensor<2x4x6xf32>
  %p = math.exp %l : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// Powers of two of scores that are scaled by log2(e), and a product with the reciprocal sum.
// CHECK-LABEL: @powers_of_two
// CHECK-NOT: fp8.matmul site
// CHECK: fp8.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>)
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @powers_of_two(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %scale = arith.constant dense<0.36067376> : tensor<2x4x6xf32>
  %scaled = arith.mulf %scale, %s : tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%scaled : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %scaled, %maxes : tensor<2x4x6xf32>
  %exp = math.exp2 %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %one = arith.constant dense<1.0> : tensor<2x4xf32>
  %r = arith.divf %one, %sum : tensor<2x4xf32>
  %rs = linalg.broadcast ins(%r : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.mulf %rs, %exp : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// No maximum: right only for scores whose exponentials are finite, as in the program.
// CHECK-LABEL: @no_maximum
// CHECK-NOT: fp8.matmul site
// CHECK: fp8.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>)
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @no_maximum(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %exp = math.exp %s : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// A mask that hides scores from the maximum, then exponentials, then rows in which everything is hidden.
// CHECK-LABEL: @where
// CHECK-NOT: fp8.matmul site
// CHECK: fp8.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>)
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @where(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %index = tensor.empty() : tensor<4x6xi1>
  %seen = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%index : tensor<4x6xi1>) {
    ^bb0(%b: i1):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %c = arith.cmpi sge, %i, %j : index
      linalg.yield %c : i1
  } -> tensor<4x6xi1>
  %bits = tensor.empty() : tensor<2x4x6xi1>
  %mask = linalg.broadcast ins(%seen : tensor<4x6xi1>) outs(%bits : tensor<2x4x6xi1>) dimensions = [0]
  %lowests = arith.constant dense<0xFF800000> : tensor<2x4x6xf32>
  %zeros = arith.constant dense<0.0> : tensor<2x4x6xf32>
  %m = arith.select %mask, %s, %lowests : tensor<2x4x6xi1>, tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%m : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %all = math.exp %shifted : tensor<2x4x6xf32>
  %exp = arith.select %mask, %all, %zeros : tensor<2x4x6xi1>, tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %q0 = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p = arith.select %mask, %q0, %zeros : tensor<2x4x6xi1>, tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// Dropout with bits of the program, and a soft cap of the scores.
// CHECK-LABEL: @dropout
// CHECK-NOT: fp8.matmul site
// CHECK: fp8.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>)
// CHECK-SAME: row_ins(%{{.*}} : tensor<2x4x6xi1>)
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @dropout(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %kept: tensor<2x4x6xi1>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %cap = arith.constant dense<30.0> : tensor<2x4x6xf32>
  %c0 = arith.divf %s, %cap : tensor<2x4x6xf32>
  %c1 = math.tanh %c0 : tensor<2x4x6xf32>
  %c2 = arith.mulf %c1, %cap : tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%c2 : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %c2, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %full = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %keep = arith.constant dense<0.9> : tensor<2x4x6xf32>
  %more = arith.divf %full, %keep : tensor<2x4x6xf32>
  %zeros = arith.constant dense<0.0> : tensor<2x4x6xf32>
  %p = arith.select %kept, %more, %zeros : tensor<2x4x6xi1>, tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// The backward pass computes rows again, from the maximum and sum that the forward operation stores.
// CHECK-LABEL: @backward
// CHECK-NOT: fp8.matmul site
// CHECK: %[[F:.*]]:3 = fp8.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>)
// CHECK-SAME: outs(%{{.*}} : tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK: %[[B:.*]]:3 = fp8.attention_grad ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x4x8xf32>)
// CHECK-SAME: row_ins(%[[F]]#1, %[[F]]#2 : tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[S:.*]]: tensor<6xf32>, %[[G:.*]]: tensor<6xf32>, %[[M:.*]]: f32, %[[L:.*]]: f32):
// CHECK-NOT: maximumf
// CHECK: fp8.yield %{{.*}}, %{{.*}} : tensor<6xf32>, tensor<6xf32>
// CHECK: return %[[F]]#0, %[[B]]#0, %[[B]]#1, %[[B]]#2
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
#do = affine_map<(b, j, e, i) -> (b, i, e)>
#pt = affine_map<(b, j, e, i) -> (b, i, j)>
#dv = affine_map<(b, j, e, i) -> (b, j, e)>
func.func @backward(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %do: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
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
  return %y, %dq, %dk, %dv : tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>
}
