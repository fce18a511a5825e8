// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions and variables of another file (linked_device.cu): nvcc -rdc=true.

#include "check.h"

extern __device__ int offset;
extern __device__ int square(const int *x, int i);

__global__ void run(const int *in, int *out, int n) {
  if (threadIdx.x < n)
    out[threadIdx.x] = square(in, threadIdx.x) + offset;
}

int main(int count, char **arguments) {
  const bool isWrong = wantsFault(count, arguments);
  int in[8], back[8], *x, *y, hundred = 100;
  for (int i = 0; i < 8; ++i)
    in[i] = i;
  OK(cudaMalloc(&x, sizeof in));
  OK(cudaMalloc(&y, 2 * sizeof in));
  OK(cudaMemcpy(x, in, sizeof in, cudaMemcpyHostToDevice));
  OK(cudaMemcpyToSymbol(offset, &hundred, 4));
  run<<<1, 32>>>(x, y, isWrong ? 9 : 8);
  RETURNS(isWrong ? cudaErrorIllegalAddress : cudaSuccess, cudaDeviceSynchronize());
  if (isWrong)
    return 1;
  OK(cudaMemcpy(back, y, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 8; ++i)
    SAME(i * i + 100, back[i]);
  std::puts("ok");
}
