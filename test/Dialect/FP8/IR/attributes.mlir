// Every recipe: defaults are not printed, everything else reads back.
// RUN: fp8-opt %s -allow-unregistered-dialect | fp8-opt -allow-unregistered-dialect | FileCheck %s
// RUN: fp8-opt %s -allow-unregistered-dialect --emit-bytecode | fp8-opt -allow-unregistered-dialect | FileCheck %s

// CHECK: recipe = #fp8.delayed_scaling}
"test.op"() {recipe = #fp8.delayed_scaling} : () -> ()
// CHECK: recipe = #fp8.delayed_scaling<format = e4m3, margin = -1, amax_history_len = 16, amax_compute_algo = most_recent, reduce_amax = false>
"test.op"() {recipe = #fp8.delayed_scaling<format = e4m3, margin = -1, amax_history_len = 16, amax_compute_algo = most_recent, reduce_amax = false>} : () -> ()
// CHECK: recipe = #fp8.delayed_scaling<format = e5m2, ignore_non_finite = true, init = current>
"test.op"() {recipe = #fp8.delayed_scaling<format = e5m2, ignore_non_finite = true, init = current>} : () -> ()
// Parameters in any order.
// CHECK: recipe = #fp8.delayed_scaling<margin = 1, amax_history_len = 4>
"test.op"() {recipe = #fp8.delayed_scaling<amax_history_len = 4, margin = 1, format = hybrid>} : () -> ()

// CHECK: recipe = #fp8.current_scaling}
"test.op"() {recipe = #fp8.current_scaling} : () -> ()
// CHECK: recipe = #fp8.current_scaling<format = e4m3, eps = 9.99999996E-13, power_2_scale = true, reduce_amax = false>
"test.op"() {recipe = #fp8.current_scaling<format = e4m3, eps = 1.0e-12, power_2_scale = true, reduce_amax = false>} : () -> ()

// CHECK: recipe = #fp8.row_scaling}
"test.op"() {recipe = #fp8.row_scaling} : () -> ()
// CHECK: recipe = #fp8.row_scaling<format = hybrid, eps = 1.250000e-01, power_2_scale = true>
"test.op"() {recipe = #fp8.row_scaling<format = hybrid, eps = 0.125, power_2_scale = true>} : () -> ()
// CHECK: recipe = #fp8.row_scaling<accumulation = split>
"test.op"() {recipe = #fp8.row_scaling<accumulation = split>} : () -> ()

// CHECK: recipe = #fp8.block_scaling}
"test.op"() {recipe = #fp8.block_scaling} : () -> ()
// CHECK: recipe = #fp8.block_scaling<format = hybrid, block = 64, eps = 1.000000e+00, power_2_scale = false>
"test.op"() {recipe = #fp8.block_scaling<format = hybrid, block = 64, eps = 1.0, power_2_scale = false>} : () -> ()
// CHECK: recipe = #fp8.block_scaling<x_block_scaling_dim = 2, w_block_scaling_dim = 1>
"test.op"() {recipe = #fp8.block_scaling<x_block_scaling_dim = 2, w_block_scaling_dim = 1, grad_block_scaling_dim = 1>} : () -> ()

// CHECK: recipe = #fp8.mx_scaling}
"test.op"() {recipe = #fp8.mx_scaling} : () -> ()
// CHECK: recipe = #fp8.mx_scaling<format = hybrid>
"test.op"() {recipe = #fp8.mx_scaling<format = hybrid>} : () -> ()
// CHECK: recipe = #fp8.mx_scaling<rounding = floor, w_block_scaling_dim = 2, accumulation = fast>
"test.op"() {recipe = #fp8.mx_scaling<rounding = floor, w_block_scaling_dim = 2, accumulation = fast>} : () -> ()

// CHECK: recipe = #fp8.custom<base = #fp8.current_scaling>
"test.op"() {recipe = #fp8.custom<base = #fp8.current_scaling>} : () -> ()
// CHECK: recipe = #fp8.custom<base = #fp8.current_scaling, fprop = #fp8.mx_scaling, dgrad = #fp8.delayed_scaling<margin = 2>, wgrad = #fp8.row_scaling, scale = @my_scale>
"test.op"() {recipe = #fp8.custom<base = #fp8.current_scaling, fprop = #fp8.mx_scaling, dgrad = #fp8.delayed_scaling<margin = 2>,
                                  wgrad = #fp8.row_scaling, scale = @my_scale>} : () -> ()
// CHECK: recipe = #fp8.custom<base = #fp8.delayed_scaling, scale = @my_scale, amax = @my_amax>
"test.op"() {recipe = #fp8.custom<base = #fp8.delayed_scaling, scale = @my_scale, amax = @my_amax>} : () -> ()
// CHECK: recipe = #fp8.custom<base = #fp8.current_scaling, quantize = {grad_output = @h, input = @f}, dequantize = {weight = @g}>
"test.op"() {recipe = #fp8.custom<base = #fp8.current_scaling, quantize = {input = @f, grad_output = @h}, dequantize = {weight = @g}>} : () -> ()

// Enumerations.
// CHECK: a = #fp8<role wgrad>, b = #fp8<tensor_kind grad_output>, c = #fp8<accumulation split>, d = #fp8<reduce_kind sum>
"test.op"() {a = #fp8<role wgrad>, b = #fp8<tensor_kind grad_output>, c = #fp8<accumulation split>, d = #fp8<reduce_kind sum>} : () -> ()
