// Parameters that recipes refuse.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{amax_history_len must be at least 1, got 0}}
module attributes {fp8.recipe = #fp8.delayed_scaling<amax_history_len = 0>} {}

// -----

// expected-error@+1 {{margin counts binades and must be between -64 and 64, got 65}}
module attributes {fp8.recipe = #fp8.delayed_scaling<margin = 65>} {}

// -----

// expected-error@+1 {{margin counts binades and must be between -64 and 64, got -65}}
module attributes {fp8.recipe = #fp8.delayed_scaling<margin = -65>} {}

// -----

// expected-error@+1 {{eps must be a finite number, 0 or above}}
module attributes {fp8.recipe = #fp8.current_scaling<eps = -1.0>} {}

// -----

// expected-error@+1 {{eps must be a finite number, 0 or above}}
module attributes {fp8.recipe = #fp8.row_scaling<eps = 1.0e300>} {}

// -----

// expected-error@+1 {{eps must be a finite number, 0 or above}}
module attributes {fp8.recipe = #fp8.block_scaling<eps = -0.5>} {}

// -----

// expected-error@+1 {{block must be at least 1, got 0}}
module attributes {fp8.recipe = #fp8.block_scaling<block = 0>} {}

// -----

// expected-error@+1 {{the base of #fp8.custom cannot be another #fp8.custom}}
module attributes {fp8.recipe = #fp8.custom<base = #fp8.custom<base = #fp8.mx_scaling>>} {}

// -----

// expected-error@+1 {{the recipe of a role cannot have recipes of roles: #fp8.custom<base = #fp8.mx_scaling, dgrad = #fp8.row_scaling>}}
module attributes {fp8.recipe = #fp8.custom<base = #fp8.mx_scaling, wgrad = #fp8.custom<base = #fp8.mx_scaling, dgrad = #fp8.row_scaling>>} {}

// -----

// expected-error@+1 {{init = current needs an amax_history_len of 2 or more}}
module attributes {fp8.recipe = #fp8.delayed_scaling<amax_history_len = 1, init = current>} {}

// -----

// expected-error@+1 {{scale = @f gives f32 scales, which #fp8.mx_scaling does not use; choose another base}}
module attributes {fp8.recipe = #fp8.custom<base = #fp8.mx_scaling, scale = @f>} {}

// -----

// expected-error@+1 {{amax = @f chooses from a history, and #fp8.current_scaling keeps none; choose #fp8.delayed_scaling as base}}
module attributes {fp8.recipe = #fp8.custom<base = #fp8.current_scaling, amax = @f>} {}

// -----

// expected-error@+1 {{margin of the base has no effect beside a function for scale; drop one of the two}}
module attributes {fp8.recipe = #fp8.custom<base = #fp8.delayed_scaling<margin = 1>, scale = @f>} {}

// -----

// expected-error@+1 {{amax_compute_algo of the base has no effect beside a function for amax; drop one of the two}}
module attributes {fp8.recipe = #fp8.custom<base = #fp8.delayed_scaling<amax_compute_algo = most_recent>, amax = @f>} {}

// -----

// expected-error@+1 {{eps of the base has no effect beside a function for scale; drop one of the two}}
module attributes {fp8.recipe = #fp8.custom<base = #fp8.current_scaling<eps = 1.0>, scale = @f>} {}

// -----

// expected-error@+1 {{power_2_scale of the base has no effect beside a function for scale; drop one of the two}}
module attributes {fp8.recipe = #fp8.custom<base = #fp8.current_scaling<power_2_scale = true>, scale = @f>} {}

// -----

// expected-error@+1 {{x_block_scaling_dim is 1 (blocks along the contracted dimension) or 2 (square blocks), got 3}}
module attributes {fp8.recipe = #fp8.block_scaling<x_block_scaling_dim = 3>} {}

// -----

// expected-error@+1 {{grad_block_scaling_dim is 1 (blocks along the contracted dimension) or 2 (square blocks), got 0}}
module attributes {fp8.recipe = #fp8.block_scaling<grad_block_scaling_dim = 0>} {}

// -----

// expected-error@+1 {{w_block_scaling_dim is 1 (blocks along the contracted dimension) or 2 (square blocks), got -2}}
module attributes {fp8.recipe = #fp8.mx_scaling<w_block_scaling_dim = -2>} {}
