// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bulk copy engine: plain copies, tensor tiles of 1 to 5 dimensions as the tensor map
// says, stores, reductions, multicast. What lies in shared memory is copied out as it
// stands, so that swizzles and fills are seen.

#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>

// Barriers in shared memory are initialised by init().
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

extern __shared__ __align__(1024) unsigned char tile[];

__device__ void begin(uint64_t *bar, unsigned bytes) {
  ptx::mbarrier_init(bar, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, bytes);
}

__device__ void await(uint64_t *bar, unsigned parity) {
  while (!ptx::mbarrier_try_wait_parity(bar, parity))
    ;
}

__device__ void copy_out(const void *shared, void *to, unsigned bytes) {
  for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x)
    ((int *)to)[i] = ((const int *)shared)[i];
}

// x -> shared -> doubled -> y, 256 words a block.
extern "C" __global__ void bulk_copy(const int *x, int *y) {
  __shared__ alignas(128) int buffer[256];
  __shared__ alignas(8) uint64_t bar;
  if (threadIdx.x == 0) {
    begin(&bar, 1024);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, buffer, x + blockIdx.x * 256, 1024, &bar);
  }
  __syncthreads();
  await(&bar, 0);
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    buffer[i] *= 2;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + blockIdx.x * 256, buffer, 1024);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}

// The same through cuda::barrier and cuda::device::memcpy_async_tx.
extern "C" __global__ void barrier_copy(const int *x, int *y) {
  __shared__ alignas(128) int buffer[128];
  __shared__ Barrier bar;
  if (threadIdx.x == 0)
    init(&bar, blockDim.x);
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(buffer, x, cuda::aligned_size_t<16>(512), bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, 512);
  } else {
    token = bar.arrive();
  }
  bar.wait(std::move(token));
  y[threadIdx.x] = buffer[127 - threadIdx.x];
}

// Every block adds its numbers to global memory: integers, minima and f32 sums.
extern "C" __global__ void bulk_reduce(const int *x, int *sums, int *least, float *floats) {
  __shared__ alignas(128) int values[64];
  __shared__ alignas(128) float fractions[64];
  values[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  fractions[threadIdx.x] = values[threadIdx.x] * 0.25f;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, sums, values, 256);
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_min, least, values, 256);
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, floats, fractions, 256);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

// From the shared memory of a block to that of its neighbour in the cluster.
extern "C" __global__ void __cluster_dims__(2, 1, 1) bulk_to_neighbour(const int *x, int *y) {
  __shared__ alignas(128) int mine[64], theirs[64];
  __shared__ alignas(8) uint64_t bar;
  unsigned rank = ptx::get_sreg_cluster_ctarank();
  mine[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x] + 1;
  if (threadIdx.x == 0)
    begin(&bar, 256);
  ptx::fence_proxy_async(ptx::space_shared);
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  if (threadIdx.x == 0) {
    int *to;
    uint64_t *remote;
    asm("mapa.u64 %0, %1, %2;" : "=l"(to) : "l"(theirs), "r"(rank ^ 1));
    asm("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"(&bar), "r"(rank ^ 1));
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, to, mine, 256, remote);
  }
  await(&bar, 0);
  y[blockIdx.x * 64 + threadIdx.x] = theirs[63 - threadIdx.x];
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}

// One tile of a tensor of `Dims` dimensions at the coordinates given.
template <int Dims>
__device__ void load_tile(const CUtensorMap *map, const int *coordinates, unsigned bytes, void *y) {
  __shared__ alignas(8) uint64_t bar;
  if (threadIdx.x == 0) {
    begin(&bar, bytes);
    int32_t at[Dims];
    for (int i = 0; i < Dims; ++i)
      at[i] = coordinates[i];
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, map, at, &bar);
  }
  __syncthreads();
  await(&bar, 0);
  copy_out(tile, y, bytes);
}

#define LOAD_TILE(DIMS)                                                                                                \
  extern "C" __global__ void load_tile_##DIMS##d(const __grid_constant__ CUtensorMap map, const int *coordinates,      \
                                                 unsigned bytes, void *y) {                                            \
    load_tile<DIMS>(&map, coordinates, bytes, y);                                                                      \
  }
LOAD_TILE(1)
LOAD_TILE(2)
LOAD_TILE(3)
LOAD_TILE(4)
LOAD_TILE(5)

// A tile of consecutive bytes 0, 1, 2, … as shared memory holds it, stored or added.
extern "C" __global__ void store_tile_2d(const __grid_constant__ CUtensorMap map, int column, int row, unsigned bytes,
                                         const int *x, int add) {
  for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x)
    ((int *)tile)[i] = x[i];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    int32_t at[2] = {column, row};
    if (add)
      ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &map, at, tile);
    else
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, at, tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

// The map comes from global memory; tiles are fetched in turns through two buffers.
extern "C" __global__ void stream_tiles(const CUtensorMap *map, int tiles, unsigned bytes, unsigned char *y) {
  unsigned char *buffers = tile;
  __shared__ alignas(8) uint64_t bars[2];
  if (threadIdx.x == 0) {
    ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, map, ptx::n32_t<128>());
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
    for (int i = 0; i < 2; ++i) {
      begin(&bars[i], bytes);
      int32_t at[2] = {0, i * 8};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, buffers + i * bytes, map, at, &bars[i]);
    }
  }
  __syncthreads();
  for (int i = 0; i < tiles; ++i) {
    await(&bars[i % 2], i / 2 % 2);
    copy_out(buffers + i % 2 * bytes, y + i * bytes, bytes);
    __syncthreads();
    if (threadIdx.x == 0 && i + 2 < tiles) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bars[i % 2], bytes);
      int32_t at[2] = {0, (i + 2) * 8};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, buffers + i % 2 * bytes, map, at, &bars[i % 2]);
    }
  }
}

// Each of two blocks fetches half of a tile for both.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    multicast(const __grid_constant__ CUtensorMap map, unsigned half, unsigned char *y) {
  __shared__ alignas(8) uint64_t bar;
  unsigned rank = ptx::get_sreg_cluster_ctarank();
  if (threadIdx.x == 0)
    begin(&bar, 2 * half);
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  if (threadIdx.x == 0) {
    int32_t at[2] = {0, (int)rank * 8};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile + rank * half, &map, at, &bar, (uint16_t)3);
  }
  await(&bar, 0);
  copy_out(tile, y + rank * 2 * half, 2 * half);
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}
