// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lanes of a warp that come to an instruction by different ways: through calls that
// they entered at different times, and to copies of the instruction, which compilers
// make of code that several ways have in common.

#include "Harness.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

constexpr uint64_t kSeeds = 20;

LaunchConfig oneWarp() {
  LaunchConfig config;
  config.block = {32, 1, 1};
  return config;
}

/// Runs kernel k(out) of a module by one warp with many seeds, each of which stores a
/// value of type T per lane: `expected(lane)`.
template <class T, class Expected>
void expectLanes(const std::string &functions, const std::string &body, Expected expected) {
  TestMachine machine(".version 8.7\n.target sm_90a\n.address_size 64\n" + functions +
                      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<16>;\n.reg .f64 %d;\n"
                      ".reg .b64 %at, %offset;\n.reg .pred %p<4>;\nmov.u32 %r0, %tid.x;\n" +
                      body + "ld.param.u64 %at, [out];\nmul.wide.u32 %offset, %r0, " +
                      std::to_string(sizeof(T)) + ";\nadd.u64 %at, %at, %offset;\nst.global." +
                      (sizeof(T) == 8 ? "f64 [%at], %d" : "u32 [%at], %r1") + ";\nret;\n}\n");
  uint64_t out = machine.allocate(32 * sizeof(T));
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    machine.settings.seed = seed;
    auto fault = machine.launch("k", oneWarp(), out);
    ASSERT_FALSE(fault) << "seed " << seed << ": " << fault->text();
    auto values = machine.download<T>(out, 32);
    for (unsigned lane = 0; lane < 32; ++lane)
      ASSERT_EQ(values[lane], expected(lane)) << "seed " << seed << ", lane " << lane;
  }
}

/// Lanes go round a loop as often as the lowest bits of their number say, and then do
/// `body`. It lies before the loop: who is further behind runs first, so that none waits
/// there for the others.
std::string apart(const std::string &body) {
  return "bra START;\nGO:\n" + body +
         "bra END;\nSTART:\nand.b32 %r2, %r0, 3;\nWAIT:\nsetp.eq.u32 %p0, %r2, 0;\n@%p0 bra GO;\n"
         "sub.u32 %r2, %r2, 1;\nbra WAIT;\nEND:\n";
}

/// `product` multiplies matrices and needs all lanes; `outer` has a value of its own
/// before and after it calls it, and parts the lanes itself once more.
const char *const kNestedCalls = R"(
.func (.param .b64 r) product(.param .b32 n) {
.reg .b32 %n, %k;
.reg .f64 %a, %b, %c<2>, %d<2>, %x;
ld.param.b32 %n, [n];
cvt.rn.f64.u32 %a, %n;
and.b32 %k, %n, 3;
cvt.rn.f64.u32 %b, %k;
add.f64 %c0, %a, %a;
mov.f64 %c1, 0d0000000000000000;
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%a}, {%b}, {%c0, %c1};
add.f64 %x, %d0, %d1;
add.f64 %x, %x, %a;
st.param.f64 [r], %x;
ret;
}
.func (.param .b64 r) outer(.param .b32 n) {
.reg .b32 %n, %own, %left;
.reg .f64 %x, %y;
.reg .pred %p;
ld.param.b32 %n, [n];
mul.lo.u32 %own, %n, 1000;
shr.u32 %left, %n, 3;
bra AGAIN;
CALL: {
.param .b32 a;
.param .b64 b;
st.param.b32 [a], %n;
call (b), product, (a);
ld.param.f64 %x, [b];
}
cvt.rn.f64.u32 %y, %own;
add.f64 %x, %x, %y;
st.param.f64 [r], %x;
ret;
AGAIN:
setp.eq.u32 %p, %left, 0;
@%p bra CALL;
sub.u32 %left, %left, 1;
bra AGAIN;
}
)";

TEST(Convergence, LanesThatEnterNestedCallsApartMeetInTheInnermost) {
  const std::string call = "{\n.param .b32 a;\n.param .b64 b;\nst.param.b32 [a], %r0;\n"
                           "call (b), outer, (a);\nld.param.f64 %d, [b];\n}\n";
  expectLanes<double>(kNestedCalls, apart(call), [](unsigned lane) {
    // A[i][k] = 4 i + k, B[k][j] = k, C[i][j] = 2 (4 i + j / 2) for even j, 0 for odd
    // ones: the fragments of m8n8k4 in f64 (PTX ISA 9.7.14.5.5).
    unsigned row = lane / 4;
    double sum = 0;
    for (unsigned k = 0; k < 4; ++k)
      sum += (4 * row + k) * k;
    return 2 * sum + 2 * lane + lane + 1000 * lane;
  });
}

TEST(Convergence, CallsFromDifferentPlacesAreNotOne) {
  // An .aligned instruction must be the same one in the same call for all lanes.
  TestMachine machine(std::string(".version 8.7\n.target sm_90a\n.address_size 64\n"
                                  ".func inner() {\nbarrier.sync.aligned 0;\nret;\n}\n"
                                  ".visible .entry k(.param .u64 out) {\n.reg .b32 %r;\n.reg .pred %p;\n"
                                  "mov.u32 %r, %tid.x;\nsetp.lt.u32 %p, %r, 7;\n@%p bra LOW;\n"
                                  "call inner, ();\nret;\nLOW:\ncall inner, ();\nret;\n}\n"));
  auto fault = machine.launch("k", oneWarp(), machine.allocate(8));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::BarrierDivergence) << fault->text();
}

/// Even lanes, and odd ones, execute a body of their own each; %r1 is the result.
std::string branches(const std::string &even, const std::string &odd) {
  return "and.b32 %r2, %r0, 1;\nsetp.eq.u32 %p0, %r2, 1;\n@%p0 bra ODD;\n" + even + "\nbra END;\nODD:\n" +
         odd + "\nEND:\n";
}

void expectBranches(const std::string &even, const std::string &odd, uint32_t (*expected)(uint32_t lane)) {
  expectLanes<uint32_t>("", branches(even, odd), expected);
}

TEST(Convergence, CopiesOfAShuffleExchange) {
  // Registers, amounts and the second destination differ; the results are 100 more.
  expectBranches("mov.u32 %r3, %r0;\nshfl.sync.bfly.b32 %r1, %r3, 3, 31, -1;",
                 "add.u32 %r4, %r0, 100;\nmov.u32 %r5, 1;\nmov.u32 %r6, -1;\n"
                 "shfl.sync.bfly.b32 %r4|%p1, %r4, %r5, 31, %r6;\nselp.u32 %r7, 1000, 0, %p1;\n"
                 "add.u32 %r1, %r4, %r7;",
                 [](uint32_t lane) { return lane % 2 ? 1000 + (lane ^ 1) : 100 + (lane ^ 3); });
}

TEST(Convergence, CopiesOfAVoteCountTogether) {
  expectBranches("setp.lt.u32 %p1, %r0, 10;\nvote.sync.ballot.b32 %r1, %p1, -1;",
                 "setp.lt.u32 %p2, %r0, 10;\nvote.sync.ballot.b32 %r3, !%p2, -1;\nnot.b32 %r1, %r3;",
                 [](uint32_t lane) {
                   uint32_t votes = 0x3FF & 0x55555555;
                   votes |= ~uint32_t(0x3FF) & 0xAAAAAAAA;
                   return lane % 2 ? ~votes : votes;
                 });
  expectBranches("vote.sync.all.pred %p1, 1, -1;\nselp.u32 %r1, 7, 8, %p1;",
                 "setp.ne.u32 %p2, %r0, 31;\nvote.sync.all.pred %p3, %p2, -1;\nselp.u32 %r1, 7, 8, %p3;",
                 [](uint32_t) { return 8u; });
}

TEST(Convergence, CopiesOfAReductionSumTogether) {
  expectBranches("redux.sync.add.s32 %r1, %r0, -1;", "mov.u32 %r3, 1000;\nredux.sync.add.s32 %r1, %r3, -1;",
                 [](uint32_t) { return 16 * 1000 + 15 * 16u; });
  expectBranches("elect.sync _|%p1, -1;\nselp.u32 %r1, 1, 2, %p1;", "elect.sync %r1|%p1, -1;",
                 [](uint32_t lane) { return lane % 2 ? 0u
                                            : lane   ? 2u
                                                     : 1u; });
}

TEST(Convergence, CopiesOfAMatchCompareWithEachOther) {
  // Even lanes hold lane / 8, odd ones 3 - lane / 8.
  expectBranches("shr.u32 %r3, %r0, 3;\nmatch.any.sync.b32 %r1, %r3, -1;",
                 "shr.u32 %r4, %r0, 3;\nsub.u32 %r4, 3, %r4;\nmatch.any.sync.b32 %r1, %r4, -1;",
                 [](uint32_t lane) {
                   uint32_t value = lane % 2 ? 3 - lane / 8 : lane / 8;
                   return 0x55u << 8 * value | 0xAAu << 8 * (3 - value);
                 });
  expectBranches("mov.u32 %r3, 5;\nmatch.all.sync.b32 %r1|%p1, %r3, -1;", "match.all.sync.b32 %r1, 5, -1;",
                 [](uint32_t) { return 0xFFFFFFFFu; });
}

TEST(Convergence, CopiesOfABarrierOrderMemory) {
  // Each lane reads what its neighbour wrote before its own copy of the barrier.
  const std::string functions = ".shared .align 4 .b8 buffer[128];\n";
  const std::string write = "mov.u32 %r3, buffer;\nmad.lo.u32 %r4, %r0, 4, %r3;\n"
                            "st.shared.u32 [%r4], %r0;\n",
                    read = "xor.b32 %r5, %r0, 1;\nmad.lo.u32 %r4, %r5, 4, %r3;\nld.shared.u32 %r1, [%r4];\n";
  const auto neighbour = [](uint32_t lane) { return lane ^ 1; };
  expectLanes<uint32_t>(functions,
                        branches(write + "bar.warp.sync -1;\n" + read, write + "bar.warp.sync -1;\n" + read),
                        neighbour);
}

TEST(Convergence, CopiesOfAnInstructionMayBeInFunctions) {
  // One function called from two places, another, and the kernel itself.
  const std::string functions =
      ".func (.param .b32 r) one(.param .b32 n) {\n.reg .b32 %a, %b;\nld.param.b32 %a, [n];\n"
      "shfl.sync.bfly.b32 %b, %a, 1, 31, -1;\nst.param.b32 [r], %b;\nret;\n}\n"
      ".func (.param .b32 r) two(.param .b32 n) {\n.reg .b32 %a, %b, %c;\nld.param.b32 %c, [n];\n"
      "shfl.sync.bfly.b32 %a, %c, 2, 31, -1;\nst.param.b32 [r], %a;\nret;\n}\n";
  auto call = [](const std::string &name) {
    return "{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r0;\ncall (b), " + name +
           ", (a);\nld.param.b32 %r1, [b];\n}\nbra END;\n";
  };
  expectLanes<uint32_t>(functions,
                        "and.b32 %r2, %r0, 3;\nsetp.eq.u32 %p0, %r2, 0;\n@%p0 bra A;\n"
                        "setp.eq.u32 %p0, %r2, 1;\n@%p0 bra B;\nsetp.eq.u32 %p0, %r2, 2;\n@%p0 bra C;\n"
                        "shfl.sync.bfly.b32 %r1, %r0, 3, 31, -1;\nbra END;\nA:\n" +
                            call("one") + "B:\n" + call("one") + "C:\n" + call("two") + "END:\n",
                        [](uint32_t lane) {
                          return lane ^ (lane % 4 < 2 ? 1 : lane % 4 == 2 ? 2 : 3);
                        });
}

TEST(Convergence, LanesThatExitAreNotAwaitedAtCopies) {
  // Lanes 24 to 31 are further on: they exit when the others wait already.
  expectLanes<uint32_t>("",
                        "setp.ge.u32 %p1, %r0, 24;\n@%p1 bra LATE;\n" +
                            branches("redux.sync.max.u32 %r1, %r0, -1;", "redux.sync.max.u32 %r1, 3, -1;") +
                            "bra DONE;\nLATE:\nld.param.u64 %at, [out];\nmul.wide.u32 %offset, %r0, 4;\n"
                            "add.u64 %at, %at, %offset;\nst.global.u32 [%at], 77;\nexit;\nDONE:\n",
                        [](unsigned lane) { return lane < 24 ? 22u : 77u; });
}

/// The fault of one warp, and the module's text up to a line, to look lines up.
Fault branchesFault(const std::string &even, const std::string &odd, std::string *text) {
  *text = kernelText("mov.u32 %r0, %i;\n" + branches(even, odd), 0);
  TestMachine machine(*text);
  auto fault = machine.launch("k", oneWarp(), machine.allocate(128));
  EXPECT_TRUE(fault) << even << odd;
  return fault.value_or(Fault());
}

std::string lineOf(const std::string &text, const std::string &statement) {
  auto at = text.find(statement);
  return "line " + std::to_string(1 + std::count(text.begin(), text.begin() + int64_t(at), '\n')) + " ";
}

TEST(Convergence, OnlyTheSameInstructionAndMaskMeet) {
  std::string text;
  for (const char *odd :
       {"shfl.sync.down.b32 %r1, %r0, 1, 31, -1;", "shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0xAAAAAAAB;"}) {
    Fault fault = branchesFault("shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;", odd, &text);
    EXPECT_EQ(fault.kind, FaultKind::BarrierDivergence) << fault.text();
    EXPECT_NE(fault.text().find(lineOf(text, "shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1")), std::string::npos);
    EXPECT_NE(fault.text().find(lineOf(text, odd)), std::string::npos) << fault.text();
  }
}

TEST(Convergence, AlignedInstructionsAtTwoPlacesAreReported) {
  const std::pair<const char *, const char *> cases[] = {
      {"barrier.sync.aligned 0;", "barrier.sync.aligned 0, 32;"},
      {"movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;", "movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r0;"},
      {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0, %fd1}, {%fd2}, {%fd3}, {%fd4, %fd5};",
       "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0, %fd1}, {%fd2}, {%fd4}, {%fd4, %fd5};"}};
  for (auto [even, odd] : cases) {
    std::string text;
    Fault fault = branchesFault(even, odd, &text);
    EXPECT_EQ(fault.kind, FaultKind::BarrierDivergence) << fault.text();
    EXPECT_NE(fault.text().find(lineOf(text, even)), std::string::npos) << fault.text();
    EXPECT_NE(fault.text().find(lineOf(text, odd)), std::string::npos) << fault.text();
  }
}

} // namespace
