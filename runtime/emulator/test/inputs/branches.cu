// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A jump table, loops, recursion, calls through pointers.

#include <cstdio>

__device__ float increment(float x) { return x + 1; }
__device__ float twice(float x) { return 2 * x; }
__device__ float (*const functions[])(float) = {increment, twice};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void select(float *values, int which, int count) {
  float &value = values[threadIdx.x];
  switch (which) {
  case 0:
    value = sqrtf(value);
    break;
  case 1:
    value = functions[count & 1](value);
    break;
  case 2:
    value = fibonacci(count);
    break;
  case 3:
    for (int i = 0; i < count; ++i)
      value = fmaf(value, value, i);
    break;
  case 4:
    printf("%d: %f\n", threadIdx.x, value);
    break;
  case 5:
    __trap();
  default:
    value = atomicAdd(values, value);
  }
}
