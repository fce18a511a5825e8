// Functions that recipes name compute a value and do nothing else.
// RUN: fp8-opt %s --fp8-prepare-recipe-functions -split-input-file -verify-diagnostics

#recipe = #fp8.custom<base = #fp8.current_scaling, scale = @f>
func.func private @print(f32)
func.func @f(%amax: f32, %max: f32, %old: f32) -> f32 {
  // expected-error@+1 {{'func.call' may have effects; functions named by a recipe, like 'f', compute a value and nothing else}}
  call @print(%amax) : (f32) -> ()
  return %amax : f32
}
func.func @main(%a: tensor<f32>, %e: tensor<f32>) -> tensor<f32> {
  %s = fp8.compute_scale recipe(#recipe) format(f8E5M2) ins(%a : tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

#recipe = #fp8.custom<base = #fp8.current_scaling, scale = @f>
func.func @f(%amax: f32, %max: f32, %old: f32) -> f32 {
  %zero = arith.constant 0.0 : f32
  %none = arith.cmpf oeq, %amax, %zero : f32
  scf.if %none {
    // expected-error@+1 {{'vector.print' may have effects}}
    vector.print %old : f32
  }
  return %amax : f32
}
func.func @main(%a: tensor<f32>, %e: tensor<f32>) -> tensor<f32> {
  %s = fp8.compute_scale recipe(#recipe) format(f8E5M2) ins(%a : tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}
