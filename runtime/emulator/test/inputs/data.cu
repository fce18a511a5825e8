// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Initialised variables: tables, addresses, strings, structures, virtual functions.

struct Record {
  int number;
  char letter;
  float real;
  const char *text;
};

__constant__ float table[4][2] = {{1, 2}, {3, 4}};
__device__ int counter = 5;
__device__ int *pointer = &counter;
__device__ const char *names[] = {"ab", "cde"};
__device__ Record record = {1, 'x', 2.5f, "hello"};
__device__ double precise = 0.1;
__device__ unsigned long long large = 0xFFFFFFFFFFFFFFFFull;
extern __shared__ float dynamic[];

struct Base {
  __device__ virtual float apply(float) = 0;
};
struct Scale : Base {
  float factor;
  __device__ float apply(float x) override { return x * factor; }
};
struct Shift : Base {
  float offset;
  __device__ float apply(float x) override { return x + offset; }
};

__device__ __noinline__ Record changed(Record r, int4 by) {
  r.number += by.x;
  return r;
}

__global__ void read(float *out, int4 by, int which) {
  __shared__ float fixed[32];
  fixed[threadIdx.x] = table[threadIdx.x & 3][1];
  dynamic[threadIdx.x] = *pointer;
  __syncthreads();
  Scale scale;
  scale.factor = 3;
  Shift shift;
  shift.offset = 4;
  Base *base = which ? static_cast<Base *>(&scale) : &shift;
  record = changed(record, by);
  out[0] = base->apply(fixed[31 - threadIdx.x]) + names[which][1] + record.letter + precise + large +
           dynamic[which];
}
