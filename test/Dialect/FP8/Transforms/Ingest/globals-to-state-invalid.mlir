// RUN: fp8-opt %s --split-input-file --fp8-globals-to-state -verify-diagnostics

// expected-error @+1 {{global 'g' is a 'tensor<?xf32>': only a tensor of static shape can be kept from step to step}}
ml_program.global private mutable @g(dense<1.0> : tensor<4xf32>) : tensor<?xf32>
func.func @f(%x: tensor<?xf32>) {
  ml_program.global_store @g = %x : tensor<?xf32>
  return
}

// -----

// expected-error @+1 {{global 'g' has no value to begin with: give it one, as dense<0> : 'tensor<4xf32>'}}
ml_program.global private mutable @g(#ml_program.extern : tensor<4xf32>) : tensor<4xf32>
func.func @f() -> tensor<4xf32> {
  %x = ml_program.global_load @g : tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{global 'g' is written and holds 'f8E4M3FN': keep it as i1, i8, i16, i32, i64, f16, bf16, f32 or f64}}
ml_program.global private mutable @g(dense<1.0> : tensor<4xf8E4M3FN>) : tensor<4xf8E4M3FN>
func.func @f(%x: tensor<4xf8E4M3FN>) {
  ml_program.global_store @g = %x : tensor<4xf8E4M3FN>
  return
}

// -----

// expected-error @+1 {{global 'g' is written and begins with a value that is not finite; begin with another}}
ml_program.global private mutable @g(dense<0x7F800000> : tensor<f32>) : tensor<f32>
func.func @f(%x: tensor<f32>) {
  ml_program.global_store @g = %x : tensor<f32>
  return
}

// -----

// expected-error @+1 {{global 'scale' is written and would be a tensor of the state, where this name has a meaning: rename it}}
ml_program.global private mutable @scale(dense<1.0> : tensor<f32>) : tensor<f32>
func.func @f(%x: tensor<f32>) {
  ml_program.global_store @scale = %x : tensor<f32>
  return
}

// -----

ml_program.global private mutable @g(dense<1.0> : tensor<f32>) : tensor<f32>
func.func @f(%x: tensor<f32>, %go: i1) {
  // expected-error @+1 {{writes global 'g' inside: only functions, scf.for and scf.if may; keep the value in a result of 'scf.while' instead}}
  scf.while : () -> () {
    scf.condition(%go)
  } do {
    ml_program.global_store @g = %x : tensor<f32>
    scf.yield
  }
  return
}

// -----

ml_program.global private mutable @g(dense<1.0> : tensor<f32>) : tensor<f32>
// expected-error @+1 {{uses global 'g' and cannot be inlined: pass the value as an argument and a result}}
func.func private @recursive(%x: tensor<f32>) {
  ml_program.global_store @g = %x : tensor<f32>
  call @recursive(%x) : (tensor<f32>) -> ()
  return
}

// -----

ml_program.global private mutable @g(dense<1.0> : tensor<f32>) : tensor<f32>
// expected-error @+1 {{uses global 'g' and branches between blocks: use structured control flow (scf)}}
func.func @f(%x: tensor<f32>) {
  ml_program.global_store @g = %x : tensor<f32>
  cf.br ^bb1
^bb1:
  return
}
