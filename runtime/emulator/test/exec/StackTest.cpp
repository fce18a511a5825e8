// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// alloca, stacksave and stackrestore: local memory whose size a thread chooses.

#include "EachThread.h"
#include "Harness.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

using In = std::vector<uint64_t>;

const Values kCounts{"u32", {1, 2, 3, 8, 17, 100}};

/// Fills 4 a bytes with a, a + 1, ..., and adds them up again.
TEST(Stack, HoldsWhatEachThreadAsksFor) {
  const std::string fill = "mov.u32 %r1,0;"
                           "FILL: mul.wide.u32 %l2,%r1,4; add.u64 %l2,%l1,%l2; add.u32 %r2,%r1,%a;"
                           "st.local.u32 [%l2],%r2;"
                           "add.u32 %r1,%r1,1; setp.lt.u32 %p0,%r1,%a; @%p0 bra FILL;"
                           "mov.u32 %r1,0;"
                           "SUM: mul.wide.u32 %l2,%r1,4; add.u64 %l2,%l1,%l2; ld.local.u32 %r2,[%l2];"
                           "add.u32 %d,%d,%r2;"
                           "add.u32 %r1,%r1,1; setp.lt.u32 %p0,%r1,%a; @%p0 bra SUM;";
  auto sum = [](In in) { return in[0] * in[0] + in[0] * (in[0] - 1) / 2; };
  expectEach("mul.wide.u32 %l0,%a,4; alloca.u64 %l1,%l0;" + fill, "u32", {kCounts}, sum);
  expectEach("shl.b32 %r0,%a,2; alloca.u32 %r3,%r0,16; cvt.u64.u32 %l1,%r3;" + fill, "u32", {kCounts}, sum);
  // As nvcc writes it: a generic address and back.
  expectEach(
      "mul.wide.u32 %l0,%a,4; alloca.u64 %l1,%l0,16; cvta.local.u64 %l1,%l1; cvta.to.local.u64 %l1,%l1;" +
          fill,
      "u32", {kCounts}, sum);
}

TEST(Stack, AllocationsAreAlignedAndApart) {
  // 3 bytes, then others by the default alignment of 8, and by 64.
  expectEach(
      "cvt.u64.u32 %l0,%a; alloca.u64 %l1,%l0,1; alloca.u64 %l2,%l0; alloca.u64 %l3,%l0,64;"
      "add.u64 %l4,%l1,%l0; setp.ge.u64 %p0,%l2,%l4; add.u64 %l4,%l2,%l0; setp.ge.and.u64 %p0,%l3,%l4,%p0;"
      "and.b64 %l4,%l2,7; setp.eq.and.b64 %p0,%l4,0,%p0; and.b64 %l4,%l3,63;"
      "setp.eq.and.b64 %p0,%l4,0,%p0; selp.u32 %d,1,0,%p0;",
      "u32", {kCounts}, [](In) { return 1; });
}

/// A loop that takes 512 bytes a thousand times is within 4 KiB if it gives them back.
std::string loop(const std::string &restore) {
  return "mov.u32 %r1,0; AGAIN: stacksave.u64 %l0; alloca.u64 %l1,512; st.local.u32 [%l1],%r1;"
         "ld.local.u32 %d,[%l1]; " +
         restore + " add.u32 %r1,%r1,1; setp.lt.u32 %p0,%r1,1000; @%p0 bra AGAIN;";
}

TEST(Stack, IsGivenBack) {
  expectEach(loop("stackrestore.u64 %l0;"), "u32", {kCounts}, [](In) { return 999; });
  EachThread run{"u32", loop(""), {}};
  Outcome outcome = run.run();
  ASSERT_TRUE(outcome.fault);
  EXPECT_EQ(outcome.fault->kind, FaultKind::StackOverflow);
  EXPECT_NE(outcome.fault->text().find("alloca of 512 bytes"), std::string::npos) << outcome.fault->text();
}

TEST(Stack, RestoresWhatWasSavedOnly) {
  EachThread run{"u32", "stacksave.u64 %l0; add.u64 %l0,%l0,8; stackrestore.u64 %l0;", {}};
  Outcome outcome = run.run();
  ASSERT_TRUE(outcome.fault);
  EXPECT_EQ(outcome.fault->kind, FaultKind::IllegalOperand);
}

/// Callees lie behind what their callers have allocated, of all lanes that call, and
/// what they allocate is gone when they return.
TEST(Stack, CalleesDoNotOverwriteIt) {
  const std::string callee =
      ".func overwrite(.param .b32 count) { .reg .b32 %r<3>; .reg .b64 %l<3>; .reg .pred %p;"
      "ld.param.u32 %r0,[count]; cvt.u64.u32 %l0,%r0; alloca.u64 %l1,%l0;"
      "AGAIN: sub.u32 %r0,%r0,1; cvt.u64.u32 %l2,%r0; add.u64 %l2,%l1,%l2;"
      "st.local.u8 [%l2],255; setp.ne.u32 %p,%r0,0; @%p bra AGAIN; ret; }\n";
  // Thread i keeps i in the last of its 4 i + 4 bytes.
  std::string body =
      "shl.b32 %r1,%i,2; add.u32 %r1,%r1,4; cvt.u64.u32 %rd1,%r1; alloca.u64 %rd2,%rd1;\n"
      "add.u64 %rd3,%rd2,%rd1; st.local.u32 [%rd3+-4],%i; mov.u32 %r2,0;\n"
      "AGAIN: { .param .b32 count; st.param.b32 [count],%r1; call overwrite,(count); }\n"
      "add.u32 %r2,%r2,1; setp.lt.u32 %p1,%r2,100; @%p1 bra AGAIN;\n"
      "ld.local.u32 %r3,[%rd3+-4]; cvt.u64.u32 %rd4,%i4; add.u64 %rd4,%out,%rd4; st.global.u32 [%rd4],%r3;\n";
  std::string text = kernelText(body, 0);
  text.insert(text.find(".visible"), callee);
  TestMachine machine(text);
  LaunchConfig config;
  config.block = {32, 1, 1};
  uint64_t out = machine.allocate(128);
  auto fault = machine.launch("k", config, out);
  ASSERT_FALSE(fault) << fault->text();
  auto values = machine.download<uint32_t>(out, 32);
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(values[i], i);
}

TEST(Stack, OtherFormsAreErrors) {
  EXPECT_NE(decodeError("alloca.u64 %l0,%l1,3;"), "");
  EXPECT_NE(decodeError("alloca.u64 %l0,%l1,16777216;"), "");
  EXPECT_NE(decodeError("alloca.s64 %l0,%l1;"), "");
  EXPECT_NE(decodeError("stacksave.f64 %g0;"), "");
  EXPECT_EQ(decodeError("alloca.u64 %l0,%l1,8388608;"), "");
}

} // namespace
