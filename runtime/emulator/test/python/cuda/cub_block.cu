// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUB's block and warp primitives.

#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

struct Larger {
  __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};

extern "C" __global__ void block_reduce(const int *x, int *y) {
  using Reduce = cub::BlockReduce<int, 128, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  using Raking = cub::BlockReduce<int, 128, cub::BLOCK_REDUCE_RAKING>;
  __shared__ union {
    Reduce::TempStorage reduce;
    Raking::TempStorage raking;
  } storage;
  int value = x[blockIdx.x * 128 + threadIdx.x];
  int sum = Reduce(storage.reduce).Sum(value);
  __syncthreads();
  int greatest = Raking(storage.raking).Reduce(value, Larger());
  __syncthreads();
  int partial = Reduce(storage.reduce).Sum(value, 77);
  if (threadIdx.x == 0) {
    y[3 * blockIdx.x] = sum;
    y[3 * blockIdx.x + 1] = greatest;
    y[3 * blockIdx.x + 2] = partial;
  }
}

extern "C" __global__ void block_scan(const int *x, int *y, int *sums) {
  using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_TRANSPOSE>;
  using Scan = cub::BlockScan<int, 64>;
  __shared__ union {
    Load::TempStorage load;
    Store::TempStorage store;
    Scan::TempStorage scan;
  } storage;
  int values[4], total;
  Load(storage.load).Load(x + blockIdx.x * 256, values);
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(values, values, total);
  __syncthreads();
  Store(storage.store).Store(y + blockIdx.x * 256, values);
  if (threadIdx.x == 0)
    sums[blockIdx.x] = total;
}

// Guarded loads and stores of a last tile, vectorised where they may be.
extern "C" __global__ void guarded(int n, const int *x, int *y) {
  using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_VECTORIZE>;
  using Store = cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_STRIPED>;
  __shared__ Store::TempStorage storage;
  int values[4], begin = blockIdx.x * 256;
  if (n - begin >= 256)
    Load().Load(x + begin, values);
  else
    Load().Load(x + begin, values, n - begin, -1);
  Store(storage).Store(y + begin, values, n - begin);
}

extern "C" __global__ void radix_sort(unsigned *keys, int *values) {
  using Sort = cub::BlockRadixSort<unsigned, 64, 2, int>;
  __shared__ Sort::TempStorage storage;
  unsigned key[2];
  int value[2];
  for (int i = 0; i < 2; ++i) {
    key[i] = keys[threadIdx.x * 2 + i];
    value[i] = values[threadIdx.x * 2 + i];
  }
  Sort(storage).Sort(key, value, 0, 16);
  for (int i = 0; i < 2; ++i) {
    keys[threadIdx.x * 2 + i] = key[i];
    values[threadIdx.x * 2 + i] = value[i];
  }
}

extern "C" __global__ void warp_primitives(const int *x, int *y, const float *fx, float *fy) {
  using Reduce = cub::WarpReduce<int>;
  using Scan = cub::WarpScan<int>;
  using Short = cub::WarpReduce<float, 16>;
  __shared__ Reduce::TempStorage reduce[2];
  __shared__ Scan::TempStorage scan[2];
  __shared__ Short::TempStorage shorter[4];
  int t = threadIdx.x, warp = t / 32, value = x[t], inclusive, exclusive;
  int sum = Reduce(reduce[warp]).Sum(value);
  int head = Reduce(reduce[warp]).HeadSegmentedSum(value, value % 5 == 0);
  Scan(scan[warp]).Scan(value, inclusive, exclusive, Larger());
  int broadcast = Scan(scan[warp]).Broadcast(value, 7);
  float least = Short(shorter[t / 16]).Reduce(fx[t], cuda::minimum<>{});
  y[t] = t % 32 == 0 ? sum : 0;
  y[64 + t] = t % 32 == 0 || value % 5 == 0 ? head : 0;
  y[128 + t] = inclusive;
  y[192 + t] = t % 32 == 0 ? 0 : exclusive;
  y[256 + t] = broadcast;
  fy[t] = t % 16 == 0 ? least : 0;
}
