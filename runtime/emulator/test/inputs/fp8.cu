// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FP8 conversions and half precision, as the headers write them in assembly.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__global__ void quantize(const float2 *in, __nv_fp8x2_e4m3 *e4m3, __nv_fp8x2_e5m2 *e5m2) {
  e4m3[threadIdx.x] = __nv_fp8x2_e4m3(in[threadIdx.x]);
  e5m2[threadIdx.x] = __nv_fp8x2_e5m2(in[threadIdx.x]);
}

__global__ void dequantize(const __nv_fp8x2_e4m3 *in, __half2 *out) {
  out[threadIdx.x] = __half2(in[threadIdx.x]);
}

__global__ void mixed(__nv_bfloat162 *b, __half2 *h) {
  b[threadIdx.x] = __hfma2(b[threadIdx.x], b[1], b[2]);
  h[threadIdx.x] = h2exp2(__hmax2(h[threadIdx.x], h[1]));
}
