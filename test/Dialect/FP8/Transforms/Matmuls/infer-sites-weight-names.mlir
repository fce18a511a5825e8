// RUN: fp8-opt %s --split-input-file --fp8-infer-sites | FileCheck %s

// Names of sites from the names of their weights, where locations name no layer.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Keys, attributes and dotted parts; the argument's own word goes, the number that all share, and what every layer has
// at the end.
// CHECK-LABEL: func @flax
// CHECK: fp8.matmul site("blocks/0/up")
// CHECK: fp8.matmul site("blocks/1/up")
// CHECK: fp8.matmul site("mlp/~/linear_0")
// CHECK: fp8.matmul site("fc.out")
func.func @flax(%x: tensor<4x4xf32> loc("x"), %a: tensor<4x4xf32> loc("state[0]['blocks'][0]['up']['kernel'].value"),
                %b: tensor<4x4xf32> loc("state[0]['blocks'][1]['up']['kernel'].value"), %c: tensor<4x4xf32> loc("state[0]['mlp/~/linear_0']['w']"),
                %d: tensor<4x4xf32> loc("state[0][\22fc.out\22]")) -> tensor<4x4xf32> {
  %i = tensor.empty() : tensor<4x4xf32>
  %0 = fp8.matmul ins(%x, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(step)/jvp()/dot_general")
  %1 = fp8.matmul ins(%0, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(step)/jvp()/dot_general")
  %2 = fp8.matmul ins(%1, %c : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %3 = fp8.matmul ins(%2, %d : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Numbers that differ stay; so does a name of one word, and the word itself where it alone tells weights apart.
// CHECK-LABEL: func @numbers
// CHECK: fp8.matmul site("0/down")
// CHECK: fp8.matmul site("1/down")
// CHECK: fp8.matmul site("w1")
// CHECK: fp8.matmul site("fc1")
// CHECK: fp8.matmul site("fc2")
func.func @numbers(%x: tensor<4x4xf32> loc("x"), %a: tensor<4x4xf32> loc("params[0]['down']"), %b: tensor<4x4xf32> loc("params[1]['down']"),
                   %c: tensor<4x4xf32> loc("w1"), %d: tensor<4x4xf32> loc("fc1.weight"), %e: tensor<4x4xf32> loc("fc2.weight")) -> tensor<4x4xf32> {
  %i = tensor.empty() : tensor<4x4xf32>
  %0 = fp8.matmul ins(%x, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %1 = fp8.matmul ins(%0, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %2 = fp8.matmul ins(%1, %c : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %3 = fp8.matmul ins(%2, %d : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %4 = fp8.matmul ins(%3, %e : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// One scope with several weights: the weights' names, in every function, though the other one uses one of them alone. A
// scope with one weight, a weight that is used twice and a product without weight keep what they have.
// CHECK-LABEL: func @scopes
// CHECK: fp8.matmul site("attn/q")
// CHECK: fp8.matmul site("attn/k")
// CHECK: fp8.matmul site("attention") role(other)
// CHECK: fp8.matmul site("tied")
// CHECK: fp8.matmul site("tied#2")
// CHECK: fp8.matmul site("head")
func.func @scopes(%x: tensor<4x4xf32> loc("x"), %q: tensor<4x4xf32> loc("p['attn']['q']"), %k: tensor<4x4xf32> loc("p['attn']['k']"), %t: tensor<4x4xf32> loc("p['tied']"), %h: tensor<4x4xf32> loc("p['out']")) -> tensor<4x4xf32> {
  %i = tensor.empty() : tensor<4x4xf32>
  %0 = fp8.matmul ins(%x, %q : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("attention/dot_general")
  %1 = fp8.matmul ins(%x, %k : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("attention/dot_general")
  %2 = fp8.matmul ins(%0, %1 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32> loc("attention/dot_general")
  %3 = fp8.matmul ins(%2, %t : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %a = math.tanh %3 : tensor<4x4xf32>
  %4 = fp8.matmul ins(%a, %t : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32>
  %5 = fp8.matmul ins(%4, %h : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("head/dot_general")
  return %5 : tensor<4x4xf32>
}

// CHECK-LABEL: func @part
// CHECK: fp8.matmul site("attn/q")
func.func @part(%x: tensor<4x4xf32> loc("x"), %q: tensor<4x4xf32> loc("p['attn']['q']")) -> tensor<4x4xf32> {
  %i = tensor.empty() : tensor<4x4xf32>
  %0 = fp8.matmul ins(%x, %q : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("attention/dot_general")
  return %0 : tensor<4x4xf32>
}
