// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUB's algorithms for a whole device, against those of the standard library.

#include "check.h"

#include <cub/cub.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <numeric>
#include <vector>

struct Lookup {
  const int *table;
  __host__ __device__ int operator()(int i) const {
    return table[i]; // fault: more than there are
  }
};

/// Calls an algorithm twice, as they want it: for the size of its memory, and with it.
template <class Algorithm>
static void run(const Algorithm &algorithm) {
  size_t bytes = 0;
  void *memory = nullptr;
  OK(algorithm(nullptr, bytes));
  OK(cudaMalloc(&memory, bytes));
  OK(algorithm(memory, bytes));
  OK(cudaFree(memory));
}

int main(int count, char **arguments) {
  const int n = 5000;
  std::vector<int> in(n), out(n), wanted(n);
  for (int i = 0; i < n; ++i)
    in[i] = i * 7919 % 10007;
  int *x, *y, sum = 0;
  OK(cudaMalloc(&x, n * 4));
  OK(cudaMalloc(&y, n * 4));
  OK(cudaMemcpy(x, in.data(), n * 4, cudaMemcpyHostToDevice));
  const auto read = [&] {
    OK(cudaMemcpy(out.data(), y, n * 4, cudaMemcpyDeviceToHost));
    return out;
  };

  run([=](void *memory, size_t &bytes) { return cub::DeviceReduce::Sum(memory, bytes, x, y, n); });
  OK(cudaMemcpy(&sum, y, 4, cudaMemcpyDeviceToHost));
  SAME(std::accumulate(in.begin(), in.end(), 0), sum);

  run([=](void *memory, size_t &bytes) { return cub::DeviceScan::InclusiveSum(memory, bytes, x, y, n); });
  std::partial_sum(in.begin(), in.end(), wanted.begin());
  SAME(true, wanted == read());

  run([=](void *memory, size_t &bytes) { return cub::DeviceRadixSort::SortKeys(memory, bytes, x, y, n); });
  wanted = in;
  std::sort(wanted.begin(), wanted.end());
  SAME(true, wanted == read());

  if (wantsFault(count, arguments)) {
    const auto values = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), Lookup{x});
    size_t bytes = 0;
    void *memory = nullptr;
    OK(cub::DeviceReduce::Sum(nullptr, bytes, values, y, n + 100));
    OK(cudaMalloc(&memory, bytes));
    cub::DeviceReduce::Sum(memory, bytes, values, y, n + 100);
    RETURNS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    return 1;
  }
  std::puts("ok");
}
