// Values of fp8.mixed_precision that mean nothing.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{attribute 'fp8.mixed_precision' must be "off", "bf16", "f16" or "tf32"}}
func.func @half(%x: tensor<4xf32>) attributes {fp8.mixed_precision = "half"} {
  return
}

// -----

func.func @number(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{attribute 'fp8.mixed_precision' must be "off", "bf16", "f16" or "tf32"}}
  %y = math.absf %x {fp8.mixed_precision = 16} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{attribute 'fp8.tf32' has no value, and is for fp8.matmul and fp8.grouped_matmul}}
  %y = arith.negf %x {fp8.tf32} : tensor<2xf32>
  return %y : tensor<2xf32>
}
