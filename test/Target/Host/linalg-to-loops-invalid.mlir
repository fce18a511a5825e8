// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-linalg-to-loops

func.func @tensors(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected to be bufferized before it is lowered to loops}}
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @softmax(%x: memref<4x6xf32>, %y: memref<4x6xf32>) {
  // expected-error @below {{has no lowering to the CPU yet; write it as linalg.generic operations}}
  linalg.softmax dimension(1) ins(%x : memref<4x6xf32>) outs(%y : memref<4x6xf32>)
  return
}
