// Operations that the verifiers of state, collectives and loss scaling refuse.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics

func.func @ranks(%a: tensor<2xf32>, %s: tensor<3xf32>, %h: tensor<12xf32>) {
  // expected-error@+1 {{needs amaxes [n], scale [N] and amax_history [H, N]}}
  %0:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
      columns [0, 2] formats [f8E4M3FN, f8E5M2] ins(%a : tensor<2xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<12xf32>) -> tensor<3xf32>, tensor<12xf32>
  return
}

// -----

func.func @columns(%a: tensor<2xf32>, %s: tensor<3xf32>, %h: tensor<4x4xf32>) {
  // expected-error@+1 {{scale has 3 columns, amax_history 4}}
  %0:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
      columns [0, 2] formats [f8E4M3FN, f8E5M2] ins(%a : tensor<2xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<4x4xf32>) -> tensor<3xf32>, tensor<4x4xf32>
  return
}

// -----

func.func @count(%a: tensor<3xf32>, %s: tensor<3xf32>, %h: tensor<4x3xf32>) {
  // expected-error@+1 {{names 2 columns and 2 formats for 3 amaxes}}
  %0:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
      columns [0, 2] formats [f8E4M3FN, f8E5M2] ins(%a : tensor<3xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  return
}

// -----

func.func @formats(%a: tensor<2xf32>, %s: tensor<3xf32>, %h: tensor<4x3xf32>) {
  // expected-error@+1 {{names 2 columns and 1 formats for 2 amaxes}}
  %0:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
      columns [0, 2] formats [f8E4M3FN] ins(%a : tensor<2xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  return
}

// -----

func.func @stateless(%a: tensor<2xf32>, %s: tensor<3xf32>, %h: tensor<4x3xf32>) {
  // expected-error@+1 {{recipe #fp8.current_scaling keeps no history}}
  %0:2 = fp8.update_amax_history recipe(#fp8.current_scaling)
      columns [0, 2] formats [f8E4M3FN, f8E5M2] ins(%a : tensor<2xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  return
}

// -----

func.func @rows(%a: tensor<2xf32>, %s: tensor<3xf32>, %h: tensor<5x3xf32>) {
  // expected-error@+1 {{amax_history has 5 rows, the recipe asks for 4}}
  %0:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
      columns [0, 2] formats [f8E4M3FN, f8E5M2] ins(%a : tensor<2xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<5x3xf32>) -> tensor<3xf32>, tensor<5x3xf32>
  return
}

// -----

func.func @outside(%a: tensor<2xf32>, %s: tensor<3xf32>, %h: tensor<4x3xf32>) {
  // expected-error@+1 {{column 3 is outside the state's 3 columns}}
  %0:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
      columns [0, 3] formats [f8E4M3FN, f8E5M2] ins(%a : tensor<2xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  return
}

// -----

func.func @negative(%a: tensor<2xf32>, %s: tensor<3xf32>, %h: tensor<4x3xf32>) {
  // expected-error@+1 {{column -1 is outside the state's 3 columns}}
  %0:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
      columns [-1, 0] formats [f8E4M3FN, f8E5M2] ins(%a : tensor<2xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  return
}

// -----

func.func @format(%a: tensor<2xf32>, %s: tensor<3xf32>, %h: tensor<4x3xf32>) {
  // expected-error@+1 {{format bf16 must be f8E4M3FN or f8E5M2}}
  %0:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
      columns [0, 2] formats [bf16, f8E5M2] ins(%a : tensor<2xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  return
}

// -----

func.func @reduce_shape(%v: tensor<5xf32>, %i: tensor<6xf32>) {
  // expected-error@+1 {{input 'tensor<5xf32>' and result 'tensor<6xf32>' must have one shape}}
  %0 = fp8.all_reduce max on(4) axes [0] ins(%v : tensor<5xf32>) outs(%i : tensor<6xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @reduce_group(%v: tensor<5xf32>, %i: tensor<5xf32>) {
  // expected-error@+1 {{names no axis of the grid}}
  %0 = fp8.all_reduce max on(4) axes [] ins(%v : tensor<5xf32>) outs(%i : tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @gather_type(%v: tensor<4x8xf32>, %i: tensor<16x8xbf16>) {
  // expected-error@+1 {{input and result must have one element type and rank}}
  %0 = fp8.all_gather dim 0 on(4) axes [0] ins(%v : tensor<4x8xf32>) outs(%i : tensor<16x8xbf16>) -> tensor<16x8xbf16>
  return
}

// -----

func.func @gather_dim(%v: tensor<4x8xf32>, %i: tensor<16x8xf32>) {
  // expected-error@+1 {{dim 2 is not a dimension of a tensor of rank 2}}
  %0 = fp8.all_gather dim 2 on(4) axes [0] ins(%v : tensor<4x8xf32>) outs(%i : tensor<16x8xf32>) -> tensor<16x8xf32>
  return
}

// -----

func.func @gather_size(%v: tensor<4x8xf32>, %i: tensor<15x8xf32>) {
  // expected-error@+1 {{dimension 0 has size 4 in the input and 15 in the result, for 4 ranks}}
  %0 = fp8.all_gather dim 0 on(4) axes [0] ins(%v : tensor<4x8xf32>) outs(%i : tensor<15x8xf32>) -> tensor<15x8xf32>
  return
}

// -----

func.func @gather_other(%v: tensor<4x8xf32>, %i: tensor<16x9xf32>) {
  // expected-error@+1 {{dimension 1 has size 8 in the input and 9 in the result}}
  %0 = fp8.all_gather dim 0 on(4) axes [0] ins(%v : tensor<4x8xf32>) outs(%i : tensor<16x9xf32>) -> tensor<16x9xf32>
  return
}

// -----

func.func @unscale_outs(%g: tensor<8xf32>, %s: tensor<f32>, %g0: tensor<8xf32>) {
  // expected-error@+1 {{has 1 outs for 1 gradients; one each and found_inf are needed}}
  %0 = fp8.unscale ins(%g : tensor<8xf32>) scale(%s : tensor<f32>)
      outs(%g0 : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @unscale_type(%g: tensor<8xf32>, %s: tensor<f32>, %g0: tensor<8xbf16>, %f: tensor<f32>) {
  // expected-error@+1 {{gradient 'tensor<8xf32>' has a destination of type 'tensor<8xbf16>'}}
  %0:2 = fp8.unscale ins(%g : tensor<8xf32>) scale(%s : tensor<f32>)
      outs(%g0, %f : tensor<8xbf16>, tensor<f32>) -> tensor<8xbf16>, tensor<f32>
  return
}

// -----

func.func @unscale_found(%g: tensor<8xf32>, %s: tensor<f32>, %g0: tensor<8xf32>, %f: tensor<bf16>) {
  // expected-error@+1 {{scale and found_inf must be f32 of rank 0}}
  %0:2 = fp8.unscale ins(%g : tensor<8xf32>) scale(%s : tensor<f32>)
      outs(%g0, %f : tensor<8xf32>, tensor<bf16>) -> tensor<8xf32>, tensor<bf16>
  return
}

// -----

func.func @unscale_scale(%g: tensor<8xf32>, %s: tensor<1xf32>, %g0: tensor<8xf32>, %f: tensor<f32>) {
  // expected-error@+1 {{scale and found_inf must be f32 of rank 0}}
  %0:2 = fp8.unscale ins(%g : tensor<8xf32>) scale(%s : tensor<1xf32>)
      outs(%g0, %f : tensor<8xf32>, tensor<f32>) -> tensor<8xf32>, tensor<f32>
  return
}

// -----

func.func @tracker(%f: tensor<f32>, %s: tensor<f32>, %t: tensor<i64>) {
  // expected-error@+1 {{found_inf and scale must be f32, tracker i32, all of rank 0}}
  %0:2 = fp8.update_loss_scale ins(%f : tensor<f32>) outs(%s, %t : tensor<f32>, tensor<i64>) -> tensor<f32>, tensor<i64>
  return
}

// -----

func.func @found_rank(%f: tensor<1xf32>, %s: tensor<f32>, %t: tensor<i32>) {
  // expected-error@+1 {{found_inf and scale must be f32, tracker i32, all of rank 0}}
  %0:2 = fp8.update_loss_scale ins(%f : tensor<1xf32>) outs(%s, %t : tensor<f32>, tensor<i32>) -> tensor<f32>, tensor<i32>
  return
}

// -----

func.func @growth(%f: tensor<f32>, %s: tensor<f32>, %t: tensor<i32>) {
  // expected-error@+1 {{growth must be above 1}}
  %0:2 = fp8.update_loss_scale ins(%f : tensor<f32>) outs(%s, %t : tensor<f32>, tensor<i32>) {growth = 1.0 : f32} -> tensor<f32>, tensor<i32>
  return
}

// -----

func.func @backoff(%f: tensor<f32>, %s: tensor<f32>, %t: tensor<i32>) {
  // expected-error@+1 {{backoff must be between 0 and 1}}
  %0:2 = fp8.update_loss_scale ins(%f : tensor<f32>) outs(%s, %t : tensor<f32>, tensor<i32>) {backoff = 1.0 : f32} -> tensor<f32>, tensor<i32>
  return
}

// -----

func.func @interval(%f: tensor<f32>, %s: tensor<f32>, %t: tensor<i32>) {
  // expected-error@+1 {{interval must be at least 1}}
  %0:2 = fp8.update_loss_scale ins(%f : tensor<f32>) outs(%s, %t : tensor<f32>, tensor<i32>) {interval = 0 : i64} -> tensor<f32>, tensor<i32>
  return
}

// -----

func.func @two_formats(%a: tensor<2xf32>, %s: tensor<3xf32>, %h: tensor<4x3xf32>) {
  // expected-error@+1 {{column 2 is named with format f8E4M3FN and with f8E5M2; a column has one format}}
  %0:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
      columns [2, 2] formats [f8E4M3FN, f8E5M2] ins(%a : tensor<2xf32>)
      outs(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
  return
}

// -----

func.func @f(%amax: f32) -> f32 {
  return %amax : f32
}
func.func @main(%a: tensor<1xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>) -> (tensor<1xf32>, tensor<4x1xf32>) {
  // expected-error@+1 {{the recipe's amax = @g names no function with a body in this module}}
  %s1, %h1 = fp8.update_amax_history recipe(#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 4>, amax = @g>)
      columns [0] formats [f8E4M3FN] ins(%a : tensor<1xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>)
      -> tensor<1xf32>, tensor<4x1xf32>
  return %s1, %h1 : tensor<1xf32>, tensor<4x1xf32>
}

// -----

func.func @rows(%a: tensor<1xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>) -> (tensor<1xf32>, tensor<4x1xf32>) {
  // expected-error@+1 {{amax_history has 4 rows, the recipe asks for 1024}}
  %s1, %h1 = fp8.update_amax_history recipe(#fp8.custom<base = #fp8.delayed_scaling>)
      columns [0] formats [f8E4M3FN] ins(%a : tensor<1xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>)
      -> tensor<1xf32>, tensor<4x1xf32>
  return %s1, %h1 : tensor<1xf32>, tensor<4x1xf32>
}
