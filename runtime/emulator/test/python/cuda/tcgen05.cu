// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blackwell's tensor memory: allocation, copies in and out, products in FP8 and bf16, with
// block scales, and of two blocks together. Tiles come by TMA with a swizzle of 128 bytes.

#include <cuda.h>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr uint32_t kF32 = 1u << 4;
constexpr uint32_t kBf16 = 1u << 7 | 1u << 10;

__host__ __device__ constexpr uint32_t shape(uint32_t m, uint32_t n) { return n / 8 << 17 | m / 16 << 24; }

// A shared memory descriptor of Blackwell; stride in bytes; swizzle 2 is that of 128 bytes, 0 none.
__device__ uint64_t descriptor(const void *tile, unsigned leading, unsigned stride, uint64_t swizzle) {
  uint64_t address = __cvta_generic_to_shared(tile);
  return (address & 0x3ffff) >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | 1ull << 46 |
         swizzle << 61;
}

__device__ void begin(uint64_t *bars, int count) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < count; ++i)
      ptx::mbarrier_init(&bars[i], 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
}

__device__ void await(uint64_t *bar, unsigned parity) {
  while (!ptx::mbarrier_try_wait_parity(bar, parity))
    ;
}

__device__ void load(void *tile, const CUtensorMap *map, int x, int y, uint64_t *bar) {
  int32_t at[2] = {x, y};
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, map, at, bar);
}

// Warp 0 allocates; everyone learns where.
template <typename Group>
__device__ uint32_t allocate(Group group, uint32_t *where, uint32_t columns) {
  if (threadIdx.x < 32) {
    ptx::tcgen05_alloc(group, where, columns);
    ptx::tcgen05_relinquish_alloc_permit(group);
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  return *where;
}

template <typename Group>
__device__ void release(Group group, uint32_t address, uint32_t columns) {
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  if (threadIdx.x < 32)
    ptx::tcgen05_dealloc(group, address, columns);
}

// Each warp reads its 32 lanes, 64 columns at a time.
__device__ void put(uint32_t address, int columns, uint32_t *c) {
  ptx::tcgen05_fence_after_thread_sync();
  for (int first = 0; first < columns; first += 64) {
    uint32_t row[64];
    ptx::tcgen05_ld_32x32b(row, address + (threadIdx.x / 32 * 32 << 16) + first);
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 64; ++i)
      c[threadIdx.x * columns + first + i] = row[i];
  }
}

// c (128 x 64) = a (128 x 128 bytes of K) x b (64 x 128 bytes)^T.
template <typename Kind>
__device__ void product(const CUtensorMap *a, const CUtensorMap *b, Kind kind, uint32_t instruction, uint32_t *c) {
  __shared__ alignas(1024) unsigned char tile_a[128 * 128], tile_b[64 * 128];
  __shared__ alignas(8) uint64_t bars[2];
  __shared__ uint32_t where;
  begin(bars, 2);
  uint32_t sums = allocate(ptx::cta_group_1, &where, 64);
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bars[0], 192 * 128);
    load(tile_a, a, 0, 0, &bars[0]);
    load(tile_b, b, 0, 0, &bars[0]);
    await(&bars[0], 0);
    for (int i = 0; i < 4; ++i)
      ptx::tcgen05_mma(kind, ptx::cta_group_1, sums, descriptor(tile_a + 32 * i, 16, 1024, 2),
                       descriptor(tile_b + 32 * i, 16, 1024, 2), instruction | shape(128, 64), i > 0);
    ptx::tcgen05_commit(ptx::cta_group_1, &bars[1]);
  }
  await(&bars[1], 0);
  put(sums, 64, c);
  release(ptx::cta_group_1, sums, 64);
}

extern "C" __global__ void __launch_bounds__(128)
    tcgen05_e4m3(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, uint32_t *c) {
  product(&a, &b, ptx::kind_f8f6f4, kF32, c);
}

extern "C" __global__ void __launch_bounds__(128)
    tcgen05_bf16(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, uint32_t *c) {
  product(&a, &b, ptx::kind_f16, kF32 | kBf16, c);
}

// The same in e4m3 with a scale in E8M0 per 32 of K: scales of 128 rows are 512 bytes, laid
// out as 32 x 16: byte (row % 32) * 16 + row / 32 * 4 + group.
extern "C" __global__ void __launch_bounds__(128)
    tcgen05_mx(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const uint32_t *scale_a,
               const uint32_t *scale_b, uint32_t *c) {
  __shared__ alignas(1024) unsigned char tile_a[128 * 128], tile_b[64 * 128];
  __shared__ alignas(128) uint32_t scales_a[128], scales_b[128];
  __shared__ alignas(8) uint64_t bars[2];
  __shared__ uint32_t where;
  begin(bars, 2);
  scales_a[threadIdx.x] = scale_a[threadIdx.x];
  scales_b[threadIdx.x] = scale_b[threadIdx.x];
  ptx::fence_proxy_async(ptx::space_shared);
  uint32_t sums = allocate(ptx::cta_group_1, &where, 128), for_a = sums + 64, for_b = sums + 68;
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bars[0], 192 * 128);
    load(tile_a, &a, 0, 0, &bars[0]);
    load(tile_b, &b, 0, 0, &bars[0]);
    await(&bars[0], 0);
    ptx::tcgen05_cp_32x128b_warpx4(ptx::cta_group_1, for_a, descriptor(scales_a, 128, 128, 0));
    ptx::tcgen05_cp_32x128b_warpx4(ptx::cta_group_1, for_b, descriptor(scales_b, 128, 128, 0));
    for (uint32_t i = 0; i < 4; ++i) {
      // Bit 23: scales are E8M0; bits 4 and 29: which byte of each scale word.
      uint32_t instruction = shape(128, 64) | 1u << 23 | i << 4 | i << 29;
      ptx::tcgen05_mma_block_scale_vec_1x(ptx::kind_mxf8f6f4, ptx::cta_group_1, sums,
                                          descriptor(tile_a + 32 * i, 16, 1024, 2),
                                          descriptor(tile_b + 32 * i, 16, 1024, 2), instruction, for_a, for_b, i > 0);
    }
    ptx::tcgen05_commit(ptx::cta_group_1, &bars[1]);
  }
  await(&bars[1], 0);
  put(sums, 64, c);
  release(ptx::cta_group_1, sums, 128);
}

// Two blocks: each has 128 rows of a (256 x 128) and 32 of b (64 x 128); the first multiplies for both.
extern "C" __global__ void __launch_bounds__(128) __cluster_dims__(2, 1, 1)
    tcgen05_pair(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, uint32_t *c) {
  __shared__ alignas(1024) unsigned char tile_a[128 * 128], tile_b[32 * 128];
  __shared__ alignas(8) uint64_t bars[2];
  __shared__ uint32_t where;
  int rank = ptx::get_sreg_cluster_ctarank();
  begin(bars, 2);
  uint32_t sums = allocate(ptx::cta_group_2, &where, 64);
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bars[0], 160 * 128);
    load(tile_a, &a, 0, rank * 128, &bars[0]);
    load(tile_b, &b, 0, rank * 32, &bars[0]);
    await(&bars[0], 0);
  }
  __syncthreads();
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  if (rank == 0 && threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i)
      ptx::tcgen05_mma(ptx::kind_f8f6f4, ptx::cta_group_2, sums, descriptor(tile_a + 32 * i, 16, 1024, 2),
                       descriptor(tile_b + 32 * i, 16, 1024, 2), kF32 | shape(256, 64), i > 0);
    ptx::tcgen05_commit_multicast(ptx::cta_group_2, &bars[1], (uint16_t)3);
  }
  await(&bars[1], 0);
  put(sums, 64, c + rank * 128 * 64);
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  release(ptx::cta_group_2, sums, 64);
}

// y: what 32x32b stored, read as 16x256b (the first 16 lanes of each warp) and as 32x32b
// packed to 16 bits; then what 16x64b stored and read again.
extern "C" __global__ void __launch_bounds__(128) tcgen05_shapes(const uint32_t *x, uint32_t *y) {
  __shared__ uint32_t where;
  uint32_t memory = allocate(ptx::cta_group_1, &where, 32), mine = memory + (threadIdx.x / 32 * 32 << 16);
  uint32_t row[16], read[4], two[8], packed[8];
  for (int i = 0; i < 16; ++i)
    row[i] = x[threadIdx.x * 16 + i];
  ptx::tcgen05_st_32x32b(mine, row);
  ptx::tcgen05_wait_st();
  ptx::tcgen05_ld_16x256b(read, mine + 8);
  ptx::tcgen05_ld_32x32b_pack_16b(packed, mine);
  ptx::tcgen05_wait_ld();
  for (int i = 0; i < 8; ++i)
    two[i] = row[15 - i];
  ptx::tcgen05_st_16x64b(mine, two);
  ptx::tcgen05_wait_st();
  ptx::tcgen05_ld_16x64b(two, mine);
  ptx::tcgen05_wait_ld();
  for (int i = 0; i < 4; ++i)
    y[threadIdx.x * 20 + i] = read[i];
  for (int i = 0; i < 8; ++i) {
    y[threadIdx.x * 20 + 4 + i] = packed[i];
    y[threadIdx.x * 20 + 12 + i] = two[i];
  }
  release(ptx::cta_group_1, memory, 32);
}
