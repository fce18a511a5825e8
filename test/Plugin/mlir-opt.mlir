// The stock mlir-opt reads the dialect and runs our passes through the plugin.
// UNSUPPORTED: sanitizers
// RUN: mlir-opt-22 --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --canonicalize %s | FileCheck %s
// RUN: mlir-opt-22 --load-pass-plugin=%plugin --help > %t.plugin
// RUN: fp8-opt --help > %t.own
// RUN: grep -o -E '^ +--(fp8-[a-z0-9-]+|convert-fp8-[a-z-]+|fp8-[a-z]+-pipeline) ' %t.own | sort -u > %t.own.flags || true
// RUN: grep -o -E '^ +--(fp8-[a-z0-9-]+|convert-fp8-[a-z-]+|fp8-[a-z]+-pipeline) ' %t.plugin | sort -u > %t.plugin.flags || true
// RUN: diff %t.own.flags %t.plugin.flags

// CHECK-LABEL: func.func @amax
func.func @amax(%x: tensor<8x16xbf16>, %init: tensor<f32>) -> tensor<f32> {
  // CHECK: fp8.amax ins(%{{.*}} : tensor<8x16xbf16>)
  %a = fp8.amax ins(%x : tensor<8x16xbf16>) outs(%init : tensor<f32>) -> tensor<f32>
  return %a : tensor<f32>
}
