// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A training step that fp8-bench measures. Generated from peer/jax_networks.py by the command in
// README.md; do not edit.

#loc = loc(unknown)
#loc1 = loc("params['embed/bias']")
#loc2 = loc("params['embed/weight']")
#loc3 = loc("params['final/bias']")
#loc4 = loc("params['final/gain']")
#loc5 = loc("params['h0/channel1/bias']")
#loc6 = loc("params['h0/channel1/weight']")
#loc7 = loc("params['h0/channel2/bias']")
#loc8 = loc("params['h0/channel2/weight']")
#loc9 = loc("params['h0/norm1/bias']")
#loc10 = loc("params['h0/norm1/gain']")
#loc11 = loc("params['h0/norm2/bias']")
#loc12 = loc("params['h0/norm2/gain']")
#loc13 = loc("params['h0/token1/bias']")
#loc14 = loc("params['h0/token1/weight']")
#loc15 = loc("params['h0/token2/bias']")
#loc16 = loc("params['h0/token2/weight']")
#loc17 = loc("params['h1/channel1/bias']")
#loc18 = loc("params['h1/channel1/weight']")
#loc19 = loc("params['h1/channel2/bias']")
#loc20 = loc("params['h1/channel2/weight']")
#loc21 = loc("params['h1/norm1/bias']")
#loc22 = loc("params['h1/norm1/gain']")
#loc23 = loc("params['h1/norm2/bias']")
#loc24 = loc("params['h1/norm2/gain']")
#loc25 = loc("params['h1/token1/bias']")
#loc26 = loc("params['h1/token1/weight']")
#loc27 = loc("params['h1/token2/bias']")
#loc28 = loc("params['h1/token2/weight']")
#loc29 = loc("params['head/bias']")
#loc30 = loc("params['head/weight']")
#loc31 = loc("moments['embed/bias']")
#loc32 = loc("moments['embed/weight']")
#loc33 = loc("moments['final/bias']")
#loc34 = loc("moments['final/gain']")
#loc35 = loc("moments['h0/channel1/bias']")
#loc36 = loc("moments['h0/channel1/weight']")
#loc37 = loc("moments['h0/channel2/bias']")
#loc38 = loc("moments['h0/channel2/weight']")
#loc39 = loc("moments['h0/norm1/bias']")
#loc40 = loc("moments['h0/norm1/gain']")
#loc41 = loc("moments['h0/norm2/bias']")
#loc42 = loc("moments['h0/norm2/gain']")
#loc43 = loc("moments['h0/token1/bias']")
#loc44 = loc("moments['h0/token1/weight']")
#loc45 = loc("moments['h0/token2/bias']")
#loc46 = loc("moments['h0/token2/weight']")
#loc47 = loc("moments['h1/channel1/bias']")
#loc48 = loc("moments['h1/channel1/weight']")
#loc49 = loc("moments['h1/channel2/bias']")
#loc50 = loc("moments['h1/channel2/weight']")
#loc51 = loc("moments['h1/norm1/bias']")
#loc52 = loc("moments['h1/norm1/gain']")
#loc53 = loc("moments['h1/norm2/bias']")
#loc54 = loc("moments['h1/norm2/gain']")
#loc55 = loc("moments['h1/token1/bias']")
#loc56 = loc("moments['h1/token1/weight']")
#loc57 = loc("moments['h1/token2/bias']")
#loc58 = loc("moments['h1/token2/weight']")
#loc59 = loc("moments['head/bias']")
#loc60 = loc("moments['head/weight']")
#loc61 = loc("inputs")
#loc62 = loc("labels")
#loc63 = loc("jit(main)/jvp()/reduce_max")
#loc64 = loc("jit(main)/jvp(embed)/convert_element_type")
#loc65 = loc("jit(main)/jvp(embed)/dot_general")
#loc66 = loc("jit(main)/jvp(embed)/broadcast_in_dim")
#loc67 = loc("jit(main)/jvp(embed)/add")
#loc68 = loc("jit(main)/jvp()/convert_element_type")
#loc69 = loc("jit(main)/jvp()/reduce_sum")
#loc70 = loc("jit(main)/jvp()/broadcast_in_dim")
#loc71 = loc("jit(main)/jvp()/div")
#loc72 = loc("jit(main)/jvp()/sub")
#loc73 = loc("jit(main)/jvp()/square")
#loc74 = loc("jit(main)/jvp()/mul")
#loc75 = loc("jit(main)/jvp()/add")
#loc76 = loc("jit(main)/jvp()/rsqrt")
#loc77 = loc("jit(main)/jvp()/transpose")
#loc78 = loc("jit(main)/jvp(h0/token1)/convert_element_type")
#loc79 = loc("jit(main)/jvp(h0/token1)/dot_general")
#loc80 = loc("jit(main)/jvp(h0/token1)/broadcast_in_dim")
#loc81 = loc("jit(main)/jvp(h0/token1)/add")
#loc82 = loc("jit(main)/jvp()/integer_pow")
#loc83 = loc("jit(main)/jvp()/tanh")
#loc84 = loc("jit(main)/jvp(h0/token2)/convert_element_type")
#loc85 = loc("jit(main)/jvp(h0/token2)/dot_general")
#loc86 = loc("jit(main)/jvp(h0/token2)/broadcast_in_dim")
#loc87 = loc("jit(main)/jvp(h0/token2)/add")
#loc88 = loc("jit(main)/jvp(h0/channel1)/convert_element_type")
#loc89 = loc("jit(main)/jvp(h0/channel1)/dot_general")
#loc90 = loc("jit(main)/jvp(h0/channel1)/broadcast_in_dim")
#loc91 = loc("jit(main)/jvp(h0/channel1)/add")
#loc92 = loc("jit(main)/jvp(h0/channel2)/convert_element_type")
#loc93 = loc("jit(main)/jvp(h0/channel2)/dot_general")
#loc94 = loc("jit(main)/jvp(h0/channel2)/broadcast_in_dim")
#loc95 = loc("jit(main)/jvp(h0/channel2)/add")
#loc96 = loc("jit(main)/jvp(h1/token1)/convert_element_type")
#loc97 = loc("jit(main)/jvp(h1/token1)/dot_general")
#loc98 = loc("jit(main)/jvp(h1/token1)/broadcast_in_dim")
#loc99 = loc("jit(main)/jvp(h1/token1)/add")
#loc100 = loc("jit(main)/jvp(h1/token2)/convert_element_type")
#loc101 = loc("jit(main)/jvp(h1/token2)/dot_general")
#loc102 = loc("jit(main)/jvp(h1/token2)/broadcast_in_dim")
#loc103 = loc("jit(main)/jvp(h1/token2)/add")
#loc104 = loc("jit(main)/jvp(h1/channel1)/convert_element_type")
#loc105 = loc("jit(main)/jvp(h1/channel1)/dot_general")
#loc106 = loc("jit(main)/jvp(h1/channel1)/broadcast_in_dim")
#loc107 = loc("jit(main)/jvp(h1/channel1)/add")
#loc108 = loc("jit(main)/jvp(h1/channel2)/convert_element_type")
#loc109 = loc("jit(main)/jvp(h1/channel2)/dot_general")
#loc110 = loc("jit(main)/jvp(h1/channel2)/broadcast_in_dim")
#loc111 = loc("jit(main)/jvp(h1/channel2)/add")
#loc112 = loc("jit(main)/jvp(head)/convert_element_type")
#loc113 = loc("jit(main)/jvp(head)/dot_general")
#loc114 = loc("jit(main)/jvp(head)/broadcast_in_dim")
#loc115 = loc("jit(main)/jvp(head)/add")
#loc116 = loc("jit(main)/jvp(jit(_one_hot))")
#loc117 = loc("jit(main)/jvp()/max")
#loc118 = loc("jit(main)/jvp()/is_finite")
#loc119 = loc("jit(main)/jvp()/select_n")
#loc120 = loc("jit(main)/jvp()/exp")
#loc121 = loc("jit(main)/jvp()/abs")
#loc122 = loc("jit(main)/jvp()/ge")
#loc123 = loc("jit(main)/jvp()/log")
#loc124 = loc("jit(main)/transpose(jvp())/div")
#loc125 = loc("jit(main)/transpose(jvp())/broadcast_in_dim")
#loc126 = loc("jit(main)/transpose(jvp())/neg")
#loc127 = loc("jit(main)/transpose(jvp())/mul")
#loc128 = loc("jit(main)/transpose(jvp())/select_n")
#loc129 = loc("jit(main)/transpose(jvp())/add_any")
#loc130 = loc("jit(main)/transpose(jvp())/convert_element_type")
#loc131 = loc("jit(main)/transpose(jvp(head))/reduce_sum")
#loc133 = loc("jit(main)/transpose(jvp(head))/convert_element_type")
#loc134 = loc("jit(main)/transpose(jvp(head))/dot_general")
#loc135 = loc("jit(main)/transpose(jvp(head))/transpose")
#loc136 = loc("jit(main)/transpose(jvp())/reduce_sum")
#loc137 = loc("jit(main)/transpose(jvp())/reshape")
#loc138 = loc("jit(main)/transpose(jvp(h1/channel2))/reduce_sum")
#loc140 = loc("jit(main)/transpose(jvp(h1/channel2))/convert_element_type")
#loc141 = loc("jit(main)/transpose(jvp(h1/channel2))/dot_general")
#loc142 = loc("jit(main)/transpose(jvp(h1/channel2))/transpose")
#loc143 = loc("jit(main)/transpose(jvp(h1/channel1))/reduce_sum")
#loc145 = loc("jit(main)/transpose(jvp(h1/channel1))/convert_element_type")
#loc146 = loc("jit(main)/transpose(jvp(h1/channel1))/dot_general")
#loc147 = loc("jit(main)/transpose(jvp(h1/channel1))/transpose")
#loc148 = loc("jit(main)/transpose(jvp())/transpose")
#loc149 = loc("jit(main)/transpose(jvp(h1/token2))/reduce_sum")
#loc151 = loc("jit(main)/transpose(jvp(h1/token2))/convert_element_type")
#loc152 = loc("jit(main)/transpose(jvp(h1/token2))/dot_general")
#loc153 = loc("jit(main)/transpose(jvp(h1/token2))/transpose")
#loc154 = loc("jit(main)/transpose(jvp(h1/token1))/reduce_sum")
#loc156 = loc("jit(main)/transpose(jvp(h1/token1))/convert_element_type")
#loc157 = loc("jit(main)/transpose(jvp(h1/token1))/dot_general")
#loc158 = loc("jit(main)/transpose(jvp(h1/token1))/transpose")
#loc159 = loc("jit(main)/transpose(jvp(h0/channel2))/reduce_sum")
#loc161 = loc("jit(main)/transpose(jvp(h0/channel2))/convert_element_type")
#loc162 = loc("jit(main)/transpose(jvp(h0/channel2))/dot_general")
#loc163 = loc("jit(main)/transpose(jvp(h0/channel2))/transpose")
#loc164 = loc("jit(main)/transpose(jvp(h0/channel1))/reduce_sum")
#loc166 = loc("jit(main)/transpose(jvp(h0/channel1))/convert_element_type")
#loc167 = loc("jit(main)/transpose(jvp(h0/channel1))/dot_general")
#loc168 = loc("jit(main)/transpose(jvp(h0/channel1))/transpose")
#loc169 = loc("jit(main)/transpose(jvp(h0/token2))/reduce_sum")
#loc171 = loc("jit(main)/transpose(jvp(h0/token2))/convert_element_type")
#loc172 = loc("jit(main)/transpose(jvp(h0/token2))/dot_general")
#loc173 = loc("jit(main)/transpose(jvp(h0/token2))/transpose")
#loc174 = loc("jit(main)/transpose(jvp(h0/token1))/reduce_sum")
#loc176 = loc("jit(main)/transpose(jvp(h0/token1))/convert_element_type")
#loc177 = loc("jit(main)/transpose(jvp(h0/token1))/dot_general")
#loc178 = loc("jit(main)/transpose(jvp(h0/token1))/transpose")
#loc179 = loc("jit(main)/transpose(jvp(embed))/reduce_sum")
#loc181 = loc("jit(main)/transpose(jvp(embed))/convert_element_type")
#loc182 = loc("jit(main)/transpose(jvp(embed))/dot_general")
#loc183 = loc("jit(main)/transpose(jvp(embed))/transpose")
#loc184 = loc("jit(main)/mul")
#loc185 = loc("jit(main)/add")
#loc186 = loc("jit(main)/sub")
#loc189 = loc("broadcast_in_dim")
#loc190 = loc("iota")
#loc191 = loc("eq")
#loc192 = loc("convert_element_type")
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<(d0) -> (d0)>
#map6 = affine_map<(d0, d1, d2) -> (d2)>
#map7 = affine_map<(d0, d1, d2) -> (0, 0, d2)>
#map8 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map9 = affine_map<(d0, d1, d2) -> ()>
#map10 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map11 = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
#map12 = affine_map<(d0, d1) -> ()>
#map13 = affine_map<(d0, d1) -> (d1)>
#map14 = affine_map<(d0, d1) -> (0, d1)>
#map15 = affine_map<(d0, d1) -> (d0)>
#map16 = affine_map<(d0) -> ()>
#map17 = affine_map<(d0, d1) -> (d0, 0)>
#map18 = affine_map<() -> ()>
#map19 = affine_map<(d0, d1) -> (d1, d0)>
#map20 = affine_map<(d0, d1, d2) -> (d2, d0)>
#map21 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map22 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map23 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map24 = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
#map25 = affine_map<(d0, d1, d2) -> (d0)>
#map26 = affine_map<(d0, d1, d2, d3) -> (d2, d3, d0)>
#map27 = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1)>
#map28 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
#map29 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
module @jit_main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<128xf32> {tf.aliasing_output = 0 : i32} loc("params['embed/bias']"), %arg1: tensor<48x128xf32> {tf.aliasing_output = 1 : i32} loc("params['embed/weight']"), %arg2: tensor<128xf32> {tf.aliasing_output = 2 : i32} loc("params['final/bias']"), %arg3: tensor<128xf32> {tf.aliasing_output = 3 : i32} loc("params['final/gain']"), %arg4: tensor<512xf32> {tf.aliasing_output = 4 : i32} loc("params['h0/channel1/bias']"), %arg5: tensor<128x512xf32> {tf.aliasing_output = 5 : i32} loc("params['h0/channel1/weight']"), %arg6: tensor<128xf32> {tf.aliasing_output = 6 : i32} loc("params['h0/channel2/bias']"), %arg7: tensor<512x128xf32> {tf.aliasing_output = 7 : i32} loc("params['h0/channel2/weight']"), %arg8: tensor<128xf32> {tf.aliasing_output = 8 : i32} loc("params['h0/norm1/bias']"), %arg9: tensor<128xf32> {tf.aliasing_output = 9 : i32} loc("params['h0/norm1/gain']"), %arg10: tensor<128xf32> {tf.aliasing_output = 10 : i32} loc("params['h0/norm2/bias']"), %arg11: tensor<128xf32> {tf.aliasing_output = 11 : i32} loc("params['h0/norm2/gain']"), %arg12: tensor<128xf32> {tf.aliasing_output = 12 : i32} loc("params['h0/token1/bias']"), %arg13: tensor<64x128xf32> {tf.aliasing_output = 13 : i32} loc("params['h0/token1/weight']"), %arg14: tensor<64xf32> {tf.aliasing_output = 14 : i32} loc("params['h0/token2/bias']"), %arg15: tensor<128x64xf32> {tf.aliasing_output = 15 : i32} loc("params['h0/token2/weight']"), %arg16: tensor<512xf32> {tf.aliasing_output = 16 : i32} loc("params['h1/channel1/bias']"), %arg17: tensor<128x512xf32> {tf.aliasing_output = 17 : i32} loc("params['h1/channel1/weight']"), %arg18: tensor<128xf32> {tf.aliasing_output = 18 : i32} loc("params['h1/channel2/bias']"), %arg19: tensor<512x128xf32> {tf.aliasing_output = 19 : i32} loc("params['h1/channel2/weight']"), %arg20: tensor<128xf32> {tf.aliasing_output = 20 : i32} loc("params['h1/norm1/bias']"), %arg21: tensor<128xf32> {tf.aliasing_output = 21 : i32} loc("params['h1/norm1/gain']"), %arg22: tensor<128xf32> {tf.aliasing_output = 22 : i32} loc("params['h1/norm2/bias']"), %arg23: tensor<128xf32> {tf.aliasing_output = 23 : i32} loc("params['h1/norm2/gain']"), %arg24: tensor<128xf32> {tf.aliasing_output = 24 : i32} loc("params['h1/token1/bias']"), %arg25: tensor<64x128xf32> {tf.aliasing_output = 25 : i32} loc("params['h1/token1/weight']"), %arg26: tensor<64xf32> {tf.aliasing_output = 26 : i32} loc("params['h1/token2/bias']"), %arg27: tensor<128x64xf32> {tf.aliasing_output = 27 : i32} loc("params['h1/token2/weight']"), %arg28: tensor<10xf32> {tf.aliasing_output = 28 : i32} loc("params['head/bias']"), %arg29: tensor<128x10xf32> {tf.aliasing_output = 29 : i32} loc("params['head/weight']"), %arg30: tensor<128xf32> {tf.aliasing_output = 30 : i32} loc("moments['embed/bias']"), %arg31: tensor<48x128xf32> {tf.aliasing_output = 31 : i32} loc("moments['embed/weight']"), %arg32: tensor<128xf32> {tf.aliasing_output = 32 : i32} loc("moments['final/bias']"), %arg33: tensor<128xf32> {tf.aliasing_output = 33 : i32} loc("moments['final/gain']"), %arg34: tensor<512xf32> {tf.aliasing_output = 34 : i32} loc("moments['h0/channel1/bias']"), %arg35: tensor<128x512xf32> {tf.aliasing_output = 35 : i32} loc("moments['h0/channel1/weight']"), %arg36: tensor<128xf32> {tf.aliasing_output = 36 : i32} loc("moments['h0/channel2/bias']"), %arg37: tensor<512x128xf32> {tf.aliasing_output = 37 : i32} loc("moments['h0/channel2/weight']"), %arg38: tensor<128xf32> {tf.aliasing_output = 38 : i32} loc("moments['h0/norm1/bias']"), %arg39: tensor<128xf32> {tf.aliasing_output = 39 : i32} loc("moments['h0/norm1/gain']"), %arg40: tensor<128xf32> {tf.aliasing_output = 40 : i32} loc("moments['h0/norm2/bias']"), %arg41: tensor<128xf32> {tf.aliasing_output = 41 : i32} loc("moments['h0/norm2/gain']"), %arg42: tensor<128xf32> {tf.aliasing_output = 42 : i32} loc("moments['h0/token1/bias']"), %arg43: tensor<64x128xf32> {tf.aliasing_output = 43 : i32} loc("moments['h0/token1/weight']"), %arg44: tensor<64xf32> {tf.aliasing_output = 44 : i32} loc("moments['h0/token2/bias']"), %arg45: tensor<128x64xf32> {tf.aliasing_output = 45 : i32} loc("moments['h0/token2/weight']"), %arg46: tensor<512xf32> {tf.aliasing_output = 46 : i32} loc("moments['h1/channel1/bias']"), %arg47: tensor<128x512xf32> {tf.aliasing_output = 47 : i32} loc("moments['h1/channel1/weight']"), %arg48: tensor<128xf32> {tf.aliasing_output = 48 : i32} loc("moments['h1/channel2/bias']"), %arg49: tensor<512x128xf32> {tf.aliasing_output = 49 : i32} loc("moments['h1/channel2/weight']"), %arg50: tensor<128xf32> {tf.aliasing_output = 50 : i32} loc("moments['h1/norm1/bias']"), %arg51: tensor<128xf32> {tf.aliasing_output = 51 : i32} loc("moments['h1/norm1/gain']"), %arg52: tensor<128xf32> {tf.aliasing_output = 52 : i32} loc("moments['h1/norm2/bias']"), %arg53: tensor<128xf32> {tf.aliasing_output = 53 : i32} loc("moments['h1/norm2/gain']"), %arg54: tensor<128xf32> {tf.aliasing_output = 54 : i32} loc("moments['h1/token1/bias']"), %arg55: tensor<64x128xf32> {tf.aliasing_output = 55 : i32} loc("moments['h1/token1/weight']"), %arg56: tensor<64xf32> {tf.aliasing_output = 56 : i32} loc("moments['h1/token2/bias']"), %arg57: tensor<128x64xf32> {tf.aliasing_output = 57 : i32} loc("moments['h1/token2/weight']"), %arg58: tensor<10xf32> {tf.aliasing_output = 58 : i32} loc("moments['head/bias']"), %arg59: tensor<128x10xf32> {tf.aliasing_output = 59 : i32} loc("moments['head/weight']"), %arg60: tensor<32x64x48xf32> loc("inputs"), %arg61: tensor<32xi32> loc("labels")) -> (tensor<128xf32> {jax.result_info = "result[0]['embed/bias']"}, tensor<48x128xf32> {jax.result_info = "result[0]['embed/weight']"}, tensor<128xf32> {jax.result_info = "result[0]['final/bias']"}, tensor<128xf32> {jax.result_info = "result[0]['final/gain']"}, tensor<512xf32> {jax.result_info = "result[0]['h0/channel1/bias']"}, tensor<128x512xf32> {jax.result_info = "result[0]['h0/channel1/weight']"}, tensor<128xf32> {jax.result_info = "result[0]['h0/channel2/bias']"}, tensor<512x128xf32> {jax.result_info = "result[0]['h0/channel2/weight']"}, tensor<128xf32> {jax.result_info = "result[0]['h0/norm1/bias']"}, tensor<128xf32> {jax.result_info = "result[0]['h0/norm1/gain']"}, tensor<128xf32> {jax.result_info = "result[0]['h0/norm2/bias']"}, tensor<128xf32> {jax.result_info = "result[0]['h0/norm2/gain']"}, tensor<128xf32> {jax.result_info = "result[0]['h0/token1/bias']"}, tensor<64x128xf32> {jax.result_info = "result[0]['h0/token1/weight']"}, tensor<64xf32> {jax.result_info = "result[0]['h0/token2/bias']"}, tensor<128x64xf32> {jax.result_info = "result[0]['h0/token2/weight']"}, tensor<512xf32> {jax.result_info = "result[0]['h1/channel1/bias']"}, tensor<128x512xf32> {jax.result_info = "result[0]['h1/channel1/weight']"}, tensor<128xf32> {jax.result_info = "result[0]['h1/channel2/bias']"}, tensor<512x128xf32> {jax.result_info = "result[0]['h1/channel2/weight']"}, tensor<128xf32> {jax.result_info = "result[0]['h1/norm1/bias']"}, tensor<128xf32> {jax.result_info = "result[0]['h1/norm1/gain']"}, tensor<128xf32> {jax.result_info = "result[0]['h1/norm2/bias']"}, tensor<128xf32> {jax.result_info = "result[0]['h1/norm2/gain']"}, tensor<128xf32> {jax.result_info = "result[0]['h1/token1/bias']"}, tensor<64x128xf32> {jax.result_info = "result[0]['h1/token1/weight']"}, tensor<64xf32> {jax.result_info = "result[0]['h1/token2/bias']"}, tensor<128x64xf32> {jax.result_info = "result[0]['h1/token2/weight']"}, tensor<10xf32> {jax.result_info = "result[0]['head/bias']"}, tensor<128x10xf32> {jax.result_info = "result[0]['head/weight']"}, tensor<128xf32> {jax.result_info = "result[1]['embed/bias']"}, tensor<48x128xf32> {jax.result_info = "result[1]['embed/weight']"}, tensor<128xf32> {jax.result_info = "result[1]['final/bias']"}, tensor<128xf32> {jax.result_info = "result[1]['final/gain']"}, tensor<512xf32> {jax.result_info = "result[1]['h0/channel1/bias']"}, tensor<128x512xf32> {jax.result_info = "result[1]['h0/channel1/weight']"}, tensor<128xf32> {jax.result_info = "result[1]['h0/channel2/bias']"}, tensor<512x128xf32> {jax.result_info = "result[1]['h0/channel2/weight']"}, tensor<128xf32> {jax.result_info = "result[1]['h0/norm1/bias']"}, tensor<128xf32> {jax.result_info = "result[1]['h0/norm1/gain']"}, tensor<128xf32> {jax.result_info = "result[1]['h0/norm2/bias']"}, tensor<128xf32> {jax.result_info = "result[1]['h0/norm2/gain']"}, tensor<128xf32> {jax.result_info = "result[1]['h0/token1/bias']"}, tensor<64x128xf32> {jax.result_info = "result[1]['h0/token1/weight']"}, tensor<64xf32> {jax.result_info = "result[1]['h0/token2/bias']"}, tensor<128x64xf32> {jax.result_info = "result[1]['h0/token2/weight']"}, tensor<512xf32> {jax.result_info = "result[1]['h1/channel1/bias']"}, tensor<128x512xf32> {jax.result_info = "result[1]['h1/channel1/weight']"}, tensor<128xf32> {jax.result_info = "result[1]['h1/channel2/bias']"}, tensor<512x128xf32> {jax.result_info = "result[1]['h1/channel2/weight']"}, tensor<128xf32> {jax.result_info = "result[1]['h1/norm1/bias']"}, tensor<128xf32> {jax.result_info = "result[1]['h1/norm1/gain']"}, tensor<128xf32> {jax.result_info = "result[1]['h1/norm2/bias']"}, tensor<128xf32> {jax.result_info = "result[1]['h1/norm2/gain']"}, tensor<128xf32> {jax.result_info = "result[1]['h1/token1/bias']"}, tensor<64x128xf32> {jax.result_info = "result[1]['h1/token1/weight']"}, tensor<64xf32> {jax.result_info = "result[1]['h1/token2/bias']"}, tensor<128x64xf32> {jax.result_info = "result[1]['h1/token2/weight']"}, tensor<10xf32> {jax.result_info = "result[1]['head/bias']"}, tensor<128x10xf32> {jax.result_info = "result[1]['head/weight']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = arith.constant 3.125000e-02 : f32 loc(#loc)
    %cst_0 = arith.constant 3.200000e+01 : f32 loc(#loc)
    %cst_1 = arith.constant 0x7F800000 : f32 loc(#loc)
    %cst_2 = arith.constant 0xFF800000 : f32 loc(#loc63)
    %cst_3 = arith.constant 0.000000e+00 : f32 loc(#loc)
    %cst_4 = arith.constant 0.000000e+00 : bf16 loc(#loc)
    %cst_5 = arith.constant dense<0.00999999977> : tensor<f32> loc(#loc)
    %cst_6 = arith.constant dense<0.899999976> : tensor<f32> loc(#loc)
    %cst_7 = arith.constant dense<0xFF800000> : tensor<f32> loc(#loc)
    %cst_8 = arith.constant dense<6.400000e+01> : tensor<f32> loc(#loc)
    %cst_9 = arith.constant dense<5.000000e-01> : tensor<f32> loc(#loc)
    %cst_10 = arith.constant dense<1.000000e+00> : tensor<f32> loc(#loc)
    %cst_11 = arith.constant dense<0.797884583> : tensor<f32> loc(#loc)
    %cst_12 = arith.constant dense<4.471500e-02> : tensor<f32> loc(#loc)
    %cst_13 = arith.constant dense<3.000000e+00> : tensor<f32> loc(#loc)
    %cst_14 = arith.constant dense<-5.000000e-01> : tensor<f32> loc(#loc)
    %cst_15 = arith.constant dense<9.99999974E-6> : tensor<f32> loc(#loc)
    %cst_16 = arith.constant dense<2.000000e+00> : tensor<f32> loc(#loc)
    %cst_17 = arith.constant dense<1.280000e+02> : tensor<f32> loc(#loc)
    %cst_18 = arith.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %0 = tensor.empty() : tensor<32x64x48xbf16> loc(#loc64)
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg60 : tensor<32x64x48xf32>) outs(%0 : tensor<32x64x48xbf16>) {
    ^bb0(%in: f32 loc("inputs"), %out: bf16 loc("jit(main)/jvp(embed)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc64)
      linalg.yield %748 : bf16 loc(#loc64)
    } -> tensor<32x64x48xbf16> loc(#loc64)
    %2 = tensor.empty() : tensor<48x128xbf16> loc(#loc64)
    %3 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<48x128xf32>) outs(%2 : tensor<48x128xbf16>) {
    ^bb0(%in: f32 loc("params['embed/weight']"), %out: bf16 loc("jit(main)/jvp(embed)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc64)
      linalg.yield %748 : bf16 loc(#loc64)
    } -> tensor<48x128xbf16> loc(#loc64)
    %4 = tensor.empty() : tensor<32x64x128xbf16> loc(#loc65)
    %5 = linalg.fill ins(%cst_4 : bf16) outs(%4 : tensor<32x64x128xbf16>) -> tensor<32x64x128xbf16> loc(#loc65)
    %6 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%1, %3 : tensor<32x64x48xbf16>, tensor<48x128xbf16>) outs(%5 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(embed)/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(embed)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(embed)/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc64)
      %749 = arith.addf %out, %748 : bf16 loc(#loc65)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x64x128xbf16> loc(#loc65)
    %7 = tensor.empty() : tensor<128xbf16> loc(#loc64)
    %8 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%arg0 : tensor<128xf32>) outs(%7 : tensor<128xbf16>) {
    ^bb0(%in: f32 loc("params['embed/bias']"), %out: bf16 loc("jit(main)/jvp(embed)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc64)
      linalg.yield %748 : bf16 loc(#loc64)
    } -> tensor<128xbf16> loc(#loc64)
    %9 = tensor.empty() : tensor<1x1x128xbf16> loc(#loc66)
    %10 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<128xbf16>) outs(%9 : tensor<1x1x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(embed)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(embed)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc66)
    } -> tensor<1x1x128xbf16> loc(#loc66)
    %11 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<1x1x128xbf16>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(embed)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(embed)/add")):
      linalg.yield %in : bf16 loc(#loc67)
    } -> tensor<32x64x128xbf16> loc(#loc67)
    %12 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %11 : tensor<32x64x128xbf16>, tensor<32x64x128xbf16>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(embed)/dot_general"), %in_48: bf16 loc("jit(main)/jvp(embed)/add"), %out: bf16 loc("jit(main)/jvp(embed)/add")):
      %748 = arith.addf %in, %in_48 : bf16 loc(#loc67)
      linalg.yield %748 : bf16 loc(#loc67)
    } -> tensor<32x64x128xbf16> loc(#loc67)
    %13 = tensor.empty() : tensor<32x64x128xf32> loc(#loc68)
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12 : tensor<32x64x128xbf16>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(embed)/add"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc68)
      linalg.yield %748 : f32 loc(#loc68)
    } -> tensor<32x64x128xf32> loc(#loc68)
    %15 = tensor.empty() : tensor<32x64xf32> loc(#loc69)
    %16 = linalg.fill ins(%cst_3 : f32) outs(%15 : tensor<32x64xf32>) -> tensor<32x64xf32> loc(#loc69)
    %17 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%14 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x64xf32> loc(#loc69)
    %18 = tensor.empty() : tensor<32x64x1xf32> loc(#loc70)
    %19 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<32x64xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x64x1xf32> loc(#loc70)
    %20 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_17 : tensor<f32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/div")):
      linalg.yield %in : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %21 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %22 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%21 : tensor<32x64x1xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/sub")):
      linalg.yield %in : f32 loc(#loc72)
    } -> tensor<32x64x128xf32> loc(#loc72)
    %23 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %22 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32x64x128xf32> loc(#loc72)
    %24 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%23, %23 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/square")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc73)
      linalg.yield %748 : f32 loc(#loc73)
    } -> tensor<32x64x128xf32> loc(#loc73)
    %25 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_16 : tensor<f32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %26 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25, %23 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %27 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%24 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x64xf32> loc(#loc69)
    %28 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%27 : tensor<32x64xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x64x1xf32> loc(#loc70)
    %29 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%28, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %30 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_15 : tensor<f32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/add")):
      linalg.yield %in : f32 loc(#loc75)
    } -> tensor<32x64x1xf32> loc(#loc75)
    %31 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%29, %30 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x1xf32> loc(#loc75)
    %32 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%31 : tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/rsqrt")):
      %748 = math.rsqrt %in : f32 loc(#loc76)
      linalg.yield %748 : f32 loc(#loc76)
    } -> tensor<32x64x1xf32> loc(#loc76)
    %33 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%32, %31 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/rsqrt"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %34 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_14 : tensor<f32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x1xf32> loc(#loc74)
    %35 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%34, %33 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x1xf32> loc(#loc74)
    %36 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%32 : tensor<32x64x1xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/rsqrt"), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %37 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%23, %36 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %38 = tensor.empty() : tensor<1x1x128xf32> loc(#loc70)
    %39 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg9 : tensor<128xf32>) outs(%38 : tensor<1x1x128xf32>) {
    ^bb0(%in: f32 loc("params['h0/norm1/gain']"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<1x1x128xf32> loc(#loc70)
    %40 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%39 : tensor<1x1x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %41 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%37, %40 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %42 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg8 : tensor<128xf32>) outs(%38 : tensor<1x1x128xf32>) {
    ^bb0(%in: f32 loc("params['h0/norm1/bias']"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<1x1x128xf32> loc(#loc70)
    %43 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%42 : tensor<1x1x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/add")):
      linalg.yield %in : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %44 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%41, %43 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %45 = tensor.empty() : tensor<32x128x64xf32> loc(#loc77)
    %46 = linalg.generic {indexing_maps = [#map11, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%44 : tensor<32x64x128xf32>) outs(%45 : tensor<32x128x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/transpose")):
      linalg.yield %in : f32 loc(#loc77)
    } -> tensor<32x128x64xf32> loc(#loc77)
    %47 = tensor.empty() : tensor<32x128x64xbf16> loc(#loc78)
    %48 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%46 : tensor<32x128x64xf32>) outs(%47 : tensor<32x128x64xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/transpose"), %out: bf16 loc("jit(main)/jvp(h0/token1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc78)
      linalg.yield %748 : bf16 loc(#loc78)
    } -> tensor<32x128x64xbf16> loc(#loc78)
    %49 = tensor.empty() : tensor<64x128xbf16> loc(#loc78)
    %50 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg13 : tensor<64x128xf32>) outs(%49 : tensor<64x128xbf16>) {
    ^bb0(%in: f32 loc("params['h0/token1/weight']"), %out: bf16 loc("jit(main)/jvp(h0/token1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc78)
      linalg.yield %748 : bf16 loc(#loc78)
    } -> tensor<64x128xbf16> loc(#loc78)
    %51 = tensor.empty() : tensor<32x128x128xbf16> loc(#loc79)
    %52 = linalg.fill ins(%cst_4 : bf16) outs(%51 : tensor<32x128x128xbf16>) -> tensor<32x128x128xbf16> loc(#loc79)
    %53 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%48, %50 : tensor<32x128x64xbf16>, tensor<64x128xbf16>) outs(%52 : tensor<32x128x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/token1)/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h0/token1)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h0/token1)/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc78)
      %749 = arith.addf %out, %748 : bf16 loc(#loc79)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x128x128xbf16> loc(#loc79)
    %54 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%arg12 : tensor<128xf32>) outs(%7 : tensor<128xbf16>) {
    ^bb0(%in: f32 loc("params['h0/token1/bias']"), %out: bf16 loc("jit(main)/jvp(h0/token1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc78)
      linalg.yield %748 : bf16 loc(#loc78)
    } -> tensor<128xbf16> loc(#loc78)
    %55 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%54 : tensor<128xbf16>) outs(%9 : tensor<1x1x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/token1)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h0/token1)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc80)
    } -> tensor<1x1x128xbf16> loc(#loc80)
    %56 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%55 : tensor<1x1x128xbf16>) outs(%51 : tensor<32x128x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/token1)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(h0/token1)/add")):
      linalg.yield %in : bf16 loc(#loc81)
    } -> tensor<32x128x128xbf16> loc(#loc81)
    %57 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%53, %56 : tensor<32x128x128xbf16>, tensor<32x128x128xbf16>) outs(%51 : tensor<32x128x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/token1)/dot_general"), %in_48: bf16 loc("jit(main)/jvp(h0/token1)/add"), %out: bf16 loc("jit(main)/jvp(h0/token1)/add")):
      %748 = arith.addf %in, %in_48 : bf16 loc(#loc81)
      linalg.yield %748 : bf16 loc(#loc81)
    } -> tensor<32x128x128xbf16> loc(#loc81)
    %58 = tensor.empty() : tensor<32x128x128xf32> loc(#loc68)
    %59 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%57 : tensor<32x128x128xbf16>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/token1)/add"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc68)
      linalg.yield %748 : f32 loc(#loc68)
    } -> tensor<32x128x128xf32> loc(#loc68)
    %60 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%59, %59 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/integer_pow")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc82)
      linalg.yield %748 : f32 loc(#loc82)
    } -> tensor<32x128x128xf32> loc(#loc82)
    %61 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%60, %59 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/integer_pow"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/integer_pow")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc82)
      linalg.yield %748 : f32 loc(#loc82)
    } -> tensor<32x128x128xf32> loc(#loc82)
    %62 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_13 : tensor<f32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %63 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%62, %60 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/integer_pow"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %64 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_12 : tensor<f32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %65 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%64, %61 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/integer_pow"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %66 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%59, %65 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x128x128xf32> loc(#loc75)
    %67 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_11 : tensor<f32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %68 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%67, %66 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %69 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%68 : tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/tanh")):
      %748 = math.tanh %in : f32 loc(#loc83)
      linalg.yield %748 : f32 loc(#loc83)
    } -> tensor<32x128x128xf32> loc(#loc83)
    %70 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_10 : tensor<f32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/sub")):
      linalg.yield %in : f32 loc(#loc72)
    } -> tensor<32x128x128xf32> loc(#loc72)
    %71 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70, %69 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32x128x128xf32> loc(#loc72)
    %72 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70, %69 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x128x128xf32> loc(#loc75)
    %73 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_9 : tensor<f32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %74 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%73, %72 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %75 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%59, %74 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %76 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%75 : tensor<32x128x128xf32>) outs(%51 : tensor<32x128x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %out: bf16 loc("jit(main)/jvp(h0/token2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc84)
      linalg.yield %748 : bf16 loc(#loc84)
    } -> tensor<32x128x128xbf16> loc(#loc84)
    %77 = tensor.empty() : tensor<128x64xbf16> loc(#loc84)
    %78 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg15 : tensor<128x64xf32>) outs(%77 : tensor<128x64xbf16>) {
    ^bb0(%in: f32 loc("params['h0/token2/weight']"), %out: bf16 loc("jit(main)/jvp(h0/token2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc84)
      linalg.yield %748 : bf16 loc(#loc84)
    } -> tensor<128x64xbf16> loc(#loc84)
    %79 = linalg.fill ins(%cst_4 : bf16) outs(%47 : tensor<32x128x64xbf16>) -> tensor<32x128x64xbf16> loc(#loc85)
    %80 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%76, %78 : tensor<32x128x128xbf16>, tensor<128x64xbf16>) outs(%79 : tensor<32x128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/token2)/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h0/token2)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h0/token2)/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc84)
      %749 = arith.addf %out, %748 : bf16 loc(#loc85)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x128x64xbf16> loc(#loc85)
    %81 = tensor.empty() : tensor<64xbf16> loc(#loc84)
    %82 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%arg14 : tensor<64xf32>) outs(%81 : tensor<64xbf16>) {
    ^bb0(%in: f32 loc("params['h0/token2/bias']"), %out: bf16 loc("jit(main)/jvp(h0/token2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc84)
      linalg.yield %748 : bf16 loc(#loc84)
    } -> tensor<64xbf16> loc(#loc84)
    %83 = tensor.empty() : tensor<1x1x64xbf16> loc(#loc86)
    %84 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%82 : tensor<64xbf16>) outs(%83 : tensor<1x1x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/token2)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h0/token2)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc86)
    } -> tensor<1x1x64xbf16> loc(#loc86)
    %85 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%84 : tensor<1x1x64xbf16>) outs(%47 : tensor<32x128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/token2)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(h0/token2)/add")):
      linalg.yield %in : bf16 loc(#loc87)
    } -> tensor<32x128x64xbf16> loc(#loc87)
    %86 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%80, %85 : tensor<32x128x64xbf16>, tensor<32x128x64xbf16>) outs(%47 : tensor<32x128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/token2)/dot_general"), %in_48: bf16 loc("jit(main)/jvp(h0/token2)/add"), %out: bf16 loc("jit(main)/jvp(h0/token2)/add")):
      %748 = arith.addf %in, %in_48 : bf16 loc(#loc87)
      linalg.yield %748 : bf16 loc(#loc87)
    } -> tensor<32x128x64xbf16> loc(#loc87)
    %87 = linalg.generic {indexing_maps = [#map11, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%86 : tensor<32x128x64xbf16>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/token2)/add"), %out: bf16 loc("jit(main)/jvp()/transpose")):
      linalg.yield %in : bf16 loc(#loc77)
    } -> tensor<32x64x128xbf16> loc(#loc77)
    %88 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%87 : tensor<32x64x128xbf16>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp()/transpose"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc68)
      linalg.yield %748 : f32 loc(#loc68)
    } -> tensor<32x64x128xf32> loc(#loc68)
    %89 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %88 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %90 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%89 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x64xf32> loc(#loc69)
    %91 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%90 : tensor<32x64xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x64x1xf32> loc(#loc70)
    %92 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%91, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %93 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%92 : tensor<32x64x1xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/sub")):
      linalg.yield %in : f32 loc(#loc72)
    } -> tensor<32x64x128xf32> loc(#loc72)
    %94 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%89, %93 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32x64x128xf32> loc(#loc72)
    %95 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%94, %94 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/square")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc73)
      linalg.yield %748 : f32 loc(#loc73)
    } -> tensor<32x64x128xf32> loc(#loc73)
    %96 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25, %94 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %97 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%95 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x64xf32> loc(#loc69)
    %98 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%97 : tensor<32x64xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x64x1xf32> loc(#loc70)
    %99 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%98, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %100 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%99, %30 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x1xf32> loc(#loc75)
    %101 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%100 : tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/rsqrt")):
      %748 = math.rsqrt %in : f32 loc(#loc76)
      linalg.yield %748 : f32 loc(#loc76)
    } -> tensor<32x64x1xf32> loc(#loc76)
    %102 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%101, %100 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/rsqrt"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %103 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%34, %102 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x1xf32> loc(#loc74)
    %104 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%101 : tensor<32x64x1xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/rsqrt"), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %105 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%94, %104 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %106 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg11 : tensor<128xf32>) outs(%38 : tensor<1x1x128xf32>) {
    ^bb0(%in: f32 loc("params['h0/norm2/gain']"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<1x1x128xf32> loc(#loc70)
    %107 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%106 : tensor<1x1x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %108 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%105, %107 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %109 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg10 : tensor<128xf32>) outs(%38 : tensor<1x1x128xf32>) {
    ^bb0(%in: f32 loc("params['h0/norm2/bias']"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<1x1x128xf32> loc(#loc70)
    %110 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%109 : tensor<1x1x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/add")):
      linalg.yield %in : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %111 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%108, %110 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %112 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%111 : tensor<32x64x128xf32>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %out: bf16 loc("jit(main)/jvp(h0/channel1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc88)
      linalg.yield %748 : bf16 loc(#loc88)
    } -> tensor<32x64x128xbf16> loc(#loc88)
    %113 = tensor.empty() : tensor<128x512xbf16> loc(#loc88)
    %114 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg5 : tensor<128x512xf32>) outs(%113 : tensor<128x512xbf16>) {
    ^bb0(%in: f32 loc("params['h0/channel1/weight']"), %out: bf16 loc("jit(main)/jvp(h0/channel1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc88)
      linalg.yield %748 : bf16 loc(#loc88)
    } -> tensor<128x512xbf16> loc(#loc88)
    %115 = tensor.empty() : tensor<32x64x512xbf16> loc(#loc89)
    %116 = linalg.fill ins(%cst_4 : bf16) outs(%115 : tensor<32x64x512xbf16>) -> tensor<32x64x512xbf16> loc(#loc89)
    %117 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%112, %114 : tensor<32x64x128xbf16>, tensor<128x512xbf16>) outs(%116 : tensor<32x64x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/channel1)/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h0/channel1)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h0/channel1)/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc88)
      %749 = arith.addf %out, %748 : bf16 loc(#loc89)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x64x512xbf16> loc(#loc89)
    %118 = tensor.empty() : tensor<512xbf16> loc(#loc88)
    %119 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%arg4 : tensor<512xf32>) outs(%118 : tensor<512xbf16>) {
    ^bb0(%in: f32 loc("params['h0/channel1/bias']"), %out: bf16 loc("jit(main)/jvp(h0/channel1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc88)
      linalg.yield %748 : bf16 loc(#loc88)
    } -> tensor<512xbf16> loc(#loc88)
    %120 = tensor.empty() : tensor<1x1x512xbf16> loc(#loc90)
    %121 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%119 : tensor<512xbf16>) outs(%120 : tensor<1x1x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/channel1)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h0/channel1)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc90)
    } -> tensor<1x1x512xbf16> loc(#loc90)
    %122 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%121 : tensor<1x1x512xbf16>) outs(%115 : tensor<32x64x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/channel1)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(h0/channel1)/add")):
      linalg.yield %in : bf16 loc(#loc91)
    } -> tensor<32x64x512xbf16> loc(#loc91)
    %123 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%117, %122 : tensor<32x64x512xbf16>, tensor<32x64x512xbf16>) outs(%115 : tensor<32x64x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/channel1)/dot_general"), %in_48: bf16 loc("jit(main)/jvp(h0/channel1)/add"), %out: bf16 loc("jit(main)/jvp(h0/channel1)/add")):
      %748 = arith.addf %in, %in_48 : bf16 loc(#loc91)
      linalg.yield %748 : bf16 loc(#loc91)
    } -> tensor<32x64x512xbf16> loc(#loc91)
    %124 = tensor.empty() : tensor<32x64x512xf32> loc(#loc68)
    %125 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%123 : tensor<32x64x512xbf16>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/channel1)/add"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc68)
      linalg.yield %748 : f32 loc(#loc68)
    } -> tensor<32x64x512xf32> loc(#loc68)
    %126 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%125, %125 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/integer_pow")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc82)
      linalg.yield %748 : f32 loc(#loc82)
    } -> tensor<32x64x512xf32> loc(#loc82)
    %127 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%126, %125 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/integer_pow"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/integer_pow")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc82)
      linalg.yield %748 : f32 loc(#loc82)
    } -> tensor<32x64x512xf32> loc(#loc82)
    %128 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_13 : tensor<f32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %129 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%128, %126 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/integer_pow"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %130 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_12 : tensor<f32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %131 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%130, %127 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/integer_pow"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %132 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%125, %131 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x512xf32> loc(#loc75)
    %133 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_11 : tensor<f32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %134 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%133, %132 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %135 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%134 : tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/tanh")):
      %748 = math.tanh %in : f32 loc(#loc83)
      linalg.yield %748 : f32 loc(#loc83)
    } -> tensor<32x64x512xf32> loc(#loc83)
    %136 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_10 : tensor<f32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/sub")):
      linalg.yield %in : f32 loc(#loc72)
    } -> tensor<32x64x512xf32> loc(#loc72)
    %137 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%136, %135 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32x64x512xf32> loc(#loc72)
    %138 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%136, %135 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x512xf32> loc(#loc75)
    %139 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%cst_9 : tensor<f32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %140 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%139, %138 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %141 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%125, %140 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %142 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%141 : tensor<32x64x512xf32>) outs(%115 : tensor<32x64x512xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %out: bf16 loc("jit(main)/jvp(h0/channel2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc92)
      linalg.yield %748 : bf16 loc(#loc92)
    } -> tensor<32x64x512xbf16> loc(#loc92)
    %143 = tensor.empty() : tensor<512x128xbf16> loc(#loc92)
    %144 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg7 : tensor<512x128xf32>) outs(%143 : tensor<512x128xbf16>) {
    ^bb0(%in: f32 loc("params['h0/channel2/weight']"), %out: bf16 loc("jit(main)/jvp(h0/channel2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc92)
      linalg.yield %748 : bf16 loc(#loc92)
    } -> tensor<512x128xbf16> loc(#loc92)
    %145 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%142, %144 : tensor<32x64x512xbf16>, tensor<512x128xbf16>) outs(%5 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/channel2)/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h0/channel2)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h0/channel2)/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc92)
      %749 = arith.addf %out, %748 : bf16 loc(#loc93)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x64x128xbf16> loc(#loc93)
    %146 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%arg6 : tensor<128xf32>) outs(%7 : tensor<128xbf16>) {
    ^bb0(%in: f32 loc("params['h0/channel2/bias']"), %out: bf16 loc("jit(main)/jvp(h0/channel2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc92)
      linalg.yield %748 : bf16 loc(#loc92)
    } -> tensor<128xbf16> loc(#loc92)
    %147 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%146 : tensor<128xbf16>) outs(%9 : tensor<1x1x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/channel2)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h0/channel2)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc94)
    } -> tensor<1x1x128xbf16> loc(#loc94)
    %148 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%147 : tensor<1x1x128xbf16>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/channel2)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(h0/channel2)/add")):
      linalg.yield %in : bf16 loc(#loc95)
    } -> tensor<32x64x128xbf16> loc(#loc95)
    %149 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%145, %148 : tensor<32x64x128xbf16>, tensor<32x64x128xbf16>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/channel2)/dot_general"), %in_48: bf16 loc("jit(main)/jvp(h0/channel2)/add"), %out: bf16 loc("jit(main)/jvp(h0/channel2)/add")):
      %748 = arith.addf %in, %in_48 : bf16 loc(#loc95)
      linalg.yield %748 : bf16 loc(#loc95)
    } -> tensor<32x64x128xbf16> loc(#loc95)
    %150 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%149 : tensor<32x64x128xbf16>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h0/channel2)/add"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc68)
      linalg.yield %748 : f32 loc(#loc68)
    } -> tensor<32x64x128xf32> loc(#loc68)
    %151 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%89, %150 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %152 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%151 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x64xf32> loc(#loc69)
    %153 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%152 : tensor<32x64xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x64x1xf32> loc(#loc70)
    %154 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%153, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %155 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%154 : tensor<32x64x1xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/sub")):
      linalg.yield %in : f32 loc(#loc72)
    } -> tensor<32x64x128xf32> loc(#loc72)
    %156 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%151, %155 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32x64x128xf32> loc(#loc72)
    %157 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156, %156 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/square")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc73)
      linalg.yield %748 : f32 loc(#loc73)
    } -> tensor<32x64x128xf32> loc(#loc73)
    %158 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25, %156 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %159 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%157 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x64xf32> loc(#loc69)
    %160 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%159 : tensor<32x64xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x64x1xf32> loc(#loc70)
    %161 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%160, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %162 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%161, %30 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x1xf32> loc(#loc75)
    %163 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%162 : tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/rsqrt")):
      %748 = math.rsqrt %in : f32 loc(#loc76)
      linalg.yield %748 : f32 loc(#loc76)
    } -> tensor<32x64x1xf32> loc(#loc76)
    %164 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%163, %162 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/rsqrt"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %165 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%34, %164 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x1xf32> loc(#loc74)
    %166 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%163 : tensor<32x64x1xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/rsqrt"), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %167 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156, %166 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %168 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg21 : tensor<128xf32>) outs(%38 : tensor<1x1x128xf32>) {
    ^bb0(%in: f32 loc("params['h1/norm1/gain']"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<1x1x128xf32> loc(#loc70)
    %169 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%168 : tensor<1x1x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %170 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%167, %169 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %171 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg20 : tensor<128xf32>) outs(%38 : tensor<1x1x128xf32>) {
    ^bb0(%in: f32 loc("params['h1/norm1/bias']"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<1x1x128xf32> loc(#loc70)
    %172 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%171 : tensor<1x1x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/add")):
      linalg.yield %in : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %173 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%170, %172 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %174 = linalg.generic {indexing_maps = [#map11, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%173 : tensor<32x64x128xf32>) outs(%45 : tensor<32x128x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/transpose")):
      linalg.yield %in : f32 loc(#loc77)
    } -> tensor<32x128x64xf32> loc(#loc77)
    %175 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%174 : tensor<32x128x64xf32>) outs(%47 : tensor<32x128x64xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/transpose"), %out: bf16 loc("jit(main)/jvp(h1/token1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc96)
      linalg.yield %748 : bf16 loc(#loc96)
    } -> tensor<32x128x64xbf16> loc(#loc96)
    %176 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg25 : tensor<64x128xf32>) outs(%49 : tensor<64x128xbf16>) {
    ^bb0(%in: f32 loc("params['h1/token1/weight']"), %out: bf16 loc("jit(main)/jvp(h1/token1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc96)
      linalg.yield %748 : bf16 loc(#loc96)
    } -> tensor<64x128xbf16> loc(#loc96)
    %177 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%175, %176 : tensor<32x128x64xbf16>, tensor<64x128xbf16>) outs(%52 : tensor<32x128x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/token1)/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h1/token1)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h1/token1)/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc96)
      %749 = arith.addf %out, %748 : bf16 loc(#loc97)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x128x128xbf16> loc(#loc97)
    %178 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%arg24 : tensor<128xf32>) outs(%7 : tensor<128xbf16>) {
    ^bb0(%in: f32 loc("params['h1/token1/bias']"), %out: bf16 loc("jit(main)/jvp(h1/token1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc96)
      linalg.yield %748 : bf16 loc(#loc96)
    } -> tensor<128xbf16> loc(#loc96)
    %179 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%178 : tensor<128xbf16>) outs(%9 : tensor<1x1x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/token1)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h1/token1)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc98)
    } -> tensor<1x1x128xbf16> loc(#loc98)
    %180 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%179 : tensor<1x1x128xbf16>) outs(%51 : tensor<32x128x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/token1)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(h1/token1)/add")):
      linalg.yield %in : bf16 loc(#loc99)
    } -> tensor<32x128x128xbf16> loc(#loc99)
    %181 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%177, %180 : tensor<32x128x128xbf16>, tensor<32x128x128xbf16>) outs(%51 : tensor<32x128x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/token1)/dot_general"), %in_48: bf16 loc("jit(main)/jvp(h1/token1)/add"), %out: bf16 loc("jit(main)/jvp(h1/token1)/add")):
      %748 = arith.addf %in, %in_48 : bf16 loc(#loc99)
      linalg.yield %748 : bf16 loc(#loc99)
    } -> tensor<32x128x128xbf16> loc(#loc99)
    %182 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%181 : tensor<32x128x128xbf16>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/token1)/add"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc68)
      linalg.yield %748 : f32 loc(#loc68)
    } -> tensor<32x128x128xf32> loc(#loc68)
    %183 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%182, %182 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/integer_pow")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc82)
      linalg.yield %748 : f32 loc(#loc82)
    } -> tensor<32x128x128xf32> loc(#loc82)
    %184 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%183, %182 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/integer_pow"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/integer_pow")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc82)
      linalg.yield %748 : f32 loc(#loc82)
    } -> tensor<32x128x128xf32> loc(#loc82)
    %185 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%62, %183 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/integer_pow"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %186 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%64, %184 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/integer_pow"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %187 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%182, %186 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x128x128xf32> loc(#loc75)
    %188 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%67, %187 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %189 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%188 : tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/tanh")):
      %748 = math.tanh %in : f32 loc(#loc83)
      linalg.yield %748 : f32 loc(#loc83)
    } -> tensor<32x128x128xf32> loc(#loc83)
    %190 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70, %189 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32x128x128xf32> loc(#loc72)
    %191 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70, %189 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x128x128xf32> loc(#loc75)
    %192 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%73, %191 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %193 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%182, %192 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x128x128xf32> loc(#loc74)
    %194 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%193 : tensor<32x128x128xf32>) outs(%51 : tensor<32x128x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %out: bf16 loc("jit(main)/jvp(h1/token2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc100)
      linalg.yield %748 : bf16 loc(#loc100)
    } -> tensor<32x128x128xbf16> loc(#loc100)
    %195 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg27 : tensor<128x64xf32>) outs(%77 : tensor<128x64xbf16>) {
    ^bb0(%in: f32 loc("params['h1/token2/weight']"), %out: bf16 loc("jit(main)/jvp(h1/token2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc100)
      linalg.yield %748 : bf16 loc(#loc100)
    } -> tensor<128x64xbf16> loc(#loc100)
    %196 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%194, %195 : tensor<32x128x128xbf16>, tensor<128x64xbf16>) outs(%79 : tensor<32x128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/token2)/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h1/token2)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h1/token2)/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc100)
      %749 = arith.addf %out, %748 : bf16 loc(#loc101)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x128x64xbf16> loc(#loc101)
    %197 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%arg26 : tensor<64xf32>) outs(%81 : tensor<64xbf16>) {
    ^bb0(%in: f32 loc("params['h1/token2/bias']"), %out: bf16 loc("jit(main)/jvp(h1/token2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc100)
      linalg.yield %748 : bf16 loc(#loc100)
    } -> tensor<64xbf16> loc(#loc100)
    %198 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%197 : tensor<64xbf16>) outs(%83 : tensor<1x1x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/token2)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h1/token2)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc102)
    } -> tensor<1x1x64xbf16> loc(#loc102)
    %199 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%198 : tensor<1x1x64xbf16>) outs(%47 : tensor<32x128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/token2)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(h1/token2)/add")):
      linalg.yield %in : bf16 loc(#loc103)
    } -> tensor<32x128x64xbf16> loc(#loc103)
    %200 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%196, %199 : tensor<32x128x64xbf16>, tensor<32x128x64xbf16>) outs(%47 : tensor<32x128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/token2)/dot_general"), %in_48: bf16 loc("jit(main)/jvp(h1/token2)/add"), %out: bf16 loc("jit(main)/jvp(h1/token2)/add")):
      %748 = arith.addf %in, %in_48 : bf16 loc(#loc103)
      linalg.yield %748 : bf16 loc(#loc103)
    } -> tensor<32x128x64xbf16> loc(#loc103)
    %201 = linalg.generic {indexing_maps = [#map11, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%200 : tensor<32x128x64xbf16>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/token2)/add"), %out: bf16 loc("jit(main)/jvp()/transpose")):
      linalg.yield %in : bf16 loc(#loc77)
    } -> tensor<32x64x128xbf16> loc(#loc77)
    %202 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%201 : tensor<32x64x128xbf16>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp()/transpose"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc68)
      linalg.yield %748 : f32 loc(#loc68)
    } -> tensor<32x64x128xf32> loc(#loc68)
    %203 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%151, %202 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %204 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%203 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x64xf32> loc(#loc69)
    %205 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%204 : tensor<32x64xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x64x1xf32> loc(#loc70)
    %206 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%205, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %207 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%206 : tensor<32x64x1xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/sub")):
      linalg.yield %in : f32 loc(#loc72)
    } -> tensor<32x64x128xf32> loc(#loc72)
    %208 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%203, %207 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32x64x128xf32> loc(#loc72)
    %209 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%208, %208 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/square")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc73)
      linalg.yield %748 : f32 loc(#loc73)
    } -> tensor<32x64x128xf32> loc(#loc73)
    %210 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25, %208 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %211 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%209 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x64xf32> loc(#loc69)
    %212 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%211 : tensor<32x64xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x64x1xf32> loc(#loc70)
    %213 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%212, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %214 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%213, %30 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x1xf32> loc(#loc75)
    %215 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%214 : tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/rsqrt")):
      %748 = math.rsqrt %in : f32 loc(#loc76)
      linalg.yield %748 : f32 loc(#loc76)
    } -> tensor<32x64x1xf32> loc(#loc76)
    %216 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%215, %214 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/rsqrt"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %217 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%34, %216 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x1xf32> loc(#loc74)
    %218 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%215 : tensor<32x64x1xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/rsqrt"), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %219 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%208, %218 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %220 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg23 : tensor<128xf32>) outs(%38 : tensor<1x1x128xf32>) {
    ^bb0(%in: f32 loc("params['h1/norm2/gain']"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<1x1x128xf32> loc(#loc70)
    %221 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%220 : tensor<1x1x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %222 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%219, %221 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %223 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg22 : tensor<128xf32>) outs(%38 : tensor<1x1x128xf32>) {
    ^bb0(%in: f32 loc("params['h1/norm2/bias']"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<1x1x128xf32> loc(#loc70)
    %224 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%223 : tensor<1x1x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/add")):
      linalg.yield %in : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %225 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%222, %224 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %226 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%225 : tensor<32x64x128xf32>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %out: bf16 loc("jit(main)/jvp(h1/channel1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc104)
      linalg.yield %748 : bf16 loc(#loc104)
    } -> tensor<32x64x128xbf16> loc(#loc104)
    %227 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg17 : tensor<128x512xf32>) outs(%113 : tensor<128x512xbf16>) {
    ^bb0(%in: f32 loc("params['h1/channel1/weight']"), %out: bf16 loc("jit(main)/jvp(h1/channel1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc104)
      linalg.yield %748 : bf16 loc(#loc104)
    } -> tensor<128x512xbf16> loc(#loc104)
    %228 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%226, %227 : tensor<32x64x128xbf16>, tensor<128x512xbf16>) outs(%116 : tensor<32x64x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/channel1)/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h1/channel1)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h1/channel1)/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc104)
      %749 = arith.addf %out, %748 : bf16 loc(#loc105)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x64x512xbf16> loc(#loc105)
    %229 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%arg16 : tensor<512xf32>) outs(%118 : tensor<512xbf16>) {
    ^bb0(%in: f32 loc("params['h1/channel1/bias']"), %out: bf16 loc("jit(main)/jvp(h1/channel1)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc104)
      linalg.yield %748 : bf16 loc(#loc104)
    } -> tensor<512xbf16> loc(#loc104)
    %230 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%229 : tensor<512xbf16>) outs(%120 : tensor<1x1x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/channel1)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h1/channel1)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc106)
    } -> tensor<1x1x512xbf16> loc(#loc106)
    %231 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%230 : tensor<1x1x512xbf16>) outs(%115 : tensor<32x64x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/channel1)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(h1/channel1)/add")):
      linalg.yield %in : bf16 loc(#loc107)
    } -> tensor<32x64x512xbf16> loc(#loc107)
    %232 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%228, %231 : tensor<32x64x512xbf16>, tensor<32x64x512xbf16>) outs(%115 : tensor<32x64x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/channel1)/dot_general"), %in_48: bf16 loc("jit(main)/jvp(h1/channel1)/add"), %out: bf16 loc("jit(main)/jvp(h1/channel1)/add")):
      %748 = arith.addf %in, %in_48 : bf16 loc(#loc107)
      linalg.yield %748 : bf16 loc(#loc107)
    } -> tensor<32x64x512xbf16> loc(#loc107)
    %233 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%232 : tensor<32x64x512xbf16>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/channel1)/add"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc68)
      linalg.yield %748 : f32 loc(#loc68)
    } -> tensor<32x64x512xf32> loc(#loc68)
    %234 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%233, %233 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/integer_pow")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc82)
      linalg.yield %748 : f32 loc(#loc82)
    } -> tensor<32x64x512xf32> loc(#loc82)
    %235 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%234, %233 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/integer_pow"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/integer_pow")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc82)
      linalg.yield %748 : f32 loc(#loc82)
    } -> tensor<32x64x512xf32> loc(#loc82)
    %236 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%128, %234 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/integer_pow"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %237 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%130, %235 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/integer_pow"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %238 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%233, %237 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x512xf32> loc(#loc75)
    %239 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%133, %238 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %240 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%239 : tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/tanh")):
      %748 = math.tanh %in : f32 loc(#loc83)
      linalg.yield %748 : f32 loc(#loc83)
    } -> tensor<32x64x512xf32> loc(#loc83)
    %241 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%136, %240 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32x64x512xf32> loc(#loc72)
    %242 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%136, %240 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x512xf32> loc(#loc75)
    %243 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%139, %242 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %244 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%233, %243 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x512xf32> loc(#loc74)
    %245 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%244 : tensor<32x64x512xf32>) outs(%115 : tensor<32x64x512xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %out: bf16 loc("jit(main)/jvp(h1/channel2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc108)
      linalg.yield %748 : bf16 loc(#loc108)
    } -> tensor<32x64x512xbf16> loc(#loc108)
    %246 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg19 : tensor<512x128xf32>) outs(%143 : tensor<512x128xbf16>) {
    ^bb0(%in: f32 loc("params['h1/channel2/weight']"), %out: bf16 loc("jit(main)/jvp(h1/channel2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc108)
      linalg.yield %748 : bf16 loc(#loc108)
    } -> tensor<512x128xbf16> loc(#loc108)
    %247 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%245, %246 : tensor<32x64x512xbf16>, tensor<512x128xbf16>) outs(%5 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/channel2)/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h1/channel2)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h1/channel2)/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc108)
      %749 = arith.addf %out, %748 : bf16 loc(#loc109)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x64x128xbf16> loc(#loc109)
    %248 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%arg18 : tensor<128xf32>) outs(%7 : tensor<128xbf16>) {
    ^bb0(%in: f32 loc("params['h1/channel2/bias']"), %out: bf16 loc("jit(main)/jvp(h1/channel2)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc108)
      linalg.yield %748 : bf16 loc(#loc108)
    } -> tensor<128xbf16> loc(#loc108)
    %249 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%248 : tensor<128xbf16>) outs(%9 : tensor<1x1x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/channel2)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(h1/channel2)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc110)
    } -> tensor<1x1x128xbf16> loc(#loc110)
    %250 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%249 : tensor<1x1x128xbf16>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/channel2)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(h1/channel2)/add")):
      linalg.yield %in : bf16 loc(#loc111)
    } -> tensor<32x64x128xbf16> loc(#loc111)
    %251 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%247, %250 : tensor<32x64x128xbf16>, tensor<32x64x128xbf16>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/channel2)/dot_general"), %in_48: bf16 loc("jit(main)/jvp(h1/channel2)/add"), %out: bf16 loc("jit(main)/jvp(h1/channel2)/add")):
      %748 = arith.addf %in, %in_48 : bf16 loc(#loc111)
      linalg.yield %748 : bf16 loc(#loc111)
    } -> tensor<32x64x128xbf16> loc(#loc111)
    %252 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%251 : tensor<32x64x128xbf16>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(h1/channel2)/add"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc68)
      linalg.yield %748 : f32 loc(#loc68)
    } -> tensor<32x64x128xf32> loc(#loc68)
    %253 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%203, %252 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/convert_element_type"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %254 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%253 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x64xf32> loc(#loc69)
    %255 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%254 : tensor<32x64xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x64x1xf32> loc(#loc70)
    %256 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%255, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %257 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%256 : tensor<32x64x1xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/sub")):
      linalg.yield %in : f32 loc(#loc72)
    } -> tensor<32x64x128xf32> loc(#loc72)
    %258 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%253, %257 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32x64x128xf32> loc(#loc72)
    %259 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%258, %258 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/square")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc73)
      linalg.yield %748 : f32 loc(#loc73)
    } -> tensor<32x64x128xf32> loc(#loc73)
    %260 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25, %258 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %261 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%259 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x64xf32> loc(#loc69)
    %262 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%261 : tensor<32x64xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x64x1xf32> loc(#loc70)
    %263 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%262, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %264 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%263, %30 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x1xf32> loc(#loc75)
    %265 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%264 : tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/rsqrt")):
      %748 = math.rsqrt %in : f32 loc(#loc76)
      linalg.yield %748 : f32 loc(#loc76)
    } -> tensor<32x64x1xf32> loc(#loc76)
    %266 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%265, %264 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/rsqrt"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x64x1xf32> loc(#loc71)
    %267 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%34, %266 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x1xf32> loc(#loc74)
    %268 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%265 : tensor<32x64x1xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/rsqrt"), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %269 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%258, %268 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %270 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg3 : tensor<128xf32>) outs(%38 : tensor<1x1x128xf32>) {
    ^bb0(%in: f32 loc("params['final/gain']"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<1x1x128xf32> loc(#loc70)
    %271 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%270 : tensor<1x1x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/mul")):
      linalg.yield %in : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %272 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%269, %271 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x64x128xf32> loc(#loc74)
    %273 = linalg.generic {indexing_maps = [#map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg2 : tensor<128xf32>) outs(%38 : tensor<1x1x128xf32>) {
    ^bb0(%in: f32 loc("params['final/bias']"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<1x1x128xf32> loc(#loc70)
    %274 = linalg.generic {indexing_maps = [#map7, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%273 : tensor<1x1x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/add")):
      linalg.yield %in : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %275 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%272, %274 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/jvp()/add"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32x64x128xf32> loc(#loc75)
    %276 = tensor.empty() : tensor<32x128xf32> loc(#loc69)
    %277 = linalg.fill ins(%cst_3 : f32) outs(%276 : tensor<32x128xf32>) -> tensor<32x128xf32> loc(#loc69)
    %278 = linalg.generic {indexing_maps = [#map11, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%275 : tensor<32x64x128xf32>) outs(%277 : tensor<32x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32x128xf32> loc(#loc69)
    %279 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_8 : tensor<f32>) outs(%276 : tensor<32x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/div")):
      linalg.yield %in : f32 loc(#loc71)
    } -> tensor<32x128xf32> loc(#loc71)
    %280 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%278, %279 : tensor<32x128xf32>, tensor<32x128xf32>) outs(%276 : tensor<32x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %in_48: f32 loc("jit(main)/jvp()/div"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<32x128xf32> loc(#loc71)
    %281 = tensor.empty() : tensor<32x128xbf16> loc(#loc112)
    %282 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%280 : tensor<32x128xf32>) outs(%281 : tensor<32x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/div"), %out: bf16 loc("jit(main)/jvp(head)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc112)
      linalg.yield %748 : bf16 loc(#loc112)
    } -> tensor<32x128xbf16> loc(#loc112)
    %283 = tensor.empty() : tensor<128x10xbf16> loc(#loc112)
    %284 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg29 : tensor<128x10xf32>) outs(%283 : tensor<128x10xbf16>) {
    ^bb0(%in: f32 loc("params['head/weight']"), %out: bf16 loc("jit(main)/jvp(head)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc112)
      linalg.yield %748 : bf16 loc(#loc112)
    } -> tensor<128x10xbf16> loc(#loc112)
    %285 = tensor.empty() : tensor<32x10xbf16> loc(#loc113)
    %286 = linalg.fill ins(%cst_4 : bf16) outs(%285 : tensor<32x10xbf16>) -> tensor<32x10xbf16> loc(#loc113)
    %287 = linalg.matmul ins(%282, %284 : tensor<32x128xbf16>, tensor<128x10xbf16>) outs(%286 : tensor<32x10xbf16>) -> tensor<32x10xbf16> loc(#loc113)
    %288 = tensor.empty() : tensor<10xbf16> loc(#loc112)
    %289 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%arg28 : tensor<10xf32>) outs(%288 : tensor<10xbf16>) {
    ^bb0(%in: f32 loc("params['head/bias']"), %out: bf16 loc("jit(main)/jvp(head)/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc112)
      linalg.yield %748 : bf16 loc(#loc112)
    } -> tensor<10xbf16> loc(#loc112)
    %290 = tensor.empty() : tensor<1x10xbf16> loc(#loc114)
    %291 = linalg.generic {indexing_maps = [#map13, #map1], iterator_types = ["parallel", "parallel"]} ins(%289 : tensor<10xbf16>) outs(%290 : tensor<1x10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(head)/convert_element_type"), %out: bf16 loc("jit(main)/jvp(head)/broadcast_in_dim")):
      linalg.yield %in : bf16 loc(#loc114)
    } -> tensor<1x10xbf16> loc(#loc114)
    %292 = linalg.generic {indexing_maps = [#map14, #map1], iterator_types = ["parallel", "parallel"]} ins(%291 : tensor<1x10xbf16>) outs(%285 : tensor<32x10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(head)/broadcast_in_dim"), %out: bf16 loc("jit(main)/jvp(head)/add")):
      linalg.yield %in : bf16 loc(#loc115)
    } -> tensor<32x10xbf16> loc(#loc115)
    %293 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%287, %292 : tensor<32x10xbf16>, tensor<32x10xbf16>) outs(%285 : tensor<32x10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(head)/dot_general"), %in_48: bf16 loc("jit(main)/jvp(head)/add"), %out: bf16 loc("jit(main)/jvp(head)/add")):
      %748 = arith.addf %in, %in_48 : bf16 loc(#loc115)
      linalg.yield %748 : bf16 loc(#loc115)
    } -> tensor<32x10xbf16> loc(#loc115)
    %294 = tensor.empty() : tensor<32x10xf32> loc(#loc68)
    %295 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%293 : tensor<32x10xbf16>) outs(%294 : tensor<32x10xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/jvp(head)/add"), %out: f32 loc("jit(main)/jvp()/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc68)
      linalg.yield %748 : f32 loc(#loc68)
    } -> tensor<32x10xf32> loc(#loc68)
    %296 = call @main.one_hot(%arg61) : (tensor<32xi32>) -> tensor<32x10xf32> loc(#loc116)
    %297 = tensor.empty() : tensor<32xf32> loc(#loc63)
    %298 = linalg.fill ins(%cst_2 : f32) outs(%297 : tensor<32xf32>) -> tensor<32xf32> loc(#loc63)
    %299 = linalg.generic {indexing_maps = [#map1, #map15], iterator_types = ["parallel", "reduction"]} ins(%295 : tensor<32x10xf32>) outs(%298 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_max"), %out: f32 loc("jit(main)/jvp()/reduce_max")):
      %748 = arith.maximumf %out, %in : f32 loc(#loc63)
      linalg.yield %748 : f32 loc(#loc63)
    } -> tensor<32xf32> loc(#loc63)
    %300 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%cst_7 : tensor<f32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/max")):
      linalg.yield %in : f32 loc(#loc117)
    } -> tensor<32xf32> loc(#loc117)
    %301 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%300, %299 : tensor<32xf32>, tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/max"), %in_48: f32 loc("jit(main)/jvp()/reduce_max"), %out: f32 loc("jit(main)/jvp()/max")):
      %748 = arith.maximumf %in, %in_48 : f32 loc(#loc117)
      linalg.yield %748 : f32 loc(#loc117)
    } -> tensor<32xf32> loc(#loc117)
    %302 = tensor.empty() : tensor<32xi1> loc(#loc118)
    %303 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%301 : tensor<32xf32>) outs(%302 : tensor<32xi1>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/max"), %out: i1 loc("jit(main)/jvp()/is_finite")):
      %748 = math.absf %in : f32 loc(#loc118)
      %749 = arith.cmpf one, %748, %cst_1 : f32 loc(#loc118)
      linalg.yield %749 : i1 loc(#loc118)
    } -> tensor<32xi1> loc(#loc118)
    %304 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%cst_18 : tensor<f32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32xf32> loc(#loc70)
    %305 = linalg.generic {indexing_maps = [#map5, #map5, #map5, #map5], iterator_types = ["parallel"]} ins(%303, %301, %304 : tensor<32xi1>, tensor<32xf32>, tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: i1 loc("jit(main)/jvp()/is_finite"), %in_48: f32 loc("jit(main)/jvp()/max"), %in_49: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/select_n")):
      %748 = arith.select %in, %in_48, %in_49 : f32 loc(#loc119)
      linalg.yield %748 : f32 loc(#loc119)
    } -> tensor<32xf32> loc(#loc119)
    %306 = tensor.empty() : tensor<32x1xf32> loc(#loc70)
    %307 = linalg.generic {indexing_maps = [#map15, #map1], iterator_types = ["parallel", "parallel"]} ins(%305 : tensor<32xf32>) outs(%306 : tensor<32x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/select_n"), %out: f32 loc("jit(main)/jvp()/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc70)
    } -> tensor<32x1xf32> loc(#loc70)
    %308 = linalg.generic {indexing_maps = [#map17, #map1], iterator_types = ["parallel", "parallel"]} ins(%307 : tensor<32x1xf32>) outs(%294 : tensor<32x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/broadcast_in_dim"), %out: f32 loc("jit(main)/jvp()/sub")):
      linalg.yield %in : f32 loc(#loc72)
    } -> tensor<32x10xf32> loc(#loc72)
    %309 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%295, %308 : tensor<32x10xf32>, tensor<32x10xf32>) outs(%294 : tensor<32x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32x10xf32> loc(#loc72)
    %310 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%309 : tensor<32x10xf32>) outs(%294 : tensor<32x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/jvp()/exp")):
      %748 = math.exp %in : f32 loc(#loc120)
      linalg.yield %748 : f32 loc(#loc120)
    } -> tensor<32x10xf32> loc(#loc120)
    %311 = linalg.fill ins(%cst_3 : f32) outs(%297 : tensor<32xf32>) -> tensor<32xf32> loc(#loc69)
    %312 = linalg.generic {indexing_maps = [#map1, #map15], iterator_types = ["parallel", "reduction"]} ins(%310 : tensor<32x10xf32>) outs(%311 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32xf32> loc(#loc69)
    %313 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%312 : tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/abs")):
      %748 = math.absf %in : f32 loc(#loc121)
      linalg.yield %748 : f32 loc(#loc121)
    } -> tensor<32xf32> loc(#loc121)
    %314 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%312, %304 : tensor<32xf32>, tensor<32xf32>) outs(%302 : tensor<32xi1>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %in_48: f32 loc("jit(main)/jvp()/ge"), %out: i1 loc("jit(main)/jvp()/ge")):
      %748 = arith.cmpf oge, %in, %in_48 : f32 loc(#loc122)
      linalg.yield %748 : i1 loc(#loc122)
    } -> tensor<32xi1> loc(#loc122)
    %315 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%313 : tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/abs"), %out: f32 loc("jit(main)/jvp()/log")):
      %748 = math.log %in : f32 loc(#loc123)
      linalg.yield %748 : f32 loc(#loc123)
    } -> tensor<32xf32> loc(#loc123)
    %316 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%315, %305 : tensor<32xf32>, tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/log"), %in_48: f32 loc("jit(main)/jvp()/select_n"), %out: f32 loc("jit(main)/jvp()/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc75)
      linalg.yield %748 : f32 loc(#loc75)
    } -> tensor<32xf32> loc(#loc75)
    %317 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%295, %296 : tensor<32x10xf32>, tensor<32x10xf32>) outs(%294 : tensor<32x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/jvp(jit(_one_hot))"), %out: f32 loc("jit(main)/jvp()/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc74)
      linalg.yield %748 : f32 loc(#loc74)
    } -> tensor<32x10xf32> loc(#loc74)
    %318 = linalg.generic {indexing_maps = [#map1, #map15], iterator_types = ["parallel", "reduction"]} ins(%317 : tensor<32x10xf32>) outs(%311 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<32xf32> loc(#loc69)
    %319 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%316, %318 : tensor<32xf32>, tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/add"), %in_48: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc72)
      linalg.yield %748 : f32 loc(#loc72)
    } -> tensor<32xf32> loc(#loc72)
    %320 = tensor.empty() : tensor<f32> loc(#loc69)
    %321 = linalg.fill ins(%cst_3 : f32) outs(%320 : tensor<f32>) -> tensor<f32> loc(#loc69)
    %322 = linalg.generic {indexing_maps = [#map5, #map16], iterator_types = ["reduction"]} ins(%319 : tensor<32xf32>) outs(%321 : tensor<f32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc69)
      linalg.yield %748 : f32 loc(#loc69)
    } -> tensor<f32> loc(#loc69)
    %323 = linalg.generic {indexing_maps = [#map18, #map18], iterator_types = []} ins(%322 : tensor<f32>) outs(%320 : tensor<f32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/reduce_sum"), %out: f32 loc("jit(main)/jvp()/div")):
      %748 = arith.divf %in, %cst_0 : f32 loc(#loc71)
      linalg.yield %748 : f32 loc(#loc71)
    } -> tensor<f32> loc(#loc71)
    %324 = linalg.generic {indexing_maps = [#map18], iterator_types = []} outs(%320 : tensor<f32>) {
    ^bb0(%out: f32 loc("jit(main)/transpose(jvp())/div")):
      linalg.yield %cst : f32 loc(#loc124)
    } -> tensor<f32> loc(#loc124)
    %325 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%324 : tensor<f32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32xf32> loc(#loc125)
    %326 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%325 : tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: f32 loc("jit(main)/transpose(jvp())/neg")):
      %748 = arith.negf %in : f32 loc(#loc126)
      linalg.yield %748 : f32 loc(#loc126)
    } -> tensor<32xf32> loc(#loc126)
    %327 = linalg.generic {indexing_maps = [#map15, #map1], iterator_types = ["parallel", "parallel"]} ins(%326 : tensor<32xf32>) outs(%294 : tensor<32x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/neg"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x10xf32> loc(#loc125)
    %328 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%327, %296 : tensor<32x10xf32>, tensor<32x10xf32>) outs(%294 : tensor<32x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp(jit(_one_hot))"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x10xf32> loc(#loc127)
    %329 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%325, %313 : tensor<32xf32>, tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/abs"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32xf32> loc(#loc124)
    %330 = linalg.generic {indexing_maps = [#map5, #map5, #map5, #map5], iterator_types = ["parallel"]} ins(%314, %304, %329 : tensor<32xi1>, tensor<32xf32>, tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: i1 loc("jit(main)/jvp()/ge"), %in_48: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_49: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/select_n")):
      %748 = arith.select %in, %in_48, %in_49 : f32 loc(#loc128)
      linalg.yield %748 : f32 loc(#loc128)
    } -> tensor<32xf32> loc(#loc128)
    %331 = linalg.generic {indexing_maps = [#map5, #map5, #map5, #map5], iterator_types = ["parallel"]} ins(%314, %329, %304 : tensor<32xi1>, tensor<32xf32>, tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: i1 loc("jit(main)/jvp()/ge"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %in_49: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: f32 loc("jit(main)/transpose(jvp())/select_n")):
      %748 = arith.select %in, %in_48, %in_49 : f32 loc(#loc128)
      linalg.yield %748 : f32 loc(#loc128)
    } -> tensor<32xf32> loc(#loc128)
    %332 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%330 : tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/select_n"), %out: f32 loc("jit(main)/transpose(jvp())/neg")):
      %748 = arith.negf %in : f32 loc(#loc126)
      linalg.yield %748 : f32 loc(#loc126)
    } -> tensor<32xf32> loc(#loc126)
    %333 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%331, %332 : tensor<32xf32>, tensor<32xf32>) outs(%297 : tensor<32xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/select_n"), %in_48: f32 loc("jit(main)/transpose(jvp())/neg"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32xf32> loc(#loc129)
    %334 = linalg.generic {indexing_maps = [#map15, #map1], iterator_types = ["parallel", "parallel"]} ins(%333 : tensor<32xf32>) outs(%294 : tensor<32x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x10xf32> loc(#loc125)
    %335 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%334, %310 : tensor<32x10xf32>, tensor<32x10xf32>) outs(%294 : tensor<32x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/exp"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x10xf32> loc(#loc127)
    %336 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%328, %335 : tensor<32x10xf32>, tensor<32x10xf32>) outs(%294 : tensor<32x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x10xf32> loc(#loc129)
    %337 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%336 : tensor<32x10xf32>) outs(%285 : tensor<32x10xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc130)
      linalg.yield %748 : bf16 loc(#loc130)
    } -> tensor<32x10xbf16> loc(#loc130)
    %338 = linalg.fill ins(%cst_4 : bf16) outs(%288 : tensor<10xbf16>) -> tensor<10xbf16> loc(#loc131)
    %339 = linalg.generic {indexing_maps = [#map19, #map15], iterator_types = ["parallel", "reduction"]} ins(%337 : tensor<32x10xbf16>) outs(%338 : tensor<10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(head))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc131)
      linalg.yield %748 : bf16 loc(#loc131)
    } -> tensor<10xbf16> loc(#loc131)
    %expanded = tensor.expand_shape %339 [[0, 1]] output_shape [1, 10] : tensor<10xbf16> into tensor<1x10xbf16> loc(#loc132)
    %340 = linalg.generic {indexing_maps = [#map19, #map15], iterator_types = ["parallel", "reduction"]} ins(%expanded : tensor<1x10xbf16>) outs(%338 : tensor<10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(head))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc131)
      linalg.yield %748 : bf16 loc(#loc131)
    } -> tensor<10xbf16> loc(#loc131)
    %341 = tensor.empty() : tensor<10xf32> loc(#loc133)
    %342 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%340 : tensor<10xbf16>) outs(%341 : tensor<10xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(head))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc133)
      linalg.yield %748 : f32 loc(#loc133)
    } -> tensor<10xf32> loc(#loc133)
    %343 = tensor.empty() : tensor<10x128xbf16> loc(#loc134)
    %344 = linalg.fill ins(%cst_4 : bf16) outs(%343 : tensor<10x128xbf16>) -> tensor<10x128xbf16> loc(#loc134)
    %345 = linalg.generic {indexing_maps = [#map20, #map21, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%337, %282 : tensor<32x10xbf16>, tensor<32x128xbf16>) outs(%344 : tensor<10x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(head)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(head))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc134)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<10x128xbf16> loc(#loc134)
    %346 = linalg.generic {indexing_maps = [#map19, #map1], iterator_types = ["parallel", "parallel"]} ins(%345 : tensor<10x128xbf16>) outs(%283 : tensor<128x10xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(head))/transpose")):
      linalg.yield %in : bf16 loc(#loc135)
    } -> tensor<128x10xbf16> loc(#loc135)
    %347 = linalg.fill ins(%cst_4 : bf16) outs(%281 : tensor<32x128xbf16>) -> tensor<32x128xbf16> loc(#loc134)
    %348 = linalg.generic {indexing_maps = [#map22, #map23, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%337, %284 : tensor<32x10xbf16>, tensor<128x10xbf16>) outs(%347 : tensor<32x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(head)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(head))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc134)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x128xbf16> loc(#loc134)
    %349 = tensor.empty() : tensor<128x10xf32> loc(#loc133)
    %350 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%346 : tensor<128x10xbf16>) outs(%349 : tensor<128x10xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(head))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc133)
      linalg.yield %748 : f32 loc(#loc133)
    } -> tensor<128x10xf32> loc(#loc133)
    %351 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%348 : tensor<32x128xbf16>) outs(%276 : tensor<32x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(head))/dot_general"), %out: f32 loc("jit(main)/transpose(jvp(head))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc133)
      linalg.yield %748 : f32 loc(#loc133)
    } -> tensor<32x128xf32> loc(#loc133)
    %352 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%351, %279 : tensor<32x128xf32>, tensor<32x128xf32>) outs(%276 : tensor<32x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp(head))/convert_element_type"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x128xf32> loc(#loc124)
    %353 = linalg.generic {indexing_maps = [#map22, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%352 : tensor<32x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %354 = tensor.empty() : tensor<128xf32> loc(#loc136)
    %355 = linalg.fill ins(%cst_3 : f32) outs(%354 : tensor<128xf32>) -> tensor<128xf32> loc(#loc136)
    %356 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%353 : tensor<32x64x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %expanded_19 = tensor.expand_shape %356 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32> loc(#loc137)
    %357 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_19 : tensor<1x1x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %358 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%269, %353 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %359 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%358 : tensor<32x64x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %expanded_20 = tensor.expand_shape %359 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32> loc(#loc137)
    %360 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%353, %271 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %361 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_20 : tensor<1x1x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %362 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%258, %360 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %363 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%362 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %expanded_21 = tensor.expand_shape %363 [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf32> into tensor<32x64x1xf32> loc(#loc137)
    %364 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%360, %268 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %365 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_21, %267 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reshape"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x1xf32> loc(#loc127)
    %366 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%365, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x64x1xf32> loc(#loc124)
    %367 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%366 : tensor<32x64x1xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %368 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%367 : tensor<32x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %369 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%368, %260 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %370 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%364, %369 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %371 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%370 : tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/neg")):
      %748 = arith.negf %in : f32 loc(#loc126)
      linalg.yield %748 : f32 loc(#loc126)
    } -> tensor<32x64x128xf32> loc(#loc126)
    %372 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%371 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %expanded_22 = tensor.expand_shape %372 [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf32> into tensor<32x64x1xf32> loc(#loc137)
    %373 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_22, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reshape"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x64x1xf32> loc(#loc124)
    %374 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%373 : tensor<32x64x1xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %375 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%374 : tensor<32x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %376 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%370, %375 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %377 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%376 : tensor<32x64x128xf32>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc130)
      linalg.yield %748 : bf16 loc(#loc130)
    } -> tensor<32x64x128xbf16> loc(#loc130)
    %378 = linalg.fill ins(%cst_4 : bf16) outs(%7 : tensor<128xbf16>) -> tensor<128xbf16> loc(#loc138)
    %379 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%377 : tensor<32x64x128xbf16>) outs(%378 : tensor<128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc138)
      linalg.yield %748 : bf16 loc(#loc138)
    } -> tensor<128xbf16> loc(#loc138)
    %expanded_23 = tensor.expand_shape %379 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xbf16> into tensor<1x1x128xbf16> loc(#loc139)
    %380 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_23 : tensor<1x1x128xbf16>) outs(%378 : tensor<128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc138)
      linalg.yield %748 : bf16 loc(#loc138)
    } -> tensor<128xbf16> loc(#loc138)
    %381 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%380 : tensor<128xbf16>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(h1/channel2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc140)
      linalg.yield %748 : f32 loc(#loc140)
    } -> tensor<128xf32> loc(#loc140)
    %382 = linalg.fill ins(%cst_4 : bf16) outs(%113 : tensor<128x512xbf16>) -> tensor<128x512xbf16> loc(#loc141)
    %383 = linalg.generic {indexing_maps = [#map26, #map27, #map28], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%377, %245 : tensor<32x64x128xbf16>, tensor<32x64x512xbf16>) outs(%382 : tensor<128x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h1/channel2)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc141)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<128x512xbf16> loc(#loc141)
    %384 = linalg.generic {indexing_maps = [#map19, #map1], iterator_types = ["parallel", "parallel"]} ins(%383 : tensor<128x512xbf16>) outs(%143 : tensor<512x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/transpose")):
      linalg.yield %in : bf16 loc(#loc142)
    } -> tensor<512x128xbf16> loc(#loc142)
    %385 = linalg.generic {indexing_maps = [#map2, #map29, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%377, %246 : tensor<32x64x128xbf16>, tensor<512x128xbf16>) outs(%116 : tensor<32x64x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h1/channel2)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc141)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x64x512xbf16> loc(#loc141)
    %386 = tensor.empty() : tensor<512x128xf32> loc(#loc140)
    %387 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%384 : tensor<512x128xbf16>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(h1/channel2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc140)
      linalg.yield %748 : f32 loc(#loc140)
    } -> tensor<512x128xf32> loc(#loc140)
    %388 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%385 : tensor<32x64x512xbf16>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel2))/dot_general"), %out: f32 loc("jit(main)/transpose(jvp(h1/channel2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc140)
      linalg.yield %748 : f32 loc(#loc140)
    } -> tensor<32x64x512xf32> loc(#loc140)
    %389 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%233, %388 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/channel2))/convert_element_type"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %390 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%388, %243 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp(h1/channel2))/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %391 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%139, %389 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %392 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%391, %241 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %393 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%392, %240 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %394 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%392, %393 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x512xf32> loc(#loc129)
    %395 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%133, %394 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %396 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%390, %395 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x512xf32> loc(#loc129)
    %397 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%130, %395 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %398 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%397, %236 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %399 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%396, %398 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x512xf32> loc(#loc129)
    %400 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%399 : tensor<32x64x512xf32>) outs(%115 : tensor<32x64x512xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc130)
      linalg.yield %748 : bf16 loc(#loc130)
    } -> tensor<32x64x512xbf16> loc(#loc130)
    %401 = linalg.fill ins(%cst_4 : bf16) outs(%118 : tensor<512xbf16>) -> tensor<512xbf16> loc(#loc143)
    %402 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%400 : tensor<32x64x512xbf16>) outs(%401 : tensor<512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc143)
      linalg.yield %748 : bf16 loc(#loc143)
    } -> tensor<512xbf16> loc(#loc143)
    %expanded_24 = tensor.expand_shape %402 [[0, 1, 2]] output_shape [1, 1, 512] : tensor<512xbf16> into tensor<1x1x512xbf16> loc(#loc144)
    %403 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_24 : tensor<1x1x512xbf16>) outs(%401 : tensor<512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc143)
      linalg.yield %748 : bf16 loc(#loc143)
    } -> tensor<512xbf16> loc(#loc143)
    %404 = tensor.empty() : tensor<512xf32> loc(#loc145)
    %405 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%403 : tensor<512xbf16>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(h1/channel1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc145)
      linalg.yield %748 : f32 loc(#loc145)
    } -> tensor<512xf32> loc(#loc145)
    %406 = linalg.fill ins(%cst_4 : bf16) outs(%143 : tensor<512x128xbf16>) -> tensor<512x128xbf16> loc(#loc146)
    %407 = linalg.generic {indexing_maps = [#map26, #map27, #map28], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%400, %226 : tensor<32x64x512xbf16>, tensor<32x64x128xbf16>) outs(%406 : tensor<512x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h1/channel1)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc146)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<512x128xbf16> loc(#loc146)
    %408 = linalg.generic {indexing_maps = [#map19, #map1], iterator_types = ["parallel", "parallel"]} ins(%407 : tensor<512x128xbf16>) outs(%113 : tensor<128x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/transpose")):
      linalg.yield %in : bf16 loc(#loc147)
    } -> tensor<128x512xbf16> loc(#loc147)
    %409 = linalg.generic {indexing_maps = [#map2, #map29, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%400, %227 : tensor<32x64x512xbf16>, tensor<128x512xbf16>) outs(%5 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h1/channel1)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc146)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x64x128xbf16> loc(#loc146)
    %410 = tensor.empty() : tensor<128x512xf32> loc(#loc145)
    %411 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%408 : tensor<128x512xbf16>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(h1/channel1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc145)
      linalg.yield %748 : f32 loc(#loc145)
    } -> tensor<128x512xf32> loc(#loc145)
    %412 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%409 : tensor<32x64x128xbf16>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/channel1))/dot_general"), %out: f32 loc("jit(main)/transpose(jvp(h1/channel1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc145)
      linalg.yield %748 : f32 loc(#loc145)
    } -> tensor<32x64x128xf32> loc(#loc145)
    %413 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%412 : tensor<32x64x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %expanded_25 = tensor.expand_shape %413 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32> loc(#loc137)
    %414 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_25 : tensor<1x1x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %415 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%219, %412 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/channel1))/convert_element_type"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %416 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%415 : tensor<32x64x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %expanded_26 = tensor.expand_shape %416 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32> loc(#loc137)
    %417 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%412, %221 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp(h1/channel1))/convert_element_type"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %418 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_26 : tensor<1x1x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %419 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%208, %417 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %420 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%419 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %expanded_27 = tensor.expand_shape %420 [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf32> into tensor<32x64x1xf32> loc(#loc137)
    %421 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%417, %218 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %422 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_27, %217 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reshape"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x1xf32> loc(#loc127)
    %423 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%422, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x64x1xf32> loc(#loc124)
    %424 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%423 : tensor<32x64x1xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %425 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%424 : tensor<32x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %426 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%425, %210 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %427 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%421, %426 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %428 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%427 : tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/neg")):
      %748 = arith.negf %in : f32 loc(#loc126)
      linalg.yield %748 : f32 loc(#loc126)
    } -> tensor<32x64x128xf32> loc(#loc126)
    %429 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%428 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %expanded_28 = tensor.expand_shape %429 [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf32> into tensor<32x64x1xf32> loc(#loc137)
    %430 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%376, %427 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %431 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_28, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reshape"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x64x1xf32> loc(#loc124)
    %432 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%431 : tensor<32x64x1xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %433 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%432 : tensor<32x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %434 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%430, %433 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %435 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%434 : tensor<32x64x128xf32>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc130)
      linalg.yield %748 : bf16 loc(#loc130)
    } -> tensor<32x64x128xbf16> loc(#loc130)
    %436 = linalg.generic {indexing_maps = [#map11, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%435 : tensor<32x64x128xbf16>) outs(%47 : tensor<32x128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp())/transpose")):
      linalg.yield %in : bf16 loc(#loc148)
    } -> tensor<32x128x64xbf16> loc(#loc148)
    %437 = linalg.fill ins(%cst_4 : bf16) outs(%81 : tensor<64xbf16>) -> tensor<64xbf16> loc(#loc149)
    %438 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%436 : tensor<32x128x64xbf16>) outs(%437 : tensor<64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token2))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h1/token2))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc149)
      linalg.yield %748 : bf16 loc(#loc149)
    } -> tensor<64xbf16> loc(#loc149)
    %expanded_29 = tensor.expand_shape %438 [[0, 1, 2]] output_shape [1, 1, 64] : tensor<64xbf16> into tensor<1x1x64xbf16> loc(#loc150)
    %439 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_29 : tensor<1x1x64xbf16>) outs(%437 : tensor<64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token2))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h1/token2))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc149)
      linalg.yield %748 : bf16 loc(#loc149)
    } -> tensor<64xbf16> loc(#loc149)
    %440 = tensor.empty() : tensor<64xf32> loc(#loc151)
    %441 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%439 : tensor<64xbf16>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token2))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(h1/token2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc151)
      linalg.yield %748 : f32 loc(#loc151)
    } -> tensor<64xf32> loc(#loc151)
    %442 = linalg.fill ins(%cst_4 : bf16) outs(%49 : tensor<64x128xbf16>) -> tensor<64x128xbf16> loc(#loc152)
    %443 = linalg.generic {indexing_maps = [#map26, #map27, #map28], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%436, %194 : tensor<32x128x64xbf16>, tensor<32x128x128xbf16>) outs(%442 : tensor<64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/transpose"), %in_48: bf16 loc("jit(main)/jvp(h1/token2)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h1/token2))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc148)
      %749 = arith.addf %out, %748 : bf16 loc(#loc152)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<64x128xbf16> loc(#loc152)
    %444 = linalg.generic {indexing_maps = [#map19, #map1], iterator_types = ["parallel", "parallel"]} ins(%443 : tensor<64x128xbf16>) outs(%77 : tensor<128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token2))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(h1/token2))/transpose")):
      linalg.yield %in : bf16 loc(#loc153)
    } -> tensor<128x64xbf16> loc(#loc153)
    %445 = linalg.generic {indexing_maps = [#map2, #map29, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%436, %195 : tensor<32x128x64xbf16>, tensor<128x64xbf16>) outs(%52 : tensor<32x128x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/transpose"), %in_48: bf16 loc("jit(main)/jvp(h1/token2)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h1/token2))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc148)
      %749 = arith.addf %out, %748 : bf16 loc(#loc152)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x128x128xbf16> loc(#loc152)
    %446 = tensor.empty() : tensor<128x64xf32> loc(#loc151)
    %447 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%444 : tensor<128x64xbf16>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token2))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(h1/token2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc151)
      linalg.yield %748 : f32 loc(#loc151)
    } -> tensor<128x64xf32> loc(#loc151)
    %448 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%445 : tensor<32x128x128xbf16>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token2))/dot_general"), %out: f32 loc("jit(main)/transpose(jvp(h1/token2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc151)
      linalg.yield %748 : f32 loc(#loc151)
    } -> tensor<32x128x128xf32> loc(#loc151)
    %449 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%182, %448 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/token2))/convert_element_type"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %450 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%448, %192 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp(h1/token2))/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %451 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%73, %449 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %452 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%451, %190 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %453 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%452, %189 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %454 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%452, %453 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x128x128xf32> loc(#loc129)
    %455 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%67, %454 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %456 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%450, %455 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x128x128xf32> loc(#loc129)
    %457 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%64, %455 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %458 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%457, %185 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %459 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%456, %458 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x128x128xf32> loc(#loc129)
    %460 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%459 : tensor<32x128x128xf32>) outs(%51 : tensor<32x128x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc130)
      linalg.yield %748 : bf16 loc(#loc130)
    } -> tensor<32x128x128xbf16> loc(#loc130)
    %461 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%460 : tensor<32x128x128xbf16>) outs(%378 : tensor<128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token1))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h1/token1))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc154)
      linalg.yield %748 : bf16 loc(#loc154)
    } -> tensor<128xbf16> loc(#loc154)
    %expanded_30 = tensor.expand_shape %461 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xbf16> into tensor<1x1x128xbf16> loc(#loc155)
    %462 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_30 : tensor<1x1x128xbf16>) outs(%378 : tensor<128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token1))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h1/token1))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc154)
      linalg.yield %748 : bf16 loc(#loc154)
    } -> tensor<128xbf16> loc(#loc154)
    %463 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%462 : tensor<128xbf16>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token1))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(h1/token1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc156)
      linalg.yield %748 : f32 loc(#loc156)
    } -> tensor<128xf32> loc(#loc156)
    %464 = linalg.fill ins(%cst_4 : bf16) outs(%77 : tensor<128x64xbf16>) -> tensor<128x64xbf16> loc(#loc157)
    %465 = linalg.generic {indexing_maps = [#map26, #map27, #map28], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%460, %175 : tensor<32x128x128xbf16>, tensor<32x128x64xbf16>) outs(%464 : tensor<128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h1/token1)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h1/token1))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc157)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<128x64xbf16> loc(#loc157)
    %466 = linalg.generic {indexing_maps = [#map19, #map1], iterator_types = ["parallel", "parallel"]} ins(%465 : tensor<128x64xbf16>) outs(%49 : tensor<64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token1))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(h1/token1))/transpose")):
      linalg.yield %in : bf16 loc(#loc158)
    } -> tensor<64x128xbf16> loc(#loc158)
    %467 = linalg.generic {indexing_maps = [#map2, #map29, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%460, %176 : tensor<32x128x128xbf16>, tensor<64x128xbf16>) outs(%79 : tensor<32x128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h1/token1)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h1/token1))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc157)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x128x64xbf16> loc(#loc157)
    %468 = tensor.empty() : tensor<64x128xf32> loc(#loc156)
    %469 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%466 : tensor<64x128xbf16>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token1))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(h1/token1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc156)
      linalg.yield %748 : f32 loc(#loc156)
    } -> tensor<64x128xf32> loc(#loc156)
    %470 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%467 : tensor<32x128x64xbf16>) outs(%45 : tensor<32x128x64xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h1/token1))/dot_general"), %out: f32 loc("jit(main)/transpose(jvp(h1/token1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc156)
      linalg.yield %748 : f32 loc(#loc156)
    } -> tensor<32x128x64xf32> loc(#loc156)
    %471 = linalg.generic {indexing_maps = [#map11, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%470 : tensor<32x128x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp(h1/token1))/convert_element_type"), %out: f32 loc("jit(main)/transpose(jvp())/transpose")):
      linalg.yield %in : f32 loc(#loc148)
    } -> tensor<32x64x128xf32> loc(#loc148)
    %472 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%471 : tensor<32x64x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %expanded_31 = tensor.expand_shape %472 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32> loc(#loc137)
    %473 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_31 : tensor<1x1x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %474 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%167, %471 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/transpose"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %475 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%474 : tensor<32x64x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %expanded_32 = tensor.expand_shape %475 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32> loc(#loc137)
    %476 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%471, %169 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/transpose"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %477 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_32 : tensor<1x1x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %478 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156, %476 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %479 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%478 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %expanded_33 = tensor.expand_shape %479 [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf32> into tensor<32x64x1xf32> loc(#loc137)
    %480 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%476, %166 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %481 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_33, %165 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reshape"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x1xf32> loc(#loc127)
    %482 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%481, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x64x1xf32> loc(#loc124)
    %483 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%482 : tensor<32x64x1xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %484 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%483 : tensor<32x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %485 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%484, %158 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %486 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%480, %485 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %487 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%486 : tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/neg")):
      %748 = arith.negf %in : f32 loc(#loc126)
      linalg.yield %748 : f32 loc(#loc126)
    } -> tensor<32x64x128xf32> loc(#loc126)
    %488 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%487 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %expanded_34 = tensor.expand_shape %488 [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf32> into tensor<32x64x1xf32> loc(#loc137)
    %489 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%434, %486 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %490 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_34, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reshape"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x64x1xf32> loc(#loc124)
    %491 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%490 : tensor<32x64x1xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %492 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%491 : tensor<32x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %493 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%489, %492 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %494 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%493 : tensor<32x64x128xf32>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc130)
      linalg.yield %748 : bf16 loc(#loc130)
    } -> tensor<32x64x128xbf16> loc(#loc130)
    %495 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%494 : tensor<32x64x128xbf16>) outs(%378 : tensor<128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc159)
      linalg.yield %748 : bf16 loc(#loc159)
    } -> tensor<128xbf16> loc(#loc159)
    %expanded_35 = tensor.expand_shape %495 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xbf16> into tensor<1x1x128xbf16> loc(#loc160)
    %496 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_35 : tensor<1x1x128xbf16>) outs(%378 : tensor<128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc159)
      linalg.yield %748 : bf16 loc(#loc159)
    } -> tensor<128xbf16> loc(#loc159)
    %497 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%496 : tensor<128xbf16>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(h0/channel2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc161)
      linalg.yield %748 : f32 loc(#loc161)
    } -> tensor<128xf32> loc(#loc161)
    %498 = linalg.generic {indexing_maps = [#map26, #map27, #map28], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%494, %142 : tensor<32x64x128xbf16>, tensor<32x64x512xbf16>) outs(%382 : tensor<128x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h0/channel2)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc162)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<128x512xbf16> loc(#loc162)
    %499 = linalg.generic {indexing_maps = [#map19, #map1], iterator_types = ["parallel", "parallel"]} ins(%498 : tensor<128x512xbf16>) outs(%143 : tensor<512x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/transpose")):
      linalg.yield %in : bf16 loc(#loc163)
    } -> tensor<512x128xbf16> loc(#loc163)
    %500 = linalg.generic {indexing_maps = [#map2, #map29, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%494, %144 : tensor<32x64x128xbf16>, tensor<512x128xbf16>) outs(%116 : tensor<32x64x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h0/channel2)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc162)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x64x512xbf16> loc(#loc162)
    %501 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%499 : tensor<512x128xbf16>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(h0/channel2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc161)
      linalg.yield %748 : f32 loc(#loc161)
    } -> tensor<512x128xf32> loc(#loc161)
    %502 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%500 : tensor<32x64x512xbf16>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel2))/dot_general"), %out: f32 loc("jit(main)/transpose(jvp(h0/channel2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc161)
      linalg.yield %748 : f32 loc(#loc161)
    } -> tensor<32x64x512xf32> loc(#loc161)
    %503 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%125, %502 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/channel2))/convert_element_type"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %504 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%502, %140 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp(h0/channel2))/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %505 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%139, %503 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %506 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%505, %137 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %507 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%506, %135 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %508 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%506, %507 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x512xf32> loc(#loc129)
    %509 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%133, %508 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %510 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%504, %509 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x512xf32> loc(#loc129)
    %511 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%130, %509 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %512 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%511, %129 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x512xf32> loc(#loc127)
    %513 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%510, %512 : tensor<32x64x512xf32>, tensor<32x64x512xf32>) outs(%124 : tensor<32x64x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x512xf32> loc(#loc129)
    %514 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%513 : tensor<32x64x512xf32>) outs(%115 : tensor<32x64x512xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc130)
      linalg.yield %748 : bf16 loc(#loc130)
    } -> tensor<32x64x512xbf16> loc(#loc130)
    %515 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%514 : tensor<32x64x512xbf16>) outs(%401 : tensor<512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc164)
      linalg.yield %748 : bf16 loc(#loc164)
    } -> tensor<512xbf16> loc(#loc164)
    %expanded_36 = tensor.expand_shape %515 [[0, 1, 2]] output_shape [1, 1, 512] : tensor<512xbf16> into tensor<1x1x512xbf16> loc(#loc165)
    %516 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_36 : tensor<1x1x512xbf16>) outs(%401 : tensor<512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc164)
      linalg.yield %748 : bf16 loc(#loc164)
    } -> tensor<512xbf16> loc(#loc164)
    %517 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%516 : tensor<512xbf16>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(h0/channel1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc166)
      linalg.yield %748 : f32 loc(#loc166)
    } -> tensor<512xf32> loc(#loc166)
    %518 = linalg.generic {indexing_maps = [#map26, #map27, #map28], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%514, %112 : tensor<32x64x512xbf16>, tensor<32x64x128xbf16>) outs(%406 : tensor<512x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h0/channel1)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc167)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<512x128xbf16> loc(#loc167)
    %519 = linalg.generic {indexing_maps = [#map19, #map1], iterator_types = ["parallel", "parallel"]} ins(%518 : tensor<512x128xbf16>) outs(%113 : tensor<128x512xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/transpose")):
      linalg.yield %in : bf16 loc(#loc168)
    } -> tensor<128x512xbf16> loc(#loc168)
    %520 = linalg.generic {indexing_maps = [#map2, #map29, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%514, %114 : tensor<32x64x512xbf16>, tensor<128x512xbf16>) outs(%5 : tensor<32x64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h0/channel1)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc167)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x64x128xbf16> loc(#loc167)
    %521 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%519 : tensor<128x512xbf16>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(h0/channel1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc166)
      linalg.yield %748 : f32 loc(#loc166)
    } -> tensor<128x512xf32> loc(#loc166)
    %522 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%520 : tensor<32x64x128xbf16>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/channel1))/dot_general"), %out: f32 loc("jit(main)/transpose(jvp(h0/channel1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc166)
      linalg.yield %748 : f32 loc(#loc166)
    } -> tensor<32x64x128xf32> loc(#loc166)
    %523 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%522 : tensor<32x64x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %expanded_37 = tensor.expand_shape %523 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32> loc(#loc137)
    %524 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_37 : tensor<1x1x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %525 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%105, %522 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/channel1))/convert_element_type"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %526 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%525 : tensor<32x64x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %expanded_38 = tensor.expand_shape %526 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32> loc(#loc137)
    %527 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%522, %107 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp(h0/channel1))/convert_element_type"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %528 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_38 : tensor<1x1x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %529 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%94, %527 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %530 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%529 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %expanded_39 = tensor.expand_shape %530 [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf32> into tensor<32x64x1xf32> loc(#loc137)
    %531 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%527, %104 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %532 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_39, %103 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reshape"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x1xf32> loc(#loc127)
    %533 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%532, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x64x1xf32> loc(#loc124)
    %534 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%533 : tensor<32x64x1xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %535 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%534 : tensor<32x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %536 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%535, %96 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %537 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%531, %536 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %538 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%537 : tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/neg")):
      %748 = arith.negf %in : f32 loc(#loc126)
      linalg.yield %748 : f32 loc(#loc126)
    } -> tensor<32x64x128xf32> loc(#loc126)
    %539 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%538 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %expanded_40 = tensor.expand_shape %539 [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf32> into tensor<32x64x1xf32> loc(#loc137)
    %540 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%493, %537 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %541 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_40, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reshape"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x64x1xf32> loc(#loc124)
    %542 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%541 : tensor<32x64x1xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %543 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%542 : tensor<32x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %544 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%540, %543 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %545 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%544 : tensor<32x64x128xf32>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc130)
      linalg.yield %748 : bf16 loc(#loc130)
    } -> tensor<32x64x128xbf16> loc(#loc130)
    %546 = linalg.generic {indexing_maps = [#map11, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%545 : tensor<32x64x128xbf16>) outs(%47 : tensor<32x128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp())/transpose")):
      linalg.yield %in : bf16 loc(#loc148)
    } -> tensor<32x128x64xbf16> loc(#loc148)
    %547 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%546 : tensor<32x128x64xbf16>) outs(%437 : tensor<64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token2))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h0/token2))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc169)
      linalg.yield %748 : bf16 loc(#loc169)
    } -> tensor<64xbf16> loc(#loc169)
    %expanded_41 = tensor.expand_shape %547 [[0, 1, 2]] output_shape [1, 1, 64] : tensor<64xbf16> into tensor<1x1x64xbf16> loc(#loc170)
    %548 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_41 : tensor<1x1x64xbf16>) outs(%437 : tensor<64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token2))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h0/token2))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc169)
      linalg.yield %748 : bf16 loc(#loc169)
    } -> tensor<64xbf16> loc(#loc169)
    %549 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%548 : tensor<64xbf16>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token2))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(h0/token2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc171)
      linalg.yield %748 : f32 loc(#loc171)
    } -> tensor<64xf32> loc(#loc171)
    %550 = linalg.generic {indexing_maps = [#map26, #map27, #map28], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%546, %76 : tensor<32x128x64xbf16>, tensor<32x128x128xbf16>) outs(%442 : tensor<64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/transpose"), %in_48: bf16 loc("jit(main)/jvp(h0/token2)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h0/token2))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc148)
      %749 = arith.addf %out, %748 : bf16 loc(#loc172)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<64x128xbf16> loc(#loc172)
    %551 = linalg.generic {indexing_maps = [#map19, #map1], iterator_types = ["parallel", "parallel"]} ins(%550 : tensor<64x128xbf16>) outs(%77 : tensor<128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token2))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(h0/token2))/transpose")):
      linalg.yield %in : bf16 loc(#loc173)
    } -> tensor<128x64xbf16> loc(#loc173)
    %552 = linalg.generic {indexing_maps = [#map2, #map29, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%546, %78 : tensor<32x128x64xbf16>, tensor<128x64xbf16>) outs(%52 : tensor<32x128x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/transpose"), %in_48: bf16 loc("jit(main)/jvp(h0/token2)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h0/token2))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc148)
      %749 = arith.addf %out, %748 : bf16 loc(#loc172)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x128x128xbf16> loc(#loc172)
    %553 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%551 : tensor<128x64xbf16>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token2))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(h0/token2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc171)
      linalg.yield %748 : f32 loc(#loc171)
    } -> tensor<128x64xf32> loc(#loc171)
    %554 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%552 : tensor<32x128x128xbf16>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token2))/dot_general"), %out: f32 loc("jit(main)/transpose(jvp(h0/token2))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc171)
      linalg.yield %748 : f32 loc(#loc171)
    } -> tensor<32x128x128xf32> loc(#loc171)
    %555 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%59, %554 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/convert_element_type"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/token2))/convert_element_type"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %556 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%554, %74 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp(h0/token2))/convert_element_type"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %557 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%73, %555 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %558 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%557, %71 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/sub"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %559 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%558, %69 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/tanh"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %560 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%558, %559 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x128x128xf32> loc(#loc129)
    %561 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%67, %560 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %562 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%556, %561 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x128x128xf32> loc(#loc129)
    %563 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%64, %561 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %564 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%563, %63 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x128x128xf32> loc(#loc127)
    %565 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%562, %564 : tensor<32x128x128xf32>, tensor<32x128x128xf32>) outs(%58 : tensor<32x128x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x128x128xf32> loc(#loc129)
    %566 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%565 : tensor<32x128x128xf32>) outs(%51 : tensor<32x128x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc130)
      linalg.yield %748 : bf16 loc(#loc130)
    } -> tensor<32x128x128xbf16> loc(#loc130)
    %567 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%566 : tensor<32x128x128xbf16>) outs(%378 : tensor<128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token1))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h0/token1))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc174)
      linalg.yield %748 : bf16 loc(#loc174)
    } -> tensor<128xbf16> loc(#loc174)
    %expanded_42 = tensor.expand_shape %567 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xbf16> into tensor<1x1x128xbf16> loc(#loc175)
    %568 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_42 : tensor<1x1x128xbf16>) outs(%378 : tensor<128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token1))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(h0/token1))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc174)
      linalg.yield %748 : bf16 loc(#loc174)
    } -> tensor<128xbf16> loc(#loc174)
    %569 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%568 : tensor<128xbf16>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token1))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(h0/token1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc176)
      linalg.yield %748 : f32 loc(#loc176)
    } -> tensor<128xf32> loc(#loc176)
    %570 = linalg.generic {indexing_maps = [#map26, #map27, #map28], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%566, %48 : tensor<32x128x128xbf16>, tensor<32x128x64xbf16>) outs(%464 : tensor<128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h0/token1)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h0/token1))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc177)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<128x64xbf16> loc(#loc177)
    %571 = linalg.generic {indexing_maps = [#map19, #map1], iterator_types = ["parallel", "parallel"]} ins(%570 : tensor<128x64xbf16>) outs(%49 : tensor<64x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token1))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(h0/token1))/transpose")):
      linalg.yield %in : bf16 loc(#loc178)
    } -> tensor<64x128xbf16> loc(#loc178)
    %572 = linalg.generic {indexing_maps = [#map2, #map29, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%566, %50 : tensor<32x128x128xbf16>, tensor<64x128xbf16>) outs(%79 : tensor<32x128x64xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(h0/token1)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(h0/token1))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc177)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<32x128x64xbf16> loc(#loc177)
    %573 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%571 : tensor<64x128xbf16>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token1))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(h0/token1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc176)
      linalg.yield %748 : f32 loc(#loc176)
    } -> tensor<64x128xf32> loc(#loc176)
    %574 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%572 : tensor<32x128x64xbf16>) outs(%45 : tensor<32x128x64xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(h0/token1))/dot_general"), %out: f32 loc("jit(main)/transpose(jvp(h0/token1))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc176)
      linalg.yield %748 : f32 loc(#loc176)
    } -> tensor<32x128x64xf32> loc(#loc176)
    %575 = linalg.generic {indexing_maps = [#map11, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%574 : tensor<32x128x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp(h0/token1))/convert_element_type"), %out: f32 loc("jit(main)/transpose(jvp())/transpose")):
      linalg.yield %in : f32 loc(#loc148)
    } -> tensor<32x64x128xf32> loc(#loc148)
    %576 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%575 : tensor<32x64x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %expanded_43 = tensor.expand_shape %576 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32> loc(#loc137)
    %577 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_43 : tensor<1x1x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %578 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%37, %575 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/transpose"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %579 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%578 : tensor<32x64x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %expanded_44 = tensor.expand_shape %579 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32> loc(#loc137)
    %580 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%575, %40 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/transpose"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %581 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_44 : tensor<1x1x128xf32>) outs(%355 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<128xf32> loc(#loc136)
    %582 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%23, %580 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/jvp()/sub"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %583 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%582 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %expanded_45 = tensor.expand_shape %583 [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf32> into tensor<32x64x1xf32> loc(#loc137)
    %584 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%580, %36 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %585 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_45, %35 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reshape"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x1xf32> loc(#loc127)
    %586 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%585, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x64x1xf32> loc(#loc124)
    %587 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%586 : tensor<32x64x1xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %588 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%587 : tensor<32x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %589 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%588, %26 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %in_48: f32 loc("jit(main)/jvp()/mul"), %out: f32 loc("jit(main)/transpose(jvp())/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc127)
      linalg.yield %748 : f32 loc(#loc127)
    } -> tensor<32x64x128xf32> loc(#loc127)
    %590 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%584, %589 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/mul"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %591 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%590 : tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/neg")):
      %748 = arith.negf %in : f32 loc(#loc126)
      linalg.yield %748 : f32 loc(#loc126)
    } -> tensor<32x64x128xf32> loc(#loc126)
    %592 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%591 : tensor<32x64x128xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %expanded_46 = tensor.expand_shape %592 [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf32> into tensor<32x64x1xf32> loc(#loc137)
    %593 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%544, %590 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %594 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_46, %20 : tensor<32x64x1xf32>, tensor<32x64x1xf32>) outs(%18 : tensor<32x64x1xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reshape"), %in_48: f32 loc("jit(main)/transpose(jvp())/div"), %out: f32 loc("jit(main)/transpose(jvp())/div")):
      %748 = arith.divf %in, %in_48 : f32 loc(#loc124)
      linalg.yield %748 : f32 loc(#loc124)
    } -> tensor<32x64x1xf32> loc(#loc124)
    %595 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%594 : tensor<32x64x1xf32>) outs(%16 : tensor<32x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/reduce_sum")):
      %748 = arith.addf %out, %in : f32 loc(#loc136)
      linalg.yield %748 : f32 loc(#loc136)
    } -> tensor<32x64xf32> loc(#loc136)
    %596 = linalg.generic {indexing_maps = [#map8, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%595 : tensor<32x64xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim")):
      linalg.yield %in : f32 loc(#loc125)
    } -> tensor<32x64x128xf32> loc(#loc125)
    %597 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%593, %596 : tensor<32x64x128xf32>, tensor<32x64x128xf32>) outs(%13 : tensor<32x64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %in_48: f32 loc("jit(main)/transpose(jvp())/broadcast_in_dim"), %out: f32 loc("jit(main)/transpose(jvp())/add_any")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc129)
      linalg.yield %748 : f32 loc(#loc129)
    } -> tensor<32x64x128xf32> loc(#loc129)
    %598 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%597 : tensor<32x64x128xf32>) outs(%4 : tensor<32x64x128xbf16>) {
    ^bb0(%in: f32 loc("jit(main)/transpose(jvp())/add_any"), %out: bf16 loc("jit(main)/transpose(jvp())/convert_element_type")):
      %748 = arith.truncf %in : f32 to bf16 loc(#loc130)
      linalg.yield %748 : bf16 loc(#loc130)
    } -> tensor<32x64x128xbf16> loc(#loc130)
    %599 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%598 : tensor<32x64x128xbf16>) outs(%378 : tensor<128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(embed))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(embed))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc179)
      linalg.yield %748 : bf16 loc(#loc179)
    } -> tensor<128xbf16> loc(#loc179)
    %expanded_47 = tensor.expand_shape %599 [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xbf16> into tensor<1x1x128xbf16> loc(#loc180)
    %600 = linalg.generic {indexing_maps = [#map24, #map25], iterator_types = ["parallel", "reduction", "reduction"]} ins(%expanded_47 : tensor<1x1x128xbf16>) outs(%378 : tensor<128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(embed))/reduce_sum"), %out: bf16 loc("jit(main)/transpose(jvp(embed))/reduce_sum")):
      %748 = arith.addf %out, %in : bf16 loc(#loc179)
      linalg.yield %748 : bf16 loc(#loc179)
    } -> tensor<128xbf16> loc(#loc179)
    %601 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel"]} ins(%600 : tensor<128xbf16>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(embed))/reduce_sum"), %out: f32 loc("jit(main)/transpose(jvp(embed))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc181)
      linalg.yield %748 : f32 loc(#loc181)
    } -> tensor<128xf32> loc(#loc181)
    %602 = tensor.empty() : tensor<128x48xbf16> loc(#loc182)
    %603 = linalg.fill ins(%cst_4 : bf16) outs(%602 : tensor<128x48xbf16>) -> tensor<128x48xbf16> loc(#loc182)
    %604 = linalg.generic {indexing_maps = [#map26, #map27, #map28], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%598, %1 : tensor<32x64x128xbf16>, tensor<32x64x48xbf16>) outs(%603 : tensor<128x48xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp())/convert_element_type"), %in_48: bf16 loc("jit(main)/jvp(embed)/convert_element_type"), %out: bf16 loc("jit(main)/transpose(jvp(embed))/dot_general")):
      %748 = arith.mulf %in, %in_48 : bf16 loc(#loc130)
      %749 = arith.addf %out, %748 : bf16 loc(#loc182)
      linalg.yield %749 : bf16 loc(#loc)
    } -> tensor<128x48xbf16> loc(#loc182)
    %605 = linalg.generic {indexing_maps = [#map19, #map1], iterator_types = ["parallel", "parallel"]} ins(%604 : tensor<128x48xbf16>) outs(%2 : tensor<48x128xbf16>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(embed))/dot_general"), %out: bf16 loc("jit(main)/transpose(jvp(embed))/transpose")):
      linalg.yield %in : bf16 loc(#loc183)
    } -> tensor<48x128xbf16> loc(#loc183)
    %606 = tensor.empty() : tensor<48x128xf32> loc(#loc181)
    %607 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%605 : tensor<48x128xbf16>) outs(%606 : tensor<48x128xf32>) {
    ^bb0(%in: bf16 loc("jit(main)/transpose(jvp(embed))/transpose"), %out: f32 loc("jit(main)/transpose(jvp(embed))/convert_element_type")):
      %748 = arith.extf %in : bf16 to f32 loc(#loc181)
      linalg.yield %748 : f32 loc(#loc181)
    } -> tensor<48x128xf32> loc(#loc181)
    %608 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%cst_6 : tensor<f32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %609 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg30 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['embed/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %610 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%609, %601 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(embed))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %611 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_6 : tensor<f32>) outs(%606 : tensor<48x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<48x128xf32> loc(#loc184)
    %612 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%611, %arg31 : tensor<48x128xf32>, tensor<48x128xf32>) outs(%606 : tensor<48x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['embed/weight']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<48x128xf32> loc(#loc184)
    %613 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%612, %607 : tensor<48x128xf32>, tensor<48x128xf32>) outs(%606 : tensor<48x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(embed))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<48x128xf32> loc(#loc185)
    %614 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg32 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['final/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %615 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%614, %357 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %616 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg33 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['final/gain']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %617 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%616, %361 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %618 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%cst_6 : tensor<f32>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<512xf32> loc(#loc184)
    %619 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%618, %arg34 : tensor<512xf32>, tensor<512xf32>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/channel1/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<512xf32> loc(#loc184)
    %620 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%619, %517 : tensor<512xf32>, tensor<512xf32>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/channel1))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<512xf32> loc(#loc185)
    %621 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_6 : tensor<f32>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<128x512xf32> loc(#loc184)
    %622 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%621, %arg35 : tensor<128x512xf32>, tensor<128x512xf32>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/channel1/weight']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128x512xf32> loc(#loc184)
    %623 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%622, %521 : tensor<128x512xf32>, tensor<128x512xf32>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/channel1))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128x512xf32> loc(#loc185)
    %624 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg36 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/channel2/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %625 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%624, %497 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/channel2))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %626 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_6 : tensor<f32>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<512x128xf32> loc(#loc184)
    %627 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%626, %arg37 : tensor<512x128xf32>, tensor<512x128xf32>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/channel2/weight']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<512x128xf32> loc(#loc184)
    %628 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%627, %501 : tensor<512x128xf32>, tensor<512x128xf32>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/channel2))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<512x128xf32> loc(#loc185)
    %629 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg38 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/norm1/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %630 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%629, %577 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %631 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg39 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/norm1/gain']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %632 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%631, %581 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %633 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg40 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/norm2/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %634 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%633, %524 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %635 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg41 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/norm2/gain']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %636 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%635, %528 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %637 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg42 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/token1/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %638 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%637, %569 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/token1))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %639 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_6 : tensor<f32>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<64x128xf32> loc(#loc184)
    %640 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%639, %arg43 : tensor<64x128xf32>, tensor<64x128xf32>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/token1/weight']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<64x128xf32> loc(#loc184)
    %641 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%640, %573 : tensor<64x128xf32>, tensor<64x128xf32>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/token1))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<64x128xf32> loc(#loc185)
    %642 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%cst_6 : tensor<f32>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<64xf32> loc(#loc184)
    %643 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%642, %arg44 : tensor<64xf32>, tensor<64xf32>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/token2/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<64xf32> loc(#loc184)
    %644 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%643, %549 : tensor<64xf32>, tensor<64xf32>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/token2))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<64xf32> loc(#loc185)
    %645 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_6 : tensor<f32>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<128x64xf32> loc(#loc184)
    %646 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%645, %arg45 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h0/token2/weight']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128x64xf32> loc(#loc184)
    %647 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%646, %553 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h0/token2))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128x64xf32> loc(#loc185)
    %648 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%618, %arg46 : tensor<512xf32>, tensor<512xf32>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/channel1/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<512xf32> loc(#loc184)
    %649 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%648, %405 : tensor<512xf32>, tensor<512xf32>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/channel1))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<512xf32> loc(#loc185)
    %650 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%621, %arg47 : tensor<128x512xf32>, tensor<128x512xf32>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/channel1/weight']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128x512xf32> loc(#loc184)
    %651 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%650, %411 : tensor<128x512xf32>, tensor<128x512xf32>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/channel1))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128x512xf32> loc(#loc185)
    %652 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg48 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/channel2/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %653 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%652, %381 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/channel2))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %654 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%626, %arg49 : tensor<512x128xf32>, tensor<512x128xf32>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/channel2/weight']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<512x128xf32> loc(#loc184)
    %655 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%654, %387 : tensor<512x128xf32>, tensor<512x128xf32>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/channel2))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<512x128xf32> loc(#loc185)
    %656 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg50 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/norm1/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %657 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%656, %473 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %658 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg51 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/norm1/gain']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %659 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%658, %477 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %660 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg52 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/norm2/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %661 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%660, %414 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %662 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg53 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/norm2/gain']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %663 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%662, %418 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp())/reduce_sum"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %664 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%608, %arg54 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/token1/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %665 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%664, %463 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/token1))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128xf32> loc(#loc185)
    %666 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%639, %arg55 : tensor<64x128xf32>, tensor<64x128xf32>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/token1/weight']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<64x128xf32> loc(#loc184)
    %667 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%666, %469 : tensor<64x128xf32>, tensor<64x128xf32>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/token1))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<64x128xf32> loc(#loc185)
    %668 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%642, %arg56 : tensor<64xf32>, tensor<64xf32>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/token2/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<64xf32> loc(#loc184)
    %669 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%668, %441 : tensor<64xf32>, tensor<64xf32>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/token2))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<64xf32> loc(#loc185)
    %670 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%645, %arg57 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['h1/token2/weight']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128x64xf32> loc(#loc184)
    %671 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%670, %447 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(h1/token2))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128x64xf32> loc(#loc185)
    %672 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%cst_6 : tensor<f32>) outs(%341 : tensor<10xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<10xf32> loc(#loc184)
    %673 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%672, %arg58 : tensor<10xf32>, tensor<10xf32>) outs(%341 : tensor<10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['head/bias']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<10xf32> loc(#loc184)
    %674 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%673, %342 : tensor<10xf32>, tensor<10xf32>) outs(%341 : tensor<10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(head))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<10xf32> loc(#loc185)
    %675 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_6 : tensor<f32>) outs(%349 : tensor<128x10xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<128x10xf32> loc(#loc184)
    %676 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%675, %arg59 : tensor<128x10xf32>, tensor<128x10xf32>) outs(%349 : tensor<128x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("moments['head/weight']"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128x10xf32> loc(#loc184)
    %677 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%676, %350 : tensor<128x10xf32>, tensor<128x10xf32>) outs(%349 : tensor<128x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/transpose(jvp(head))/convert_element_type"), %out: f32 loc("jit(main)/add")):
      %748 = arith.addf %in, %in_48 : f32 loc(#loc185)
      linalg.yield %748 : f32 loc(#loc185)
    } -> tensor<128x10xf32> loc(#loc185)
    %678 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%cst_5 : tensor<f32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %679 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %610 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %680 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg0, %679 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['embed/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %681 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%606 : tensor<48x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<48x128xf32> loc(#loc184)
    %682 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%681, %613 : tensor<48x128xf32>, tensor<48x128xf32>) outs(%606 : tensor<48x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<48x128xf32> loc(#loc184)
    %683 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg1, %682 : tensor<48x128xf32>, tensor<48x128xf32>) outs(%606 : tensor<48x128xf32>) {
    ^bb0(%in: f32 loc("params['embed/weight']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<48x128xf32> loc(#loc186)
    %684 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %615 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %685 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg2, %684 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['final/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %686 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %617 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %687 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg3, %686 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['final/gain']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %688 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%cst_5 : tensor<f32>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<512xf32> loc(#loc184)
    %689 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%688, %620 : tensor<512xf32>, tensor<512xf32>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<512xf32> loc(#loc184)
    %690 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg4, %689 : tensor<512xf32>, tensor<512xf32>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: f32 loc("params['h0/channel1/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<512xf32> loc(#loc186)
    %691 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<128x512xf32> loc(#loc184)
    %692 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%691, %623 : tensor<128x512xf32>, tensor<128x512xf32>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128x512xf32> loc(#loc184)
    %693 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg5, %692 : tensor<128x512xf32>, tensor<128x512xf32>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: f32 loc("params['h0/channel1/weight']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128x512xf32> loc(#loc186)
    %694 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %625 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %695 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg6, %694 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h0/channel2/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %696 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<512x128xf32> loc(#loc184)
    %697 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%696, %628 : tensor<512x128xf32>, tensor<512x128xf32>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<512x128xf32> loc(#loc184)
    %698 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg7, %697 : tensor<512x128xf32>, tensor<512x128xf32>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: f32 loc("params['h0/channel2/weight']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<512x128xf32> loc(#loc186)
    %699 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %630 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %700 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg8, %699 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h0/norm1/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %701 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %632 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %702 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg9, %701 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h0/norm1/gain']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %703 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %634 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %704 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg10, %703 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h0/norm2/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %705 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %636 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %706 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg11, %705 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h0/norm2/gain']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %707 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %638 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %708 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg12, %707 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h0/token1/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %709 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<64x128xf32> loc(#loc184)
    %710 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%709, %641 : tensor<64x128xf32>, tensor<64x128xf32>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<64x128xf32> loc(#loc184)
    %711 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg13, %710 : tensor<64x128xf32>, tensor<64x128xf32>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: f32 loc("params['h0/token1/weight']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<64x128xf32> loc(#loc186)
    %712 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%cst_5 : tensor<f32>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<64xf32> loc(#loc184)
    %713 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%712, %644 : tensor<64xf32>, tensor<64xf32>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<64xf32> loc(#loc184)
    %714 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg14, %713 : tensor<64xf32>, tensor<64xf32>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: f32 loc("params['h0/token2/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<64xf32> loc(#loc186)
    %715 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<128x64xf32> loc(#loc184)
    %716 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%715, %647 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128x64xf32> loc(#loc184)
    %717 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg15, %716 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: f32 loc("params['h0/token2/weight']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128x64xf32> loc(#loc186)
    %718 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%688, %649 : tensor<512xf32>, tensor<512xf32>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<512xf32> loc(#loc184)
    %719 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg16, %718 : tensor<512xf32>, tensor<512xf32>) outs(%404 : tensor<512xf32>) {
    ^bb0(%in: f32 loc("params['h1/channel1/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<512xf32> loc(#loc186)
    %720 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%691, %651 : tensor<128x512xf32>, tensor<128x512xf32>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128x512xf32> loc(#loc184)
    %721 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg17, %720 : tensor<128x512xf32>, tensor<128x512xf32>) outs(%410 : tensor<128x512xf32>) {
    ^bb0(%in: f32 loc("params['h1/channel1/weight']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128x512xf32> loc(#loc186)
    %722 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %653 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %723 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg18, %722 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h1/channel2/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %724 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%696, %655 : tensor<512x128xf32>, tensor<512x128xf32>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<512x128xf32> loc(#loc184)
    %725 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg19, %724 : tensor<512x128xf32>, tensor<512x128xf32>) outs(%386 : tensor<512x128xf32>) {
    ^bb0(%in: f32 loc("params['h1/channel2/weight']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<512x128xf32> loc(#loc186)
    %726 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %657 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %727 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg20, %726 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h1/norm1/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %728 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %659 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %729 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg21, %728 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h1/norm1/gain']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %730 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %661 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %731 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg22, %730 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h1/norm2/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %732 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %663 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %733 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg23, %732 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h1/norm2/gain']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %734 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%678, %665 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128xf32> loc(#loc184)
    %735 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg24, %734 : tensor<128xf32>, tensor<128xf32>) outs(%354 : tensor<128xf32>) {
    ^bb0(%in: f32 loc("params['h1/token1/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128xf32> loc(#loc186)
    %736 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%709, %667 : tensor<64x128xf32>, tensor<64x128xf32>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<64x128xf32> loc(#loc184)
    %737 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg25, %736 : tensor<64x128xf32>, tensor<64x128xf32>) outs(%468 : tensor<64x128xf32>) {
    ^bb0(%in: f32 loc("params['h1/token1/weight']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<64x128xf32> loc(#loc186)
    %738 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%712, %669 : tensor<64xf32>, tensor<64xf32>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<64xf32> loc(#loc184)
    %739 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg26, %738 : tensor<64xf32>, tensor<64xf32>) outs(%440 : tensor<64xf32>) {
    ^bb0(%in: f32 loc("params['h1/token2/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<64xf32> loc(#loc186)
    %740 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%715, %671 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128x64xf32> loc(#loc184)
    %741 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg27, %740 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%446 : tensor<128x64xf32>) {
    ^bb0(%in: f32 loc("params['h1/token2/weight']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128x64xf32> loc(#loc186)
    %742 = linalg.generic {indexing_maps = [#map16, #map5], iterator_types = ["parallel"]} ins(%cst_5 : tensor<f32>) outs(%341 : tensor<10xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<10xf32> loc(#loc184)
    %743 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%742, %674 : tensor<10xf32>, tensor<10xf32>) outs(%341 : tensor<10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<10xf32> loc(#loc184)
    %744 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel"]} ins(%arg28, %743 : tensor<10xf32>, tensor<10xf32>) outs(%341 : tensor<10xf32>) {
    ^bb0(%in: f32 loc("params['head/bias']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<10xf32> loc(#loc186)
    %745 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%349 : tensor<128x10xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc("jit(main)/mul")):
      linalg.yield %in : f32 loc(#loc184)
    } -> tensor<128x10xf32> loc(#loc184)
    %746 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%745, %677 : tensor<128x10xf32>, tensor<128x10xf32>) outs(%349 : tensor<128x10xf32>) {
    ^bb0(%in: f32 loc("jit(main)/mul"), %in_48: f32 loc("jit(main)/add"), %out: f32 loc("jit(main)/mul")):
      %748 = arith.mulf %in, %in_48 : f32 loc(#loc184)
      linalg.yield %748 : f32 loc(#loc184)
    } -> tensor<128x10xf32> loc(#loc184)
    %747 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg29, %746 : tensor<128x10xf32>, tensor<128x10xf32>) outs(%349 : tensor<128x10xf32>) {
    ^bb0(%in: f32 loc("params['head/weight']"), %in_48: f32 loc("jit(main)/mul"), %out: f32 loc("jit(main)/sub")):
      %748 = arith.subf %in, %in_48 : f32 loc(#loc186)
      linalg.yield %748 : f32 loc(#loc186)
    } -> tensor<128x10xf32> loc(#loc186)
    return %680, %683, %685, %687, %690, %693, %695, %698, %700, %702, %704, %706, %708, %711, %714, %717, %719, %721, %723, %725, %727, %729, %731, %733, %735, %737, %739, %741, %744, %747, %610, %613, %615, %617, %620, %623, %625, %628, %630, %632, %634, %636, %638, %641, %644, %647, %649, %651, %653, %655, %657, %659, %661, %663, %665, %667, %669, %671, %674, %677, %323 : tensor<128xf32>, tensor<48x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<512xf32>, tensor<128x512xf32>, tensor<128xf32>, tensor<512x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<64x128xf32>, tensor<64xf32>, tensor<128x64xf32>, tensor<512xf32>, tensor<128x512xf32>, tensor<128xf32>, tensor<512x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<64x128xf32>, tensor<64xf32>, tensor<128x64xf32>, tensor<10xf32>, tensor<128x10xf32>, tensor<128xf32>, tensor<48x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<512xf32>, tensor<128x512xf32>, tensor<128xf32>, tensor<512x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<64x128xf32>, tensor<64xf32>, tensor<128x64xf32>, tensor<512xf32>, tensor<128x512xf32>, tensor<128xf32>, tensor<512x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<64x128xf32>, tensor<64xf32>, tensor<128x64xf32>, tensor<10xf32>, tensor<128x10xf32>, tensor<f32> loc(#loc187)
  } loc(#loc)
  func.func private @main.one_hot(%arg0: tensor<32xi32> loc(unknown)) -> tensor<32x10xf32> {
    %0 = tensor.empty() : tensor<32x1xi32> loc(#loc189)
    %1 = linalg.generic {indexing_maps = [#map15, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<32xi32>) outs(%0 : tensor<32x1xi32>) {
    ^bb0(%in: i32 loc(unknown), %out: i32 loc("broadcast_in_dim")):
      linalg.yield %in : i32 loc(#loc189)
    } -> tensor<32x1xi32> loc(#loc189)
    %2 = tensor.empty() : tensor<1x10xi32> loc(#loc190)
    %3 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel", "parallel"]} outs(%2 : tensor<1x10xi32>) {
    ^bb0(%out: i32 loc("iota")):
      %11 = linalg.index 1 : index loc(#loc190)
      %12 = arith.index_cast %11 : index to i32 loc(#loc190)
      linalg.yield %12 : i32 loc(#loc190)
    } -> tensor<1x10xi32> loc(#loc190)
    %4 = tensor.empty() : tensor<32x10xi32> loc(#loc191)
    %5 = linalg.generic {indexing_maps = [#map17, #map1], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<32x1xi32>) outs(%4 : tensor<32x10xi32>) {
    ^bb0(%in: i32 loc("broadcast_in_dim"), %out: i32 loc("eq")):
      linalg.yield %in : i32 loc(#loc191)
    } -> tensor<32x10xi32> loc(#loc191)
    %6 = linalg.generic {indexing_maps = [#map14, #map1], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<1x10xi32>) outs(%4 : tensor<32x10xi32>) {
    ^bb0(%in: i32 loc("iota"), %out: i32 loc("eq")):
      linalg.yield %in : i32 loc(#loc191)
    } -> tensor<32x10xi32> loc(#loc191)
    %7 = tensor.empty() : tensor<32x10xi1> loc(#loc191)
    %8 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%5, %6 : tensor<32x10xi32>, tensor<32x10xi32>) outs(%7 : tensor<32x10xi1>) {
    ^bb0(%in: i32 loc("eq"), %in_0: i32 loc("eq"), %out: i1 loc("eq")):
      %11 = arith.cmpi eq, %in, %in_0 : i32 loc(#loc191)
      linalg.yield %11 : i1 loc(#loc191)
    } -> tensor<32x10xi1> loc(#loc191)
    %9 = tensor.empty() : tensor<32x10xf32> loc(#loc192)
    %10 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<32x10xi1>) outs(%9 : tensor<32x10xf32>) {
    ^bb0(%in: i1 loc("eq"), %out: f32 loc("convert_element_type")):
      %11 = arith.uitofp %in : i1 to f32 loc(#loc192)
      linalg.yield %11 : f32 loc(#loc192)
    } -> tensor<32x10xf32> loc(#loc192)
    return %10 : tensor<32x10xf32> loc(#loc)
  } loc(#loc193)
} loc(#loc)
#loc132 = loc("jit(main)/transpose(jvp(head))/reshape")
#loc139 = loc("jit(main)/transpose(jvp(h1/channel2))/reshape")
#loc144 = loc("jit(main)/transpose(jvp(h1/channel1))/reshape")
#loc150 = loc("jit(main)/transpose(jvp(h1/token2))/reshape")
#loc155 = loc("jit(main)/transpose(jvp(h1/token1))/reshape")
#loc160 = loc("jit(main)/transpose(jvp(h0/channel2))/reshape")
#loc165 = loc("jit(main)/transpose(jvp(h0/channel1))/reshape")
#loc170 = loc("jit(main)/transpose(jvp(h0/token2))/reshape")
#loc175 = loc("jit(main)/transpose(jvp(h0/token1))/reshape")
#loc180 = loc("jit(main)/transpose(jvp(embed))/reshape")
#loc187 = loc("jit(main)")
#loc188 = loc("jit(main)/jvp()/jit")
#loc193 = loc("jit:"(#loc188))
