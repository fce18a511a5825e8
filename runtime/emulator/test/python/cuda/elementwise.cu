// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise kernels as people write them: grid-stride loops, vector accesses, edges of
// a matrix, indices of 64 bits. With -lineinfo, so that reports can name these lines.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x)
    y[i] = a * x[i] + y[i];
}

// Not contracted to fma: every step is rounded.
extern "C" __global__ void polynomial(int n, const float *__restrict__ x, float *__restrict__ y) {
  int i = INDEX;
  if (i < n)
    y[i] = __fadd_rn(__fmul_rn(__fadd_rn(__fmul_rn(x[i], 0.5f), 1.25f), x[i]), -3.0f);
}

extern "C" __global__ void vector4(int n, const float4 *x, const float4 *y, float4 *z) {
  int i = INDEX;
  if (i >= n)
    return;
  float4 a = x[i], b = __ldg(&y[i]);
  z[i] = make_float4(a.x + b.w, a.y - b.z, a.z * b.y, fmaxf(a.w, b.x));
}

extern "C" __global__ void relu_half2(int n, const __half2 *x, __half2 *y) {
  int i = INDEX;
  if (i < n)
    y[i] = __hmax2(x[i], __float2half2_rn(0.0f));
}

// x is rows x columns with a stride, y is its transpose without one.
extern "C" __global__ void transpose(int rows, int columns, long long stride, const double *x, double *y) {
  __shared__ double tile[16][17];
  int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  if (row < rows && column < columns)
    tile[threadIdx.y][threadIdx.x] = x[row * stride + column];
  __syncthreads();
  column = blockIdx.y * 16 + threadIdx.x, row = blockIdx.x * 16 + threadIdx.y;
  if (row < columns && column < rows)
    y[(long long)row * rows + column] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void widen_bytes(int n, const signed char *x, const unsigned char *y, short *z, long long *w) {
  int i = INDEX;
  if (i < n) {
    z[i] = (short)(x[i] * y[i]);
    w[i] = (long long)x[i] << (y[i] & 63);
  }
}

extern "C" __global__ void bf16_scale(int n, float scale, const __nv_bfloat16 *x, __nv_bfloat16 *y) {
  int i = INDEX;
  if (i < n)
    y[i] = __float2bfloat16_rn(__bfloat162float(x[i]) * scale);
}

// How often z <- z*z + c stays within radius 2: a loop that lanes leave at different times.
extern "C" __global__ void mandelbrot(int width, int limit, const float2 *corner, int *counts) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= width)
    return;
  float cx = corner->x + 0.0625f * column, cy = corner->y + 0.0625f * row, x = 0, y = 0;
  int count = 0;
  while (count < limit && __fadd_rn(__fmul_rn(x, x), __fmul_rn(y, y)) <= 4.0f) {
    float next = __fadd_rn(__fsub_rn(__fmul_rn(x, x), __fmul_rn(y, y)), cx);
    y = __fadd_rn(__fmul_rn(2.0f * x, y), cy);
    x = next;
    ++count;
  }
  counts[row * width + column] = count;
}
