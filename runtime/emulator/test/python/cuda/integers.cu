// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer intrinsics, of 8 to 128 bits.

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void bits32(int n, const unsigned *x, const unsigned *z, unsigned *y) {
  int i = INDEX;
  if (i >= n)
    return;
  unsigned a = x[i], b = z[i], field;
  y[0 * n + i] = __clz(a);
  y[1 * n + i] = __popc(a);
  y[2 * n + i] = __brev(a);
  y[3 * n + i] = __ffs(a);
  y[4 * n + i] = __byte_perm(a, b, 0x6240 ^ (b & 0x7777));
  y[5 * n + i] = __funnelshift_l(a, b, b & 63);
  y[6 * n + i] = __funnelshift_rc(a, b, a & 63);
  y[7 * n + i] = __mulhi((int)a, (int)b);
  y[8 * n + i] = __umulhi(a, b);
  y[9 * n + i] = __dp4a((int)a, (int)b, 17);
  y[10 * n + i] = __dp4a(a, b, 17u);
  y[11 * n + i] = __dp2a_lo((int)a, (int)b, -3);
  y[12 * n + i] = __sad((int)a, (int)b, 5u);
  asm("bfe.s32 %0, %1, 5, 11;" : "=r"(y[13 * n + i]) : "r"(a));
  asm("bfi.b32 %0, %1, %2, 7, 9;" : "=r"(y[14 * n + i]) : "r"(a), "r"(b));
  asm("bfind.s32 %0, %1;" : "=r"(y[15 * n + i]) : "r"(a));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(field) : "r"(a), "r"(b), "r"(a >> 3));
  y[16 * n + i] = field;
  y[17 * n + i] = __mul24(a, b);
  y[18 * n + i] = __fns(a, 3, 2);
  y[19 * n + i] = __rhadd((int)a, (int)b);
  y[20 * n + i] = __usad(a, b, 9);
  asm("add.sat.s32 %0, %1, %2;" : "=r"(y[21 * n + i]) : "r"(a), "r"(b));
  asm("szext.wrap.s32 %0, %1, %2;" : "=r"(y[22 * n + i]) : "r"(a), "r"(b));
  asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(y[23 * n + i]) : "r"(a & 31), "r"(b & 63));
}

extern "C" __global__ void division(int n, const int *x, const int *z, int *y, long long *wide) {
  int i = INDEX;
  if (i >= n)
    return;
  int a = x[i], b = z[i] ? z[i] : 1;
  unsigned ua = a, ub = b;
  long long la = (long long)a * 1000003, lb = (long long)b * 31;
  y[0 * n + i] = b == -1 ? 0 : a / b;
  y[1 * n + i] = b == -1 ? 0 : a % b;
  y[2 * n + i] = ua / ub;
  y[3 * n + i] = ua % ub;
  y[4 * n + i] = a / 7 + ua % 10;
  y[5 * n + i] = (short)a / (short)((short)b | 1);
  wide[0 * n + i] = la / lb;
  wide[1 * n + i] = la % lb;
  wide[2 * n + i] = (unsigned long long)la / (unsigned long long)lb;
  wide[3 * n + i] = __mul64hi(la, lb * 1000000007);
  wide[4 * n + i] = __umul64hi(la, lb * 1000000007);
  wide[5 * n + i] = la >> (b & 63) ^ (long long)((unsigned long long)la << (a & 63));
}

extern "C" __global__ void bits64(int n, const unsigned long long *x, const unsigned long long *z, unsigned long long *y) {
  int i = INDEX;
  if (i >= n)
    return;
  unsigned long long a = x[i], b = z[i];
  y[0 * n + i] = __clzll(a);
  y[1 * n + i] = __popcll(a);
  y[2 * n + i] = __brevll(a);
  y[3 * n + i] = __ffsll(a);
  y[4 * n + i] = a * b + 12345;
  y[5 * n + i] = (unsigned)a * (unsigned long long)(unsigned)b + (long long)(int)a * (int)b;
  y[6 * n + i] = (long long)a < (long long)b ? a : b;
  y[7 * n + i] = a > b ? a - b : ~(a | b);
}

// 128 bits: carries, products, quotients; low and high halves of each result.
extern "C" __global__ void wide128(int n, const unsigned long long *x, const unsigned long long *z, unsigned long long *y) {
  int i = INDEX;
  if (i >= n)
    return;
  unsigned __int128 a = (unsigned __int128)x[i] << 64 | z[i], b = (unsigned __int128)(z[i] >> 20) << (z[i] & 31) | 1;
  __int128 s = (__int128)a;
  unsigned __int128 results[6] = {a + b, a - b * 3, a * b, a / b, a % b, (unsigned __int128)(s / -12345)};
  for (int k = 0; k < 6; ++k) {
    y[(2 * k) * n + i] = (unsigned long long)results[k];
    y[(2 * k + 1) * n + i] = (unsigned long long)(results[k] >> 64);
  }
}

// Video instructions on packed bytes and half words.
extern "C" __global__ void packed(int n, const unsigned *x, const unsigned *z, unsigned *y) {
  int i = INDEX;
  if (i >= n)
    return;
  unsigned a = x[i], b = z[i];
  y[0 * n + i] = __vadd4(a, b);
  y[1 * n + i] = __vsubss2(a, b);
  y[2 * n + i] = __vabsdiffu4(a, b);
  y[3 * n + i] = __vmaxs2(a, b);
  y[4 * n + i] = __vcmpltu4(a, b);
  y[5 * n + i] = __vavgu4(a, b);
  y[6 * n + i] = __vminu4(a, b);
  y[7 * n + i] = __vsadu4(a, b);
  y[8 * n + i] = __viaddmax_s32(a, b, 5);
  y[9 * n + i] = __vimax3_s16x2(a, b, a ^ b);
}
