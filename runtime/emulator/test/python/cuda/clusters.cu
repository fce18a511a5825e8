// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clusters of blocks and the shared memory of others in a cluster.

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

// A histogram whose bins lie spread over the blocks of a cluster.
extern "C" __global__ void cluster_histogram(int n, int bins_per_block, const int *x, int *bins) {
  extern __shared__ int own[];
  cg::cluster_group cluster = cg::this_cluster();
  int rank = cluster.block_rank(), blocks = cluster.num_blocks();
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
    own[i] = 0;
  cluster.sync();
  for (int i = cluster.thread_rank() + blockIdx.x / blocks * cluster.num_threads(); i < n;
       i += gridDim.x / blocks * cluster.num_threads()) {
    int bin = x[i];
    int *remote = cluster.map_shared_rank(own, bin / bins_per_block);
    atomicAdd(remote + bin % bins_per_block, 1);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
    atomicAdd(&bins[rank * bins_per_block + i], own[i]);
}

// A fixed cluster of 2 x 2: what each block knows of its place.
extern "C" __global__ void __cluster_dims__(2, 2, 1) cluster_places(int *y) {
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    dim3 place = cluster.block_index(), size = cluster.dim_blocks();
    y[8 * block + 0] = cluster.block_rank();
    y[8 * block + 1] = cluster.num_blocks();
    y[8 * block + 2] = place.x;
    y[8 * block + 3] = place.y;
    y[8 * block + 4] = size.x * 10 + size.y;
    unsigned id_x, count_x, id_y;
    asm("mov.u32 %0, %%clusterid.x; mov.u32 %1, %%nclusterid.x;" : "=r"(id_x), "=r"(count_x));
    asm("mov.u32 %0, %%clusterid.y;" : "=r"(id_y));
    y[8 * block + 5] = id_x;
    y[8 * block + 6] = id_y;
    y[8 * block + 7] = count_x;
  }
}

// Each block reads its right neighbour's shared memory between two split barriers.
extern "C" __global__ void __cluster_dims__(4, 1, 1) ring(const int *x, int *y) {
  __shared__ int mine[64];
  cg::cluster_group cluster = cg::this_cluster();
  int i = blockIdx.x * 64 + threadIdx.x;
  mine[threadIdx.x] = x[i];
  auto token = cluster.barrier_arrive();
  int scaled = 3 * x[i];
  cluster.barrier_wait(std::move(token));
  int *theirs = cluster.map_shared_rank(mine, (cluster.block_rank() + 1) % 4);
  y[i] = theirs[63 - threadIdx.x] + scaled;
  cluster.sync();
}

// Block 0 pushes data to block 1 and arrives at its barrier from afar.
extern "C" __global__ void __cluster_dims__(2, 1, 1) remote_arrive(const int *x, int *y) {
  __shared__ alignas(8) uint64_t bar;
  __shared__ alignas(16) int buffer[128];
  cg::cluster_group cluster = cg::this_cluster();
  int rank = cluster.block_rank(), t = threadIdx.x;
  if (t == 0) {
    ptx::mbarrier_init(&bar, blockDim.x);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  cluster.sync();
  if (rank == 0) {
    int *theirs = cluster.map_shared_rank(buffer, 1);
    theirs[t] = x[blockIdx.x / 2 * blockDim.x + t] * 5;
    uint64_t *remote = cluster.map_shared_rank(&bar, 1);
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, remote);
  } else {
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0))
      ;
    y[blockIdx.x / 2 * blockDim.x + t] = buffer[blockDim.x - 1 - t];
  }
  cluster.sync();
}

// st.async: stores that complete bytes of the barrier they land beside.
extern "C" __global__ void __cluster_dims__(2, 1, 1) store_async(const int *x, int *y) {
  __shared__ alignas(8) uint64_t bar;
  __shared__ alignas(16) int buffer[64];
  cg::cluster_group cluster = cg::this_cluster();
  int other = cluster.block_rank() ^ 1, t = threadIdx.x;
  if (t == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &bar, 64 * 4);
  }
  cluster.sync();
  int value = x[blockIdx.x * 64 + t];
  ptx::st_async(cluster.map_shared_rank(&buffer[t], other), value, cluster.map_shared_rank(&bar, other));
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0))
    ;
  y[blockIdx.x * 64 + t] = buffer[t];
  cluster.sync();
}
