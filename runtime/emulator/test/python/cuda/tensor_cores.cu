// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.sync by inline PTX, with ldmatrix and, from Hopper on, stmatrix. Each kernel is one
// warp and one tile; fragments are loaded by their documented layouts.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

__device__ uint32_t word(const void *base, int bytes) { return *(const uint32_t *)((const char *)base + bytes); }

// The 16 x 8 accumulator: two neighbours in rows lane / 4 and lane / 4 + 8.
template <typename T>
__device__ void put(T *d, const T *values) {
  int row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
  d[row * 8 + column] = values[0], d[row * 8 + column + 1] = values[1];
  d[(row + 8) * 8 + column] = values[2], d[(row + 8) * 8 + column + 1] = values[3];
}

// A: 16 rows of 32 bytes, B: 8 columns of 32 bytes.
#define FRAGMENTS                                                                                                      \
  int row = threadIdx.x / 4, byte = threadIdx.x % 4 * 4;                                                               \
  uint32_t fa[4] = {word(a, row * 32 + byte), word(a, (row + 8) * 32 + byte), word(a, row * 32 + byte + 16),           \
                    word(a, (row + 8) * 32 + byte + 16)};                                                              \
  uint32_t fb[2] = {word(b, row * 32 + byte), word(b, row * 32 + byte + 16)};

#define MMA(NAME, SHAPE, TYPES, ACC, CONSTRAINT)                                                                       \
  extern "C" __global__ void NAME(const void *a, const void *b, const ACC *c, ACC *d) {                                \
    FRAGMENTS                                                                                                          \
    int at = threadIdx.x / 4 * 8 + threadIdx.x % 4 * 2;                                                                \
    ACC sum[4] = {c[at], c[at + 1], c[at + 64], c[at + 65]};                                                           \
    asm volatile("mma.sync.aligned." SHAPE "." TYPES                                                                   \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                    \
                 : "+" CONSTRAINT(sum[0]), "+" CONSTRAINT(sum[1]), "+" CONSTRAINT(sum[2]), "+" CONSTRAINT(sum[3])      \
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));                            \
    put(d, sum);                                                                                                       \
  }

MMA(mma_e4m3, "m16n8k32.row.col", "f32.e4m3.e4m3.f32", float, "f")
MMA(mma_e5m2, "m16n8k32.row.col", "f32.e5m2.e5m2.f32", float, "f")
MMA(mma_mixed, "m16n8k32.row.col", "f32.e4m3.e5m2.f32", float, "f")
MMA(mma_f16, "m16n8k16.row.col", "f32.f16.f16.f32", float, "f")
MMA(mma_bf16, "m16n8k16.row.col", "f32.bf16.bf16.f32", float, "f")
MMA(mma_tf32, "m16n8k8.row.col", "f32.tf32.tf32.f32", float, "f")
MMA(mma_s8, "m16n8k32.row.col", "s32.s8.s8.s32", int, "r")
MMA(mma_u8s8, "m16n8k32.row.col.satfinite", "s32.u8.s8.s32", int, "r")
MMA(mma_s4, "m16n8k64.row.col", "s32.s4.s4.s32", int, "r")

// Sums in f16: two registers.
extern "C" __global__ void mma_f16_sums(const void *a, const void *b, const uint32_t *c, uint32_t *d) {
  FRAGMENTS
  int at = threadIdx.x / 4 * 4 + threadIdx.x % 4;
  uint32_t sum[2] = {c[at], c[at + 32]};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
               : "+r"(sum[0]), "+r"(sum[1])
               : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  d[at] = sum[0], d[at + 32] = sum[1];
}

__device__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// c = a x b in bf16, m x n x k in whole tiles of 16 x 8 x 16; b is k x n, loaded transposed.
extern "C" __global__ void gemm_bf16(int n, int k, const uint4 *a, const uint4 *b, __nv_bfloat16 *c) {
  __shared__ uint4 tile_a[16 * 2], tile_b[16];
  float sum[4] = {};
  int t = threadIdx.x;
  for (int step = 0; step < k; step += 16) {
    __syncwarp();
    tile_a[t] = a[((blockIdx.y * 16 + t / 2) * k + step) / 8 + t % 2];
    if (t < 16)
      tile_b[t] = b[((step + t) * n + blockIdx.x * 8) / 8];
    __syncwarp();
    uint32_t fa[4], fb[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"(shared_address(&tile_a[t % 16 * 2 + t / 16])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(fb[0]), "=r"(fb[1])
                 : "r"(shared_address(&tile_b[t % 16])));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  }
  int row = blockIdx.y * 16 + t / 4, column = blockIdx.x * 8 + t % 4 * 2;
  *(__nv_bfloat162 *)&c[row * n + column] = __floats2bfloat162_rn(sum[0], sum[1]);
  *(__nv_bfloat162 *)&c[(row + 8) * n + column] = __floats2bfloat162_rn(sum[2], sum[3]);
}

// Which element each lane gets of one, two and four 8 x 8 matrices, straight and transposed.
extern "C" __global__ void matrix_loads(const uint4 *x, uint32_t *y) {
  __shared__ uint4 rows[32];
  int t = threadIdx.x;
  rows[t] = x[t];
  __syncwarp();
  uint32_t at = shared_address(&rows[t]), r[11];
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[1]) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5])
               : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[6]), "=r"(r[7]), "=r"(r[8]), "=r"(r[9])
               : "r"(at));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[10]) : "r"(r[6]));
  for (int i = 0; i < 11; ++i)
    y[i * 32 + t] = r[i];
}

#if __CUDA_ARCH__ >= 900
// Back again: what stmatrix stores is what ldmatrix loaded.
extern "C" __global__ void matrix_stores(const uint32_t *x, uint4 *y) {
  __shared__ uint4 rows[4][32];
  int t = threadIdx.x;
  for (int i = 0; i < 4; ++i)
    rows[i][t] = make_uint4(0, 0, 0, 0);
  __syncwarp();
  uint32_t r[4] = {x[t], x[32 + t], x[64 + t], x[96 + t]};
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(shared_address(&rows[0][t])), "r"(r[0]));
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(shared_address(&rows[1][t])),
               "r"(r[0]), "r"(r[1]));
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(&rows[2][t])),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   shared_address(&rows[3][t])),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  __syncwarp();
  for (int i = 0; i < 4; ++i)
    y[i * 32 + t] = rows[i][t];
}
#endif
