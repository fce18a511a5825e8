// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launch bounds, clusters, warp primitives, cooperative groups, wmma.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <mma.h>

namespace cg = cooperative_groups;
using namespace nvcuda;

__global__ void __launch_bounds__(256, 2) __cluster_dims__(2, 1, 1) reduce(float *values) {
  __shared__ float sums[8];
  cg::cluster_group cluster = cg::this_cluster();
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  float sum = cg::reduce(warp, values[threadIdx.x], cg::plus<float>());
  if (warp.thread_rank() == 0)
    sums[warp.meta_group_rank()] = sum;
  cluster.sync();
  values[threadIdx.x] = *cluster.map_shared_rank(&sums[threadIdx.x & 7], 1);
  cluster.sync();
}

__global__ void product(const half *a, const half *b, float *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
