// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions over warps, blocks and the grid: shuffles, votes, matches, shared trees and
// atomic operations of every type.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

__device__ float warp_sum(float value) {
  for (int offset = 16; offset; offset /= 2)
    value += __shfl_xor_sync(0xffffffff, value, offset);
  return value;
}

// One sum per block, in a fixed order: xor shuffles within warps, then among warps.
extern "C" __global__ void block_sum(const float *x, float *sums) {
  __shared__ float partial[32];
  float value = warp_sum(x[INDEX]);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = warp_sum(threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0)
      sums[blockIdx.x] = value;
  }
}

extern "C" __global__ void block_max_tree(const int *x, int *result) {
  __shared__ int tree[256];
  tree[threadIdx.x] = x[INDEX];
  __syncthreads();
  for (int half = blockDim.x / 2; half; half /= 2) {
    if (threadIdx.x < half)
      tree[threadIdx.x] = max(tree[threadIdx.x], tree[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0)
    atomicMax(result, tree[0]);
}

// Every shuffle: per thread up, down, indexed, xor; within widths; of 64 bits.
extern "C" __global__ void shuffles(const int *x, int *y, const double *dx, double *dy) {
  int t = threadIdx.x, value = x[t];
  y[0 * 32 + t] = __shfl_up_sync(~0u, value, 3);
  y[1 * 32 + t] = __shfl_down_sync(~0u, value, 5);
  y[2 * 32 + t] = __shfl_sync(~0u, value, t * 7);
  y[3 * 32 + t] = __shfl_xor_sync(~0u, value, 9);
  y[4 * 32 + t] = __shfl_up_sync(~0u, value, 2, 8);
  y[5 * 32 + t] = __shfl_down_sync(~0u, value, 2, 16);
  y[6 * 32 + t] = __shfl_sync(~0u, value, t + 1, 4);
  y[7 * 32 + t] = __shfl_xor_sync(~0u, value, 5, 8);
  dy[t] = __shfl_down_sync(~0u, dx[t], 1);
}

// Votes, matches and warp-wide integer reductions, also among the lanes of a branch.
extern "C" __global__ void votes(const int *x, unsigned *y) {
  int t = threadIdx.x, value = x[t], all_equal;
  y[0 * 32 + t] = __ballot_sync(~0u, value > 0);
  y[1 * 32 + t] = __any_sync(~0u, value > 100) | __all_sync(~0u, value > -100) << 1;
  y[2 * 32 + t] = __match_any_sync(~0u, value);
  y[3 * 32 + t] = __match_all_sync(~0u, value / 1000, &all_equal) + all_equal;
  y[4 * 32 + t] = __reduce_add_sync(~0u, value);
  y[5 * 32 + t] = __reduce_min_sync(~0u, value);
  y[6 * 32 + t] = __reduce_max_sync(~0u, (unsigned)value);
  y[7 * 32 + t] = __reduce_xor_sync(~0u, value);
  y[8 * 32 + t] = __reduce_and_sync(~0u, value) + __reduce_or_sync(~0u, value);
  y[9 * 32 + t] = 0;
  if (t % 3 == 1) {
    unsigned mask = 0x92492492;
    y[9 * 32 + t] = __reduce_add_sync(mask, value) ^ __ballot_sync(mask, value & 1) ^ __activemask();
  }
  y[10 * 32 + t] = __match_any_sync(~0u, (long long)value << 33);
  unsigned lanes[5];
  asm("mov.u32 %0, %%lanemask_eq; mov.u32 %1, %%lanemask_le;" : "=r"(lanes[0]), "=r"(lanes[1]));
  asm("mov.u32 %0, %%lanemask_lt; mov.u32 %1, %%lanemask_ge;" : "=r"(lanes[2]), "=r"(lanes[3]));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(lanes[4]));
  y[11 * 32 + t] = (lanes[0] + lanes[1] * 3 + lanes[2] * 5) ^ (lanes[3] * 7 + lanes[4] * 11);
}

// Block-wide votes of barriers.
extern "C" __global__ void barrier_votes(const int *x, int *y) {
  int value = x[INDEX];
  int count = __syncthreads_count(value > 0), all = __syncthreads_and(value > -50), any = __syncthreads_or(value > 90);
  y[INDEX] = count + 1000 * (all != 0) + 10000 * (any != 0);
}

extern "C" __global__ void atomics_int(const int *x, int *results, unsigned *unsigned_results, unsigned long long *wide) {
  int value = x[INDEX];
  atomicAdd(&results[0], value);
  atomicSub(&results[1], value);
  atomicMin(&results[2], value);
  atomicMax(&results[3], value);
  atomicAnd(&results[4], value | 0xff);
  atomicOr(&results[5], value & 0xff00);
  atomicXor(&results[6], value);
  atomicAdd_block(&results[9 + blockIdx.x], 1);
  atomicAdd_system(&results[8], 2);
  atomicInc(&unsigned_results[0], 100);
  atomicDec(&unsigned_results[1], 100);
  atomicMin(&unsigned_results[2], (unsigned)value);
  atomicMax(&unsigned_results[3], (unsigned)value);
  atomicAdd(&wide[0], (unsigned long long)(long long)value);
  atomicMax(&wide[1], (unsigned long long)value << 20);
  atomicMin((long long *)&wide[2], (long long)value << 20);
  atomicAnd(&wide[3], ~(1ull << (value & 63)));
  atomicOr(&wide[4], 1ull << (value & 63));
  atomicXor(&wide[5], (unsigned long long)value * 0x100000001ull);
}

// Values are small multiples of 2^-3, so that no order of addition rounds.
extern "C" __global__ void atomics_float(const float *x, float *f, double *d, __half2 *h, __nv_bfloat162 *b, __half *h1) {
  float value = x[INDEX];
  atomicAdd(f, value);
  atomicAdd(d, (double)value);
  atomicAdd(h, __floats2half2_rn(value, -value));
  atomicAdd(b, __floats2bfloat162_rn(value > 0, value < 0));
  atomicAdd(h1, __float2half(value));
}

// Returned values: each ticket is drawn once; a float maximum by compare and swap; a lock.
extern "C" __global__ void tickets(int *counter, int *drawn, unsigned *greatest, int *lock, int *guarded, const float *x) {
  int ticket = atomicAdd(counter, 1);
  atomicExch(&drawn[ticket], 1);
  unsigned seen = *greatest, bits = __float_as_uint(x[INDEX]);
  while (__uint_as_float(seen) < __uint_as_float(bits)) {
    unsigned before = atomicCAS(greatest, seen, bits);
    if (before == seen)
      break;
    seen = before;
  }
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *(volatile int *)guarded += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

// The last block to finish adds what all blocks left: fences and a counter.
extern "C" __global__ void last_block(const int *x, int *partial, unsigned *finished, int *total) {
  __shared__ int sum;
  __shared__ bool last;
  if (threadIdx.x == 0)
    sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[INDEX]);
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
    if (last) {
      __threadfence();
      int all = 0;
      for (unsigned i = 0; i < gridDim.x; ++i)
        all += ((volatile int *)partial)[i];
      *total = all;
    }
  }
}

// 256 bins, counted in shared memory first.
extern "C" __global__ void histogram(int n, const unsigned char *x, unsigned *bins) {
  __shared__ unsigned own[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    own[i] = 0;
  __syncthreads();
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&own[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    atomicAdd(&bins[i], own[i]);
}
