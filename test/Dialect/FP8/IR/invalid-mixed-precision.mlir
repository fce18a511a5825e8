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
