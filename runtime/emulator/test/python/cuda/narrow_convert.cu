// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda_fp4.h's and cuda_fp6.h's conversions.

#include <cuda_fp4.h>
#include <cuda_fp6.h>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void to_fp4(int n, const float2 *x, unsigned char *pairs, unsigned short *fours) {
  int i = INDEX;
  if (i >= n)
    return;
  pairs[i] = __nv_cvt_float2_to_fp4x2(x[i], __NV_E2M1, cudaRoundNearest);
  __nv_fp4x4_e2m1 four(make_float4(x[i].x, x[i].y, -x[i].y, 0.5f * x[i].x));
  fours[i] = four.__x;
}

extern "C" __global__ void to_fp6(int n, const float2 *x, unsigned short *pairs) {
  int i = INDEX;
  if (i >= n)
    return;
  pairs[i] = __nv_cvt_float2_to_fp6x2(x[i], __NV_E3M2, cudaRoundNearest);
  pairs[n + i] = __nv_cvt_float2_to_fp6x2(x[i], __NV_E2M3, cudaRoundNearest);
}

// All 256 pairs of fp4, all 64 of each fp6.
extern "C" __global__ void from_narrow(unsigned *fp4_pairs, unsigned short *fp6_halves) {
  int i = threadIdx.x;
  __half2_raw two = __nv_cvt_fp4x2_to_halfraw2(i, __NV_E2M1);
  fp4_pairs[i] = two.x | (unsigned)two.y << 16;
  if (i < 64) {
    fp6_halves[i] = __nv_cvt_fp6_to_halfraw(i, __NV_E3M2).x;
    fp6_halves[64 + i] = __nv_cvt_fp6_to_halfraw(i, __NV_E2M3).x;
  }
}
