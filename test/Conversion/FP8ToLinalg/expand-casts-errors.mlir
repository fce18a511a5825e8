// RUN: fp8-opt %s --fp8-expand-casts -split-input-file -verify-diagnostics

func.func @scalar(%x: f32) -> f8E8M0FNU {
  // expected-error@+1 {{a cast to f8E8M0FNU does not say how it rounds: compute the exponent in integers and bitcast it, or cast blocks with '#fp8.mx_scaling'}}
  %y = arith.truncf %x : f32 to f8E8M0FNU
  return %y : f8E8M0FNU
}

// -----

func.func @vector(%x: vector<4xbf16>) -> vector<4xf8E8M0FNU> {
  // expected-error@+1 {{a cast to f8E8M0FNU does not say how it rounds}}
  %y = arith.truncf %x : vector<4xbf16> to vector<4xf8E8M0FNU>
  return %y : vector<4xf8E8M0FNU>
}

// -----

func.func @other_format(%x: f32) -> f8E4M3FNUZ {
  // expected-error@+1 {{casts from and to 'f8E4M3FNUZ' have no lowering: those of f8E4M3FN and f8E5M2 have one}}
  %y = arith.truncf %x : f32 to f8E4M3FNUZ
  return %y : f8E4M3FNUZ
}

// -----

func.func @from_other_format(%x: f4E2M1FN) -> f32 {
  // expected-error@+1 {{casts from and to 'f4E2M1FN' have no lowering}}
  %y = arith.extf %x : f4E2M1FN to f32
  return %y : f32
}
