// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled with -G: nothing optimised, every variable in memory, debug sections.

__device__ int collatz(unsigned long long x) {
  int steps = 0;
  while (x != 1) {
    x = x % 2 ? 3 * x + 1 : x / 2;
    ++steps;
  }
  return steps;
}

extern "C" __global__ void collatz_steps(int n, int *y) {
  __shared__ int longest;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0)
    longest = 0;
  __syncthreads();
  if (i < n) {
    int steps = collatz(i + 1);
    atomicMax(&longest, steps);
    y[i] = steps;
  }
  __syncthreads();
  if (threadIdx.x == 0)
    y[n + blockIdx.x] = longest;
}
