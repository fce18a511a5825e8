// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How kernels run: lanes that part and meet, barriers, calls, faults and where they
// are reported.

#include "Harness.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

LaunchConfig threads(uint32_t block, uint32_t grid = 1) {
  LaunchConfig config;
  config.block = {block, 1, 1};
  config.grid = {grid, 1, 1};
  return config;
}

TEST(Execution, EveryThreadKnowsItself) {
  TestMachine machine(kernelText(std::string("mov.u32 %r0, %i;\nmad.lo.u32 %r0, %r0, 3, 7;\n") +
                                     "mad.wide.u32 %rd0, %i, 4, %out;\nst.global.u32 [%rd0], %r0;\n",
                                 0));
  uint64_t out = machine.allocate(4 * 7 * 70);
  ASSERT_FALSE(machine.launch("k", threads(70, 7), out));
  auto values = machine.download<uint32_t>(out, 7 * 70);
  for (uint32_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], 3 * i + 7);
}

TEST(Execution, LanesPartAndMeet) {
  // Each lane loops as often as its number, half of them through another arm.
  TestMachine machine(
      kernelText("mov.u32 %r0, 0;\nmov.u32 %r1, 0;\nand.b32 %r2, %i, 1;\nsetp.eq.u32 %p1, %r2, 1;\n"
                 "LOOP:\nsetp.ge.u32 %p0, %r1, %i;\n@%p0 bra DONE;\n@%p1 bra ODD;\n"
                 "add.u32 %r0, %r0, 1;\nbra NEXT;\nODD:\nadd.u32 %r0, %r0, 100;\n"
                 "NEXT:\nadd.u32 %r1, %r1, 1;\nbra LOOP;\nDONE:\nbar.sync 0;\n"
                 "mad.wide.u32 %rd0, %i, 4, %out;\nst.global.u32 [%rd0], %r0;\n",
                 0));
  uint64_t out = machine.allocate(4 * 64);
  ASSERT_FALSE(machine.launch("k", threads(64), out));
  auto values = machine.download<uint32_t>(out, 64);
  for (uint32_t i = 0; i < 64; ++i)
    ASSERT_EQ(values[i], i * (i % 2 ? 100 : 1));
}

TEST(Execution, FaultsNameLineBlockAndThread) {
  TestMachine machine(kernelText("mad.wide.u32 %rd0, %i, 4, %out;\nst.global.u32 [%rd0], %i;\n", 0));
  uint64_t out = machine.allocate(4 * 40);
  auto fault = machine.launch("k", threads(32, 2), out);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::OutOfBounds);
  EXPECT_EQ(fault->block, (std::array<uint32_t, 3>{1, 0, 0}));
  EXPECT_EQ(fault->thread, (std::array<uint32_t, 3>{8, 0, 0}));
  EXPECT_EQ(fault->instruction, "st.global.u32");
  EXPECT_EQ(fault->kernel, "k");
  EXPECT_NE(fault->text().find("4 bytes"), std::string::npos) << fault->text();
  EXPECT_NE(fault->text().find("0 bytes behind the 160 bytes"), std::string::npos) << fault->text();
}

TEST(Execution, ABarrierOrdersWarps) {
  TestMachine machine(
      ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
      ".shared .align 4 .b8 buffer[4096];\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"
      "ld.param.u64 %rd0, [out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, buffer;\n"
      "shl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r1, %r2;\nst.shared.u32 [%r3], %r0;\nbar.sync 0;\n"
      "xor.b32 %r4, %r2, 4092;\nadd.u32 %r4, %r1, %r4;\nld.shared.u32 %r5, [%r4];\n"
      "mul.wide.u32 %rd1, %r0, 4;\nadd.u64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1], %r5;\nret;\n}\n");
  uint64_t out = machine.allocate(4096);
  ASSERT_FALSE(machine.launch("k", threads(1024), out));
  auto values = machine.download<uint32_t>(out, 1024);
  for (uint32_t i = 0; i < 1024; ++i)
    ASSERT_EQ(values[i], 1023 - i);
}

TEST(Execution, ABarrierThatSomeMissIsADeadlock) {
  TestMachine machine(kernelText("setp.lt.u32 %p0, %i, 32;\n@%p0 bar.sync 1, 64;\n", 0));
  uint64_t out = machine.allocate(4);
  auto fault = machine.launch("k", threads(96), out);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::Deadlock) << fault->text();
  EXPECT_NE(fault->text().find("barrier 1: 32 of 64 threads"), std::string::npos) << fault->text();
}

TEST(Execution, ABarrierThatHalfAWarpReachesDiverged) {
  TestMachine machine(kernelText("setp.lt.u32 %p0, %i, 16;\n@%p0 bar.sync 0;\n@!%p0 bar.sync 0;\n", 0));
  auto fault = machine.launch("k", threads(32), machine.allocate(4));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::BarrierDivergence) << fault->text();
}

TEST(Execution, FunctionsCallThemselves) {
  TestMachine machine(
      ".version 8.7\n.target sm_90a\n.address_size 64\n"
      ".func (.param .b32 r) sum(.param .b32 n) {\n.reg .b32 %r<4>;\n.reg .pred %p;\n"
      "ld.param.b32 %r0, [n];\nmov.u32 %r1, 0;\nsetp.eq.u32 %p, %r0, 0;\n@%p bra DONE;\n"
      "{\n.param .b32 a;\n.param .b32 b;\nsub.u32 %r2, %r0, 1;\nst.param.b32 [a], %r2;\n"
      "call.uni (b), sum, (a);\nld.param.b32 %r1, [b];\n}\nadd.u32 %r1, %r1, %r0;\n"
      "DONE:\nst.param.b32 [r], %r1;\nret;\n}\n"
      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
      "ld.param.u64 %rd0, [out];\nmov.u32 %r0, %tid.x;\n{\n.param .b32 a;\n.param .b32 b;\n"
      "st.param.b32 [a], %r0;\ncall.uni (b), sum, (a);\nld.param.b32 %r1, [b];\n}\n"
      "mul.wide.u32 %rd1, %r0, 4;\nadd.u64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1], %r1;\nret;\n}\n");
  uint64_t out = machine.allocate(4 * 32);
  auto fault = machine.launch("k", threads(32), out);
  ASSERT_FALSE(fault) << fault->text();
  auto values = machine.download<uint32_t>(out, 32);
  for (uint32_t i = 0; i < 32; ++i)
    ASSERT_EQ(values[i], i * (i + 1) / 2);
}

TEST(Execution, LanesThatEnterAFunctionApartMeetInside) {
  // Odd lanes call a little later than even ones; inside all of them shuffle.
  TestMachine machine(
      ".version 8.7\n.target sm_90a\n.address_size 64\n"
      ".func (.param .b32 r) turned(.param .b32 n) {\n.reg .b32 %r<4>;\n"
      "ld.param.b32 %r0, [n];\nshfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;\n"
      "st.param.b32 [r], %r1;\nret;\n}\n"
      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<8>;\n.reg .b64 %rd<4>;\n.reg .pred %p;\n"
      "ld.param.u64 %rd0, [out];\nmov.u32 %r0, %tid.x;\nand.b32 %r2, %r0, 1;\nmov.u32 %r3, 0;\n"
      "WAIT:\nsetp.ge.u32 %p, %r3, %r2;\n@%p bra GO;\nadd.u32 %r3, %r3, 1;\nbra WAIT;\nGO:\n"
      "{\n.param .b32 a;\n.param .b32 b;\n"
      "st.param.b32 [a], %r0;\ncall (b), turned, (a);\nld.param.b32 %r1, [b];\n}\n"
      "mul.wide.u32 %rd1, %r0, 4;\nadd.u64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1], %r1;\nret;\n}\n");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    machine.settings.seed = seed;
    uint64_t out = machine.allocate(4 * 64);
    auto fault = machine.launch("k", threads(64), out);
    ASSERT_FALSE(fault) << fault->text();
    auto values = machine.download<uint32_t>(out, 64);
    for (uint32_t i = 0; i < 64; ++i)
      ASSERT_EQ(values[i], i ^ 1);
  }
}

} // namespace
