// The code of an epilogue runs on two neighbouring columns at once: bf16x2 from sm_90a on, f32x2 from sm_100a on.
// RUN: fp8-opt %s -split-input-file --convert-fp8-to-gpu --canonicalize --cse | FileCheck %s
// RUN: fp8-opt %s -split-input-file --fp8-gpu-kernels-pipeline --fp8-ptx-pipeline | sed 's/\\0A/\n/g; s/\\09/ /g' | FileCheck %s --check-prefix=PTX

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @kernel_product_fprop_fc1(
// CHECK: %[[BIAS:.*]] = vector.from_elements %{{.*}}, %{{.*}} : vector<2xbf16>
// CHECK: %[[ROUNDED:.*]] = arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK: %[[SUM:.*]] = arith.addf %[[ROUNDED]], %{{.*}} : vector<2xbf16>
// CHECK: arith.select %{{.*}}, %[[SUM]], %{{.*}} : vector<2xi1>, vector<2xbf16>
// PTX-LABEL: .entry kernel_product_fprop_fc1
// PTX-NOT: add.rn.bf16 %
// PTX: add.rn.bf16x2
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @bf16(%a: memref<64x64xf8E4M3FN>, %b: memref<64x64xf8E4M3FN>, %s: memref<f32>, %bias: memref<64xbf16>,
                  %d: memref<64x64xbf16>) {
    fp8.scaled_matmul site("fc1") role(fprop) fast ins(%a, %b : memref<64x64xf8E4M3FN>, memref<64x64xf8E4M3FN>)
        scales(%s, %s : memref<f32>, memref<f32>) epilogue_ins(%bias : memref<64xbf16>) outs(%d : memref<64x64xbf16>)
        {indexing_maps = [#mk, #nk, #mn], epilogue_maps = [affine_map<(i, j) -> (j)>]} epilogue {
      ^bb0(%sum: f32, %x: bf16):
        %zero = arith.constant 0.0 : bf16
        %rounded = arith.truncf %sum : f32 to bf16
        %y = arith.addf %rounded, %x : bf16
        %positive = arith.cmpf ogt, %y, %zero : bf16
        %z = arith.select %positive, %y, %zero : bf16
        fp8.yield %z : bf16
    }
    return
  }
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// An FP8 result of two columns is one conversion. The square is a product of pairs.
// CHECK-LABEL: func.func @kernel_product_fprop_fc2(
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[SUM:.*]], %[[SUM]] : vector<2xf32>
// CHECK: %[[SCALED:.*]] = arith.mulf %[[SQUARE]], %{{.*}} : vector<2xf32>
// CHECK-DAG: %[[LOW:.*]] = vector.extract %[[SCALED]][0]
// CHECK-DAG: %[[HIGH:.*]] = vector.extract %[[SCALED]][1]
// CHECK: nvvm.convert.f32x2.to.f8x2 %[[HIGH]], %[[LOW]]
// PTX-LABEL: .entry kernel_product_fprop_fc2
// PTX: mul.rn.f32x2
// PTX: cvt.rn.satfinite.e4m3x2.f32
module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  func.func @f32(%a: memref<64x64xf8E4M3FN>, %b: memref<64x64xf8E4M3FN>, %s: memref<f32>,
                 %d: memref<64x64xf8E4M3FN>, %inverse: memref<f32>, %amax: memref<f32>) {
    fp8.scaled_matmul site("fc2") role(fprop) fast ins(%a, %b : memref<64x64xf8E4M3FN>, memref<64x64xf8E4M3FN>)
        scales(%s, %s : memref<f32>, memref<f32>) out_scale(%s : memref<f32>)
        outs(%d, %inverse, %amax : memref<64x64xf8E4M3FN>, memref<f32>, memref<f32>)
        {indexing_maps = [#mk, #nk, #mn]} epilogue {
      ^bb0(%sum: f32):
        %square = arith.mulf %sum, %sum : f32
        fp8.yield %square : f32
    }
    return
  }
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Code that needs the indices of an element runs on each alone.
// CHECK-LABEL: func.func @kernel_product_fprop_mask(
// CHECK-NOT: vector.from_elements
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK-NOT: vector.from_elements
// PTX-LABEL: .entry kernel_product_fprop_mask
// PTX: selp
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @mask(%a: memref<64x64xf8E4M3FN>, %b: memref<64x64xf8E4M3FN>, %s: memref<f32>, %d: memref<64x64xf32>) {
    fp8.scaled_matmul site("mask") role(fprop) fast ins(%a, %b : memref<64x64xf8E4M3FN>, memref<64x64xf8E4M3FN>)
        scales(%s, %s : memref<f32>, memref<f32>) outs(%d : memref<64x64xf32>)
        {indexing_maps = [#mk, #nk, #mn]} epilogue {
      ^bb0(%sum: f32):
        %zero = arith.constant 0.0 : f32
        %row = fp8.index 0
        %column = fp8.index 1
        %seen = arith.cmpi sge, %row, %column : index
        %z = arith.select %seen, %sum, %zero : f32
        fp8.yield %z : f32
    }
    return
  }
}
