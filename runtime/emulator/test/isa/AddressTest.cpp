// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses of parameters and constants, in 32 and 64 bits: as addresses of the space, as generic ones, and
// in initial values.

#include "CheckHarness.h"

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// The first words that k(s, out), of one thread, writes; s holds 0, 1, 2, …
std::vector<uint32_t> run(const std::string &body, unsigned words, std::optional<Fault> *fault = nullptr) {
  std::string text =
      ".version 8.7\n.target sm_90a\n.address_size 64\n"
      ".const .align 4 .b32 first = 3;\n.const .align 64 .b32 c[4] = {7, 8, 9, 10};\n"
      ".global .align 8 .u64 inSpace = c+8;\n.global .align 8 .u64 everywhere = generic(c)+8;\n"
      ".visible .entry k(.param .align 64 .b8 s[64], .param .u64 out) {\n"
      ".reg .b32 %r<16>;\n.reg .b64 %rd<16>, %out;\n.reg .pred %p<8>;\nld.param.u64 %out, [out];\n" +
      body;
  for (unsigned i = 0; i < words; ++i)
    text += "st.global.u32 [%out+" + std::to_string(4 * i) + "], %r" + std::to_string(i) + ";\n";
  TestMachine machine(text + "ret;\n}\n");
  const uint64_t out = machine.allocate(64);
  LaunchConfig config;
  for (uint32_t i = 0; i < 16; ++i)
    config.parameters.insert(config.parameters.end(), {uint8_t(i), 0, 0, 0});
  const auto got = machine.launch("k", config, out);
  if (fault)
    *fault = got;
  else
    EXPECT_FALSE(got) << got->text();
  return machine.download<uint32_t>(out, words);
}
using Words = std::vector<uint32_t>;

TEST(Address, OfAParameterIn32Bits) {
  // As LLVM writes it with short pointers.
  EXPECT_EQ(run("mov.b32 %r5, s;\ncvt.u64.u32 %rd1, %r5;\ncvta.param.u64 %rd2, %rd1;\nld.b32 %r0, [%rd2+4];\n"
                "ld.param.b32 %r1, [%r5+8];\nmov.b32 %r6, s+12;\nld.param::entry.b32 %r2, [%r6];\n"
                "add.s32 %r6, %r6, -8;\nld.param.b32 %r3, [%r6];\n",
                4),
            (Words{1, 2, 3, 1}));
}

TEST(Address, OfAParameterIn64Bits) {
  EXPECT_EQ(
      run("mov.b64 %rd1, s;\nld.param.b32 %r0, [%rd1+4];\ncvta.param.u64 %rd2, %rd1;\nld.b32 %r1, [%rd2+8];\n"
          "cvta.to.param.u64 %rd3, %rd2;\nld.param.b32 %r2, [%rd3+12];\ncvt.u32.u64 %r6, %rd3;\n"
          "ld.param.b32 %r3, [%r6+16];\ncvta.param.u64 %rd4, s;\nld.b32 %r4, [%rd4+20];\n",
          5),
      (Words{1, 2, 3, 4, 5}));
}

TEST(Address, OfAConstantIn32Bits) {
  EXPECT_EQ(
      run("mov.b32 %r5, c;\nld.const.b32 %r0, [%r5+4];\ncvt.u64.u32 %rd1, %r5;\ncvta.const.u64 %rd2, %rd1;\n"
          "ld.b32 %r1, [%rd2+8];\nmov.b32 %r6, c+12;\nld.const.b32 %r2, [%r6];\n",
          3),
      (Words{8, 9, 10}));
}

TEST(Address, OfAConstantIn64Bits) {
  EXPECT_EQ(
      run("mov.b64 %rd1, c;\nld.const.b32 %r0, [%rd1];\ncvta.const.u64 %rd2, %rd1;\nld.b32 %r1, [%rd2+4];\n"
          "cvta.to.const.u64 %rd3, %rd2;\nld.const.b32 %r2, [%rd3+8];\ncvt.u32.u64 %r6, %rd3;\n"
          "ld.const.b32 %r3, [%r6+12];\nld.const.b32 %r4, [first];\n",
          5),
      (Words{7, 8, 9, 10, 3}));
}

TEST(Address, OfAConstantAsAnInitialValue) {
  EXPECT_EQ(run("ld.global.u64 %rd1, [inSpace];\nld.const.b32 %r0, [%rd1];\ncvt.u32.u64 %r5, %rd1;\n"
                "ld.const.b32 %r1, [%r5+4];\nld.global.u64 %rd2, [everywhere];\nld.b32 %r2, [%rd2];\n",
                3),
            (Words{9, 10, 9}));
}

TEST(Address, SpacesOfGenericAddresses) {
  EXPECT_EQ(run("cvta.const.u64 %rd1, c;\ncvta.param.u64 %rd2, s;\n"
                "isspacep.const %p1, %rd1;\nselp.b32 %r0, 1, 0, %p1;\n"
                "isspacep.global %p1, %rd1;\nselp.b32 %r1, 1, 0, %p1;\n"
                "isspacep.param %p1, %rd2;\nselp.b32 %r2, 1, 0, %p1;\n"
                "isspacep.const %p1, %rd2;\nselp.b32 %r3, 1, 0, %p1;\n"
                "isspacep.global %p1, %out;\nselp.b32 %r4, 1, 0, %p1;\n",
                5),
            (Words{1, 0, 1, 0, 1}));
}

TEST(Address, BoundsOfSpaces) {
  for (const char *body :
       {"mov.b32 %r5, s;\nld.param.b32 %r0, [%r5+72];\n", "mov.b64 %rd1, s;\nld.param.b32 %r0, [%rd1+-4];\n",
        "cvta.param.u64 %rd1, s;\nld.param.b32 %r0, [%rd1];\n",
        "mov.b32 %r5, c;\nld.const.b32 %r0, [%r5+16];\n",
        "cvta.const.u64 %rd1, c;\nld.const.b32 %r0, [%rd1];\n", "mov.b64 %rd1, s;\nld.b32 %r0, [%rd1];\n",
        "mov.b64 %rd1, c;\nld.b32 %r0, [%rd1];\n"}) {
    std::optional<Fault> fault;
    run(body, 1, &fault);
    ASSERT_TRUE(fault) << body;
    EXPECT_EQ(fault->kind, FaultKind::OutOfBounds) << fault->text();
  }
}

} // namespace
