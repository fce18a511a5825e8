// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hopper's warpgroup products: operands in shared memory by descriptors, swizzled and not,
// in both orders, A from registers, sums in f32, f16 and s32; a ring of buffers that one
// warpgroup fills by TMA and another consumes.

#include <cuda.h>
#include <cuda/ptx>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace ptx = cuda::ptx;

// A shared memory descriptor; offsets in bytes; swizzle 1 is that of 128 bytes, 0 none.
__device__ uint64_t descriptor(const void *tile, unsigned leading, unsigned stride, uint64_t swizzle) {
  uint64_t address = __cvta_generic_to_shared(tile);
  return (address & 0x3ffff) >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | swizzle << 62;
}

__device__ void fence_wgmma() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_wgmma() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ void wait_wgmma() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

#define TARGETS4(R, I) "+" R(d[I]), "+" R(d[I + 1]), "+" R(d[I + 2]), "+" R(d[I + 3])
#define TARGETS16(R, I) TARGETS4(R, I), TARGETS4(R, I + 4), TARGETS4(R, I + 8), TARGETS4(R, I + 12)

// d (64 x 64) = a x b, or += where accumulate says so; 32 sums per thread.
#define PRODUCT64(NAME, KIND, T, R, FLAGS)                                                                             \
  __device__ void NAME(T(&d)[32], uint64_t a, uint64_t b, int accumulate) {                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                                          \
                 "wgmma.mma_async.sync.aligned." KIND "\n"                                                             \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                             \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "                   \
                 "%32, %33, p" FLAGS ";\n}"                                                                            \
                 : TARGETS16(R, 0), TARGETS16(R, 16)                                                                   \
                 : "l"(a), "l"(b), "r"(accumulate));                                                                   \
  }
PRODUCT64(product_e4m3, "m64n64k32.f32.e4m3.e4m3", float, "f", ", 1, 1")
PRODUCT64(product_e5m2_negated, "m64n64k32.f32.e5m2.e4m3", float, "f", ", -1, 1")
PRODUCT64(product_s8, "m64n64k32.s32.s8.s8", int, "r", "")
PRODUCT64(product_tf32, "m64n64k8.f32.tf32.tf32", float, "f", ", 1, 1")

// Where the sums of a thread lie: two neighbours in each of two rows, every 8 columns.
template <typename T>
__device__ void put(T *c, int stride, const T (&d)[32]) {
  int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = 0; i < 32; ++i)
    c[(row + i / 2 % 2 * 8) * stride + column + i / 4 * 8 + i % 2] = d[i];
}

__device__ void begin(uint64_t *bar, unsigned count) { ptx::mbarrier_init(bar, count); }

__device__ void await(uint64_t *bar, unsigned parity) {
  while (!ptx::mbarrier_try_wait_parity(bar, parity))
    ;
}

__device__ void load(void *tile, const CUtensorMap *map, int x, int y, uint64_t *bar) {
  int32_t at[2] = {x, y};
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, map, at, bar);
}

// c (64 x 64) = a (64 x k bytes) x b (64 x k bytes)^T, 128 bytes of K at a time by TMA.
template <typename T, typename Product>
__device__ void one_tile(const CUtensorMap *a, const CUtensorMap *b, int k, int elements, T *c, Product product) {
  __shared__ alignas(1024) unsigned char tile_a[64 * 128], tile_b[64 * 128];
  __shared__ alignas(8) uint64_t bar;
  if (threadIdx.x == 0) {
    begin(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  T d[32] = {};
  for (int step = 0; step < k / 128; ++step) {
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 2 * 64 * 128);
      load(tile_a, a, step * elements, 0, &bar);
      load(tile_b, b, step * elements, 0, &bar);
    }
    await(&bar, step & 1);
    fence_wgmma();
    for (int i = 0; i < 4; ++i)
      product(d, descriptor(tile_a + 32 * i, 16, 1024, 1), descriptor(tile_b + 32 * i, 16, 1024, 1), step || i);
    commit_wgmma();
    wait_wgmma<0>();
    __syncthreads();
  }
  put(c, 64, d);
}

#define ONE_TILE(NAME, T, ELEMENTS)                                                                                    \
  extern "C" __global__ void __launch_bounds__(128) wgmma_##NAME(                                                      \
      const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, int k, T *c) {                     \
    one_tile(&a, &b, k, ELEMENTS, c,                                                                                   \
             [](T(&d)[32], uint64_t x, uint64_t y, int more) { product_##NAME(d, x, y, more); });                      \
  }
ONE_TILE(e4m3, float, 128)
ONE_TILE(e5m2_negated, float, 128)
ONE_TILE(s8, int, 128)
ONE_TILE(tf32, float, 32)

// A from registers, B (16 x 64, row by row) in shared memory in its own order; swizzled by hand.
extern "C" __global__ void __launch_bounds__(128)
    wgmma_bf16_registers(const __nv_bfloat16 *a, const uint4 *b, float *c) {
  __shared__ alignas(1024) unsigned char tile_b[16 * 128];
  int t = threadIdx.x, row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  *(uint4 *)&tile_b[t / 8 * 128 + (t % 8 ^ t / 8 % 8) * 16] = b[t];
  uint32_t fa[4];
  for (int i = 0; i < 4; ++i)
    fa[i] = *(const uint32_t *)&a[(row + i % 2 * 8) * 16 + column + i / 2 * 8];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  float d[32];
  for (float &sum : d)
    sum = 1.0f;
  fence_wgmma();
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16\n"
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
               "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
               : TARGETS16("f", 0), TARGETS16("f", 16)
               : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "l"(descriptor(tile_b, 0, 1024, 1)));
  commit_wgmma();
  wait_wgmma<0>();
  put(c, 64, d);
}

// 64 x 16 x 16 in f16 with sums in f16; tiles of 8 rows x 16 bytes, not swizzled.
extern "C" __global__ void __launch_bounds__(128) wgmma_f16_sums(const uint4 *a, const uint4 *b, uint32_t *c) {
  __shared__ alignas(128) uint4 tile_a[64 * 2], tile_b[16 * 2];
  int t = threadIdx.x;
  tile_a[t / 16 * 16 + t % 2 * 8 + t / 2 % 8] = a[t];
  if (t < 32)
    tile_b[t / 16 * 16 + t % 2 * 8 + t / 2 % 8] = b[t];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  uint32_t d[4] = {};
  fence_wgmma();
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;"
               : TARGETS4("r", 0)
               : "l"(descriptor(tile_a, 128, 256, 0)), "l"(descriptor(tile_b, 128, 256, 0)));
  commit_wgmma();
  wait_wgmma<0>();
  int row = t / 32 * 16 + t % 32 / 4;
  for (int i = 0; i < 4; ++i)
    c[((row + i % 2 * 8) * 16 + t % 4 * 2 + i / 2 * 8) / 2] = d[i];
}

// c = a x b^T, m x n x k in tiles of 64 x 64 x 128: the first warpgroup loads, the second
// multiplies, three buffers between them, one product still in flight at each release.
extern "C" __global__ void __launch_bounds__(256, 1)
    wgmma_pipeline(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, int n, int k, float *c) {
  constexpr int kStages = 3, kTile = 64 * 128;
  extern __shared__ __align__(1024) unsigned char tiles[];
  __shared__ alignas(8) uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      begin(&full[i], 1);
      begin(&empty[i], 128);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  int steps = k / 128;
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      for (int step = 0; step < steps; ++step) {
        int slot = step % kStages;
        unsigned char *tile = tiles + slot * 2 * kTile;
        await(&empty[slot], step / kStages % 2 ^ 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[slot], 2 * kTile);
        load(tile, &a, step * 128, blockIdx.y * 64, &full[slot]);
        load(tile + kTile, &b, step * 128, blockIdx.x * 64, &full[slot]);
      }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[32];
  for (int step = 0; step < steps; ++step) {
    int slot = step % kStages;
    unsigned char *tile = tiles + slot * 2 * kTile;
    await(&full[slot], step / kStages % 2);
    fence_wgmma();
    for (int i = 0; i < 4; ++i)
      product_e4m3(d, descriptor(tile + 32 * i, 16, 1024, 1), descriptor(tile + kTile + 32 * i, 16, 1024, 1), step || i);
    commit_wgmma();
    wait_wgmma<1>();
    if (step > 0)
      ptx::mbarrier_arrive(&empty[(step - 1) % kStages]);
  }
  wait_wgmma<0>();
  put(c + blockIdx.y * 64 * n + blockIdx.x * 64, n, d);
}
