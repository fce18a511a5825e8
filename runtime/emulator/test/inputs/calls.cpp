// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's calls: structures by value, variadic functions, pointers to functions,
// virtual functions.

struct Block {
  int values[10];
  char letter;
  double real;
};
struct Operation {
  virtual int apply(int) = 0;
};
struct Add : Operation {
  int apply(int x) override { return x + amount; }
  int amount;
};
struct Multiply : Operation {
  int apply(int x) override { return x * amount; }
  int amount;
};

extern "C" int printf(const char *, ...);
extern int elsewhere(int, Block);

static int increment(int x) { return x + 1; }
static int decrement(int x) { return x - 1; }
int (*functions[])(int) = {increment, decrement};

__attribute__((noinline)) Block changed(Block block, int i) {
  block.values[i] = 3;
  return block;
}

[[noreturn]] __attribute__((noinline)) void stop() { __builtin_trap(); }

__attribute__((nvptx_kernel)) void call(int *values, Block block) {
  Add add;
  Multiply multiply;
  add.amount = multiply.amount = 3;
  Operation *operation = values[0] ? static_cast<Operation *>(&add) : &multiply;
  values[1] = changed(block, values[0]).values[2] + operation->apply(values[2]);
  values[2] = functions[values[3] & 1](4) + elsewhere(5, block);
  printf("%d %f\n", values[0], 2.5);
  if (values[9])
    stop();
}
