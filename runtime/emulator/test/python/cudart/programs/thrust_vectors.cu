// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thrust's vectors and algorithms.

#include "check.h"

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/for_each.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
struct IsEven {
  __host__ __device__ bool operator()(int x) const { return x % 2 == 0; }
};
struct Increment {
  int *x;
  __device__ void operator()(int i) const {
    x[i] += 1; // fault: more than there are
  }
};

int main(int count, char **arguments) {
  const int n = 1000;
  thrust::device_vector<int> x(n);
  thrust::sequence(x.begin(), x.end());
  thrust::transform(x.begin(), x.end(), x.begin(), Square());
  SAME(332833500, thrust::reduce(x.begin(), x.end()));

  thrust::host_vector<int> keys(n);
  for (int i = 0; i < n; ++i)
    keys[i] = i * 7919 % 1009;
  thrust::device_vector<int> sorted = keys, places(n), evens(n), sums(n);
  thrust::sequence(places.begin(), places.end());
  thrust::sort_by_key(sorted.begin(), sorted.end(), places.begin());
  const thrust::host_vector<int> order = places;
  for (int i = 1; i < n; ++i)
    SAME(true, keys[order[i - 1]] < keys[order[i]]);

  thrust::sequence(x.begin(), x.end());
  const auto end = thrust::copy_if(x.begin(), x.end(), evens.begin(), IsEven());
  SAME(500, end - evens.begin());
  SAME(998, evens[499]);
  thrust::inclusive_scan(x.begin(), x.end(), sums.begin());
  SAME(499500, sums[999]);

  const bool isWrong = wantsFault(count, arguments);
  try {
    thrust::for_each(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(isWrong ? n + 500 : n),
                     Increment{thrust::raw_pointer_cast(x.data())});
  } catch (const thrust::system_error &error) {
    std::printf("%s\n", error.what());
    // The destructors of vectors cannot give their memory back any more.
    std::_Exit(1);
  }
  SAME(1000, x[999]);
  std::puts("ok");
}
