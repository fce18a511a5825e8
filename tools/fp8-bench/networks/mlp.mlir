// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A training step that fp8-bench measures. Generated from peer/jax_networks.py by the command in
// README.md; do not edit.

#loc = loc(unknown)
#loc1 = loc("params['fc1/bias']")
#loc2 = loc("params['fc1/weight']")
#loc3 = loc("params['fc2/bias']")
#loc4 = loc("params['fc2/weight']")
#loc5 = loc("params['head/bias']")
#loc6 = loc("params['head/weight']")
#loc7 = loc("moments['fc1/bias']")
#loc8 = loc("moments['fc1/weight']")
#loc9 = loc("moments['fc2/bias']")
#loc10 = loc("moments['fc2/weight']")
#loc11 = loc("moments['head/bias']")
#loc12 = loc("moments['head/weight']")
#loc13 = loc("inputs")
#loc14 = loc("labels")
#loc15 = loc("jit(main)/jvp()/reduce_max")
#loc16 = loc("jit(main)/jvp(fc1)/convert_element_type")
#loc17 = loc("jit(main)/jvp(fc1)/dot_general")
#loc18 = loc("jit(main)/jvp(fc1)/broadcast_in_dim")
#loc19 = loc("jit(main)/jvp(fc1)/add")
#loc20 = loc("jit(main)/jvp()/jit(relu)")
#loc21 = loc("jit(main)/jvp()/gt")
#loc22 = loc("jit(main)/jvp(fc2)/convert_element_type")
#loc23 = loc("jit(main)/jvp(fc2)/dot_general")
#loc24 = loc("jit(main)/jvp(fc2)/broadcast_in_dim")
#loc25 = loc("jit(main)/jvp(fc2)/add")
#loc26 = loc("jit(main)/jvp(head)/convert_element_type")
#loc27 = loc("jit(main)/jvp(head)/dot_general")
#loc28 = loc("jit(main)/jvp(head)/broadcast_in_dim")
#loc29 = loc("jit(main)/jvp(head)/add")
#loc30 = loc("jit(main)/jvp()/convert_element_type")
#loc31 = loc("jit(main)/jvp(jit(_one_hot))")
#loc32 = loc("jit(main)/jvp()/max")
#loc33 = loc("jit(main)/jvp()/is_finite")
#loc34 = loc("jit(main)/jvp()/broadcast_in_dim")
#loc35 = loc("jit(main)/jvp()/select_n")
#loc36 = loc("jit(main)/jvp()/sub")
#loc37 = loc("jit(main)/jvp()/exp")
#loc38 = loc("jit(main)/jvp()/reduce_sum")
#loc39 = loc("jit(main)/jvp()/abs")
#loc40 = loc("jit(main)/jvp()/ge")
#loc41 = loc("jit(main)/jvp()/log")
#loc42 = loc("jit(main)/jvp()/add")
#loc43 = loc("jit(main)/jvp()/mul")
#loc44 = loc("jit(main)/jvp()/div")
#loc45 = loc("jit(main)/transpose(jvp())/div")
#loc46 = loc("jit(main)/transpose(jvp())/broadcast_in_dim")
#loc47 = loc("jit(main)/transpose(jvp())/neg")
#loc48 = loc("jit(main)/transpose(jvp())/mul")
#loc49 = loc("jit(main)/transpose(jvp())/select_n")
#loc50 = loc("jit(main)/transpose(jvp())/add_any")
#loc51 = loc("jit(main)/transpose(jvp())/convert_element_type")
#loc52 = loc("jit(main)/transpose(jvp(head))/reduce_sum")
#loc54 = loc("jit(main)/transpose(jvp(head))/convert_element_type")
#loc55 = loc("jit(main)/transpose(jvp(head))/dot_general")
#loc56 = loc("jit(main)/transpose(jvp(head))/transpose")
#loc57 = loc("jit(main)/transpose(jvp(fc2))/reduce_sum")
#loc59 = loc("jit(main)/transpose(jvp(fc2))/convert_element_type")
#loc60 = loc("jit(main)/transpose(jvp(fc2))/dot_general")
#loc61 = loc("jit(main)/transpose(jvp(fc2))/transpose")
#loc62 = loc("jit(main)/transpose(jvp(fc1))/reduce_sum")
#loc64 = loc("jit(main)/transpose(jvp(fc1))/convert_element_type")
#loc65 = loc("jit(main)/transpose(jvp(fc1))/dot_general")
#loc66 = loc("jit(main)/transpose(jvp(fc1))/transpose")
#loc67 = loc("jit(main)/mul")
#loc68 = loc("jit(main)/add")
#loc69 = loc("jit(main)/sub")
#loc72 = loc("max")
#loc74 = loc("broadcast_in_dim")
#loc75 = loc("iota")
#loc76 = loc("eq")
#loc77 = loc("convert_element_type")
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d1)>
#map3 = affine_map<(d0, d1) -> (0, d1)>
#map4 = affine_map<(d0, d1) -> ()>
#map5 = affine_map<(d0, d1) -> (d0)>
#map6 = affine_map<(d0) -> ()>
#map7 = affine_map<(d0, d1) -> (d0, 0)>
#map8 = affine_map<() -> ()>
#map9 = affine_map<(d0, d1) -> (d1, d0)>
#map10 = affine_map<(d0, d1, d2) -> (d2, d0)>
#map11 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map12 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map13 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map14 = affine_map<(d0, d1, d2) -> (d1, d2)>
module @jit_main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1024xf32> {tf.aliasing_output = 0 : i32} loc("params['fc1/bias']"), %arg1: tensor<784x1024xf32> {tf.aliasing_output = 1 : i32} loc("params['fc1/weight']"), %arg2: tensor<1024xf32> {tf.aliasing_output = 2 : i32} loc("params['fc2/bias']"), %arg3: tensor<1024x1024xf32> {tf.aliasing_output = 3 : i32} loc("params['fc2/weight']"), %arg4: tensor<10xf32> {tf.aliasing_output = 4 : i32} loc("params['head/bias']"), %arg5: tensor<1024x10xf32> {tf.aliasing_output = 5 : i32} loc("params['head/weight']"), %arg6: tensor<1024xf32> {tf.aliasing_output = 6 : i32} loc("moments['fc1/bias']"), %arg7: tensor<784x1024xf32> {tf.aliasing_output = 7 : i32} loc("moments['fc1/weight']"), %arg8: tensor<1024xf32> {tf.aliasing_output = 8 : i32} loc("moments['fc2/bias']"), %arg9: tensor<1024x1024xf32> {tf.aliasing_output = 9 : i32} loc("moments['fc2/weight']"), %arg10: tensor<10xf32> {tf.aliasing_output = 10 : i32} loc("moments['head/bias']"), %arg11: tensor<1024x10xf32> {tf.aliasing_output = 11 : i32} loc("moments['head/weight']"), %arg12: tensor<256x784xf32> loc("inputs"), %arg13: tensor<256xi32> loc("labels")) -> (tensor<1024xf32> {jax.result_info = "result[0]['fc1/bias']"}, tensor<784x1024xf32> {jax.result_info = "result[0]['fc1/weight']"}, tensor<1024xf32> {jax.result_info = "result[0]['fc2/bias']"}, tensor<1024x1024xf32> {jax.result_info = "result[0]['fc2/weight']"}, tensor<10xf32> {jax.result_info = "result[0]['head/bias']"}, tensor<1024x10xf32> {jax.result_info = "result[0]['head/weight']"}, tensor<1024xf32> {jax.result_info = "result[1]['fc1/bias']"}, tensor<784x1024xf32> {jax.result_info = "result[1]['fc1/weight']"}, tensor<1024xf32> {jax.result_info = "result[1]['fc2/bias']"}, tensor<1024x1024xf32> {jax.result_info = "result[1]['fc2/weight']"}, tensor<10xf32> {jax.result_info = "result[1]['head/bias']"}, tensor<1024x10xf32> {jax.result_info = "result[1]['head/weight']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = arith.constant 3.906250e-03 : f32 loc(#loc)
    %cst_0 = arith.constant 2.560000e+02 : f32 loc(#loc)
    %cst_1 = arith.constant 0.000000e+00 : f32 loc(#loc)
    %cst_2 = arith.constant 0x7F800000 : f32 loc(#loc)
    %cst_3 = arith.constant 0xFF800000 : f32 loc(#loc15)
    %cst_4 = arith.constant 0.000000e+00 : bf16 loc(#loc)
    %cst_5 = arith.constant dense<0.00999999977> : tensor<f32> loc(#loc)
    %cst_6 = arith.constant dense<0.899999976> : tensor<f32> loc(#loc)
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %cst_8 = arith.constant dense<0xFF800000> : tensor<f32> loc(#loc)
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<bf16> loc(#loc)
    %0 = tensor.empty() : tensor<256x784xbf16> loc(#loc16)
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg12 : tensor<256x784xf32>) outs(%0 : tensor<256x784xbf16>) {
    ^bb0(%in: f32 loc("inputs"), %out: bf16 loc("jit(main)/jvp(fc1)/convert_element_type")):
      %149 = arith.truncf %in : f32 to bf16 loc(#loc16)
      linalg.yield %149 : bf16 loc(#loc16)
    } -> tensor<256x784xbf16> loc(#loc16)
    %2 = tensor.empty() : tensor<784x1024xbf16> loc(#loc16)
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<784x1024xf32>) outs(%2 : tensor<784x1024xbf16>) {
    ^bb0(%in: f32 loc("params['fc1/weight']"), %out: bf16 loc("jit(main)/jvp(fc1)/convert_element_type")):
      %149 = arith.truncf %in : f32 to bf16 loc(#loc16)
      linalg.yield %149 : bf16 loc(#loc16)
    } -> tensor<784x1024xbf16> loc(#loc16)
    %4 = tensor.empty() : tensor<256x1024xbf16> loc(#loc17)
    %5 = linalg.fill ins(%cst_4 : bf16) outs(%4 : tensor<256x1024xbf16>) -> tensor<256x1024xbf16> loc(#loc17)
    %6 = linalg.matmul ins(%1, %3 : tensor<256x784xbf16>, tensor<784x1024xbf16>) outs(%5 : tensor<256x1024xbf16>) -> tensor<256x1024xbf16> loc(#loc17)
    %7 = tensor.empty() : tensor<1024xbf16> loc(#loc16)
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg0 : tensor<1024xf32>) outs(%7 : tensor<1024xbf16>) {
    ^bb0(%in: f32 loc("params['fc1/bias']"), %out: bf16 loc("jit(main)/jvp(fc1)/convert_element_type")):
      %149 = arith.truncf %in : f32 to bf16 loc(#loc16)
      linalg.yield %149 : bf16 loc(#loc16)
    } -> tensor<1024xbf16> loc(#loc16)
    %9 = tensor.empty() : tensor<1x1024xbf16> loc(#loc18)
    %10 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<1024xbf16>) outs(%9 : tensor<1x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(fc1)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(fc1)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc18)
    } -> tensor<1x1024xbf16> loc(#loc18)
    %11 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<1x1024xbf16>) outs(%4 : tensor<256x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(fc1)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(fc1)/add")):
      linalg.yield %in : bf16 loc(#loc19)
    } -> tensor<256x1024xbf16> loc(#loc19)
    %12 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %11 : tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%4 : tensor<256x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(fc1)/dot_general"), %in_12: bf16 loc("jit(main)/jvp(fc1)/add"), %out: bf16 loc("jit(main)/jvp(fc1)/add")):
      %149 = arith.addf %in, %in_12 : bf16 loc(#loc19)
      linalg.yield %149 : bf16 loc(#loc19)
    } -> tensor<256x1024xbf16> loc(#loc19)
    %13 = call @main.relu(%12) : (tensor<256x1024xbf16>) -> tensor<256x1024xbf16> loc(#loc20)
    %14 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_9 : tensor<bf16>) outs(%4 : tensor<256x1024xbf16>) {
    ^bb0(%in: bf16 loc(unknown), %out: bf16 loc("jit(main)/jvp()/gt")):
      linalg.yield %in : bf16 loc(#loc21)
    } -> tensor<256x1024xbf16> loc(#loc21)
    %15 = tensor.empty() : tensor<256x1024xi1> loc(#loc21)
    %16 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%12, %14 : tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%15 : tensor<256x1024xi1>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(fc1)/add"), %in_12: bf16 loc("jit(main)/jvp()/gt"), %out: i1 loc("jit(main)/jvp()/gt")):
      %149 = arith.cmpf ogt, %in, %in_12 : bf16 loc(#loc21)
      linalg.yield %149 : i1 loc(#loc21)
    } -> tensor<256x1024xi1> loc(#loc21)
    %17 = tensor.empty() : tensor<1024x1024xbf16> loc(#loc22)
    %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3 : tensor<1024x1024xf32>) outs(%17 : tensor<1024x1024xbf16>) {
    ^bb0(%in: f32 loc("params['fc2/weight']"), %out: bf16 loc("jit(main)/jvp(fc2)/convert_element_type")):
      %149 = arith.truncf %in : f32 to bf16 loc(#loc22)
      linalg.yield %149 : bf16 loc(#loc22)
    } -> tensor<1024x1024xbf16> loc(#loc22)
    %19 = linalg.matmul ins(%13, %18 : tensor<256x1024xbf16>, tensor<1024x1024xbf16>) outs(%5 : tensor<256x1024xbf16>) -> tensor<256x1024xbf16> loc(#loc23)
    %20 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg2 : tensor<1024xf32>) outs(%7 : tensor<1024xbf16>) {
    ^bb0(%in: f32 loc("params['fc2/bias']"), %out: bf16 loc("jit(main)/jvp(fc2)/convert_element_type")):
      %149 = arith.truncf %in : f32 to bf16 loc(#loc22)
      linalg.yield %149 : bf16 loc(#loc22)
    } -> tensor<1024xbf16> loc(#loc22)
    %21 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel"]} ins(%20 : tensor<1024xbf16>) outs(%9 : tensor<1x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(fc2)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(fc2)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc24)
    } -> tensor<1x1024xbf16> loc(#loc24)
    %22 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel"]} ins(%21 : tensor<1x1024xbf16>) outs(%4 : tensor<256x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(fc2)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(fc2)/add")):
      linalg.yield %in : bf16 loc(#loc25)
    } -> tensor<256x1024xbf16> loc(#loc25)
    %23 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%19, %22 : tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%4 : tensor<256x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(fc2)/dot_general"), %in_12: bf16 loc("jit(main)/jvp(fc2)/add"), %out: bf16 loc("jit(main)/jvp(fc2)/add")):
      %149 = arith.addf %in, %in_12 : bf16 loc(#loc25)
      linalg.yield %149 : bf16 loc(#loc25)
    } -> tensor<256x1024xbf16> loc(#loc25)
    %24 = call @main.relu(%23) : (tensor<256x1024xbf16>) -> tensor<256x1024xbf16> loc(#loc20)
    %25 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%23, %14 : tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%15 : tensor<256x1024xi1>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(fc2)/add"), %in_12: bf16 loc("jit(main)/jvp()/gt"), %out: i1 loc("jit(main)/jvp()/gt")):
      %149 = arith.cmpf ogt, %in, %in_12 : bf16 loc(#loc21)
      linalg.yield %149 : i1 loc(#loc21)
    } -> tensor<256x1024xi1> loc(#loc21)
    %26 = tensor.empty() : tensor<1024x10xbf16> loc(#loc26)
    %27 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg5 : tensor<1024x10xf32>) outs(%26 : tensor<1024x10xbf16>) {
    ^bb0(%in: f32 loc("params['head/weight']"), %out: bf16 loc("jit(main)/jvp(head)/convert_element_type")):
      %149 = arith.truncf %in : f32 to bf16 loc(#loc26)
      linalg.yield %149 : bf16 loc(#loc26)
    } -> tensor<1024x10xbf16> loc(#loc26)
    %28 = tensor.empty() : tensor<256x10xbf16> loc(#loc27)
    %29 = linalg.fill ins(%cst_4 : bf16) outs(%28 : tensor<256x10xbf16>) -> tensor<256x10xbf16> loc(#loc27)
    %30 = linalg.matmul ins(%24, %27 : tensor<256x1024xbf16>, tensor<1024x10xbf16>) outs(%29 : tensor<256x10xbf16>) -> tensor<256x10xbf16> loc(#loc27)
    %31 = tensor.empty() : tensor<10xbf16> loc(#loc26)
    %32 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg4 : tensor<10xf32>) outs(%31 : tensor<10xbf16>) {
    ^bb0(%in: f32 loc("params['head/bias']"), %out: bf16 loc("jit(main)/jvp(head)/convert_element_type")):
      %149 = arith.truncf %in : f32 to bf16 loc(#loc26)
      linalg.yield %149 : bf16 loc(#loc26)
    } -> tensor<10xbf16> loc(#loc26)
    %33 = tensor.empty() : tensor<1x10xbf16> loc(#loc28)
    %34 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel"]} ins(%32 : tensor<10xbf16>) outs(%33 : tensor<1x10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(head)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(head)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc28)
    } -> tensor<1x10xbf16> loc(#loc28)
    %35 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel"]} ins(%34 : tensor<1x10xbf16>) outs(%28 : tensor<256x10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(head)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(head)/add")):
      linalg.yield %in : bf16 loc(#loc29)
    } -> tensor<256x10xbf16> loc(#loc29)
    %36 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%30, %35 : tensor<256x10xbf16>, tensor<256x10xbf16>) outs(%28 : tensor<256x10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(head)/dot_general"), %in_12: bf16 loc("jit(main)/jvp(head)/add"), %out: bf16 loc("jit(main)/jvp(head)/add")):
      %149 = arith.addf %in, %in_12 : bf16 loc(#loc29)
      linalg.yield %149 : bf16 loc(#loc29)
    } -> tensor<256x10xbf16> loc(#loc29)
    %37 = tensor.empty() : tensor<256x10xf32> loc(#loc30)
    %38 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%36 : tensor<256x10xbf16>) outs(%37 : tensor<256x10xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(head)/add"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %149 = arith.extf %in : bf16 to f32 loc(#loc30)
      linalg.yield %149 : f32 loc(#loc30)
    } -> tensor<256x10xf32> loc(#loc30)
    %39 = call @main.one_hot(%arg13) : (tensor<256xi32>) -> tensor<256x10xf32> loc(#loc31)
    %40 = tensor.empty() : tensor<256xf32> loc(#loc15)
    %41 = linalg.fill ins(%cst_3 : f32) outs(%40 : tensor<256xf32>) -> tensor<256xf32> loc(#loc15)
    %42 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "reduction"]} ins(%38 : tensor<256x10xf32>) outs(%41 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_max"), %out: f32 loc("jit(main)/jvp()/reduce_max")):
      %149 = arith.maximumf %out, %in : f32 loc(#loc15)
      linalg.yield %149 : f32 loc(#loc15)
    } -> tensor<256xf32> loc(#loc15)
    %43 = linalg.generic {indexing_maps = [#map6, #map1], iterator_types = ["parallel"]} ins(%cst_8 : tensor<f32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/max")):
      linalg.yield %in : f32 loc(#loc32)
    } -> tensor<256xf32> loc(#loc32)
    %44 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%43, %42 : tensor<256xf32>, tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/max"), %in_12: f32 loc("jit(main)/jvp()/reduce_max"), %out: f32 loc("jit(main)/jvp()/max")):
      %149 = arith.maximumf %in, %in_12 : f32 loc(#loc32)
      linalg.yield %149 : f32 loc(#loc32)
    } -> tensor<256xf32> loc(#loc32)
    %45 = tensor.empty() : tensor<256xi1> loc(#loc33)
    %46 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%44 : tensor<256xf32>) outs(%45 : tensor<256xi1>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/max"), %out: i1 loc("jit(main)/jvp()/is_finite")):
      %149 = math.absf %in : f32 loc(#loc33)
      %150 = arith.cmpf one, %149, %cst_2 : f32 loc(#loc33)
      linalg.yield %150 : i1 loc(#loc33)
    } -> tensor<256xi1> loc(#loc33)
    %47 = linalg.generic {indexing_maps = [#map6, #map1], iterator_types = ["parallel"]} ins(%cst_7 : tensor<f32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc34)
    } -> tensor<256xf32> loc(#loc34)
    %48 = linalg.generic {indexing_maps = [#map1, #map1, #map1, #map1], iterator_types = ["parallel"]} ins(%46, %44, %47 : tensor<256xi1>, tensor<256xf32>, tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: i1 loc("jit(main)/jvp()/is_finite"), %in_12: f32 loc("jit(main)/jvp()/max"), %in_13: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/select_n")):
      %149 = arith.select %in, %in_12, %in_13 : f32 loc(#loc35)
      linalg.yield %149 : f32 loc(#loc35)
    } -> tensor<256xf32> loc(#loc35)
    %49 = tensor.empty() : tensor<256x1xf32> loc(#loc34)
    %50 = linalg.generic {indexing_maps = [#map5, #map], iterator_types = ["parallel", "parallel"]} ins(%48 : tensor<256xf32>) outs(%49 : tensor<256x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/select_n"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc34)
    } -> tensor<256x1xf32> loc(#loc34)
    %51 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel"]} ins(%50 : tensor<256x1xf32>) outs(%37 : tensor<256x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/sub")):
      linalg.yield %in : f32 loc(#loc36)
    } -> tensor<256x10xf32> loc(#loc36)
    %52 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%38, %51 : tensor<256x10xf32>, tensor<256x10xf32>) outs(%37 : tensor<256x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_12: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/sub")):
      %149 = arith.subf %in, %in_12 : f32 loc(#loc36)
      linalg.yield %149 : f32 loc(#loc36)
    } -> tensor<256x10xf32> loc(#loc36)
    %53 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%52 : tensor<256x10xf32>) outs(%37 : tensor<256x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/exp")):
      %149 = math.exp %in : f32 loc(#loc37)
      linalg.yield %149 : f32 loc(#loc37)
    } -> tensor<256x10xf32> loc(#loc37)
    %54 = linalg.fill ins(%cst_1 : f32) outs(%40 : tensor<256xf32>) -> tensor<256xf32> loc(#loc38)
    %55 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "reduction"]} ins(%53 : tensor<256x10xf32>) outs(%54 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %149 = arith.addf %out, %in : f32 loc(#loc38)
      linalg.yield %149 : f32 loc(#loc38)
    } -> tensor<256xf32> loc(#loc38)
    %56 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%55 : tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/abs")):
      %149 = math.absf %in : f32 loc(#loc39)
      linalg.yield %149 : f32 loc(#loc39)
    } -> tensor<256xf32> loc(#loc39)
    %57 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%55, %47 : tensor<256xf32>, tensor<256xf32>) outs(%45 : tensor<256xi1>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %in_12: f32 loc("jit(main)/jvp()/ge"), %out: i1 loc("jit(main)/jvp()/ge")):
      %149 = arith.cmpf oge, %in, %in_12 : f32 loc(#loc40)
      linalg.yield %149 : i1 loc(#loc40)
    } -> tensor<256xi1> loc(#loc40)
    %58 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%56 : tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/abs"), %out: f32 loc("jit(main)/jvp()/log")):
      %149 = math.log %in : f32 loc(#loc41)
      linalg.yield %149 : f32 loc(#loc41)
    } -> tensor<256xf32> loc(#loc41)
    %59 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%58, %48 : tensor<256xf32>, tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/log"), %in_12: f32 loc("jit(main)/jvp()/select_n"), %out: f32 loc("jit(main)/jvp()/add")):
      %149 = arith.addf %in, %in_12 : f32 loc(#loc42)
      linalg.yield %149 : f32 loc(#loc42)
    } -> tensor<256xf32> loc(#loc42)
    %60 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%38, %39 : tensor<256x10xf32>, tensor<256x10xf32>) outs(%37 : tensor<256x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_12: f32 loc("jit(main)/jvp(jit(_one_hot))"), %out: f32 loc("jit(main)/jvp()/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc43)
      linalg.yield %149 : f32 loc(#loc43)
    } -> tensor<256x10xf32> loc(#loc43)
    %61 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "reduction"]} ins(%60 : tensor<256x10xf32>) outs(%54 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %149 = arith.addf %out, %in : f32 loc(#loc38)
      linalg.yield %149 : f32 loc(#loc38)
    } -> tensor<256xf32> loc(#loc38)
    %62 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%59, %61 : tensor<256xf32>, tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_12: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/sub")):
      %149 = arith.subf %in, %in_12 : f32 loc(#loc36)
      linalg.yield %149 : f32 loc(#loc36)
    } -> tensor<256xf32> loc(#loc36)
    %63 = tensor.empty() : tensor<f32> loc(#loc38)
    %64 = linalg.fill ins(%cst_1 : f32) outs(%63 : tensor<f32>) -> tensor<f32> loc(#loc38)
    %65 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["reduction"]} ins(%62 : tensor<256xf32>) outs(%64 : tensor<f32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %149 = arith.addf %out, %in : f32 loc(#loc38)
      linalg.yield %149 : f32 loc(#loc38)
    } -> tensor<f32> loc(#loc38)
    %66 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = []} ins(%65 : tensor<f32>) outs(%63 : tensor<f32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/div")):
      %149 = arith.divf %in, %cst_0 : f32 loc(#loc44)
      linalg.yield %149 : f32 loc(#loc44)
    } -> tensor<f32> loc(#loc44)
    %67 = linalg.generic {indexing_maps = [#map8], iterator_types = []} outs(%63 : tensor<f32>) {
    ^bb0(%out: f32 loc("jit(main)/transpose(jvp())/div")):
      linalg.yield %cst : f32 loc(#loc45)
    } -> tensor<f32> loc(#loc45)
    %68 = linalg.generic {indexing_maps = [#map6, #map1], iterator_types = ["parallel"]} ins(%67 : tensor<f32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc46)
    } -> tensor<256xf32> loc(#loc46)
    %69 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%68 : tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: f32 loc("jit(main)/transpose(jvp())/neg")):
      %149 = arith.negf %in : f32 loc(#loc47)
      linalg.yield %149 : f32 loc(#loc47)
    } -> tensor<256xf32> loc(#loc47)
    %70 = linalg.generic {indexing_maps = [#map5, #map], iterator_types = ["parallel", "parallel"]} ins(%69 : tensor<256xf32>) outs(%37 : tensor<256x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/neg"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc46)
    } -> tensor<256x10xf32> loc(#loc46)
    %71 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%70, %39 : tensor<256x10xf32>, tensor<256x10xf32>) outs(%37 : tensor<256x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_12: f32 loc("jit(main)/jvp(jit(_one_hot))"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc48)
      linalg.yield %149 : f32 loc(#loc48)
    } -> tensor<256x10xf32> loc(#loc48)
    %72 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%68, %56 : tensor<256xf32>, tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_12: f32 loc("jit(main)/jvp()/abs"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %149 = arith.divf %in, %in_12 : f32 loc(#loc45)
      linalg.yield %149 : f32 loc(#loc45)
    } -> tensor<256xf32> loc(#loc45)
    %73 = linalg.generic {indexing_maps = [#map1, #map1, #map1, #map1], iterator_types = ["parallel"]} ins(%57, %47, %72 : tensor<256xi1>, tensor<256xf32>, tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: i1 loc("jit(main)/jvp()/ge"), %in_12: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_13: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/select_n")):
      %149 = arith.select %in, %in_12, %in_13 : f32 loc(#loc49)
      linalg.yield %149 : f32 loc(#loc49)
    } -> tensor<256xf32> loc(#loc49)
    %74 = linalg.generic {indexing_maps = [#map1, #map1, #map1, #map1], iterator_types = ["parallel"]} ins(%57, %72, %47 : tensor<256xi1>, tensor<256xf32>, tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: i1 loc("jit(main)/jvp()/ge"), %in_12: f32 loc("jit(main)/transpose(jvp())/div"), %in_13: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: f32 loc("jit(main)/transpose(jvp())/select_n")):
      %149 = arith.select %in, %in_12, %in_13 : f32 loc(#loc49)
      linalg.yield %149 : f32 loc(#loc49)
    } -> tensor<256xf32> loc(#loc49)
    %75 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%73 : tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/select_n"), %out: f32 loc("jit(main)/transpose(jvp())/neg")):
      %149 = arith.negf %in : f32 loc(#loc47)
      linalg.yield %149 : f32 loc(#loc47)
    } -> tensor<256xf32> loc(#loc47)
    %76 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%74, %75 : tensor<256xf32>, tensor<256xf32>) outs(%40 : tensor<256xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/select_n"), %in_12: f32 loc("jit(main)/transpose(jvp())/neg"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %149 = arith.addf %in, %in_12 : f32 loc(#loc50)
      linalg.yield %149 : f32 loc(#loc50)
    } -> tensor<256xf32> loc(#loc50)
    %77 = linalg.generic {indexing_maps = [#map5, #map], iterator_types = ["parallel", "parallel"]} ins(%76 : tensor<256xf32>) outs(%37 : tensor<256x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc46)
    } -> tensor<256x10xf32> loc(#loc46)
    %78 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%77, %53 : tensor<256x10xf32>, tensor<256x10xf32>) outs(%37 : tensor<256x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_12: f32 loc("jit(main)/jvp()/exp"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc48)
      linalg.yield %149 : f32 loc(#loc48)
    } -> tensor<256x10xf32> loc(#loc48)
    %79 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%71, %78 : tensor<256x10xf32>, tensor<256x10xf32>) outs(%37 : tensor<256x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_12: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %149 = arith.addf %in, %in_12 : f32 loc(#loc50)
      linalg.yield %149 : f32 loc(#loc50)
    } -> tensor<256x10xf32> loc(#loc50)
    %80 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%79 : tensor<256x10xf32>) outs(%28 : tensor<256x10xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %149 = arith.truncf %in : f32 to bf16 loc(#loc51)
      linalg.yield %149 : bf16 loc(#loc51)
    } -> tensor<256x10xbf16> loc(#loc51)
    %81 = linalg.fill ins(%cst_4 : bf16) outs(%31 : tensor<10xbf16>) -> tensor<10xbf16> loc(#loc52)
    %82 = linalg.generic {indexing_maps = [#map9, #map5], iterator_types = ["parallel", "reduction"]} ins(%80 : tensor<256x10xbf16>) outs(%81 : tensor<10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(head))/reduce_sum")):
      %149 = arith.addf %out, %in : bf16 loc(#loc52)
      linalg.yield %149 : bf16 loc(#loc52)
    } -> tensor<10xbf16> loc(#loc52)
    %expanded = tensor.expand_shape %82 [[0, 1]] output_shape [1, 10] : tensor<10xbf16> into tensor<1x10xbf16> loc(#loc53)
    %83 = linalg.generic {indexing_maps = [#map9, #map5], iterator_types = ["parallel", "reduction"]} ins(%expanded : tensor<1x10xbf16>) outs(%81 : tensor<10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(head))/reduce_sum")):
      %149 = arith.addf %out, %in : bf16 loc(#loc52)
      linalg.yield %149 : bf16 loc(#loc52)
    } -> tensor<10xbf16> loc(#loc52)
    %84 = tensor.empty() : tensor<10xf32> loc(#loc54)
    %85 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%83 : tensor<10xbf16>) outs(%84 : tensor<10xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(head))/convert_element_type")):
      %149 = arith.extf %in : bf16 to f32 loc(#loc54)
      linalg.yield %149 : f32 loc(#loc54)
    } -> tensor<10xf32> loc(#loc54)
    %86 = tensor.empty() : tensor<10x1024xbf16> loc(#loc55)
    %87 = linalg.fill ins(%cst_4 : bf16) outs(%86 : tensor<10x1024xbf16>) -> tensor<10x1024xbf16> loc(#loc55)
    %88 = linalg.generic {indexing_maps = [#map10, #map11, #map12], iterator_types = ["parallel", "parallel", "reduction"]} ins(%80, %24 : tensor<256x10xbf16>, tensor<256x1024xbf16>) outs(%87 : tensor<10x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_12: bf16 loc("jit(main)/jvp()/jit(relu)"), %out: bf16 loc("jit(main)/transpose(jvp(head))/dot_general")):
      %149 = arith.mulf %in, %in_12 : bf16 loc(#loc51)
      %150 = arith.addf %out, %149 : bf16 loc(#loc55)
      linalg.yield %150 : bf16 loc(#loc)
    } -> tensor<10x1024xbf16> loc(#loc55)
    %89 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel"]} ins(%88 : tensor<10x1024xbf16>) outs(%26 : tensor<1024x10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(head))/transpose")):
      linalg.yield %in : bf16 loc(#loc56)
    } -> tensor<1024x10xbf16> loc(#loc56)
    %90 = linalg.generic {indexing_maps = [#map13, #map14, #map12], iterator_types = ["parallel", "parallel", "reduction"]} ins(%80, %27 : tensor<256x10xbf16>, tensor<1024x10xbf16>) outs(%5 : tensor<256x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_12: bf16 loc("jit(main)/jvp(head)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(head))/dot_general")):
      %149 = arith.mulf %in, %in_12 : bf16 loc(#loc51)
      %150 = arith.addf %out, %149 : bf16 loc(#loc55)
      linalg.yield %150 : bf16 loc(#loc)
    } -> tensor<256x1024xbf16> loc(#loc55)
    %91 = tensor.empty() : tensor<1024x10xf32> loc(#loc54)
    %92 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%89 : tensor<1024x10xbf16>) outs(%91 : tensor<1024x10xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(head))/convert_element_type")):
      %149 = arith.extf %in : bf16 to f32 loc(#loc54)
      linalg.yield %149 : f32 loc(#loc54)
    } -> tensor<1024x10xf32> loc(#loc54)
    %93 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%25, %90, %14 : tensor<256x1024xi1>, tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%4 : tensor<256x1024xbf16>) {
    ^bb0(%in: i1 loc("jit(main)/jvp()/gt"), %in_12: bf16 loc("jit(main)/transpose(jvp(head))/dot_general"), %in_13: bf16 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: bf16 loc("jit(main)/transpose(jvp())/select_n")):
      %149 = arith.select %in, %in_12, %in_13 : bf16 loc(#loc49)
      linalg.yield %149 : bf16 loc(#loc49)
    } -> tensor<256x1024xbf16> loc(#loc49)
    %94 = linalg.fill ins(%cst_4 : bf16) outs(%7 : tensor<1024xbf16>) -> tensor<1024xbf16> loc(#loc57)
    %95 = linalg.generic {indexing_maps = [#map9, #map5], iterator_types = ["parallel", "reduction"]} ins(%93 : tensor<256x1024xbf16>) outs(%94 : tensor<1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(fc2))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(fc2))/reduce_sum")):
      %149 = arith.addf %out, %in : bf16 loc(#loc57)
      linalg.yield %149 : bf16 loc(#loc57)
    } -> tensor<1024xbf16> loc(#loc57)
    %expanded_10 = tensor.expand_shape %95 [[0, 1]] output_shape [1, 1024] : tensor<1024xbf16> into tensor<1x1024xbf16> loc(#loc58)
    %96 = linalg.generic {indexing_maps = [#map9, #map5], iterator_types = ["parallel", "reduction"]} ins(%expanded_10 : tensor<1x1024xbf16>) outs(%94 : tensor<1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(fc2))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(fc2))/reduce_sum")):
      %149 = arith.addf %out, %in : bf16 loc(#loc57)
      linalg.yield %149 : bf16 loc(#loc57)
    } -> tensor<1024xbf16> loc(#loc57)
    %97 = tensor.empty() : tensor<1024xf32> loc(#loc59)
    %98 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%96 : tensor<1024xbf16>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(fc2))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(fc2))/convert_element_type")):
      %149 = arith.extf %in : bf16 to f32 loc(#loc59)
      linalg.yield %149 : f32 loc(#loc59)
    } -> tensor<1024xf32> loc(#loc59)
    %99 = linalg.fill ins(%cst_4 : bf16) outs(%17 : tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16> loc(#loc60)
    %100 = linalg.generic {indexing_maps = [#map10, #map11, #map12], iterator_types = ["parallel", "parallel", "reduction"]} ins(%93, %13 : tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%99 : tensor<1024x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/select_n"), %in_12: bf16 loc("jit(main)/jvp()/jit(relu)"), %out: bf16 loc("jit(main)/transpose(jvp(fc2))/dot_general")):
      %149 = arith.mulf %in, %in_12 : bf16 loc(#loc49)
      %150 = arith.addf %out, %149 : bf16 loc(#loc60)
      linalg.yield %150 : bf16 loc(#loc)
    } -> tensor<1024x1024xbf16> loc(#loc60)
    %101 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel"]} ins(%100 : tensor<1024x1024xbf16>) outs(%17 : tensor<1024x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(fc2))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(fc2))/transpose")):
      linalg.yield %in : bf16 loc(#loc61)
    } -> tensor<1024x1024xbf16> loc(#loc61)
    %102 = linalg.generic {indexing_maps = [#map13, #map14, #map12], iterator_types = ["parallel", "parallel", "reduction"]} ins(%93, %18 : tensor<256x1024xbf16>, tensor<1024x1024xbf16>) outs(%5 : tensor<256x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/select_n"), %in_12: bf16 loc("jit(main)/jvp(fc2)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(fc2))/dot_general")):
      %149 = arith.mulf %in, %in_12 : bf16 loc(#loc49)
      %150 = arith.addf %out, %149 : bf16 loc(#loc60)
      linalg.yield %150 : bf16 loc(#loc)
    } -> tensor<256x1024xbf16> loc(#loc60)
    %103 = tensor.empty() : tensor<1024x1024xf32> loc(#loc59)
    %104 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%101 : tensor<1024x1024xbf16>) outs(%103 : tensor<1024x1024xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(fc2))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(fc2))/convert_element_type")):
      %149 = arith.extf %in : bf16 to f32 loc(#loc59)
      linalg.yield %149 : f32 loc(#loc59)
    } -> tensor<1024x1024xf32> loc(#loc59)
    %105 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%16, %102, %14 : tensor<256x1024xi1>, tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%4 : tensor<256x1024xbf16>) {
    ^bb0(%in: i1 loc("jit(main)/jvp()/gt"), %in_12: bf16 loc("jit(main)/transpose(jvp(fc2))/dot_general"), %in_13: bf16 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: bf16 loc("jit(main)/transpose(jvp())/select_n")):
      %149 = arith.select %in, %in_12, %in_13 : bf16 loc(#loc49)
      linalg.yield %149 : bf16 loc(#loc49)
    } -> tensor<256x1024xbf16> loc(#loc49)
    %106 = linalg.generic {indexing_maps = [#map9, #map5], iterator_types = ["parallel", "reduction"]} ins(%105 : tensor<256x1024xbf16>) outs(%94 : tensor<1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(fc1))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(fc1))/reduce_sum")):
      %149 = arith.addf %out, %in : bf16 loc(#loc62)
      linalg.yield %149 : bf16 loc(#loc62)
    } -> tensor<1024xbf16> loc(#loc62)
    %expanded_11 = tensor.expand_shape %106 [[0, 1]] output_shape [1, 1024] : tensor<1024xbf16> into tensor<1x1024xbf16> loc(#loc63)
    %107 = linalg.generic {indexing_maps = [#map9, #map5], iterator_types = ["parallel", "reduction"]} ins(%expanded_11 : tensor<1x1024xbf16>) outs(%94 : tensor<1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(fc1))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(fc1))/reduce_sum")):
      %149 = arith.addf %out, %in : bf16 loc(#loc62)
      linalg.yield %149 : bf16 loc(#loc62)
    } -> tensor<1024xbf16> loc(#loc62)
    %108 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%107 : tensor<1024xbf16>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(fc1))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(fc1))/convert_element_type")):
      %149 = arith.extf %in : bf16 to f32 loc(#loc64)
      linalg.yield %149 : f32 loc(#loc64)
    } -> tensor<1024xf32> loc(#loc64)
    %109 = tensor.empty() : tensor<1024x784xbf16> loc(#loc65)
    %110 = linalg.fill ins(%cst_4 : bf16) outs(%109 : tensor<1024x784xbf16>) -> tensor<1024x784xbf16> loc(#loc65)
    %111 = linalg.generic {indexing_maps = [#map10, #map11, #map12], iterator_types = ["parallel", "parallel", "reduction"]} ins(%105, %1 : tensor<256x1024xbf16>, tensor<256x784xbf16>) outs(%110 : tensor<1024x784xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/select_n"), %in_12: bf16 loc("jit(main)/jvp(fc1)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(fc1))/dot_general")):
      %149 = arith.mulf %in, %in_12 : bf16 loc(#loc49)
      %150 = arith.addf %out, %149 : bf16 loc(#loc65)
      linalg.yield %150 : bf16 loc(#loc)
    } -> tensor<1024x784xbf16> loc(#loc65)
    %112 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel"]} ins(%111 : tensor<1024x784xbf16>) outs(%2 : tensor<784x1024xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(fc1))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(fc1))/transpose")):
      linalg.yield %in : bf16 loc(#loc66)
    } -> tensor<784x1024xbf16> loc(#loc66)
    %113 = tensor.empty() : tensor<784x1024xf32> loc(#loc64)
    %114 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%112 : tensor<784x1024xbf16>) outs(%113 : tensor<784x1024xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(fc1))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(fc1))/convert_element_type")):
      %149 = arith.extf %in : bf16 to f32 loc(#loc64)
      linalg.yield %149 : f32 loc(#loc64)
    } -> tensor<784x1024xf32> loc(#loc64)
    %115 = linalg.generic {indexing_maps = [#map6, #map1], iterator_types = ["parallel"]} ins(%cst_6 : tensor<f32>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc67)
    } -> tensor<1024xf32> loc(#loc67)
    %116 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%115, %arg6 : tensor<1024xf32>, tensor<1024xf32>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("moments['fc1/bias']"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<1024xf32> loc(#loc67)
    %117 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%116, %108 : tensor<1024xf32>, tensor<1024xf32>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/transpose(jvp(fc1))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %149 = arith.addf %in, %in_12 : f32 loc(#loc68)
      linalg.yield %149 : f32 loc(#loc68)
    } -> tensor<1024xf32> loc(#loc68)
    %118 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_6 : tensor<f32>) outs(%113 : tensor<784x1024xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc67)
    } -> tensor<784x1024xf32> loc(#loc67)
    %119 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%118, %arg7 : tensor<784x1024xf32>, tensor<784x1024xf32>) outs(%113 : tensor<784x1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("moments['fc1/weight']"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<784x1024xf32> loc(#loc67)
    %120 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%119, %114 : tensor<784x1024xf32>, tensor<784x1024xf32>) outs(%113 : tensor<784x1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/transpose(jvp(fc1))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %149 = arith.addf %in, %in_12 : f32 loc(#loc68)
      linalg.yield %149 : f32 loc(#loc68)
    } -> tensor<784x1024xf32> loc(#loc68)
    %121 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%115, %arg8 : tensor<1024xf32>, tensor<1024xf32>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("moments['fc2/bias']"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<1024xf32> loc(#loc67)
    %122 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%121, %98 : tensor<1024xf32>, tensor<1024xf32>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/transpose(jvp(fc2))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %149 = arith.addf %in, %in_12 : f32 loc(#loc68)
      linalg.yield %149 : f32 loc(#loc68)
    } -> tensor<1024xf32> loc(#loc68)
    %123 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_6 : tensor<f32>) outs(%103 : tensor<1024x1024xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc67)
    } -> tensor<1024x1024xf32> loc(#loc67)
    %124 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%123, %arg9 : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%103 : tensor<1024x1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("moments['fc2/weight']"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<1024x1024xf32> loc(#loc67)
    %125 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%124, %104 : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%103 : tensor<1024x1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/transpose(jvp(fc2))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %149 = arith.addf %in, %in_12 : f32 loc(#loc68)
      linalg.yield %149 : f32 loc(#loc68)
    } -> tensor<1024x1024xf32> loc(#loc68)
    %126 = linalg.generic {indexing_maps = [#map6, #map1], iterator_types = ["parallel"]} ins(%cst_6 : tensor<f32>) outs(%84 : tensor<10xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc67)
    } -> tensor<10xf32> loc(#loc67)
    %127 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%126, %arg10 : tensor<10xf32>, tensor<10xf32>) outs(%84 : tensor<10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("moments['head/bias']"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<10xf32> loc(#loc67)
    %128 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%127, %85 : tensor<10xf32>, tensor<10xf32>) outs(%84 : tensor<10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/transpose(jvp(head))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %149 = arith.addf %in, %in_12 : f32 loc(#loc68)
      linalg.yield %149 : f32 loc(#loc68)
    } -> tensor<10xf32> loc(#loc68)
    %129 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_6 : tensor<f32>) outs(%91 : tensor<1024x10xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc67)
    } -> tensor<1024x10xf32> loc(#loc67)
    %130 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%129, %arg11 : tensor<1024x10xf32>, tensor<1024x10xf32>) outs(%91 : tensor<1024x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("moments['head/weight']"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<1024x10xf32> loc(#loc67)
    %131 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%130, %92 : tensor<1024x10xf32>, tensor<1024x10xf32>) outs(%91 : tensor<1024x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/transpose(jvp(head))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %149 = arith.addf %in, %in_12 : f32 loc(#loc68)
      linalg.yield %149 : f32 loc(#loc68)
    } -> tensor<1024x10xf32> loc(#loc68)
    %132 = linalg.generic {indexing_maps = [#map6, #map1], iterator_types = ["parallel"]} ins(%cst_5 : tensor<f32>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc67)
    } -> tensor<1024xf32> loc(#loc67)
    %133 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%132, %117 : tensor<1024xf32>, tensor<1024xf32>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<1024xf32> loc(#loc67)
    %134 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%arg0, %133 : tensor<1024xf32>, tensor<1024xf32>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: f32 loc("params['fc1/bias']"), %in_12: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %149 = arith.subf %in, %in_12 : f32 loc(#loc69)
      linalg.yield %149 : f32 loc(#loc69)
    } -> tensor<1024xf32> loc(#loc69)
    %135 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%113 : tensor<784x1024xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc67)
    } -> tensor<784x1024xf32> loc(#loc67)
    %136 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%135, %120 : tensor<784x1024xf32>, tensor<784x1024xf32>) outs(%113 : tensor<784x1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<784x1024xf32> loc(#loc67)
    %137 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %136 : tensor<784x1024xf32>, tensor<784x1024xf32>) outs(%113 : tensor<784x1024xf32>) {
    ^bb0(%in: f32 loc("params['fc1/weight']"), %in_12: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %149 = arith.subf %in, %in_12 : f32 loc(#loc69)
      linalg.yield %149 : f32 loc(#loc69)
    } -> tensor<784x1024xf32> loc(#loc69)
    %138 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%132, %122 : tensor<1024xf32>, tensor<1024xf32>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<1024xf32> loc(#loc67)
    %139 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%arg2, %138 : tensor<1024xf32>, tensor<1024xf32>) outs(%97 : tensor<1024xf32>) {
    ^bb0(%in: f32 loc("params['fc2/bias']"), %in_12: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %149 = arith.subf %in, %in_12 : f32 loc(#loc69)
      linalg.yield %149 : f32 loc(#loc69)
    } -> tensor<1024xf32> loc(#loc69)
    %140 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%103 : tensor<1024x1024xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc67)
    } -> tensor<1024x1024xf32> loc(#loc67)
    %141 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%140, %125 : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%103 : tensor<1024x1024xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<1024x1024xf32> loc(#loc67)
    %142 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3, %141 : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%103 : tensor<1024x1024xf32>) {
    ^bb0(%in: f32 loc("params['fc2/weight']"), %in_12: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %149 = arith.subf %in, %in_12 : f32 loc(#loc69)
      linalg.yield %149 : f32 loc(#loc69)
    } -> tensor<1024x1024xf32> loc(#loc69)
    %143 = linalg.generic {indexing_maps = [#map6, #map1], iterator_types = ["parallel"]} ins(%cst_5 : tensor<f32>) outs(%84 : tensor<10xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc67)
    } -> tensor<10xf32> loc(#loc67)
    %144 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%143, %128 : tensor<10xf32>, tensor<10xf32>) outs(%84 : tensor<10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<10xf32> loc(#loc67)
    %145 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel"]} ins(%arg4, %144 : tensor<10xf32>, tensor<10xf32>) outs(%84 : tensor<10xf32>) {
    ^bb0(%in: f32 loc("params['head/bias']"), %in_12: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %149 = arith.subf %in, %in_12 : f32 loc(#loc69)
      linalg.yield %149 : f32 loc(#loc69)
    } -> tensor<10xf32> loc(#loc69)
    %146 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%91 : tensor<1024x10xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc67)
    } -> tensor<1024x10xf32> loc(#loc67)
    %147 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%146, %131 : tensor<1024x10xf32>, tensor<1024x10xf32>) outs(%91 : tensor<1024x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_12: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %149 = arith.mulf %in, %in_12 : f32 loc(#loc67)
      linalg.yield %149 : f32 loc(#loc67)
    } -> tensor<1024x10xf32> loc(#loc67)
    %148 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg5, %147 : tensor<1024x10xf32>, tensor<1024x10xf32>) outs(%91 : tensor<1024x10xf32>) {
    ^bb0(%in: f32 loc("params['head/weight']"), %in_12: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %149 = arith.subf %in, %in_12 : f32 loc(#loc69)
      linalg.yield %149 : f32 loc(#loc69)
    } -> tensor<1024x10xf32> loc(#loc69)
    return %134, %137, %139, %142, %145, %148, %117, %120, %122, %125, %128, %131, %66 : tensor<1024xf32>, tensor<784x1024xf32>, tensor<1024xf32>, tensor<1024x1024xf32>, tensor<10xf32>, tensor<1024x10xf32>, tensor<1024xf32>, tensor<784x1024xf32>, tensor<1024xf32>, tensor<1024x1024xf32>, tensor<10xf32>, tensor<1024x10xf32>, tensor<f32> loc(#loc70)
  } loc(#loc)
  func.func private @main.relu(%arg0: tensor<256x1024xbf16> loc(unknown)) -> tensor<256x1024xbf16> {
    %cst = arith.constant dense<0.000000e+00> : tensor<bf16> loc(#loc)
    %0 = tensor.empty() : tensor<256x1024xbf16> loc(#loc72)
    %1 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel"]} ins(%cst : tensor<bf16>) outs(%0 : tensor<256x1024xbf16>) {
    ^bb0(%in: bf16 loc(unknown), %out: bf16 loc("max")):
      linalg.yield %in : bf16 loc(#loc72)
    } -> tensor<256x1024xbf16> loc(#loc72)
    %2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %1 : tensor<256x1024xbf16>, tensor<256x1024xbf16>) outs(%0 : tensor<256x1024xbf16>) {
    ^bb0(%in: bf16 loc(unknown), %in_0: bf16 loc("max"), %out: bf16 loc("max")):
      %3 = arith.maximumf %in, %in_0 : bf16 loc(#loc72)
      linalg.yield %3 : bf16 loc(#loc72)
    } -> tensor<256x1024xbf16> loc(#loc72)
    return %2 : tensor<256x1024xbf16> loc(#loc)
  } loc(#loc78)
  func.func private @main.one_hot(%arg0: tensor<256xi32> loc(unknown)) -> tensor<256x10xf32> {
    %0 = tensor.empty() : tensor<256x1xi32> loc(#loc74)
    %1 = linalg.generic {indexing_maps = [#map5, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<256xi32>) outs(%0 : tensor<256x1xi32>) {
    ^bb0(%in: i32 loc(unknown), %out: i32 loc("broadcast_in_dim")):
      linalg.yield %in : i32 loc(#loc74)
    } -> tensor<256x1xi32> loc(#loc74)
    %2 = tensor.empty() : tensor<1x10xi32> loc(#loc75)
    %3 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]} outs(%2 : tensor<1x10xi32>) {
    ^bb0(%out: i32 loc("iota")):
      %11 = linalg.index 1 : index loc(#loc75)
      %12 = arith.index_cast %11 : index to i32 loc(#loc75)
      linalg.yield %12 : i32 loc(#loc75)
    } -> tensor<1x10xi32> loc(#loc75)
    %4 = tensor.empty() : tensor<256x10xi32> loc(#loc76)
    %5 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<256x1xi32>) outs(%4 : tensor<256x10xi32>) {
    ^bb0(%in: i32 loc("broadcast_in_dim"), %out: i32 loc("eq")):
      linalg.yield %in : i32 loc(#loc76)
    } -> tensor<256x10xi32> loc(#loc76)
    %6 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<1x10xi32>) outs(%4 : tensor<256x10xi32>) {
    ^bb0(%in: i32 loc("iota"), %out: i32 loc("eq")):
      linalg.yield %in : i32 loc(#loc76)
    } -> tensor<256x10xi32> loc(#loc76)
    %7 = tensor.empty() : tensor<256x10xi1> loc(#loc76)
    %8 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%5, %6 : tensor<256x10xi32>, tensor<256x10xi32>) outs(%7 : tensor<256x10xi1>) {
    ^bb0(%in: i32 loc("eq"), %in_0: i32 loc("eq"), %out: i1 loc("eq")):
      %11 = arith.cmpi eq, %in, %in_0 : i32 loc(#loc76)
      linalg.yield %11 : i1 loc(#loc76)
    } -> tensor<256x10xi1> loc(#loc76)
    %9 = tensor.empty() : tensor<256x10xf32> loc(#loc77)
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<256x10xi1>) outs(%9 : tensor<256x10xf32>) {
    ^bb0(%in: i1 loc("eq"), %out: f32 loc("convert_element_type")):
      %11 = arith.uitofp %in : i1 to f32 loc(#loc77)
      linalg.yield %11 : f32 loc(#loc77)
    } -> tensor<256x10xf32> loc(#loc77)
    return %10 : tensor<256x10xf32> loc(#loc)
  } loc(#loc79)
} loc(#loc)
#loc53 = loc("jit(main)/transpose(jvp(head))/reshape")
#loc58 = loc("jit(main)/transpose(jvp(fc2))/reshape")
#loc63 = loc("jit(main)/transpose(jvp(fc1))/reshape")
#loc70 = loc("jit(main)")
#loc71 = loc("jit")
#loc73 = loc("jit(main)/jvp()/jit")
#loc78 = loc("jit:"(#loc71))
#loc79 = loc("jit:"(#loc73))
