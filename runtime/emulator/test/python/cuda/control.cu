// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls, tables, recursion, memory of every kind, messages and traps. With -lineinfo.

#include <cassert>
#include <cstdio>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

__device__ int triple(int x) { return 3 * x; }
__device__ int square(int x) { return x * x; }
__device__ int negate(int x) { return -x; }

using Function = int (*)(int);
__device__ Function functions[3] = {triple, square, negate};
__constant__ int coefficients[8] = {3, -1, 4, 1, -5, 9, 2, 6};
__device__ int counter = 40;
__device__ int zeros[16];
__device__ const char *text = "emulated";
__device__ struct { short a; double b; int *where; } record = {7, 2.5, &counter};
__constant__ float scale_of_host;

// Lanes call different functions through one table.
extern "C" __global__ void call_table(const int *which, int *y) { y[INDEX] = functions[which[INDEX]](INDEX); }

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0)
    return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

extern "C" __global__ void recursion(unsigned *y) { y[INDEX] = ackermann(INDEX % 3, INDEX / 3); }

struct Three {
  int a;
  double b;
  float c[3];
};

__device__ __noinline__ Three rotate(Three x, int by) {
  Three y = {x.a + by, x.b * by, {x.c[by % 3], x.c[(by + 1) % 3], x.c[(by + 2) % 3]}};
  return y;
}

// A structure by value, as a kernel's parameter and a function's.
extern "C" __global__ void structures(Three x, double *y) {
  Three z = rotate(rotate(x, threadIdx.x), 2);
  y[threadIdx.x] = z.a + z.b + z.c[0] * 100 + z.c[1] * 1000 + z.c[2] * 10000;
}

// A dense switch with a case that falls through.
extern "C" __global__ void dispatch(const int *program, int steps, int *y) {
  int x = INDEX, other = 1;
  for (int step = 0; step < steps; ++step) {
    switch (program[step * blockDim.x + threadIdx.x]) {
    case 0: x += other; break;
    case 1: x -= 3; break;
    case 2: x *= 5; break;
    case 3: other = x & 15; break;
    case 4: x ^= other << 3; break;
    case 5: x = __popc(x); break;
    case 6: x = min(x, 1000); [[fallthrough]];
    case 7: other += x; break;
    case 8: atomicAdd(&zeros[threadIdx.x & 15], 1); break;
    case 9: step += 1; break;
    default: x = -x;
    }
  }
  y[INDEX] = x + other;
}

// A local array that is indexed dynamically: insertion sort.
extern "C" __global__ void local_sort(const int *x, int *y) {
  int values[16];
  for (int i = 0; i < 16; ++i) {
    int value = x[INDEX * 16 + i], j = i;
    for (; j > 0 && values[j - 1] > value; --j)
      values[j] = values[j - 1];
    values[j] = value;
  }
  for (int i = 0; i < 16; ++i)
    y[INDEX * 16 + i] = values[i];
}

// Pointers of unknown space: global, shared, local and constant.
__device__ __noinline__ int load_any(const int *where) { return *where; }

extern "C" __global__ void generic_pointers(const int *x, int *y) {
  __shared__ int shared_values[32];
  int mine = x[threadIdx.x] + 1;
  shared_values[threadIdx.x] = 2 * mine;
  __syncwarp();
  const int *where = threadIdx.x % 4 == 0   ? x + threadIdx.x
                     : threadIdx.x % 4 == 1 ? &shared_values[31 - threadIdx.x]
                     : threadIdx.x % 4 == 2 ? &mine
                                            : &coefficients[threadIdx.x % 8];
  y[threadIdx.x] = load_any(where) * 8 + __isShared(where) + 2 * __isLocal(where) + 4 * __isConstant(where);
}

extern "C" __global__ void globals(float *y) {
  extern __shared__ float dynamic[];
  float *second = dynamic + blockDim.x;
  dynamic[threadIdx.x] = coefficients[threadIdx.x % 8] * scale_of_host;
  second[threadIdx.x] = record.a + record.b;
  __syncthreads();
  y[INDEX] = dynamic[blockDim.x - 1 - threadIdx.x] + second[threadIdx.x] + text[threadIdx.x % 8];
  if (INDEX == 0)
    atomicAdd(record.where, 2);
}

extern "C" __global__ void messages(int n, const float *x) {
  if (threadIdx.x < n)
    printf("thread %d of %u: %s %.3f %c %lld%%\n", threadIdx.x, blockDim.x, x[threadIdx.x] < 0 ? "below" : "above",
           x[threadIdx.x], 'a' + threadIdx.x, -5000000000ll * threadIdx.x);
}

extern "C" __global__ void asserts(int n, const int *x) { assert(INDEX >= n || x[INDEX] >= 0); }

extern "C" __global__ void traps(int n) {
  if (INDEX == n)
    __trap();
}

// Early return of some lanes, loops that others leave by break, and a warp barrier among the rest.
extern "C" __global__ void divergence(const int *x, int *y) {
  int t = threadIdx.x, value = x[t], sum = 0;
  y[t] = -7;
  if (value == 13)
    return;
  unsigned mask = __activemask();
  for (int i = 0; i < 20; ++i) {
    if (value % 5 == i)
      break;
    if ((value ^ i) & 1)
      continue;
    for (int j = i; j < value % 7; ++j)
      sum += i * j + 1;
  }
  __syncwarp(mask);
  y[t] = sum + (__popc(mask) << 16);
}

// clock, grid and warp identities only need to be plausible.
extern "C" __global__ void identities(long long *y) {
  long long before = clock64();
  unsigned warp, smid, lane;
  unsigned long long timer;
  asm volatile("mov.u32 %0, %%warpid; mov.u32 %1, %%smid;" : "=r"(warp), "=r"(smid));
  asm volatile("mov.u32 %0, %%laneid; mov.u64 %1, %%globaltimer;" : "=r"(lane), "=l"(timer));
  y[6 * INDEX + 0] = lane;
  y[6 * INDEX + 1] = warp;
  y[6 * INDEX + 2] = smid;
  y[6 * INDEX + 3] = timer != 0;
  y[6 * INDEX + 4] = clock64() - before;
  y[6 * INDEX + 5] = blockIdx.z * gridDim.y + gridDim.z + blockIdx.y;
}

// As many numbers as a thread asks for, on its stack: read again from the last to the first.
extern "C" __global__ void stack_array(const int *x, int *y) {
  int count = x[INDEX], sum = 0;
  int *numbers = static_cast<int *>(alloca(count * sizeof(int)));
  for (int i = 0; i < count; ++i)
    numbers[i] = i ^ count;
  while (count--)
    sum = 31 * sum + numbers[count];
  y[INDEX] = sum;
}
