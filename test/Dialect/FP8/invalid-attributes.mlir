// What recipes refuse as parameters.
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

// expected-error@+1 {{#fp8.custom cannot contain another #fp8.custom}}
module attributes {fp8.recipe = #fp8.custom<base = #fp8.custom<base = #fp8.mx_scaling>>} {}

// -----

// expected-error@+1 {{#fp8.custom cannot contain another #fp8.custom}}
module attributes {fp8.recipe = #fp8.custom<base = #fp8.mx_scaling, wgrad = #fp8.custom<base = #fp8.mx_scaling>>} {}
