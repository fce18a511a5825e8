// The report as people read it: equal layers in one row, a name once for its roles, reasons
// as footnotes, a long name on a line of its own, `?` for what is not known.
// RUN: fp8-compile %s -o %t --emit=fusion --recipe=current --keep=long --report=text | FileCheck %s --match-full-lines --strict-whitespace

//      CHECK:function main
// CHECK-NEXT:site               role   times  M x N x K    formats      operands  decision
// CHECK-NEXT:block{0-1}/fc      fprop  2      4 x 8 x 8    E4M3 x E4M3  96 B      FP8, current
// CHECK-NEXT:block{0-1}/scores  other  2      4 x 4 x 8    f32 x f32    256 B     high [1]
// CHECK-NEXT:the/name/of/this/site/is/rather/long/but/not/cut
// CHECK-NEXT:                   fprop         4 x 512 x 8  bf16 x bf16  8.1 KiB   high [2]
// CHECK-EMPTY:
// CHECK-NEXT:function evaluate
// CHECK-NEXT:site  role   M x N x K  formats      operands  decision
// CHECK-NEXT:head  fprop  ? x 8 x 8  E4M3 x E4M3  ?         FP8, current
// CHECK-EMPTY:
// CHECK-NEXT:6 contractions: 3 in FP8, 3 in high precision
// CHECK-NEXT:  [1] 2 kept: no weight operand
// CHECK-NEXT:  [2] 1 kept: matches --keep=long
//      CHECK:options: recipe=current {{.*}}

func.func @main(%x: tensor<4x8xf32> loc("x"), %w0: tensor<8x8xf32> loc("w0"), %w1: tensor<8x8xf32> loc("w1"),
                %h: tensor<4x8xbf16> loc("h"), %v: tensor<8x512xbf16> loc("v"))
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x512xbf16>) {
  %z = arith.constant dense<0.0> : tensor<4x8xf32>
  %s = arith.constant dense<0.0> : tensor<4x4xf32>
  %n = arith.constant dense<0.0> : tensor<4x512xbf16>
  %a = linalg.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32> loc("block0/fc/dot_general")
  %a2 = math.exp %a : tensor<4x8xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %t = linalg.transpose ins(%a2 : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %p = linalg.matmul ins(%a2, %t : tensor<4x8xf32>, tensor<8x4xf32>) outs(%s : tensor<4x4xf32>) -> tensor<4x4xf32> loc("block0/scores/dot_general")
  %b = linalg.matmul ins(%a2, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32> loc("block1/fc/dot_general")
  %b2 = math.exp %b : tensor<4x8xf32>
  %u = linalg.transpose ins(%b2 : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %q = linalg.matmul ins(%b2, %u : tensor<4x8xf32>, tensor<8x4xf32>) outs(%s : tensor<4x4xf32>) -> tensor<4x4xf32> loc("block1/scores/dot_general")
  %g = math.exp %h : tensor<4x8xbf16>
  %y = linalg.matmul ins(%g, %v : tensor<4x8xbf16>, tensor<8x512xbf16>) outs(%n : tensor<4x512xbf16>) -> tensor<4x512xbf16> loc("the/name/of/this/site/is/rather/long/but/not/cut/dot_general")
  return %p, %q, %b, %y : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x512xbf16>
}

func.func @evaluate(%x: tensor<?x8xf32> loc("x"), %w: tensor<8x8xf32> loc("w"), %out: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x8xf32>) outs(%out : tensor<?x8xf32>) -> tensor<?x8xf32> loc("head/dot_general")
  return %y : tensor<?x8xf32>
}
