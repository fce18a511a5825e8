// RUN: fp8-opt %s --verify-diagnostics --fp8-linalg-to-loops

func.func @tensors(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected to be bufferized before it is lowered to loops}}
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
