// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels and variables: symbols, managed variables, attributes, occupancy, launches with and without a
// stub, errors of launches.

#include "check.h"

__device__ int calls;
static __device__ float table[16];
__constant__ int factor = 3;
__managed__ int total = 7;

__global__ void scale(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  x[i] = x[i] * factor + (int)table[i % 16];
  atomicAdd(&calls, 1);
}

__global__ void turn(int *out, bool isRight) {
  extern __shared__ int values[];
  values[threadIdx.x] = 0;
  __syncthreads();
  values[threadIdx.x] = threadIdx.x; // fault: no barrier after it
  if (isRight)
    __syncthreads();
  out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

__global__ void add(int more) { total += more; }

template <class T>
__global__ void fill(T *x, T value) {
  x[threadIdx.x] = value;
}

static void variables() {
  const int n = 100;
  int in[n], out[n], *x;
  float values[16], fifty = 50;
  for (int i = 0; i < n; ++i)
    in[i] = i;
  for (int i = 0; i < 16; ++i)
    values[i] = i;
  OK(cudaMalloc(&x, sizeof in));
  OK(cudaMemcpy(x, in, sizeof in, cudaMemcpyHostToDevice));
  OK(cudaMemcpyToSymbol(table, values, sizeof values));
  OK(cudaMemcpyToSymbol(table, &fifty, 4, 12));
  scale<<<4, 32>>>(x, n);
  OK(cudaMemcpy(out, x, sizeof out, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i)
    SAME(3 * i + (i % 16 == 3 ? 50 : i % 16), out[i]);
  int read;
  OK(cudaMemcpyFromSymbol(&read, calls, 4));
  SAME(n, read);
  size_t bytes;
  void *address;
  OK(cudaGetSymbolSize(&bytes, table));
  SAME(64, bytes);
  OK(cudaGetSymbolAddress(&address, factor));
  OK(cudaMemcpy(&read, address, 4, cudaMemcpyDefault));
  SAME(3, read);
  RETURNS(cudaErrorInvalidValue, cudaMemcpyToSymbol(table, values, 65));
  RETURNS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, read));

  add<<<1, 1>>>(5);
  OK(cudaDeviceSynchronize());
  SAME(12, total);
  total = 1;
  add<<<1, 1>>>(1);
  OK(cudaDeviceSynchronize());
  SAME(2, total);
}

static void launches() {
  double *x, value;
  OK(cudaMalloc(&x, 1024));
  fill<<<1, 64>>>(x, 2.5);
  OK(cudaMemcpy(&value, x + 63, 8, cudaMemcpyDeviceToHost));
  SAME(2.5, value);
  double other = 4.5;
  void *parameters[] = {&x, &other};
  OK(cudaLaunchKernel(fill<double>, dim3(1), dim3(8), parameters, 0, nullptr));
  cudaKernel_t kernel;
  OK(cudaGetKernel(&kernel, fill<double>));
  other = 5.5;
  OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(4), parameters, 0, nullptr));
  double out[16];
  OK(cudaMemcpy(out, x, sizeof out, cudaMemcpyDeviceToHost));
  SAME(5.5, out[3]);
  SAME(4.5, out[7]);
  SAME(2.5, out[8]);
}

static void attributes() {
  int *out, back[64], blocks, size;
  OK(cudaMalloc(&out, 256));
  cudaFuncAttributes found;
  OK(cudaFuncGetAttributes(&found, turn));
  SAME(1024, found.maxThreadsPerBlock);
  SAME(48 * 1024, found.maxDynamicSharedSizeBytes);
  turn<<<1, 64, 60000>>>(out, true);
  RETURNS(cudaErrorInvalidValue, cudaGetLastError());
  OK(cudaFuncSetAttribute(turn, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
  turn<<<1, 64, 60000>>>(out, true);
  OK(cudaGetLastError());
  OK(cudaMemcpy(back, out, 256, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i)
    SAME(63 - i, back[i]);
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, turn, 1024, 0));
  SAME(2, blocks);
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, turn, 64, 60000));
  SAME(3, blocks);
  OK(cudaOccupancyMaxPotentialBlockSize(&blocks, &size, scale));
  SAME(1024, size);
  cudaDeviceProp properties;
  OK(cudaGetDeviceProperties(&properties, 0));
  SAME(32, properties.warpSize);
  SAME(9, properties.major);
  SAME(1, properties.clusterLaunch);
}

static void errors() {
  int *x;
  OK(cudaMalloc(&x, 4));
  scale<<<1, 2000>>>(x, 1);
  RETURNS(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
  RETURNS(cudaErrorInvalidConfiguration, cudaGetLastError());
  OK(cudaGetLastError());
  scale<<<0, 1>>>(x, 1);
  RETURNS(cudaErrorInvalidConfiguration, cudaGetLastError());
  RETURNS(cudaErrorInvalidDeviceFunction,
          cudaLaunchKernel((const void *)x, dim3(1), dim3(1), nullptr, 0, nullptr));
  RETURNS(cudaErrorInvalidDevice, cudaSetDevice(99));
  cudaArray_t array;
  const cudaChannelFormatDesc description = cudaCreateChannelDesc<float>();
  RETURNS(cudaErrorNotSupported, cudaMallocArray(&array, &description, 8));
  RETURNS(cudaErrorNotSupported, cudaGetLastError());
}

int main(int count, char **arguments) {
  variables();
  launches();
  attributes();
  errors();
  if (wantsFault(count, arguments)) {
    int *out;
    OK(cudaMalloc(&out, 256));
    turn<<<1, 64, 256>>>(out, false);
    RETURNS(cudaErrorLaunchFailure, cudaDeviceSynchronize());
    return 1;
  }
  std::puts("ok");
}
