// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mistakes, each with its correct twin: accesses to memory that is not there or was not
// written, barriers, mbarrier objects, stacks, assertions, launches that are refused.
// Accesses of threads to each other's memory are in Check*Test.cpp.

#include "CheckHarness.h"

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

constexpr uint64_t kBytes = 64;

/// Runs k(out, in) of 64 bytes each, in zeros, out never written.
std::optional<Fault> runBody(const std::string &body, uint32_t block) {
  TestMachine machine(kernelText(body, 1));
  uint64_t out = machine.allocate(kBytes), in = machine.upload(std::vector<uint8_t>(kBytes));
  return machine.launch("k", threads(block), out, in);
}

/// With `wrong` in the place of $1 a fault of that kind, with `right` none.
void expectTwins(const std::string &body, const std::string &wrong, const std::string &right, FaultKind kind,
                 const std::string &words, uint32_t block = 1) {
  auto fault = runBody(with(body, wrong), block);
  ASSERT_TRUE(fault) << wrong << " is no fault";
  EXPECT_EQ(fault->kind, kind) << fault->text();
  EXPECT_NE(fault->text().find(words), std::string::npos) << fault->text();
  auto clean = runBody(with(body, right), block);
  EXPECT_FALSE(clean) << clean->text();
}

TEST(Fault, GlobalMemoryOutOfBounds) {
  expectTwins("ld.global.u32 %r0, [%in0+$1];\n", "64", "60", FaultKind::OutOfBounds,
              "0 bytes behind the 64 bytes");
  expectTwins("ld.global.u32 %r0, [%in0+$1];\n", "-4", "0", FaultKind::OutOfBounds, "4 bytes at 0x");
  expectTwins("st.u64 [%out+$1], %rd0;\n", "64", "56", FaultKind::OutOfBounds, "8 bytes at 0x");
}

TEST(Fault, SharedMemoryOutOfBounds) {
  const std::string store =
      ".shared .align 16 .b8 tile[32];\nmov.u32 %r1, tile;\nst.shared.u32 [%r1+$1], %i;\n";
  expectTwins(store, "32", "28", FaultKind::OutOfBounds, "4 bytes at shared address 0x20");
  expectTwins(store, "-4", "0", FaultKind::OutOfBounds, "4 bytes at shared address 0x");
}

TEST(Fault, LocalMemoryOutOfBounds) {
  const std::string store =
      ".local .align 16 .b8 own[32];\nmov.u64 %rd1, own;\nst.local.u32 [%rd1+$1], %i;\n";
  expectTwins(store, "32", "28", FaultKind::OutOfBounds, "4 bytes at local address 0x");
  expectTwins(store, "-20", "0", FaultKind::OutOfBounds, "4 bytes at local address 0x");
}

TEST(Fault, MisalignedAccesses) {
  expectTwins("ld.global.u32 %r0, [%in0+$1];\n", "2", "4", FaultKind::Misaligned, "4 bytes at 0x");
  expectTwins("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%in0+$1];\n", "8", "16", FaultKind::Misaligned,
              "16 bytes at 0x");
  expectTwins(".shared .align 16 .b8 tile[32];\nmov.u32 %r1, tile;\nst.shared.u64 [%r1+$1], %rd0;\n", "4",
              "8", FaultKind::Misaligned, "must be a multiple of 8");
}

TEST(Fault, MemoryThatWasFreed) {
  TestMachine machine(kernelText("ld.global.u32 %r0, [%in0];\n", 1));
  uint64_t out = machine.allocate(kBytes), in = machine.upload(std::vector<uint8_t>(kBytes));
  ASSERT_FALSE(machine.launch("k", threads(1), out, in));
  machine.device.release(in);
  auto fault = machine.launch("k", threads(1), out, in);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::UseAfterFree) << fault->text();
}

TEST(Fault, MemoryThatIsReadOnly) {
  const std::string constant =
      ".version 8.7\n.target sm_90a\n.address_size 64\n.const .b32 c = 7;\n.global .b32 g;\n"
      ".visible .entry k() {\n.reg .b64 %rd<2>;\n$1;\nst.u32 [%rd0], 1;\nret;\n}\n";
  auto launch = [&](const std::string &place) {
    TestMachine machine(with(constant, place));
    return machine.launch("k", threads(1));
  };
  auto fault = launch("cvta.const.u64 %rd0, c");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::ReadOnlyWrite) << fault->text();
  EXPECT_FALSE(launch("cvta.global.u64 %rd0, g"));
}

TEST(Fault, MemoryThatNobodyWrote) {
  expectTwins("ld.global.u32 %r0, [$1];\n", "%out", "%in0", FaultKind::UninitializedRead,
              "was never written");
  expectTwins(".shared .b32 x;\n$1\nld.shared.u32 %r0, [x];\n", "", "st.shared.u32 [x], %i;",
              FaultKind::UninitializedRead, "was never written");
  // To the byte: three of four were written.
  expectTwins(
      "st.global.v2.u8 [%out], {%rs0, %rs0};\nst.global.u8 [%out+2], %rs0;\n$1\nld.global.u32 %r0, [%out];\n",
      "", "st.global.u8 [%out+3], %rs0;", FaultKind::UninitializedRead, "was never written");
}

/// Mistakes after which a kernel can go on are told where somebody wants to know, and it does.
TEST(Fault, FindingsWithWhichAKernelGoesOn) {
  const std::string race =
      ".shared .b32 x;\n@%p0 st.shared.u32 [x], 0;\nbar.sync 0;\nst.shared.u32 [x], %i;\n";
  const std::string read = "ld.global.u32 %r0, [%in0+4];\nld.global.u32 %r0, [%in0+8];\n";
  std::vector<FaultKind> kinds;
  Settings settings;
  settings.found = [&](const Fault &fault) { kinds.push_back(fault.kind); };
  TestMachine machine(kernelText("setp.eq.u32 %p0, %i, 0;\n" + race + read + "st.global.u32 [%out], 7;\n", 1),
                      settings);
  const uint64_t out = machine.upload(std::vector<uint32_t>(1)), in = machine.allocate(kBytes);
  EXPECT_FALSE(machine.launch("k", threads(64), out, in));
  EXPECT_EQ(machine.download<uint32_t>(out, 1)[0], 7u);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), FaultKind::Race), 1);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), FaultKind::UninitializedRead), 2 * 64);
  // Others stop it.
  TestMachine stopped(kernelText("ld.global.u32 %r0, [%in0+1000000];\n", 1), settings);
  const auto fault = stopped.launch("k", threads(1), out, stopped.allocate(kBytes));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::OutOfBounds);
}

TEST(Fault, MbarriersThatAreNone) {
  const std::string object = ".shared .align 8 .b64 bar;\n";
  expectTwins(object + "$1\nmbarrier.arrive.shared.b64 %rd0, [bar];\n", "",
              "mbarrier.init.shared.b64 [bar], 1;", FaultKind::BarrierMisuse, "was not initialised");
  expectTwins(object + "mbarrier.init.shared.b64 [bar], 2;\nmbarrier.arrive.shared.b64 %rd0, [bar], $1;\n",
              "3", "2", FaultKind::BarrierMisuse, "3 arrivals at the mbarrier");
  expectTwins(object + "mbarrier.init.shared.b64 [bar], 1;\n$1\nmbarrier.arrive.shared.b64 %rd0, [bar];\n",
              "st.shared.u32 [bar], 5;", "", FaultKind::BarrierMisuse, "was overwritten since");
}

TEST(Fault, BarriersThatHalfAWarpReaches) {
  expectTwins("setp.lt.u32 %p0, %i, $1;\n@%p0 bar.sync 0;\n@!%p0 bar.sync 0;\n", "16", "32",
              FaultKind::BarrierDivergence, "", 32);
}

TEST(Fault, DeadlocksSayWhereEveryWarpIs) {
  const std::string body = "setp.lt.u32 %p0, %i, $1;\n@%p0 bar.sync 1, 64;\nbar.sync 0;\n";
  auto fault = runBody(with(body, "32"), 96);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::Deadlock) << fault->text();
  for (const char *words : {"warp 0 lanes ffffffff at line", "warp 1 lanes ffffffff at line",
                            "warp 2 lanes ffffffff at line", "barrier 1: 32 of 64 threads"})
    EXPECT_NE(fault->text().find(words), std::string::npos) << fault->text();
  EXPECT_FALSE(runBody(with(body, "64"), 96));
}

TEST(Fault, StacksThatAreTooSmall) {
  // Calls itself n times, n from memory.
  auto launch = [](uint32_t depth) {
    TestMachine machine(".version 8.7\n.target sm_90a\n.address_size 64\n"
                        ".func down(.param .b32 n) {\n.local .b8 own[64];\n.reg .b32 %r<2>;\n.reg .pred %p;\n"
                        "ld.param.b32 %r0, [n];\nsetp.eq.u32 %p, %r0, 0;\n@%p bra DONE;\n"
                        "{\n.param .b32 a;\nsub.u32 %r0, %r0, 1;\nst.param.b32 [a], %r0;\ncall down, "
                        "(a);\n}\nDONE:\nret;\n}\n"
                        ".visible .entry k(.param .u32 n) {\n.reg .b32 %r<2>;\nld.param.u32 %r0, [n];\n"
                        "{\n.param .b32 a;\nst.param.b32 [a], %r0;\ncall down, (a);\n}\nret;\n}\n");
    return machine.launch("k", threads(1), depth);
  };
  EXPECT_FALSE(launch(4));
  auto fault = launch(100000);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::StackOverflow) << fault->text();
}

TEST(Fault, Traps) { expectTwins("setp.eq.u32 %p0, %i, $1;\n@%p0 trap;\n", "0", "1", FaultKind::Trap, ""); }

TEST(Fault, Assertions) {
  auto launch = [](uint32_t value) {
    TestMachine machine(
        ".version 8.7\n.target sm_90a\n.address_size 64\n"
        ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 "
        "e);\n"
        ".global .b8 text[6] = {105, 32, 60, 32, 110, 0};\n"
        ".visible .entry k(.param .u32 x) {\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n.reg .pred %p;\n"
        "ld.param.u32 %r0, [x];\nsetp.ne.u32 %p, %r0, 0;\n@%p bra OK;\ncvta.global.u64 %rd0, text;\n"
        "{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n.param .b64 d;\n.param .b64 e;\n"
        "st.param.b64 [a], %rd0;\nst.param.b64 [b], %rd0;\nst.param.b32 [c], 12;\nst.param.b64 [d], %rd0;\n"
        "st.param.b64 [e], 1;\ncall.uni __assertfail, (a, b, c, d, e);\n}\nOK:\nret;\n}\n");
    return machine.launch("k", threads(1), value);
  };
  EXPECT_FALSE(launch(1));
  auto fault = launch(0);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::Assertion) << fault->text();
  EXPECT_NE(fault->text().find("i < n"), std::string::npos) << fault->text();
}

/// Why sm_90a does not launch a kernel that does nothing.
std::string refusal(uint32_t block, uint32_t shared, uint32_t allowed) {
  TestMachine machine(kernelText("", 0));
  LaunchConfig config = threads(block);
  config.dynamicShared = shared;
  Allowance allowance;
  allowance.dynamicShared = allowed;
  auto refused = refuse(*findChip("sm_90a"), machine.find("k"), allowance, config);
  return refused ? refused->message : "";
}

TEST(Refusal, MoreThreadsOrSharedMemoryThanThereIs) {
  EXPECT_EQ(refusal(1024, 0, 0), "");
  EXPECT_EQ(refusal(1025, 0, 0), "the block is (1025,1,1): at most 1024 threads, and 64 in z, are possible");
  EXPECT_EQ(refusal(1, 49152, 0), "");
  EXPECT_EQ(refusal(1, 49153, 0),
            "49153 bytes of dynamic shared memory, the kernel was allowed 49152 (cuFuncSetAttribute)");
  EXPECT_EQ(refusal(1, 232448, 232448), "");
  EXPECT_EQ(refusal(1, 232449, 232448),
            "232449 bytes of shared memory, a block of sm_90a has at most 232448");
}

} // namespace
