// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda_fp16.h's and cuda_bf16.h's arithmetic, comparisons and conversions; results as bits.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

__device__ unsigned short bits(__half value) { return __half_as_ushort(value); }
__device__ unsigned short bits(__nv_bfloat16 value) { return __bfloat16_as_ushort(value); }

// Operations that exist for both formats. y: 16 rows of n.
template <typename T>
__device__ void scalar(int n, int i, T a, T b, T c, unsigned short *y) {
  y[0 * n + i] = bits(__hadd(a, b));
  y[1 * n + i] = bits(__hsub(a, b));
  y[2 * n + i] = bits(__hmul(a, b));
  y[3 * n + i] = bits(__hfma(a, b, c));
  y[4 * n + i] = bits(__hfma_relu(a, b, c));
  y[5 * n + i] = bits(__hmin(a, b));
  y[6 * n + i] = bits(__hmax_nan(a, b));
  y[7 * n + i] = bits(__habs(a));
  y[8 * n + i] = bits(__hneg(a));
  y[9 * n + i] = bits(__hadd_sat(a, b));
  y[10 * n + i] = bits(__hfma_sat(a, b, c));
  y[11 * n + i] = __hlt(a, b) | __hleu(a, b) << 1 | __heq(a, b) << 2 | __hneu(a, b) << 3 | __hgt(a, b) << 4 |
                  __hisnan(a) << 5 | (__hisinf(a) != 0) << 6 | __hge(a, b) << 7;
  y[12 * n + i] = bits(hfloor(a));
  y[13 * n + i] = bits(hrint(a));
  y[14 * n + i] = bits(htrunc(a));
  y[15 * n + i] = bits(hceil(a));
}

extern "C" __global__ void half_scalar(int n, const __half *a, const __half *b, const __half *c, unsigned short *y) {
  int i = INDEX;
  if (i < n)
    scalar(n, i, a[i], b[i], c[i], y);
}

extern "C" __global__ void bf16_scalar(int n, const __nv_bfloat16 *a, const __nv_bfloat16 *b, const __nv_bfloat16 *c,
                                       unsigned short *y) {
  int i = INDEX;
  if (i < n)
    scalar(n, i, a[i], b[i], c[i], y);
}

// The packed forms; must equal the scalar ones lane by lane.
extern "C" __global__ void half_pairs(int n, const __half2 *a, const __half2 *b, const __half2 *c, __half2 *y) {
  int i = INDEX;
  if (i >= n)
    return;
  y[0 * n + i] = __hadd2(a[i], b[i]);
  y[1 * n + i] = __hmul2(a[i], b[i]);
  y[2 * n + i] = __hfma2(a[i], b[i], c[i]);
  y[3 * n + i] = __hmin2_nan(a[i], b[i]);
  y[4 * n + i] = __hlt2(a[i], b[i]);
  y[5 * n + i] = __hfma2_relu(a[i], b[i], c[i]);
  y[6 * n + i] = __lows2half2(a[i], b[i]);
  y[7 * n + i] = __hsub2_sat(a[i], b[i]);
}

extern "C" __global__ void bf16_pairs(int n, const __nv_bfloat162 *a, const __nv_bfloat162 *b, const __nv_bfloat162 *c,
                                      __nv_bfloat162 *y) {
  int i = INDEX;
  if (i >= n)
    return;
  y[0 * n + i] = __hadd2(a[i], b[i]);
  y[1 * n + i] = __hmul2(a[i], b[i]);
  y[2 * n + i] = __hfma2(a[i], b[i], c[i]);
  y[3 * n + i] = __hmax2(a[i], b[i]);
  y[4 * n + i] = __hgeu2(a[i], b[i]);
  y[5 * n + i] = __hneg2(a[i]);
  y[6 * n + i] = __highs2bfloat162(a[i], b[i]);
  y[7 * n + i] = __habs2(b[i]);
}

// Functions that the hardware approximates.
extern "C" __global__ void half_functions(int n, const __half *x, __half *y, const __nv_bfloat16 *bx, __nv_bfloat16 *by) {
  int i = INDEX;
  if (i >= n)
    return;
  y[0 * n + i] = hexp(x[i]), by[0 * n + i] = hexp(bx[i]);
  y[1 * n + i] = hlog2(x[i]), by[1 * n + i] = hlog2(bx[i]);
  y[2 * n + i] = hrcp(x[i]), by[2 * n + i] = hrcp(bx[i]);
  y[3 * n + i] = hsqrt(x[i]), by[3 * n + i] = hsqrt(bx[i]);
  y[4 * n + i] = hsin(x[i]), by[4 * n + i] = hsin(bx[i]);
  y[5 * n + i] = htanh(x[i]), by[5 * n + i] = htanh(bx[i]);
  y[6 * n + i] = __h2div(__half2half2(x[i]), __half2half2(x[0])).x, by[6 * n + i] = __hdiv(bx[i], bx[0]);
  y[7 * n + i] = hexp2(x[i]), by[7 * n + i] = hexp2(bx[i]);
}

// From the f32 whose bits are first + i * stride, in all roundings.
extern "C" __global__ void float_to_halves(int n, unsigned first, unsigned stride, unsigned short *h, unsigned short *b) {
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) {
    float x = __uint_as_float(first + i * stride);
    h[0 * n + i] = bits(__float2half_rn(x)), b[0 * n + i] = bits(__float2bfloat16_rn(x));
    h[1 * n + i] = bits(__float2half_rz(x)), b[1 * n + i] = bits(__float2bfloat16_rz(x));
    h[2 * n + i] = bits(__float2half_rd(x)), b[2 * n + i] = bits(__float2bfloat16_rd(x));
    h[3 * n + i] = bits(__float2half_ru(x)), b[3 * n + i] = bits(__float2bfloat16_ru(x));
    h[4 * n + i] = bits(__double2half((double)x * 1.0000000001)), b[4 * n + i] = bits(__double2bfloat16((double)x * 1.0000000001));
    __half2 pair = __floats2half2_rn(x, -x);
    h[5 * n + i] = bits(__high2half(pair));
    b[5 * n + i] = bits(__high2bfloat16(__floats2bfloat162_rn(x, -x)));
  }
}

// To and from integers; every f16 and bf16.
extern "C" __global__ void halves_to_integers(int n, int *from_half, int *from_bf16, long long *wide, float *floats) {
  int i = INDEX;
  __half h = __ushort_as_half((unsigned short)i);
  __nv_bfloat16 b = __ushort_as_bfloat16((unsigned short)i);
  from_half[0 * n + i] = __half2int_rz(h), from_bf16[0 * n + i] = __bfloat162int_rz(b);
  from_half[1 * n + i] = __half2int_rn(h), from_bf16[1 * n + i] = __bfloat162int_rn(b);
  from_half[2 * n + i] = __half2short_rd(h), from_bf16[2 * n + i] = __bfloat162short_rd(b);
  from_half[3 * n + i] = __half2uint_ru(h), from_bf16[3 * n + i] = __bfloat162uint_ru(b);
  from_half[4 * n + i] = __half2ushort_rn(h), from_bf16[4 * n + i] = __bfloat162ushort_rn(b);
  from_half[5 * n + i] = __half2uchar_rz(h), from_bf16[5 * n + i] = __bfloat162uchar_rz(b);
  wide[0 * n + i] = __half2ll_rn(h), wide[1 * n + i] = __bfloat162ull_rz(b);
  floats[0 * n + i] = __half2float(h), floats[1 * n + i] = __bfloat162float(b);
}

extern "C" __global__ void integers_to_halves(int n, const int *x, const long long *wide, unsigned short *h, unsigned short *b) {
  int i = INDEX;
  if (i >= n)
    return;
  h[0 * n + i] = bits(__int2half_rn(x[i])), b[0 * n + i] = bits(__int2bfloat16_rn(x[i]));
  h[1 * n + i] = bits(__uint2half_rz(x[i])), b[1 * n + i] = bits(__uint2bfloat16_rz(x[i]));
  h[2 * n + i] = bits(__short2half_rd(x[i])), b[2 * n + i] = bits(__short2bfloat16_rd(x[i]));
  h[3 * n + i] = bits(__ushort2half_ru(x[i])), b[3 * n + i] = bits(__ushort2bfloat16_ru(x[i]));
  h[4 * n + i] = bits(__ll2half_rn(wide[i])), b[4 * n + i] = bits(__ll2bfloat16_rn(wide[i]));
  h[5 * n + i] = bits(__ull2half_rn(wide[i])), b[5 * n + i] = bits(__ull2bfloat16_rn(wide[i]));
}
