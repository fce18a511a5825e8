// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The other file of linked.cu.

__device__ int offset;

__device__ int square(const int *x, int i) {
  const int value = x[i]; // fault: more than there are
  return value * value;
}
