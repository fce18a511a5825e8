// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programmatic dependent launch: the second grid may start before the first has ended.

extern "C" __global__ void first(const int *x, int *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  cudaTriggerProgrammaticLaunchCompletion();
  y[i] = x[i] * 3;
}

extern "C" __global__ void second(const int *y, int *z) {
  __shared__ int table[32];
  if (threadIdx.x < 32)
    table[threadIdx.x] = threadIdx.x * threadIdx.x;
  __syncthreads();
  cudaGridDependencySynchronize();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  z[i] = y[gridDim.x * blockDim.x - 1 - i] + table[i % 32];
}
