// `code` of the report is what was emitted: a product that became one with an equal product, or
// that nothing needs, or that never runs, says so. Before code is generated there is none.
// RUN: fp8-compile %s -o %t --report=json | FileCheck %s --check-prefixes=CHECK,FP8
// RUN: fp8-compile %s -o %t --emit=kernels --recipe=none --report=json | FileCheck %s --check-prefixes=CHECK,HIGH
// RUN: fp8-compile %s -o %t --emit=bufferize --report=json | FileCheck %s --check-prefix=STAGE
// RUN: fp8-compile %s -o %t --report=text | FileCheck %s --check-prefix=TEXT

// STAGE-COUNT-6: "code": null
// STAGE-NOT: "code":

// TEXT:      code
// TEXT-NEXT: {{^}}  2: packed f32 products of decoded FP8 (CPU)
// TEXT-NEXT: {{^}}  1: computed once, with an equal product
// TEXT-NEXT: {{^}}  1: none: no result depends on it
// TEXT-NEXT: {{^}}  1: f64 loops (CPU)
// TEXT-NEXT: {{^}}  1: none: it never runs, or its result is known without it

func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %v: tensor<8x16xf32>, %d: tensor<4x8xf64>, %f: tensor<8x4xf64>)
    -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x4xf64>, tensor<4x16xf32>) {
  %zero = arith.constant dense<0.0> : tensor<4x16xf32>
  %zero64 = arith.constant dense<0.0> : tensor<4x4xf64>

  // FP8:  "code": "packed f32 products of decoded FP8 (CPU)"
  // HIGH: "code": "packed f32 products (CPU)"
  // CHECK: "location": "a (m.mlir:1:1)"
  %a = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%zero : tensor<4x16xf32>) -> tensor<4x16xf32> loc("a"("m.mlir":1:1))

  // FP8:  "code": "computed once, with an equal product at a (m.mlir:1:1): packed f32 products of decoded FP8 (CPU)"
  // HIGH: "code": "computed once, with an equal product at a (m.mlir:1:1): packed f32 products (CPU)"
  // CHECK: "location": "b (m.mlir:2:1)"
  %b = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%zero : tensor<4x16xf32>) -> tensor<4x16xf32> loc("b"("m.mlir":2:1))

  // The same site as the two above, and not needed.
  // CHECK: "code": "none: no result depends on it"
  // CHECK: "location": "c (m.mlir:3:1)"
  %n = math.exp %x : tensor<4x8xf32>
  %c = linalg.matmul ins(%n, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%zero : tensor<4x16xf32>) -> tensor<4x16xf32> loc("c"("m.mlir":3:1))

  // CHECK: "code": "f64 loops (CPU)"
  // CHECK: "location": "d (m.mlir:4:1)"
  %e = linalg.matmul ins(%d, %f : tensor<4x8xf64>, tensor<8x4xf64>) outs(%zero64 : tensor<4x4xf64>) -> tensor<4x4xf64> loc("d"("m.mlir":4:1))

  // The loop has no iteration.
  // CHECK: "code": "none: it never runs, or its result is known without it"
  // CHECK: "location": "e (m.mlir:5:1)"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g = scf.for %i = %c0 to %c0 step %c1 iter_args(%sum = %zero) -> tensor<4x16xf32> {
    %h = linalg.matmul ins(%n, %v : tensor<4x8xf32>, tensor<8x16xf32>) outs(%sum : tensor<4x16xf32>) -> tensor<4x16xf32> loc("e"("m.mlir":5:1))
    scf.yield %h : tensor<4x16xf32>
  }
  return %a, %b, %e, %g : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x4xf64>, tensor<4x16xf32>
}

// Another entry's equal product is another product.
// CHECK: "code": "packed f32 products
// CHECK: "entry": "evaluate"
func.func @evaluate(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x16xf32>
  %a = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%zero : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %a : tensor<4x16xf32>
}
