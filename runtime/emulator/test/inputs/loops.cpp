// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's control flow: loops with pragmas, a jump table, labels in inline assembly.

int choose(int i, int *values) {
  switch (i) {
  case 0:
    return values[1];
  case 1:
    values[0] = 3;
    break;
  case 2:
    return values[7] * 5;
  case 3:
    return values[2] / values[3];
  case 4:
    return values[i * 3];
  case 5:
    values[2] = 8;
    break;
  }
  return values[i];
}

__attribute__((nvptx_kernel)) void loop(int *values, float x, int count) {
#pragma clang loop unroll(disable)
  for (int i = 0; i < count; ++i)
    values[i] = choose(values[i], values) + static_cast<int>(x * 2.5f);
  asm volatile("{ .reg .pred q; setp.eq.s32 q, %0, 3; @q bra over; trap; over: }" ::"r"(values[2]));
  __atomic_fetch_add(values, 1, __ATOMIC_SEQ_CST);
}
