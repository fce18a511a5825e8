// Programs whose loss cannot be scaled.
// RUN: fp8-opt %s --fp8-scale-loss -split-input-file -verify-diagnostics

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// expected-error@+1 {{loss scaling needs the loss: 'no_loss' has 0 results that are a scalar of floating point; return the loss}}
func.func @no_loss(%x: tensor<4x8xf32>, %dy: tensor<4x16xf32>, %e: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %g = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>)
      outs(%e : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  return %g : tensor<8x16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

func.func @steps_in_a_loop(%w: tensor<8x16xf32>, %x: tensor<4x8xf32>, %dy: tensor<4x16xf32>, %l: tensor<f32>) -> (tensor<8x16xf32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %w) -> tensor<8x16xf32> {
    %g = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>)
        outs(%e : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
    // expected-error@+1 {{reads a scaled gradient inside a loop or branch, and is not linear in it: loss scaling needs the optimizer, and the clipping of gradients, outside}}
    %n = arith.subf %v, %g : tensor<8x16xf32>
    scf.yield %n : tensor<8x16xf32>
  }
  return %r, %l : tensor<8x16xf32>, tensor<f32>
}

// -----

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// expected-error@+1 {{global 'loss_scale' has the name of a state tensor of loss scaling: rename it}}
func.func @taken(%x: tensor<4x8xf32>, %dy: tensor<4x16xf32>, %l: tensor<f32>,
                 %s: tensor<f32> {fp8.program_state = "loss_scale", fp8.initial = dense<1.0> : tensor<f32>}) -> (tensor<8x16xf32>, tensor<f32>) {
  %e = tensor.empty() : tensor<8x16xf32>
  %g = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>)
      outs(%e : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  return %g, %l : tensor<8x16xf32>, tensor<f32>
}

// -----

// expected-error@below {{loss scaling finds no matmul of a backward pass: compile the whole training step, or drop --loss-scaling}}
module {
  func.func @evaluation(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %e: tensor<4x16xf32>) -> tensor<4x16xf32> {
    %y = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>)
        outs(%e : tensor<4x16xf32>) {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xf32>
    return %y : tensor<4x16xf32>
  }
}
