// RUN: fp8-opt %s --split-input-file --fp8-infer-sites | FileCheck %s -enable-var-scope

// The operand that is the weight: an operand computed from parameters and constants is one, as exporters
// write it.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Gates put together as JAX does it, with branches inside of linalg.generic; the batch is the second operand, and no
// weight.
// CHECK-LABEL: func @gates
// CHECK: fp8.matmul site("wi") role(fprop) kinds(weight, input)
// CHECK: fp8.matmul site("wi") role(wgrad) kinds(grad_output, input)
func.func @gates(%wi: tensor<8x6xf32> loc("wi"), %wf: tensor<8x6xf32> loc("wf"), %x: tensor<4x8xf32> loc("x"))
    -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<8x12xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<8x12xf32>) {
  ^bb0(%out: f32):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %first = arith.cmpi ult, %column, %c6 : index
    %v = scf.if %first -> f32 {
      %a = tensor.extract %wi[%row, %column] : tensor<8x6xf32>
      scf.yield %a : f32
    } else {
      %shifted = arith.subi %column, %c6 : index
      %b = tensor.extract %wf[%row, %shifted] : tensor<8x6xf32>
      scf.yield %b : f32
    }
    linalg.yield %v : f32
  } -> tensor<8x12xf32>
  %i = tensor.empty() : tensor<12x4xf32>
  %y = fp8.matmul ins(%w, %x : tensor<8x12xf32>, tensor<4x8xf32>) outs(%i : tensor<12x4xf32>) {indexing_maps = [#km, #nk, #mn]} -> tensor<12x4xf32>
  %dy = math.exp %y : tensor<12x4xf32>
  %j = tensor.empty() : tensor<12x8xf32>
  %dw = fp8.matmul ins(%dy, %x : tensor<12x4xf32>, tensor<4x8xf32>) outs(%j : tensor<12x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<12x8xf32>
  %t = tensor.empty() : tensor<8x12xf32>
  %turned = linalg.transpose ins(%dw : tensor<12x8xf32>) outs(%t : tensor<8x12xf32>) permutation = [1, 0]
  %dwi = tensor.extract_slice %turned[0, 0] [8, 6] [1, 1] : tensor<8x12xf32> to tensor<8x6xf32>
  %dwf = tensor.extract_slice %turned[0, 6] [8, 6] [1, 1] : tensor<8x12xf32> to tensor<8x6xf32>
  return %dwi, %dwf : tensor<8x6xf32>, tensor<8x6xf32>
}

// The same in evaluation, with the weight first: the parameters are known by their names.
// CHECK-LABEL: func @evaluate_gates
// CHECK: fp8.matmul site("wi") role(fprop) kinds(weight, input)
func.func @evaluate_gates(%wi: tensor<8x6xf32> loc("wi"), %wf: tensor<8x6xf32> loc("wf"), %x: tensor<4x8xf32> loc("x")) -> tensor<12x4xf32> {
  %w = tensor.concat dim(1) %wi, %wf : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x12xf32>
  %i = tensor.empty() : tensor<12x4xf32>
  %y = fp8.matmul ins(%w, %x : tensor<8x12xf32>, tensor<4x8xf32>) outs(%i : tensor<12x4xf32>) {indexing_maps = [#km, #nk, #mn]} -> tensor<12x4xf32>
  return %y : tensor<12x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A weight that is scaled, in the first layer; one that is normalized (g · v / |v|), in the second. The steps carry
// what they train.
// CHECK-LABEL: func @scaled_and_normalized
// CHECK: fp8.matmul site("fc") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("head") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("head") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("head") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("fc") role(wgrad) kinds(input, grad_output)
func.func @scaled_and_normalized(%w: tensor<8x8xf32> {tf.aliasing_output = 0 : i32} loc("p['fc']['w']"), %s: tensor<8xf32> {tf.aliasing_output = 1 : i32} loc("p['fc']['s']"),
                                 %g: tensor<8xf32> {tf.aliasing_output = 2 : i32} loc("p['head']['g']"), %v: tensor<8x8xf32> {tf.aliasing_output = 3 : i32} loc("p['head']['v']"),
                                 %x: tensor<4x8xf32> loc("x"))
    -> (tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %i = tensor.empty() : tensor<4x8xf32>
  %s2 = linalg.broadcast ins(%s : tensor<8xf32>) outs(%e : tensor<8x8xf32>) dimensions = [0]
  %ws = arith.mulf %w, %s2 : tensor<8x8xf32>
  %h = fp8.matmul ins(%x, %ws : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %a = math.tanh %h : tensor<4x8xf32>
  %vv = arith.mulf %v, %v : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.reduce { arith.addf } ins(%vv : tensor<8x8xf32>) outs(%z : tensor<8xf32>) dimensions = [0]
  %norm = math.sqrt %sum : tensor<8xf32>
  %scale = arith.divf %g, %norm : tensor<8xf32>
  %scale2 = linalg.broadcast ins(%scale : tensor<8xf32>) outs(%e : tensor<8x8xf32>) dimensions = [0]
  %vn = arith.mulf %v, %scale2 : tensor<8x8xf32>
  %y = fp8.matmul ins(%a, %vn : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = math.exp %y : tensor<4x8xf32>
  %da = fp8.matmul ins(%dy, %vn : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %dvn = fp8.matmul ins(%a, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dh = arith.mulf %da, %a : tensor<4x8xf32>
  %dws = fp8.matmul ins(%x, %dh : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dw = arith.mulf %dws, %s2 : tensor<8x8xf32>
  %dsw = arith.mulf %dws, %w : tensor<8x8xf32>
  %ds = linalg.reduce { arith.addf } ins(%dsw : tensor<8x8xf32>) outs(%z : tensor<8xf32>) dimensions = [0]
  %dvs = arith.mulf %dvn, %scale2 : tensor<8x8xf32>
  %dgv = arith.mulf %dvn, %v : tensor<8x8xf32>
  %dg = linalg.reduce { arith.addf } ins(%dgv : tensor<8x8xf32>) outs(%z : tensor<8xf32>) dimensions = [0]
  %w_new = arith.subf %w, %dw : tensor<8x8xf32>
  %s_new = arith.subf %s, %ds : tensor<8xf32>
  %g_new = arith.subf %g, %dg : tensor<8xf32>
  %v_new = arith.subf %v, %dvs : tensor<8x8xf32>
  return %w_new, %s_new, %g_new, %v_new : tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// An adapter that is merged into a frozen weight: the product a · b of parameters is part
// of the weight. An operand that x · w is part of is no weight.
// CHECK-LABEL: func @merged
// CHECK: fp8.matmul site("b") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("w") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul0") role(other) kinds(input, input)
// CHECK: fp8.matmul site("matmul0") role(other)
// CHECK: fp8.matmul site("matmul0") role(other)
// CHECK: fp8.matmul site("w") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("b") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("b") role(wgrad) kinds(input, grad_output)
func.func @merged(%x: tensor<4x8xf32> loc("x"), %w: tensor<8x6xf32> loc("frozen['w']"), %a: tensor<8x2xf32> loc("p['a']"), %b: tensor<2x6xf32> loc("p['b']"))
    -> (tensor<8x2xf32>, tensor<2x6xf32>) {
  %e = tensor.empty() : tensor<8x6xf32>
  %ab = fp8.matmul ins(%a, %b : tensor<8x2xf32>, tensor<2x6xf32>) outs(%e : tensor<8x6xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x6xf32>
  %merged = arith.addf %w, %ab : tensor<8x6xf32>
  %i = tensor.empty() : tensor<4x6xf32>
  %j = tensor.empty() : tensor<4x4xf32>
  %y = fp8.matmul ins(%x, %merged : tensor<4x8xf32>, tensor<8x6xf32>) outs(%i : tensor<4x6xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x6xf32>
  %q = math.tanh %y : tensor<4x6xf32>
  %k = math.absf %y : tensor<4x6xf32>
  %s = fp8.matmul ins(%q, %k : tensor<4x6xf32>, tensor<4x6xf32>) outs(%j : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32>
  %ds = math.exp %s : tensor<4x4xf32>
  %dq = fp8.matmul ins(%ds, %k : tensor<4x4xf32>, tensor<4x6xf32>) outs(%i : tensor<4x6xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x6xf32>
  %dk = fp8.matmul ins(%ds, %q : tensor<4x4xf32>, tensor<4x6xf32>) outs(%i : tensor<4x6xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<4x6xf32>
  %dy = arith.mulf %dq, %dk : tensor<4x6xf32>
  %dm = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x6xf32>) outs(%e : tensor<8x6xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x6xf32>
  %ea = tensor.empty() : tensor<8x2xf32>
  %eb = tensor.empty() : tensor<2x6xf32>
  %da = fp8.matmul ins(%dm, %b : tensor<8x6xf32>, tensor<2x6xf32>) outs(%ea : tensor<8x2xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<8x2xf32>
  %db = fp8.matmul ins(%a, %dm : tensor<8x2xf32>, tensor<8x6xf32>) outs(%eb : tensor<2x6xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<2x6xf32>
  return %da, %db : tensor<8x2xf32>, tensor<2x6xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A value that a step before computed and the caller keeps is no weight, however it enters: the keys of a
// decoder.
// CHECK-LABEL: func @decode
// CHECK: fp8.matmul site("q") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul0") role(other) kinds(input, input)
func.func @decode(%x: tensor<1x8xf32> loc("x"), %wq: tensor<8x8xf32> loc("p['q']"), %keys: tensor<16x8xf32> {tf.aliasing_output = 1 : i32} loc("keys"))
    -> (tensor<1x16xf32>, tensor<16x8xf32>) {
  %i = tensor.empty() : tensor<1x8xf32>
  %j = tensor.empty() : tensor<1x16xf32>
  %q = fp8.matmul ins(%x, %wq : tensor<1x8xf32>, tensor<8x8xf32>) outs(%i : tensor<1x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<1x8xf32>
  %s = fp8.matmul ins(%q, %keys : tensor<1x8xf32>, tensor<16x8xf32>) outs(%j : tensor<1x16xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<1x16xf32>
  return %s, %keys : tensor<1x16xf32>, tensor<16x8xf32>
}

// A loop over layers: what enters a layer was computed by the one before, though in the first iteration it was not.
// CHECK-LABEL: func @layers
// CHECK: fp8.matmul site("w") role(fprop) kinds(weight, input)
// CHECK: fp8.matmul site("matmul0") role(other) kinds(input, input)
func.func @layers(%x0: tensor<8x4xf32> loc("x"), %w: tensor<3x8x8xf32> loc("w")) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %i = tensor.empty() : tensor<8x4xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %r = scf.for %n = %c0 to %c3 step %c1 iter_args(%x = %x0) -> tensor<8x4xf32> {
    %wn = tensor.extract_slice %w[%n, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<3x8x8xf32> to tensor<8x8xf32>
    %y = fp8.matmul ins(%wn, %x : tensor<8x8xf32>, tensor<8x4xf32>) outs(%i : tensor<8x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x4xf32>
    %s = fp8.matmul ins(%x, %y : tensor<8x4xf32>, tensor<8x4xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<8x8xf32>
    %part = tensor.extract_slice %s[0, 0] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
    scf.yield %part : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A stage whose input has a gradient that is a result: that makes the input a parameter, but q and k no weights.
// CHECK-LABEL: func @stage
// CHECK: fp8.matmul site("wq") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("wk") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul0") role(other) kinds(input, input)
// CHECK: fp8.matmul site("matmul0") role(other)
// CHECK: fp8.matmul site("matmul0") role(other)
// CHECK: fp8.matmul site("wq") role(wgrad)
// CHECK: fp8.matmul site("wk") role(wgrad)
// CHECK: fp8.matmul site("wq") role(dgrad)
// CHECK: fp8.matmul site("wk") role(dgrad)
func.func @stage(%x: tensor<4x8xf32> loc("x"), %wq: tensor<8x6xf32> loc("wq"), %wk: tensor<8x6xf32> loc("wk"))
    -> (tensor<8x6xf32>, tensor<8x6xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x6xf32>
  %j = tensor.empty() : tensor<4x4xf32>
  %l = tensor.empty() : tensor<8x6xf32>
  %m = tensor.empty() : tensor<4x8xf32>
  %q = fp8.matmul ins(%x, %wq : tensor<4x8xf32>, tensor<8x6xf32>) outs(%i : tensor<4x6xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x6xf32>
  %k = fp8.matmul ins(%x, %wk : tensor<4x8xf32>, tensor<8x6xf32>) outs(%i : tensor<4x6xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x6xf32>
  %s = fp8.matmul ins(%q, %k : tensor<4x6xf32>, tensor<4x6xf32>) outs(%j : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32>
  %ds = math.exp %s : tensor<4x4xf32>
  %dq = fp8.matmul ins(%ds, %k : tensor<4x4xf32>, tensor<4x6xf32>) outs(%i : tensor<4x6xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x6xf32>
  %dk = fp8.matmul ins(%ds, %q : tensor<4x4xf32>, tensor<4x6xf32>) outs(%i : tensor<4x6xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<4x6xf32>
  %dwq = fp8.matmul ins(%x, %dq : tensor<4x8xf32>, tensor<4x6xf32>) outs(%l : tensor<8x6xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x6xf32>
  %dwk = fp8.matmul ins(%x, %dk : tensor<4x8xf32>, tensor<4x6xf32>) outs(%l : tensor<8x6xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x6xf32>
  %dx1 = fp8.matmul ins(%dq, %wq : tensor<4x6xf32>, tensor<8x6xf32>) outs(%m : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %dx2 = fp8.matmul ins(%dk, %wk : tensor<4x6xf32>, tensor<8x6xf32>) outs(%m : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %dx = arith.addf %dx1, %dx2 : tensor<4x8xf32>
  return %dwq, %dwk, %dx : tensor<8x6xf32>, tensor<8x6xf32>, tensor<4x8xf32>
}

// -----

// A grouped product, as JAX writes ragged_dot: rows are masked, a copy for each group (expert), and groups are summed
// with k. The gradient of the input sums over them, too; that of the weight has a product for each.
#gmk = affine_map<(m, n, k, g) -> (g, m, k)>
#gkn = affine_map<(m, n, k, g) -> (g, k, n)>
#gnk = affine_map<(m, n, k, g) -> (g, n, k)>
#mn = affine_map<(m, n, k, g) -> (m, n)>
// CHECK-LABEL: func @grouped
// CHECK: fp8.matmul site("w") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("w") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("w") role(dgrad) kinds(grad_output, weight)
func.func @grouped(%x: tensor<8x6xf32> loc("x"), %w: tensor<3x6x5xf32> loc("w"), %group: tensor<3x8xi1>) -> (tensor<3x6x5xf32>, tensor<8x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %masked = linalg.generic {indexing_maps = [affine_map<(g, m, k) -> (g, m)>, affine_map<(g, m, k) -> (m, k)>, affine_map<(g, m, k) -> (g, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%group, %x : tensor<3x8xi1>, tensor<8x6xf32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%c: i1, %in: f32, %out: f32):
    %v = arith.select %c, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  %i = tensor.empty() : tensor<8x5xf32>
  %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>) {indexing_maps = [#gmk, #gkn, #mn]} -> tensor<8x5xf32>
  %dy = math.exp %y : tensor<8x5xf32>
  %f = tensor.empty() : tensor<3x8x5xf32>
  %dys = linalg.generic {indexing_maps = [affine_map<(g, m, k) -> (g, m)>, affine_map<(g, m, k) -> (m, k)>, affine_map<(g, m, k) -> (g, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%group, %dy : tensor<3x8xi1>, tensor<8x5xf32>) outs(%f : tensor<3x8x5xf32>) {
  ^bb0(%c: i1, %in: f32, %out: f32):
    %v = arith.select %c, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x5xf32>
  %j = tensor.empty() : tensor<3x6x5xf32>
  %dw = fp8.matmul ins(%masked, %dys : tensor<3x8x6xf32>, tensor<3x8x5xf32>) outs(%j : tensor<3x6x5xf32>)
    {indexing_maps = [affine_map<(g, m, n, k) -> (g, k, m)>, affine_map<(g, m, n, k) -> (g, k, n)>, affine_map<(g, m, n, k) -> (g, m, n)>]} -> tensor<3x6x5xf32>
  %l = tensor.empty() : tensor<8x6xf32>
  %dx = fp8.matmul ins(%dys, %w : tensor<3x8x5xf32>, tensor<3x6x5xf32>) outs(%l : tensor<8x6xf32>) {indexing_maps = [#gmk, #gnk, #mn]} -> tensor<8x6xf32>
  return %dw, %dx : tensor<3x6x5xf32>, tensor<8x6xf32>
}

// -----

#nk = affine_map<(m, n, k) -> (n, k)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Inference of a model that multiplies w · x, as jax.vmap of Equinox layers does: in the first layer both operands are
// plain arguments, but the weights of the other layers tell which tree weights are taken from.
// CHECK-LABEL: func @weight_first
// CHECK: fp8.matmul site("fc1") role(fprop) kinds(weight, input)
// CHECK: fp8.matmul site("fc2") role(fprop) kinds(weight, input)
func.func @weight_first(%w1: tensor<6x8xf32> loc("model.fc1.weight"), %w2: tensor<5x6xf32> loc("model.fc2.weight"), %x: tensor<4x8xf32> loc("x")) -> tensor<5x4xf32> {
  %i = tensor.empty() : tensor<6x4xf32>
  %j = tensor.empty() : tensor<5x4xf32>
  %h = fp8.matmul ins(%w1, %x : tensor<6x8xf32>, tensor<4x8xf32>) outs(%i : tensor<6x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<6x4xf32>
  %a = math.tanh %h : tensor<6x4xf32>
  %y = fp8.matmul ins(%w2, %a : tensor<5x6xf32>, tensor<6x4xf32>) outs(%j : tensor<5x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}
