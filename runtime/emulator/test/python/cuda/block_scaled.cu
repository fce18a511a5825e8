// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.sync of consumer Blackwell: products of FP8, FP6 and FP4, plain and with block
// scales. One warp, one tile of 16 x 8; fragments by their documented layouts.

#include <stdint.h>

__device__ uint32_t word(const void *base, int bytes) { return *(const uint32_t *)((const char *)base + bytes); }

// A: 16 rows of 32 bytes, B: 8 columns of 32 bytes; FP6 and FP4 one per byte but in kinds of FP4.
#define FRAGMENTS                                                                                                      \
  int row = threadIdx.x / 4, byte = threadIdx.x % 4 * 4, at = row * 8 + threadIdx.x % 4 * 2;                           \
  uint32_t fa[4] = {word(a, row * 32 + byte), word(a, (row + 8) * 32 + byte), word(a, row * 32 + byte + 16),           \
                    word(a, (row + 8) * 32 + byte + 16)};                                                              \
  uint32_t fb[2] = {word(b, row * 32 + byte), word(b, row * 32 + byte + 16)};                                          \
  float d[4] = {c[at], c[at + 1], c[at + 64], c[at + 65]};

#define PUT d_out[at] = d[0], d_out[at + 1] = d[1], d_out[at + 64] = d[2], d_out[at + 65] = d[3];

#define PLAIN(NAME, TYPES)                                                                                             \
  extern "C" __global__ void NAME(const void *a, const void *b, const float *c, float *d_out) {                        \
    FRAGMENTS                                                                                                          \
    asm volatile("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col." TYPES                                               \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                    \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                      \
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));                            \
    PUT                                                                                                                \
  }
PLAIN(mma_e3m2_e2m3, "f32.e3m2.e2m3.f32")
PLAIN(mma_e4m3_e2m1, "f32.e4m3.e2m1.f32")

// Scales: `SCALES` bytes per row of a and per column of b. Every pair of lanes of a quad
// holds rows q and q + 8, every lane column q, so that all selectors find the same.
#define SCALED(NAME, KIND, SCALES, TYPE)                                                                               \
  extern "C" __global__ void NAME(const void *a, const void *b, const float *c, const TYPE *scale_a,                   \
                                  const TYPE *scale_b, float *d_out) {                                                 \
    FRAGMENTS                                                                                                          \
    uint32_t sa = scale_a[row + threadIdx.x % 2 * 8], sb = scale_b[row];                                               \
    asm volatile("mma.sync.aligned." KIND " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, "          \
                 "{%10}, {%12, %13}, {%11}, {%12, %13};"                                                               \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                      \
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]), "r"(sa), "r"(sb),           \
                   "h"((uint16_t)0), "h"((uint16_t)0));                                                                \
    PUT                                                                                                                \
  }
SCALED(mma_mx_e4m3, "kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0", 1, uint8_t)
SCALED(mma_mx_e5m2_e2m1, "kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e5m2.e2m1.f32.ue8m0", 1, uint8_t)
SCALED(mma_mxf4, "kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", 2, uint16_t)
SCALED(mma_nvf4, "kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3", 4, uint32_t)
