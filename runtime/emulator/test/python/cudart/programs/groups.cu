// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cooperative groups: barriers of a grid, clusters by the kernel and by the launch.

#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void sumOfDoubles(int *x, int n, int *out, bool isRight) {
  cg::grid_group grid = cg::this_grid();
  for (int i = grid.thread_rank(); i < n; i += grid.size())
    x[i] *= 2;
  if (isRight)
    grid.sync();
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  if (grid.thread_rank() >= 32)
    return;
  int sum = 0;
  for (int i = warp.thread_rank(); i < n; i += 32)
    sum += x[i]; // fault: other blocks may not have written it
  sum = cg::reduce(warp, sum, cg::plus<int>());
  if (warp.thread_rank() == 0)
    *out = sum;
}

__global__ void __cluster_dims__(2, 1, 1) exchange(int *out) {
  __shared__ int mine;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0)
    mine = blockIdx.x + 1;
  cluster.sync();
  if (threadIdx.x == 0)
    out[blockIdx.x] = *cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
  cluster.sync();
}

__global__ void sizes(int *out) {
  if (threadIdx.x == 0)
    out[blockIdx.x] = cg::this_cluster().num_blocks();
}

int main(int count, char **arguments) {
  int n = 100, *x, *out;
  bool isRight = !wantsFault(count, arguments);
  OK(cudaMalloc(&x, n * 4));
  OK(cudaMallocManaged(&out, 64));
  int values[100];
  for (int i = 0; i < n; ++i)
    values[i] = i;
  OK(cudaMemcpy(x, values, n * 4, cudaMemcpyHostToDevice));
  void *parameters[] = {&x, &n, &out, &isRight};
  OK(cudaLaunchCooperativeKernel(sumOfDoubles, dim3(4), dim3(64), parameters, 0, nullptr));
  RETURNS(isRight ? cudaSuccess : cudaErrorLaunchFailure, cudaDeviceSynchronize());
  if (!isRight)
    return 1;
  SAME(9900, *out);
  RETURNS(cudaErrorCooperativeLaunchTooLarge,
          cudaLaunchCooperativeKernel(sumOfDoubles, dim3(100000), dim3(64), parameters, 0, nullptr));

  exchange<<<4, 32>>>(out);
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < 4; ++i)
    SAME((i ^ 1) + 1, out[i]);

  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {4, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(8);
  config.blockDim = dim3(32);
  config.attrs = &cluster;
  config.numAttrs = 1;
  OK(cudaLaunchKernelEx(&config, sizes, out));
  OK(cudaDeviceSynchronize());
  SAME(4, out[0]);
  SAME(4, out[7]);
  int clusters = 0;
  OK(cudaOccupancyMaxActiveClusters(&clusters, sizes, &config));
  SAME(true, clusters > 0);
  config.gridDim = dim3(6);
  RETURNS(cudaErrorInvalidClusterSize, cudaLaunchKernelEx(&config, sizes, out));
  std::puts("ok");
}
