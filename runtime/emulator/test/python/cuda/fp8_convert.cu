// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda_fp8.h's conversions: every input of 8 and 16 bits, f32 in strides, both
// interpretations, saturating and not, scalars and pairs; E8M0 in its roundings.

#include <cuda_fp8.h>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

// y: n bytes each of e4m3 and e5m2, saturated and not.
template <typename Convert>
__device__ void all_ways(int n, int i, unsigned char *y, Convert convert) {
  y[0 * n + i] = convert(__NV_SATFINITE, __NV_E4M3);
  y[1 * n + i] = convert(__NV_NOSAT, __NV_E4M3);
  y[2 * n + i] = convert(__NV_SATFINITE, __NV_E5M2);
  y[3 * n + i] = convert(__NV_NOSAT, __NV_E5M2);
}

extern "C" __global__ void half_to_fp8(int n, unsigned char *y) {
  int i = INDEX;
  __half_raw value;
  value.x = (unsigned short)i;
  all_ways(n, i, y, [&](auto sat, auto kind) { return __nv_cvt_halfraw_to_fp8(value, sat, kind); });
}

extern "C" __global__ void bf16_to_fp8(int n, unsigned char *y) {
  int i = INDEX;
  __nv_bfloat16_raw value;
  value.x = (unsigned short)i;
  all_ways(n, i, y, [&](auto sat, auto kind) { return __nv_cvt_bfloat16raw_to_fp8(value, sat, kind); });
}

// The f32 whose bits are first + i * stride.
extern "C" __global__ void float_to_fp8(int n, unsigned first, unsigned stride, unsigned char *y) {
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) {
    float value = __uint_as_float(first + i * stride);
    all_ways(n, i, y, [&](auto sat, auto kind) { return __nv_cvt_float_to_fp8(value, sat, kind); });
  }
}

extern "C" __global__ void double_to_fp8(int n, const double *x, unsigned char *y) {
  int i = INDEX;
  if (i < n)
    all_ways(n, i, y, [&](auto sat, auto kind) { return __nv_cvt_double_to_fp8(x[i], sat, kind); });
}

extern "C" __global__ void pairs_to_fp8(int n, const float2 *x, unsigned short *y) {
  int i = INDEX;
  if (i >= n)
    return;
  __half2_raw h = __float22half2_rn(x[i]);
  __nv_bfloat162_raw b = __float22bfloat162_rn(x[i]);
  y[0 * n + i] = __nv_cvt_float2_to_fp8x2(x[i], __NV_SATFINITE, __NV_E4M3);
  y[1 * n + i] = __nv_cvt_float2_to_fp8x2(x[i], __NV_SATFINITE, __NV_E5M2);
  y[2 * n + i] = __nv_cvt_halfraw2_to_fp8x2(h, __NV_SATFINITE, __NV_E4M3);
  y[3 * n + i] = __nv_cvt_halfraw2_to_fp8x2(h, __NV_SATFINITE, __NV_E5M2);
  y[4 * n + i] = __nv_cvt_bfloat16raw2_to_fp8x2(b, __NV_SATFINITE, __NV_E4M3);
  y[5 * n + i] = __nv_cvt_bfloat16raw2_to_fp8x2(b, __NV_SATFINITE, __NV_E5M2);
}

// All 256: to half, float, and as pairs with their neighbour.
extern "C" __global__ void fp8_to_wide(unsigned short *half_bits, float *floats, unsigned *pairs) {
  int i = threadIdx.x;
  half_bits[i] = __nv_cvt_fp8_to_halfraw(i, __NV_E4M3).x;
  half_bits[256 + i] = __nv_cvt_fp8_to_halfraw(i, __NV_E5M2).x;
  __nv_fp8_e4m3 e4m3;
  __nv_fp8_e5m2 e5m2;
  e4m3.__x = i, e5m2.__x = i;
  floats[i] = float(e4m3);
  floats[256 + i] = float(e5m2);
  __nv_fp8x2_storage_t two = i | (255 - i) << 8;
  __half2_raw a = __nv_cvt_fp8x2_to_halfraw2(two, __NV_E4M3), b = __nv_cvt_fp8x2_to_halfraw2(two, __NV_E5M2);
  pairs[i] = a.x | (unsigned)a.y << 16;
  pairs[256 + i] = b.x | (unsigned)b.y << 16;
}

// The classes: four at once from floats, and to integers.
extern "C" __global__ void fp8_classes(int n, const float4 *x, unsigned *packed, float4 *back, int *ints) {
  int i = INDEX;
  if (i >= n)
    return;
  __nv_fp8x4_e4m3 four(x[i]);
  packed[i] = four.__x;
  back[i] = float4(four);
  __nv_fp8_e5m2 one(x[i].x);
  ints[i] = int(one) + (bool(one) ? 1000000 : 0);
}

extern "C" __global__ void scales(int n, const float *x, unsigned char *y, float *back) {
  int i = INDEX;
  if (i >= n)
    return;
  y[0 * n + i] = __nv_cvt_float_to_e8m0(x[i], __NV_SATFINITE, cudaRoundZero);
  y[1 * n + i] = __nv_cvt_float_to_e8m0(x[i], __NV_SATFINITE, cudaRoundPosInf);
  y[2 * n + i] = __nv_cvt_float_to_e8m0(x[i], __NV_NOSAT, cudaRoundZero);
  y[3 * n + i] = __nv_cvt_float_to_e8m0(x[i], __NV_NOSAT, cudaRoundPosInf);
  if (i < 256) {
    __nv_bfloat16_raw wide = __nv_cvt_e8m0_to_bf16raw(i);
    back[i] = __uint_as_float((unsigned)wide.x << 16);
  }
}
