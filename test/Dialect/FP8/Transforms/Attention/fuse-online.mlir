// Targets with kernels for it have attention whose softmax is computed online.
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-fuse-attention))' | FileCheck %s

// A causal mask is computed from the indices.
// CHECK: #[[$VISIBLE:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d1 + 1)>
// CHECK-LABEL: @causal
// CHECK: fp8.online_attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x8xbf16>) outs(%{{.*}} : tensor<2x4x8xbf16>)
// CHECK-SAME: sites = [#fp8.matmul_site<site = "h0">, #fp8.matmul_site<site = "h0#2">], visible_keys = #[[$VISIBLE]]} score {
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[I:.*]]: index, %[[J:.*]]: index, %[[S:.*]]: f32):
// CHECK-DAG: %[[SEEN:.*]] = arith.cmpi sge, %[[I]], %[[J]] : index
// CHECK-DAG: %[[SCALED:.*]] = arith.mulf %[[S]], %{{.*}} : f32
// CHECK: %[[X:.*]] = arith.select %[[SEEN]], %[[SCALED]], %{{.*}} : f32
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT: fp8.yield %[[X]], %[[ONE]] : f32, f32
// CHECK-NEXT: } -> tensor<2x4x8xbf16>
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @causal(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
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
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}

// -----

// A bias of 16 bits, and keys that a mask of the batch's padding hides with the lowest number.
// CHECK-LABEL: @biased
// CHECK: fp8.online_attention
// CHECK-SAME: row_ins(%{{.*}}, %{{.*}} : tensor<2x6xi1>, tensor<4x6xbf16>)
// CHECK-NOT: zero_empty_rows
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32, %[[SEEN:.*]]: i1, %[[B16:.*]]: bf16):
// CHECK: %[[B:.*]] = arith.extf %[[B16]] : bf16 to f32
// CHECK: %[[SUM:.*]] = arith.addf %[[B]], %[[S]] : f32
// CHECK: %[[LOWEST:.*]] = arith.constant -3.40282347E+38 : f32
// CHECK: arith.select %[[SEEN]], %[[SUM]], %[[LOWEST]] : f32
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @biased(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>, %padding: tensor<2x6xi1>, %bias: tensor<4x6xbf16>) -> (tensor<2x4x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %pad = tensor.empty() : tensor<2x4x6xi1>
  %mask = linalg.broadcast ins(%padding : tensor<2x6xi1>) outs(%pad : tensor<2x4x6xi1>) dimensions = [1]
  %wide = arith.extf %bias : tensor<4x6xbf16> to tensor<4x6xf32>
  %biases = linalg.broadcast ins(%wide : tensor<4x6xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [0]
  %biased = arith.addf %biases, %s : tensor<2x4x6xf32>
  %lowests = arith.constant dense<-3.40282347E+38> : tensor<2x4x6xf32>
  %m = arith.select %mask, %biased, %lowests : tensor<2x4x6xi1>, tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%m : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %m, %maxes : tensor<2x4x6xf32>
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

// The exponential of a logarithm of a softmax; the program returns the logarithm of the sum.
// CHECK-LABEL: @logarithm
// CHECK: %[[F:.*]]:2 = fp8.online_attention
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : tensor<2x4x8xbf16>, tensor<2x4xf32>)
// CHECK: } statistics {
// CHECK-NEXT: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[M:.*]]: f32, %[[L:.*]]: f32):
// CHECK-NEXT: %[[LOG:.*]] = math.log %[[L]] : f32
// CHECK-NEXT: %[[LSE:.*]] = arith.addf %[[M]], %[[LOG]] : f32
// CHECK-NEXT: fp8.yield %[[LSE]] : f32
// CHECK: return %[[F]]#0, %[[F]]#1
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @logarithm(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %log = math.log %sum : tensor<2x4xf32>
  %lse = arith.addf %max, %log : tensor<2x4xf32>
  %lses = linalg.broadcast ins(%lse : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %l = arith.subf %s, %lses : tensor<2x4x6xf32>
  %p = math.exp %l : tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y, %lse : tensor<2x4x8xbf16>, tensor<2x4xf32>
}
}

// -----

// Powers of two of scores that are scaled after the maximum was found: the kernel's maximum is that of scaled scores.
// CHECK-LABEL: @powers_of_two
// CHECK: %[[F:.*]]:2 = fp8.online_attention
// CHECK-SAME: base_two
// CHECK: %[[X:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: fp8.yield %[[X]], %{{.*}} : f32, f32
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[M:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[FACTOR:.*]] = arith.constant 0.693147182 : f32
// CHECK-NEXT: %[[MAX:.*]] = arith.mulf %[[M]], %[[FACTOR]] : f32
// CHECK-NEXT: fp8.yield %[[MAX]] : f32
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @powers_of_two(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %log2e = arith.constant dense<1.44269504> : tensor<2x4x6xf32>
  %log2es = arith.constant dense<1.44269504> : tensor<2x4xf32>
  %scaled = arith.mulf %s, %log2e : tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %m2 = arith.mulf %max, %log2es : tensor<2x4xf32>
  %maxes = linalg.broadcast ins(%m2 : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %scaled, %maxes : tensor<2x4x6xf32>
  %exp = math.exp2 %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y, %max : tensor<2x4x8xbf16>, tensor<2x4xf32>
}
}

// -----

// Dropout by numbers of the program, that probabilities are multiplied by.
// CHECK-LABEL: @dropout
// CHECK: fp8.online_attention
// CHECK-SAME: row_ins(%{{.*}} : tensor<2x4x6xf32>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32, %[[KEPT:.*]]: f32):
// CHECK: %[[W:.*]] = arith.mulf %{{.*}}, %[[KEPT]] : f32
// CHECK: fp8.yield %[[S]], %[[W]] : f32, f32
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @dropout(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>, %kept: tensor<2x4x6xf32>) -> (tensor<2x4x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %full = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p = arith.mulf %full, %kept : tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}

// -----

// A softmax in bf16 is computed in f32; the statistic of the program is bf16.
// CHECK-LABEL: @halves
// CHECK: %[[F:.*]]:2 = fp8.online_attention
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : tensor<2x4x8xbf16>, tensor<2x4xbf16>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32):
// CHECK: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK: %[[X:.*]] = arith.mulf %[[S]], %[[SCALE]] : f32
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[M:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[M]] : f32 to bf16
// CHECK-NEXT: fp8.yield %[[ROUNDED]] : bf16
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @halves(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %lowest = arith.constant 0xFF80 : bf16
  %rows = tensor.empty() : tensor<2x4x6xbf16>
  %stats = tensor.empty() : tensor<2x4xbf16>
  %below = linalg.fill ins(%lowest : bf16) outs(%stats : tensor<2x4xbf16>) -> tensor<2x4xbf16>
  %none = linalg.fill ins(%zero : bf16) outs(%stats : tensor<2x4xbf16>) -> tensor<2x4xbf16>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xbf16>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xbf16>
  %scale = arith.constant dense<0.125> : tensor<2x4x6xbf16>
  %scaled = arith.mulf %s, %scale : tensor<2x4x6xbf16>
  %max = linalg.reduce { arith.maximumf } ins(%scaled : tensor<2x4x6xbf16>) outs(%below : tensor<2x4xbf16>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xbf16>) outs(%rows : tensor<2x4x6xbf16>) dimensions = [2]
  %shifted = arith.subf %scaled, %maxes : tensor<2x4x6xbf16>
  %exp = math.exp %shifted : tensor<2x4x6xbf16>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xbf16>) outs(%none : tensor<2x4xbf16>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xbf16>) outs(%rows : tensor<2x4x6xbf16>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y, %max : tensor<2x4x8xbf16>, tensor<2x4xbf16>
}
}

// -----

// A row in which a mask of the program hides all keys has the probability 0.
// CHECK-LABEL: @where
// CHECK: fp8.online_attention
// CHECK-SAME: zero_empty_rows} score {
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32, %[[SEEN:.*]]: i1):
// CHECK: %[[X:.*]] = arith.select %[[SEEN]], %[[S]], %{{.*}} : f32
// CHECK: %[[W:.*]] = arith.select %[[SEEN]], %{{.*}}, %{{.*}} : f32
// CHECK: fp8.yield %[[X]], %[[W]] : f32, f32
// CHECK-NOT: fp8.matmul site
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @where(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>, %mask: tensor<2x4x6xi1>) -> (tensor<2x4x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %lowests = arith.constant dense<0xFF800000> : tensor<2x4x6xf32>
  %zeros = arith.constant dense<0.0> : tensor<2x4x6xf32>
  %m = arith.select %mask, %s, %lowests : tensor<2x4x6xi1>, tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%m : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %m, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %full = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %p = arith.select %mask, %full, %zeros : tensor<2x4x6xi1>, tensor<2x4x6xf32>
  %p16 = arith.truncf %p : tensor<2x4x6xf32> to tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p16, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
}

// -----

// The backward pass reads the maximum and the sum that forward stores, and the sum of the output times its gradient.
// CHECK-LABEL: @backward
// CHECK-SAME: %[[DO:[^:]*]]: tensor<2x4x8xbf16>)
// CHECK: %[[F:.*]]:3 = fp8.online_attention
// CHECK-SAME: outs(%{{.*}} : tensor<2x4x8xbf16>, tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[M:.*]]: f32, %[[L:.*]]: f32):
// CHECK-NEXT: fp8.yield %[[M]], %[[L]] : f32, f32
// CHECK: %[[DELTA:.*]] = linalg.generic
// CHECK-SAME: ["parallel", "parallel", "reduction"]} ins(%[[F]]#0, %[[DO]] : tensor<2x4x8xbf16>, tensor<2x4x8xbf16>)
// CHECK: %[[B:.*]]:3 = fp8.online_attention_grad
// CHECK-SAME: row_ins(%[[F]]#1, %[[F]]#2, %[[DELTA]] : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK-SAME: outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x8xbf16>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32, %[[G:.*]]: f32, %[[M:.*]]: f32, %[[L:.*]]: f32, %[[D:.*]]: f32):
// CHECK-NEXT: %[[SHIFTED:.*]] = arith.subf %[[S]], %[[M]] : f32
// CHECK-NEXT: %[[EXP:.*]] = math.exp %[[SHIFTED]] : f32
// CHECK-NEXT: %[[P:.*]] = arith.divf %[[EXP]], %[[L]] : f32
// CHECK-NEXT: %[[CENTERED:.*]] = arith.subf %[[G]], %[[D]] : f32
// CHECK-NEXT: %[[DS:.*]] = arith.mulf %[[P]], %[[CENTERED]] : f32
// CHECK-NEXT: fp8.yield %[[P]], %[[DS]] : f32, f32
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
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @backward(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>, %do: tensor<2x4x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
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
  %pg = arith.mulf %p, %g : tensor<2x4x6xf32>
  %dot = linalg.reduce { arith.addf } ins(%pg : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
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

// With a mask, dropout, a softmax in bf16, a negative sum, and a statistic that the program returns, too: it is not
// read by backward, because it is rounded.
// CHECK: #[[$VISIBLE:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d1 + 1)>
// CHECK-LABEL: @causal_backward
// CHECK: %[[F:.*]]:4 = fp8.online_attention
// CHECK-SAME: row_ins(%[[KEPT:.*]] : tensor<2x4x6xi1>)
// CHECK-SAME: outs(%{{.*}} : tensor<2x4x8xbf16>, tensor<2x4xbf16>, tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK-SAME: visible_keys = #[[$VISIBLE]]
// CHECK: fp8.yield %{{.*}}, %{{.*}}, %{{.*}} : bf16, f32, f32
// CHECK: %[[DELTA:.*]] = linalg.generic
// CHECK: fp8.online_attention_grad
// CHECK-SAME: row_ins(%[[KEPT]], %[[F]]#2, %[[F]]#3, %[[DELTA]] : tensor<2x4x6xi1>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK-SAME: visible_keys = #[[$VISIBLE]]
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32, %[[G:.*]]: f32, %{{.*}}: i1, %[[M:.*]]: f32, %[[L:.*]]: f32, %[[D:.*]]: f32):
// CHECK: arith.negf %[[D]] : f32
// CHECK-NOT: bf16
// CHECK: fp8.yield %{{.*}}, %{{.*}} : f32, f32
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
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @causal_backward(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>, %do: tensor<2x4x8xbf16>, %kept: tensor<2x4x6xi1>) -> (tensor<2x4x8xbf16>, tensor<2x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x8xbf16>, tensor<2x4xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %lowest = arith.constant 0xFF80 : bf16
  %rows = tensor.empty() : tensor<2x4x6xbf16>
  %stats = tensor.empty() : tensor<2x4xbf16>
  %below = linalg.fill ins(%lowest : bf16) outs(%stats : tensor<2x4xbf16>) -> tensor<2x4xbf16>
  %none = linalg.fill ins(%zero : bf16) outs(%stats : tensor<2x4xbf16>) -> tensor<2x4xbf16>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xbf16>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xbf16>
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
  %scale = arith.constant dense<0.25> : tensor<2x4x6xbf16>
  %scaled = arith.mulf %s, %scale : tensor<2x4x6xbf16>
  %lowests = arith.constant dense<0xFF80> : tensor<2x4x6xbf16>
  %zeros = arith.constant dense<0.0> : tensor<2x4x6xbf16>
  %twice = arith.constant dense<2.0> : tensor<2x4x6xbf16>
  %m = arith.select %mask, %scaled, %lowests : tensor<2x4x6xi1>, tensor<2x4x6xbf16>
  %max = linalg.reduce { arith.maximumf } ins(%m : tensor<2x4x6xbf16>) outs(%below : tensor<2x4xbf16>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xbf16>) outs(%rows : tensor<2x4x6xbf16>) dimensions = [2]
  %shifted = arith.subf %m, %maxes : tensor<2x4x6xbf16>
  %exp = math.exp %shifted : tensor<2x4x6xbf16>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xbf16>) outs(%none : tensor<2x4xbf16>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xbf16>) outs(%rows : tensor<2x4x6xbf16>) dimensions = [2]
  %full = arith.divf %exp, %sums : tensor<2x4x6xbf16>
  %more = arith.mulf %full, %twice : tensor<2x4x6xbf16>
  %p = arith.select %kept, %more, %zeros : tensor<2x4x6xi1>, tensor<2x4x6xbf16>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xbf16>, tensor<2x6x8xbf16>) outs(%out : tensor<2x4x8xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xbf16>
  %keys = tensor.empty() : tensor<2x6x16xbf16>
  %values = tensor.empty() : tensor<2x6x8xbf16>
  %queries = tensor.empty() : tensor<2x4x16xbf16>
  %g = fp8.matmul site("h0#2") role(other) kinds(grad_output, input) ins(%do, %v : tensor<2x4x8xbf16>, tensor<2x6x8xbf16>) outs(%rows : tensor<2x4x6xbf16>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xbf16>
  %dv = fp8.matmul site("h0#2") role(other) kinds(grad_output, input) ins(%do, %p : tensor<2x4x8xbf16>, tensor<2x4x6xbf16>) outs(%values : tensor<2x6x8xbf16>)
      {indexing_maps = [#do, #pt, #dv]} -> tensor<2x6x8xbf16>
  %g2 = arith.mulf %g, %twice : tensor<2x4x6xbf16>
  %gk = arith.select %kept, %g2, %zeros : tensor<2x4x6xi1>, tensor<2x4x6xbf16>
  %pg = arith.mulf %full, %gk : tensor<2x4x6xbf16>
  %npg = arith.negf %pg : tensor<2x4x6xbf16>
  %dot = linalg.reduce { arith.addf } ins(%npg : tensor<2x4x6xbf16>) outs(%none : tensor<2x4xbf16>) dimensions = [2]
  %dots = linalg.broadcast ins(%dot : tensor<2x4xbf16>) outs(%rows : tensor<2x4x6xbf16>) dimensions = [2]
  %centered = arith.addf %gk, %dots : tensor<2x4x6xbf16>
  %d0 = arith.mulf %full, %centered : tensor<2x4x6xbf16>
  %d1 = arith.mulf %d0, %scale : tensor<2x4x6xbf16>
  %ds = arith.select %mask, %d1, %zeros : tensor<2x4x6xi1>, tensor<2x4x6xbf16>
  %dq = fp8.matmul site("h0") role(other) kinds(grad_output, input) ins(%ds, %k : tensor<2x4x6xbf16>, tensor<2x6x16xbf16>) outs(%queries : tensor<2x4x16xbf16>)
      {indexing_maps = [#p, #v, #o]} -> tensor<2x4x16xbf16>
  %dk = fp8.matmul site("h0") role(other) kinds(grad_output, input) ins(%ds, %q : tensor<2x4x6xbf16>, tensor<2x4x16xbf16>) outs(%keys : tensor<2x6x16xbf16>)
      {indexing_maps = [#pt, #do, #dv]} -> tensor<2x6x16xbf16>
  return %y, %dq, %dk, %dv, %max : tensor<2x4x8xbf16>, tensor<2x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x8xbf16>, tensor<2x4xbf16>
}
}

// -----

// Rows without a key are told from the others by a bit of each row, which is the same as a maximum of -Inf.
// CHECK-LABEL: @safe
// CHECK: %[[F:.*]]:3 = fp8.online_attention
// CHECK-SAME: zero_empty_rows} score {
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32, %[[BIAS:.*]]: f32):
// CHECK-NEXT: %[[X:.*]] = arith.addf %[[S]], %[[BIAS]] : f32
// CHECK: fp8.yield %[[X]], %{{.*}} : f32, f32
// CHECK: fp8.online_attention_grad
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %[[M:.*]]: f32, %[[L:.*]]: f32, %[[D:.*]]: f32):
// CHECK: %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[M]], %[[LOWEST]] : f32
// CHECK: arith.select %[[EMPTY]], %{{.*}}, %{{.*}} : f32
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
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
func.func @safe(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x8xbf16>, %do: tensor<2x4x8xbf16>, %bias: tensor<2x4x6xf32>) -> (tensor<2x4x8xbf16>, tensor<2x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x8xbf16>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xbf16>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x16xbf16>, tensor<2x6x16xbf16>) outs(%rows : tensor<2x4x6xf32>)
      {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %x = arith.addf %s, %bias : tensor<2x4x6xf32>
  %lowests = arith.constant dense<0xFF800000> : tensor<2x4x6xf32>
  %zeros = arith.constant dense<0.0> : tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%x : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %x, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %full = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %hidden = arith.cmpf oeq, %x, %lowests : tensor<2x4x6xf32>
  %true = arith.constant true
  %bits = tensor.empty() : tensor<2x4xi1>
  %trues = linalg.fill ins(%true : i1) outs(%bits : tensor<2x4xi1>) -> tensor<2x4xi1>
  %all = linalg.reduce { arith.andi } ins(%hidden : tensor<2x4x6xi1>) outs(%trues : tensor<2x4xi1>) dimensions = [2]
  %many = tensor.empty() : tensor<2x4x6xi1>
  %alls = linalg.broadcast ins(%all : tensor<2x4xi1>) outs(%many : tensor<2x4x6xi1>) dimensions = [2]
  %p = arith.select %alls, %zeros, %full : tensor<2x4x6xi1>, tensor<2x4x6xf32>
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
  %pg = arith.mulf %p, %g : tensor<2x4x6xf32>
  %dot = linalg.reduce { arith.addf } ins(%pg : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
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
