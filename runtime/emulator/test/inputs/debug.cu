// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The additions of -G: DWARF sections, lines, every variable in local memory.

template <typename T>
__device__ T square(T x) {
  T result = x * x;
  return result;
}

__global__ void squares(int *values, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    values[i] = square(values[i]);
}
