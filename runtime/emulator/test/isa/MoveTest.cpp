// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mov of vectors and special registers, and negated predicates as sources of mov, selp and cp.async.

#include "Harness.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// The output of a block of 8 x 4 threads, `words` of 32 bits each.
std::vector<uint32_t> run(const std::string &body, unsigned words) {
  std::string text = "mov.u32 %r60, %tid.x;\nmov.u32 %r61, %tid.y;\nmad.lo.u32 %r62, %r61, 8, %r60;\n"
                     "mul.wide.u32 %rd60, %r62, " +
                     std::to_string(4 * words) + ";\nadd.u64 %rd60, %rd60, %out;\n" + body;
  for (unsigned i = 0; i < words; ++i)
    text += "st.global.u32 [%rd60+" + std::to_string(4 * i) + "], %r" + std::to_string(i) + ";\n";
  TestMachine machine(kernelText(text, 0));
  uint64_t out = machine.allocate(32 * 4 * words);
  LaunchConfig config;
  config.block = {8, 4, 1};
  config.grid = {1, 1, 1};
  auto fault = machine.launch("k", config, out);
  EXPECT_FALSE(fault) << fault->text();
  return machine.download<uint32_t>(out, 32 * words);
}

TEST(Move, VectorsOfSpecialRegisters) {
  const auto values = run("mov.v4.u32 {%r0,%r1,%r2,%r3}, %tid;\nmov.v4.b32 {%r4,%r5,%r6,%r7}, %ntid;\n", 8);
  for (uint32_t t = 0; t < 32; ++t)
    EXPECT_EQ(std::vector<uint32_t>(values.begin() + 8 * t, values.begin() + 8 * t + 8),
              (std::vector<uint32_t>{t % 8, t / 8, 0, 0, 8, 4, 1, 1}));
}

TEST(Move, VectorsDeclaredAsSuchAndOf16Bits) {
  const auto values = run(".reg .v4 .u32 %v;\nmov.v4.u32 %v, %tid;\nmov.u32 %r0, %v.x;\nmov.u32 %r1, %v.y;\n"
                          ".reg .u16 %h<4>;\nmov.v4.u16 {%h0,%h1,%h2,%h3}, %tid;\ncvt.u32.u16 %r2, %h1;\n"
                          "mov.u16 %h0, %tid.x;\ncvt.u32.u16 %r3, %h0;\n",
                          4);
  for (uint32_t t = 0; t < 32; ++t)
    EXPECT_EQ(std::vector<uint32_t>(values.begin() + 4 * t, values.begin() + 4 * t + 4),
              (std::vector<uint32_t>{t % 8, t / 8, t / 8, t % 8}));
}

TEST(Move, VectorsReadAllBeforeTheyWrite) {
  const auto values =
      run("mov.u32 %r0, 1; mov.u32 %r1, 2; mov.u32 %r2, 3; mov.u32 %r3, 4;\n"
          "mov.v4.b32 {%r0,%r1,%r2,%r3}, {%r3,%r2,%r1,%r0};\nmov.v2.b32 {%r0,%r1}, {%r1,7};\n",
          4);
  EXPECT_EQ(std::vector<uint32_t>(values.begin(), values.begin() + 4), (std::vector<uint32_t>{3, 7, 2, 1}));
}

TEST(Move, NegatedPredicates) {
  const auto values = run("setp.lt.u32 %p1, %r62, 5;\nmov.pred %p2, !%p1;\nselp.b32 %r0, 10, 20, %p2;\n"
                          "selp.b32 %r1, 10, 20, !%p1;\nselp.b32 %r2, 10, 20, !%p2;\n",
                          3);
  for (uint32_t t = 0; t < 32; ++t) {
    const uint32_t no = t < 5 ? 20 : 10, yes = t < 5 ? 10 : 20;
    EXPECT_EQ(std::vector<uint32_t>(values.begin() + 3 * t, values.begin() + 3 * t + 3),
              (std::vector<uint32_t>{no, no, yes}));
  }
}

/// Counters of a profiler and the graph of a kernel, of which there are none.
TEST(Move, MonitorsAreZero) {
  const auto values =
      run("mov.u32 %r0, %pm0;\nmov.b32 %r1, %pm7;\nmov.u64 %rd1, %pm3_64;\ncvt.u32.u64 %r2, %rd1;\n"
          "mov.u64 %rd2, %current_graph_exec;\ncvt.u32.u64 %r3, %rd2;\n",
          4);
  EXPECT_EQ(values, std::vector<uint32_t>(128, 0));
}

/// Lanes whose predicate, or its negation, holds read nothing: zero is written.
TEST(Move, CopiesIgnoreTheirSource) {
  for (bool negated : {false, true}) {
    TestMachine machine(
        kernelText(".shared .align 16 .b8 tile[128];\nmov.u32 %r1, tile;\nadd.u32 %r1, %r1, %i4;\n"
                   "mul.wide.u32 %rd1, %i, 4;\nadd.u64 %rd2, %rd1, %in0;\nadd.u64 %rd3, %rd1, %out;\n"
                   "setp.lt.u32 %p1, %i, 7;\ncp.async.ca.shared.global [%r1], [%rd2], 4, " +
                       std::string(negated ? "!" : "") +
                       "%p1;\ncp.async.wait_all;\nld.shared.u32 %r2, [%r1];\n"
                       "st.global.u32 [%rd3], %r2;\n",
                   1));
    std::vector<uint32_t> in(32);
    for (uint32_t i = 0; i < 32; ++i)
      in[i] = 100 + i;
    LaunchConfig config;
    config.block = {32, 1, 1};
    uint64_t out = machine.allocate(128);
    auto fault = machine.launch("k", config, out, machine.upload(in));
    ASSERT_FALSE(fault) << fault->text();
    const auto values = machine.download<uint32_t>(out, 32);
    for (uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(values[i], (i < 7) != negated ? 0 : 100 + i) << i << negated;
  }
}

} // namespace
