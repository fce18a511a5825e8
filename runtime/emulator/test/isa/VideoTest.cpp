// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SIMD video instructions by value.

#include "Harness.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

uint32_t run(const std::string &instruction, uint32_t a, uint32_t b, uint32_t c) {
  TestMachine machine(
      kernelText("ld.global.u32 %r1, [%in0];\nld.global.u32 %r2, [%in0+4];\nld.global.u32 %r3, [%in0+8];\n" +
                     instruction + " %r0, %r1, %r2, %r3;\nst.global.u32 [%out], %r0;\n",
                 1));
  uint64_t out = machine.allocate(4), in = machine.upload(std::vector<uint32_t>{a, b, c});
  auto fault = machine.launch("k", LaunchConfig(), out, in);
  EXPECT_FALSE(fault) << fault->text();
  return machine.download<uint32_t>(out, 1)[0];
}

TEST(Video, Bytes) {
  EXPECT_EQ(run("vadd4.u32.u32.u32", 0x01FF7F80, 0x01010101, 9), 0x02008081u);
  EXPECT_EQ(run("vadd4.u32.u32.u32.sat", 0x01FF7F80, 0x01010101, 9), 0x02FF8081u);
  EXPECT_EQ(run("vadd4.s32.s32.s32.sat", 0x01FF7F80, 0x01010101, 9), 0x02007F81u);
  EXPECT_EQ(run("vsub4.u32.u32.u32.sat", 0x00FF7F80, 0x01010181, 9), 0x00FE7E00u);
  EXPECT_EQ(run("vabsdiff4.u32.u32.u32", 0x00FF1020, 0x01002010, 0), 0x01FF1010u);
  EXPECT_EQ(run("vabsdiff4.u32.u32.u32.add", 0x00FF1020, 0x01002010, 7), 1u + 255 + 16 + 16 + 7);
  EXPECT_EQ(run("vabsdiff4.u32.s32.s32", 0x80FF7F00, 0x7F018001, 0), 0xFF02FF01u);
  EXPECT_EQ(run("vavrg4.u32.u32.u32", 0xFF010003, 0xFF020104, 0), 0xFF020104u);
  // -3 and -4 average to -3.5, rounded down; -1 and 1 to 0, with the half added to 0.
  EXPECT_EQ(run("vavrg4.s32.s32.s32", 0x000000FD, 0x000000FC, 0), 0x000000FCu);
  EXPECT_EQ(run("vset4.u32.u32.lt", 0x01020304, 0x02020404, 0), 0x01000100u);
}

TEST(Video, Halves) {
  EXPECT_EQ(run("vmin2.s32.s32.s32", 0x8000FFFF, 0x7FFF0001, 0), 0x8000FFFFu);
  EXPECT_EQ(run("vmax2.u32.u32.u32", 0x8000FFFF, 0x7FFF0001, 0), 0x8000FFFFu);
  EXPECT_EQ(run("vmax2.s32.s32.s32", 0x8000FFFF, 0x7FFF0001, 0), 0x7FFF0001u);
  EXPECT_EQ(run("vadd2.s32.s32.s32.sat", 0x7FFF8000, 0x0001FFFF, 0), 0x7FFF8000u);
}

TEST(Video, SelectorsAndMasksAreErrors) {
  EXPECT_THROW(TestMachine(kernelText("vadd4.u32.u32.u32 %r0, %r1.b0000, %r2, %r3;\n", 0)), PtxError);
  EXPECT_THROW(TestMachine(kernelText("vadd4.u32.u32.u32.sat.add %r0, %r1, %r2, %r3;\n", 0)), PtxError);
}

} // namespace
