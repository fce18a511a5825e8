// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asynchronous copies and barriers within a block: cp.async through pipelines, barriers
// with phases, named and counted barriers.

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

// Barriers in shared memory are initialised by init().
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

// Three stages of 16 bytes per thread in flight while the oldest is summed.
extern "C" __global__ void staged_sum(int steps, const int4 *x, int *y) {
  __shared__ int4 stages[3][64];
  int t = threadIdx.x, sum = 0;
  for (int step = 0; step < 2; ++step) {
    if (step < steps)
      __pipeline_memcpy_async(&stages[step][t], &x[step * 64 + t], 16);
    __pipeline_commit();
  }
  for (int step = 0; step < steps; ++step) {
    if (step + 2 < steps)
      __pipeline_memcpy_async(&stages[(step + 2) % 3][t], &x[(step + 2) * 64 + t], 16);
    __pipeline_commit();
    __pipeline_wait_prior(2);
    __syncthreads();
    int4 value = stages[step % 3][63 - t];
    sum += value.x + 2 * value.y + 3 * value.z + 4 * value.w;
    __syncthreads();
  }
  y[t] = sum;
}

// Copies of 4 and 8 bytes, and one that reads fewer bytes than it writes: zeros follow.
extern "C" __global__ void short_copies(const int *x, int *y) {
  __shared__ alignas(16) int buffer[7 * 32];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&buffer[t], &x[t], 4);
  __pipeline_memcpy_async(&buffer[32 + 2 * t], &x[32 + 2 * t], 8);
  __pipeline_memcpy_async(&buffer[96 + 4 * t], &x[96 + 4 * t], 16, 4 * (t % 5));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int i = t; i < 7 * 32; i += 32)
    y[i] = buffer[i];
}

// A cuda::pipeline of the block, two stages.
extern "C" __global__ void block_pipeline(int steps, const float *x, float *y) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ alignas(16) float stages[2][128];
  auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  for (int fetch = 0, step = 0; step < steps; ++step) {
    for (; fetch < steps && fetch < step + 2; ++fetch) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, stages[fetch % 2], x + fetch * 128, cuda::aligned_size_t<16>(512), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    y[step * 128 + threadIdx.x] = stages[step % 2][127 - threadIdx.x] * 2;
    pipeline.consumer_release();
  }
}

// One warp produces, the others consume: two barriers per slot.
extern "C" __global__ void producer_consumer(int steps, const int *x, int *y) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ Barrier full[2], empty[2];
  __shared__ int slots[2][96];
  int t = threadIdx.x;
  if (t < 2) {
    init(&full[t], 128);
    init(&empty[t], 128);
  }
  __syncthreads();
  if (t < 32) {
    for (int step = 0; step < steps; ++step) {
      empty[step % 2].arrive_and_wait();
      for (int i = t; i < 96; i += 32)
        slots[step % 2][i] = x[step * 96 + i];
      (void)full[step % 2].arrive();
    }
    return;
  }
  (void)empty[0].arrive();
  (void)empty[1].arrive();
  int sum = 0;
  for (int step = 0; step < steps; ++step) {
    full[step % 2].arrive_and_wait();
    sum = 3 * sum + slots[step % 2][(t * 7) % 96];
    if (step + 2 < steps)
      (void)empty[step % 2].arrive();
  }
  y[t - 32] = sum;
}

// Threads that drop out of a barrier; arrivals that return tokens.
extern "C" __global__ void dropping(const int *x, int *y) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ Barrier barrier;
  __shared__ int values[64];
  int t = threadIdx.x;
  if (t == 0)
    init(&barrier, 64);
  __syncthreads();
  values[t] = x[t];
  if (t >= 48) {
    barrier.arrive_and_drop();
    return;
  }
  auto token = barrier.arrive();
  int mine = x[t] * 10;
  barrier.wait(std::move(token));
  mine += values[63 - t];
  barrier.arrive_and_wait();
  values[t] = mine;
  barrier.arrive_and_wait();
  y[t] = values[47 - t];
}

// Named barriers: two halves of the block meet apart; then producers arrive without waiting.
extern "C" __global__ void named_barriers(const int *x, int *y) {
  __shared__ int values[128];
  int t = threadIdx.x, half = t / 64;
  values[t] = x[t];
  asm volatile("barrier.sync %0, %1;" ::"r"(1 + half), "r"(64) : "memory");
  int mine = values[half * 64 + 63 - t % 64];
  __syncthreads();
  if (half == 0) {
    values[t] = mine * 2;
    asm volatile("bar.arrive 3, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 3, 128;" ::: "memory");
    mine += values[t - 64];
  }
  y[t] = mine;
}
