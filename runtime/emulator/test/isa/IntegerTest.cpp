// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// add and sub with .sat and of pairs.

#include "EachThread.h"
#include "Harness.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// Of a and b on a chip that has all of them.
uint32_t run(const std::string &instruction, uint32_t a, uint32_t b) {
  TestMachine machine(kernelText("ld.global.u32 %r1, [%in0];\nld.global.u32 %r2, [%in0+4];\n" + instruction +
                                     " %r0, %r1, %r2;\nst.global.u32 [%out], %r0;\n",
                                 1, "sm_120a"));
  uint64_t out = machine.allocate(4), in = machine.upload(std::vector<uint32_t>{a, b});
  auto fault = machine.launch("k", LaunchConfig(), out, in);
  EXPECT_FALSE(fault) << fault->text();
  return machine.download<uint32_t>(out, 1)[0];
}

TEST(Integer, AddSaturates) {
  EXPECT_EQ(run("add.sat.s32", 0x7FFFFFFF, 1), 0x7FFFFFFFu);
  EXPECT_EQ(run("add.sat.s32", 0x80000000, 0xFFFFFFFF), 0x80000000u);
  EXPECT_EQ(run("add.sat.s32", 0xFFFFFFFF, 1), 0u);
  EXPECT_EQ(run("add.sat.u32", 0xFFFFFFFF, 1), 0xFFFFFFFFu);
  EXPECT_EQ(run("add.sat.u32", 0x80000000, 0x80000000), 0xFFFFFFFFu);
  EXPECT_EQ(run("add.sat.u32", 0x7FFFFFFF, 0x80000000), 0xFFFFFFFFu);
  EXPECT_EQ(run("add.sat.u32", 0x7FFFFFFF, 1), 0x80000000u);
  EXPECT_EQ(run("sub.sat.s32", 0x80000000, 1), 0x80000000u);
  EXPECT_EQ(run("sub.sat.s32", 0, 0x80000000), 0x7FFFFFFFu);
}

TEST(Integer, PairsSaturateOnTheirOwn) {
  EXPECT_EQ(run("add.u16x2", 0xFFFF8000, 0x00018000), 0u);
  EXPECT_EQ(run("add.s16x2", 0x7FFFFFFF, 0x00010001), 0x80000000u);
  EXPECT_EQ(run("add.sat.u16x2", 0xFFFF8000, 0x00017FFF), 0xFFFFFFFFu);
  EXPECT_EQ(run("add.sat.u16x2", 0x00018001, 0x00028000), 0x0003FFFFu);
  EXPECT_EQ(run("add.sat.s16x2", 0x7FFF8000, 0x0001FFFF), 0x7FFF8000u);
  EXPECT_EQ(run("add.sat.s16x2", 0xFFFF0005, 0x0001FFFF), 0x00000004u);
}

TEST(Integer, OtherFormsAreErrors) {
  for (const char *text : {"sub.u16x2 %r0,%r1,%r2;", "sub.s16x2 %r0,%r1,%r2;", "sub.sat.u32 %r0,%r1,%r2;",
                           "add.sat.u64 %l0,%l1,%l2;", "add.sat.s16 %h0,%h1,%h2;"})
    EXPECT_NE(decodeError(text), "") << text;
}

} // namespace
