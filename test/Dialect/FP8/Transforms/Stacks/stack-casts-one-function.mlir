// RUN: fp8-opt %s --fp8-stack-casts | FileCheck -enable-var-scope %s

// No pair: the first loop fills the stack, the second casts slices of it. Both record amaxes; what
// the second records is among what the first does.

// CHECK-LABEL: func.func @two_loops(
// CHECK:         scf.for {{.*}} -> (tensor<2x8xf8E4M3FN>, tensor<f32>)
// CHECK:           %[[Q:.*]]:3 = fp8.quantize record_amax column(0)
// CHECK:           tensor.insert_slice %[[Q]]#0 into
// CHECK:         scf.for {{.*}} -> (tensor<f32>)
// CHECK-NOT:       fp8.quantize
// CHECK:           %[[NONE:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK:           arith.maximumf %{{.*}}, %[[NONE]]
// CHECK:         return
func.func @two_loops(%x: tensor<2x8xbf16>, %s: tensor<1xf32>) -> (tensor<f32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zeros = arith.constant dense<0.0> : tensor<2x8xbf16>
  %none = arith.constant dense<0.0> : tensor<f32>
  %stack, %first = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %zeros, %m = %none) -> (tensor<2x8xbf16>, tensor<f32>) {
    %v = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<8xbf16>
    %scale = tensor.extract_slice %s[0] [1] [1] : tensor<1xf32> to tensor<f32>
    %e = tensor.empty() : tensor<8xf8E4M3FN>
    %f = tensor.empty() : tensor<f32>
    %q, %inverse, %a = fp8.quantize record_amax column(0) ins(%v : tensor<8xbf16>) scale(%scale : tensor<f32>)
        outs(%e, %f, %f : tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>
    %all = arith.maximumf %m, %a : tensor<f32>
    %new = tensor.insert_slice %v into %old[%i, 0] [1, 8] [1, 1] : tensor<8xbf16> into tensor<2x8xbf16>
    scf.yield %new, %all : tensor<2x8xbf16>, tensor<f32>
  }
  %second = scf.for %i = %c0 to %c2 step %c1 iter_args(%m = %none) -> (tensor<f32>) {
    %v = tensor.extract_slice %stack[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<8xbf16>
    %scale = tensor.extract_slice %s[0] [1] [1] : tensor<1xf32> to tensor<f32>
    %e = tensor.empty() : tensor<8xf8E4M3FN>
    %f = tensor.empty() : tensor<f32>
    %q, %inverse, %a = fp8.quantize record_amax column(0) ins(%v : tensor<8xbf16>) scale(%scale : tensor<f32>)
        outs(%e, %f, %f : tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>
    %all = arith.maximumf %m, %a : tensor<f32>
    scf.yield %all : tensor<f32>
  }
  return %first, %second : tensor<f32>, tensor<f32>
}

// Forward records nothing: the amaxes would be lost.

// CHECK-LABEL: func.func @only_backward(
// CHECK:         scf.for {{.*}} -> (tensor<2x8xbf16>)
// CHECK:         scf.for
// CHECK:           fp8.quantize record_amax
func.func @only_backward(%x: tensor<2x8xbf16>, %s: tensor<1xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zeros = arith.constant dense<0.0> : tensor<2x8xbf16>
  %none = arith.constant dense<0.0> : tensor<f32>
  %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %zeros) -> (tensor<2x8xbf16>) {
    %v = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<8xbf16>
    %new = tensor.insert_slice %v into %old[%i, 0] [1, 8] [1, 1] : tensor<8xbf16> into tensor<2x8xbf16>
    scf.yield %new : tensor<2x8xbf16>
  }
  %second = scf.for %i = %c0 to %c2 step %c1 iter_args(%m = %none) -> (tensor<f32>) {
    %v = tensor.extract_slice %stack[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<8xbf16>
    %scale = tensor.extract_slice %s[0] [1] [1] : tensor<1xf32> to tensor<f32>
    %e = tensor.empty() : tensor<8xf8E4M3FN>
    %f = tensor.empty() : tensor<f32>
    %q, %inverse, %a = fp8.quantize record_amax column(0) ins(%v : tensor<8xbf16>) scale(%scale : tensor<f32>)
        outs(%e, %f, %f : tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>
    %all = arith.maximumf %m, %a : tensor<f32>
    scf.yield %all : tensor<f32>
  }
  return %second : tensor<f32>
}

// Both loops in a loop over microbatches. The cast of a slice that records nothing goes to the loop
// that fills the stack. Its scale is an argument itself.

// CHECK-LABEL: func.func @microbatches(
// CHECK:         scf.for
// CHECK:           scf.for {{.*}} -> (tensor<2x8xf8E4M3FN>)
// CHECK:             fp8.quantize column(0)
// CHECK:           scf.for {{.*}} -> (tensor<2x8xf8E4M3FN>)
// CHECK-NOT:         fp8.quantize
// CHECK:         return
func.func @microbatches(%xs: tensor<3x2x8xbf16>, %scale: tensor<f32>, %bytes: tensor<2x8xf8E4M3FN>) -> tensor<2x8xf8E4M3FN> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zeros = arith.constant dense<0.0> : tensor<2x8xbf16>
  %all = scf.for %b = %c0 to %c3 step %c1 iter_args(%before = %bytes) -> (tensor<2x8xf8E4M3FN>) {
    %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %zeros) -> (tensor<2x8xbf16>) {
      %v = tensor.extract_slice %xs[%b, %i, 0] [1, 1, 8] [1, 1, 1] : tensor<3x2x8xbf16> to tensor<8xbf16>
      %w = arith.negf %v : tensor<8xbf16>
      %new = tensor.insert_slice %w into %old[%i, 0] [1, 8] [1, 1] : tensor<8xbf16> into tensor<2x8xbf16>
      scf.yield %new : tensor<2x8xbf16>
    }
    %read = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %before) -> (tensor<2x8xf8E4M3FN>) {
      %v = tensor.extract_slice %stack[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<8xbf16>
      %e = tensor.empty() : tensor<8xf8E4M3FN>
      %f = tensor.empty() : tensor<f32>
      %q, %inverse = fp8.quantize column(0) ins(%v : tensor<8xbf16>) scale(%scale : tensor<f32>)
          outs(%e, %f : tensor<8xf8E4M3FN>, tensor<f32>) -> tensor<8xf8E4M3FN>, tensor<f32>
      %new = tensor.insert_slice %q into %old[%i, 0] [1, 8] [1, 1] : tensor<8xf8E4M3FN> into tensor<2x8xf8E4M3FN>
      scf.yield %new : tensor<2x8xf8E4M3FN>
    }
    scf.yield %read : tensor<2x8xf8E4M3FN>
  }
  return %all : tensor<2x8xf8E4M3FN>
}
