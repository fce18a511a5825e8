// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C compiled by Clang for NVPTX, without CUDA: what LLVM's backend makes of switches,
// narrow floats, 128 bits, atomic operations, structures and calls.

#define KERNEL __attribute__((nvptx_kernel)) void
#define NOINLINE __attribute__((noinline))
#define SHARED __attribute__((address_space(3)))
#define GLOBAL __attribute__((address_space(1)))

typedef float Float4 __attribute__((ext_vector_type(4)));
typedef _Float16 Half2 __attribute__((ext_vector_type(2)));

static int thread(void) { return __nvvm_read_ptx_sreg_tid_x(); }
static int global_index(void) {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + thread();
}

// A dense switch: a branch table.
KERNEL dispatch(const int *program, int steps, int *y) {
  int x = global_index(), other = 1;
  for (int step = 0; step < steps; ++step) {
    switch (program[step * __nvvm_read_ptx_sreg_ntid_x() + thread()]) {
    case 0:
      x += other;
      break;
    case 1:
      x -= 3;
      break;
    case 2:
      x *= 5;
      break;
    case 3:
      other = x & 15;
      break;
    case 4:
      x ^= other << 3;
      break;
    case 5:
      x = __builtin_popcount(x);
      break;
    case 6:
      x = x < 1000 ? x : 1000;
      __attribute__((fallthrough));
    case 7:
      other += x;
      break;
    case 8:
      x = __builtin_bitreverse32(x);
      break;
    case 9:
      step += 1;
      break;
    default:
      x = -x;
    }
  }
  y[global_index()] = x + other;
}

static int triple(int x) { return 3 * x; }
static int square(int x) { return x * x; }
static int negate(int x) { return -x; }
typedef int (*Function)(int);
static const Function functions[3] = {triple, square, negate};

KERNEL call_table(const int *which, int *y) {
  y[global_index()] = functions[which[global_index()]](global_index());
}

KERNEL halves(int n, const _Float16 *a, const _Float16 *b, _Float16 *y) {
  int i = global_index();
  if (i >= n)
    return;
  y[0 * n + i] = a[i] + b[i];
  y[1 * n + i] = a[i] * b[i];
  y[2 * n + i] = a[i] / b[i];
  y[3 * n + i] = (_Float16)(int)a[i];
  y[4 * n + i] = __builtin_fmaf16(a[i], b[i], a[i]);
  y[5 * n + i] = a[i] < b[i] ? a[i] : b[i];
}

KERNEL brains(int n, const __bf16 *a, const __bf16 *b, __bf16 *y) {
  int i = global_index();
  if (i >= n)
    return;
  y[0 * n + i] = a[i] + b[i];
  y[1 * n + i] = a[i] * b[i];
  y[2 * n + i] = a[i] / b[i];
  y[3 * n + i] = (__bf16)((float)a[i] * 0.1f);
}

KERNEL half_pairs(int n, const Half2 *a, const Half2 *b, Half2 *y) {
  int i = global_index();
  if (i < n)
    y[i] = a[i] * b[i] + a[i];
}

KERNEL wide(int n, const unsigned long long *a, const unsigned long long *b, unsigned long long *y) {
  int i = global_index();
  if (i >= n)
    return;
  unsigned __int128 x = (unsigned __int128)a[i] << 64 | b[i], product = x * 0x123456789abcdefull;
  unsigned __int128 shifted = x >> (a[i] & 127), sum = x + shifted;
  y[0 * n + i] = product, y[1 * n + i] = product >> 64;
  y[2 * n + i] = shifted, y[3 * n + i] = shifted >> 64;
  y[4 * n + i] = sum, y[5 * n + i] = sum >> 64;
}

SHARED static float tile[256];

KERNEL block_sum(const float *x, float *y) {
  int t = thread();
  tile[t] = x[global_index()];
  __nvvm_bar_sync(0);
  for (int half = __nvvm_read_ptx_sreg_ntid_x() / 2; half; half /= 2) {
    if (t < half)
      tile[t] += tile[t + half];
    __nvvm_bar_sync(0);
  }
  if (t == 0)
    y[__nvvm_read_ptx_sreg_ctaid_x()] = tile[0];
}

// C11 orderings; a float maximum by compare and exchange.
KERNEL orderings(const float *x, GLOBAL int *counts, GLOBAL float *greatest) {
  float value = x[global_index()];
  __atomic_fetch_add(&counts[0], 1, __ATOMIC_RELAXED);
  __atomic_fetch_max(&counts[1], (int)value, __ATOMIC_ACQ_REL);
  __atomic_fetch_xor(&counts[2], (int)value, __ATOMIC_SEQ_CST);
  GLOBAL int *bits = (GLOBAL int *)greatest;
  int seen = __atomic_load_n(bits, __ATOMIC_ACQUIRE);
  while (__builtin_bit_cast(float, seen) < value &&
         !__atomic_compare_exchange_n(bits, &seen, __builtin_bit_cast(int, value), 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED))
    ;
}

struct Record {
  char name[5];
  short count;
  double weights[3];
  Float4 colour;
};

NOINLINE struct Record lighten(struct Record r, float by) {
  r.colour += by;
  r.count += 1;
  r.name[4] ^= 1;
  return r;
}

KERNEL records(struct Record r, float *y) {
  struct Record s = lighten(lighten(r, 0.5f), thread());
  y[thread()] = s.colour.x + s.colour.y * 2 + s.colour.z * 4 + s.colour.w * 8 + s.count + s.name[4] +
                s.weights[thread() % 3];
}
