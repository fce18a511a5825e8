// RUN: fp8-opt %s --verify-diagnostics --fp8-outline-kernels

func.func @tensors(%x: tensor<?x16xbf16>, %w: tensor<16x32xbf16>, %o: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // expected-error @below {{expected to be bufferized before it is outlined}}
  %y = linalg.matmul ins(%x, %w : tensor<?x16xbf16>, tensor<16x32xbf16>) outs(%o : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
