// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchanges of values between the lanes of a warp.

#include "EachThread.h"
#include "Harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// Lane i holds 1000 + i in %a, and the rest in %b and %c.
EachThread warp(const std::string &body, std::vector<uint64_t> b = {}, std::vector<uint64_t> c = {}) {
  EachThread test{"b32", body, {{"b32", {}}}};
  for (unsigned i = 0; i < 64; ++i)
    test.operands[0].bits.push_back(1000 + i);
  for (auto &values : {b, c}) {
    if (values.empty())
      break;
    test.operands.push_back({"b32", {}});
    for (unsigned i = 0; i < 64; ++i)
      test.operands.back().bits.push_back(values[i % values.size()]);
  }
  return test;
}

std::vector<uint64_t> expectRuns(EachThread test) {
  Outcome outcome = test.run();
  if (outcome.fault)
    ADD_FAILURE() << test.body << "\n" << outcome.fault->text();
  outcome.d.resize(test.threads, ~uint64_t(0));
  return outcome.d;
}

Fault expectFault(EachThread test) {
  Outcome outcome = test.run();
  EXPECT_TRUE(outcome.fault) << test.body;
  return outcome.fault.value_or(Fault());
}

/// The pseudo code of PTX ISA 9.7.9.6.
int pseudoCode(const std::string &mode, int lane, unsigned b, unsigned c, bool &valid) {
  int bval = b & 0x1F, cval = c & 0x1F, segmask = c >> 8 & 0x1F;
  int maxLane = (lane & segmask) | (cval & (~segmask & 0x1F)), minLane = lane & segmask, j = 0;
  if (mode == "up") {
    j = lane - bval;
    valid = j >= maxLane;
  } else if (mode == "down") {
    j = lane + bval;
    valid = j <= maxLane;
  } else if (mode == "bfly") {
    j = lane ^ bval;
    valid = j <= maxLane;
  } else {
    j = minLane | (bval & (~segmask & 0x1F));
    valid = j <= maxLane;
  }
  return valid ? j : lane;
}

TEST(WarpOps, Shuffles) {
  for (const std::string mode : {"up", "down", "bfly", "idx"})
    for (unsigned b : {0u, 1u, 2u, 5u, 16u, 31u, 32u, 33u, 0xFFFFFFFFu})
      for (unsigned c : {0u, 31u, 0x1C1Fu, 0x1807u, 0x1000u, 0x181Fu, 0x0C0Fu, 17u, 0x1F1Fu}) {
        EachThread test = warp("shfl.sync." + mode +
                                   ".b32 %r0|%p0,%a,%b,%c,-1; selp.b32 %r1,0x10000,0,%p0;"
                                   "or.b32 %d,%r0,%r1;",
                               {b}, {c});
        std::vector<uint64_t> d = expectRuns(test);
        for (int lane = 0; lane < 32; ++lane) {
          bool valid = false;
          int j = pseudoCode(mode, lane, b, c, valid);
          ASSERT_EQ(d[unsigned(lane)], uint64_t(1000 + j) | uint64_t(valid) << 16)
              << mode << " b " << b << " c " << c << " lane " << lane;
        }
      }
}

/// Without .sync, as .version 6.3 still has it: the lanes that are there take part.
TEST(WarpOps, WithoutSyncInOldVersions) {
  const std::string body = "mov.u32 %r1, %laneid; xor.b32 %r2, %r1, 3; setp.lt.u32 %p1, %r1, 16;\n"
                           "shfl.idx.b32 %r3|%p2, %r1, %r2, 31;\n@%p1 vote.ballot.b32 %r4, %p2;\n"
                           "vote.any.pred %p3, !%p2; selp.b32 %r5, 1, 0, %p3;\n"
                           "mad.wide.u32 %rd1, %r1, 4, %out; st.global.u32 [%rd1], %r3;\n"
                           "st.global.u32 [%out+128], %r4; st.global.u32 [%out+132], %r5;\n";
  std::string text = kernelText("mov.u32 %r4, 0;\n" + body, 0, "sm_75");
  EXPECT_THROW(TestMachine{text}, PtxError);
  text.replace(text.find("9.2"), 3, "6.3");
  TestMachine machine(text);
  LaunchConfig config;
  config.block = {16, 1, 1};
  uint64_t out = machine.allocate(136);
  auto fault = machine.launch("k", config, out);
  ASSERT_FALSE(fault) << fault->text();
  const auto values = machine.download<uint32_t>(out, 34);
  for (unsigned i = 0; i < 16; ++i)
    EXPECT_EQ(values[i], i ^ 3);
  EXPECT_EQ(values[32], 0xFFFFu);
  EXPECT_EQ(values[33], 0u);
}

TEST(WarpOps, ShufflesIntoItsSource) {
  // d may be a, b or c; each lane has an amount of its own.
  std::vector<uint64_t> amounts;
  for (unsigned i = 0; i < 32; ++i)
    amounts.push_back((i * 7 + 3) % 32);
  std::vector<uint64_t> d = expectRuns(warp("shfl.sync.idx.b32 %a,%a,%b,31,-1; mov.b32 %d,%a;", amounts));
  std::vector<uint64_t> e = expectRuns(warp("shfl.sync.idx.b32 %b,%a,%b,31,-1; mov.b32 %d,%b;", amounts));
  for (unsigned i = 0; i < 32; ++i) {
    EXPECT_EQ(d[i], 1000 + amounts[i]);
    EXPECT_EQ(e[i], 1000 + amounts[i]);
  }
}

TEST(WarpOps, LanesFormGroups) {
  // As tiles of 8 lanes do: each with a mask of its own in the same instruction.
  std::vector<uint64_t> masks;
  for (unsigned i = 0; i < 32; ++i)
    masks.push_back(uint64_t(0xFF) << (i / 8 * 8));
  std::vector<uint64_t> d = expectRuns(warp("redux.sync.add.u32 %d,%a,%b;", masks));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(d[i], 8 * (1000 + i / 8 * 8) + 28);
}

/// Lanes that come at different times, by two ways, meet at the instruction.
TEST(WarpOps, WaitsForItsMembers) {
  const std::string body =
      "and.b32 %r0,%n,3; mov.b32 %r1,0; LOOP: setp.ge.u32 %p0,%r1,%r0; @%p0 bra DONE;"
      "add.u32 %r1,%r1,1; bra LOOP; DONE: vote.sync.ballot.b32 %r2,1,%b; activemask.b32 %r3;"
      "mov.b32 %d,%r2;";
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<uint64_t> masks;
    for (unsigned i = 0; i < 32; ++i)
      masks.push_back(seed % 2 ? 0xFFFFFFFF : i < 16 ? 0xFFFF : 0xFFFF0000);
    EachThread test = warp(body, masks);
    test.seed = seed;
    std::vector<uint64_t> d = expectRuns(test);
    for (unsigned i = 0; i < 32; ++i)
      EXPECT_EQ(d[i], masks[i]) << seed;
  }
}

TEST(WarpOps, ReadsOfLanesThatAreNotThereAreNoValues) {
  // Lanes 0 to 15 only: 16 and above are undefined to them (PTX ISA 9.7.9.6).
  std::vector<uint64_t> d =
      expectRuns(warp("setp.lt.u32 %p0,%n,16; @%p0 shfl.sync.down.b32 %d,%a,8,31,0xFFFF;"));
  for (unsigned i = 0; i < 8; ++i)
    EXPECT_EQ(d[i], 1008 + i);
  for (unsigned i = 8; i < 16; ++i)
    EXPECT_EQ(d[i], 0xFFFFFFFF);
}

TEST(WarpOps, FaultsOutsideOfTheMask) {
  Fault fault = expectFault(warp("shfl.sync.idx.b32 %d,%a,0,31,0xFFFF;"));
  EXPECT_EQ(fault.kind, FaultKind::IllegalOperand);
  EXPECT_TRUE(fault.hasThread);
  EXPECT_EQ(fault.thread[0], 16u);
  EXPECT_EQ(expectFault(warp("bar.warp.sync 1;")).kind, FaultKind::IllegalOperand);
}

TEST(WarpOps, ReportsMembersThatNeverCome) {
  // Lane 0 is at another barrier, which waits for all lanes of its warp.
  Fault fault = expectFault(warp("setp.eq.u32 %p0,%n,0; @%p0 bra OTHER; bar.warp.sync -1; bra END;"
                                 "OTHER: bar.sync 1, 64; END: mov.b32 %d,1;"));
  EXPECT_EQ(fault.kind, FaultKind::BarrierDivergence);
  EXPECT_NE(fault.message.find("lanes fffffffe"), std::string::npos) << fault.message;
}

TEST(WarpOps, DoesNotWaitForLanesThatExited) {
  std::vector<uint64_t> d =
      expectRuns(warp("setp.ge.u32 %p0,%n,20; @%p0 exit; redux.sync.max.u32 %d,%n,-1;"));
  for (unsigned i = 0; i < 20; ++i)
    EXPECT_EQ(d[i], 19u);
  // Nor for those that a block does not have.
  EachThread test = warp("redux.sync.max.u32 %d,%n,-1;");
  test.threads = 40;
  test.oneBlock = true;
  d = expectRuns(test);
  EXPECT_EQ(d[31], 31u);
  EXPECT_EQ(d[39], 39u);
}

TEST(WarpOps, Votes) {
  struct Case {
    const char *mode;
    bool (*holds)(unsigned ones, unsigned all);
  };
  const Case cases[] = {{"all", [](unsigned ones, unsigned all) { return ones == all; }},
                        {"any", [](unsigned ones, unsigned) { return ones != 0; }},
                        {"uni", [](unsigned ones, unsigned all) { return ones == all || !ones; }}};
  for (uint64_t bits : {0x0ull, 0xFFFFFFFFull, 0x1ull, 0x80000000ull, 0xFFFFull, 0x12345678ull}) {
    std::vector<uint64_t> votes;
    for (unsigned i = 0; i < 32; ++i)
      votes.push_back(bits >> i & 1);
    const std::string load = "setp.ne.u32 %p0,%b,0; setp.lt.u32 %p2,%n,16;";
    for (bool negated : {false, true}) {
      const std::string source = negated ? "!%p0" : "%p0";
      auto shown = uint32_t(negated ? ~bits : bits);
      for (const Case &c : cases) {
        auto ones = unsigned(__builtin_popcount(shown)),
             lowOnes = unsigned(__builtin_popcount(shown & 0xFFFF));
        const std::string vote = "vote.sync." + std::string(c.mode) + ".pred %p1," + source + ",-1;";
        for (uint64_t d : expectRuns(warp(load + vote + "selp.b32 %d,1,0,%p1;", votes)))
          EXPECT_EQ(d, c.holds(ones, 32)) << vote << bits;
        // Of 16 lanes; the others' predicate stays.
        std::vector<uint64_t> d = expectRuns(warp(load + "setp.eq.u32 %p1,0,0; @%p2 vote.sync." + c.mode +
                                                      ".pred %p1," + source + ",0xFFFF; selp.b32 %d,1,0,%p1;",
                                                  votes));
        EXPECT_EQ(d[3], c.holds(lowOnes, 16)) << c.mode << bits;
        EXPECT_EQ(d[17], 1u);
      }
      for (uint64_t d : expectRuns(warp(load + "vote.sync.ballot.b32 %d," + source + ",-1;", votes)))
        EXPECT_EQ(d, shown);
      EXPECT_EQ(expectRuns(warp(load + "@%p2 vote.sync.ballot.b32 %d," + source + ",0xFFFF;", votes))[0],
                shown & 0xFFFF);
    }
  }
}

TEST(WarpOps, VotesOnItsOwnResult) {
  std::vector<uint64_t> d =
      expectRuns(warp("setp.lt.u32 %p0,%n,5; vote.sync.any.pred %p0,%p0,-1; selp.b32 %d,1,0,%p0;"));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(d[i], 1u);
}

TEST(WarpOps, Matches) {
  std::vector<uint64_t> values;
  for (unsigned i = 0; i < 32; ++i)
    values.push_back(i % 5 == 4 ? 0 : i % 5);
  std::vector<uint64_t> any = expectRuns(warp("match.any.sync.b32 %d,%b,-1;", values));
  // 64 bits that differ in the upper half only.
  std::vector<uint64_t> wide = expectRuns(warp("mov.b64 %l0,{%a,%b}; and.b64 %l0,%l0,0xFFFFFFFF00000000;"
                                               "match.any.sync.b64 %d,%l0,-1;",
                                               values));
  for (unsigned i = 0; i < 32; ++i) {
    uint64_t expected = 0;
    for (unsigned j = 0; j < 32; ++j)
      expected |= uint64_t(values[j] == values[i]) << j;
    EXPECT_EQ(any[i], expected);
    EXPECT_EQ(wide[i], expected);
  }
  const std::string store = "selp.b32 %r1,1,0,%p0; xor.b32 %d,%r0,%r1;";
  EXPECT_EQ(expectRuns(warp("match.all.sync.b32 %r0|%p0,%b,-1;" + store, values))[7], 0u);
  EXPECT_EQ(expectRuns(warp("match.all.sync.b32 %r0|%p0,%b,-1;" + store, {77}))[7], 0xFFFFFFFEu);
  EXPECT_EQ(expectRuns(warp("match.all.sync.b32 %d,%b,-1;", {77}))[7], 0xFFFFFFFFu);
  EXPECT_EQ(expectRuns(warp("mov.b32 %r0,2; match.all.sync.b32 _|%p0,%b,-1;" + store, {77}))[7], 3u);
  EXPECT_EQ(expectRuns(warp("mov.b32 %r1,0; mov.b64 %l0,{%b,%r1}; match.all.sync.b64 %r0|%p0,%l0,-1;" + store,
                            {77}))[0],
            0xFFFFFFFEu);
  // Lanes 0, 5, 10 ... alone have the same value.
  EXPECT_EQ(
      expectRuns(warp("rem.u32 %r2,%n,5; setp.eq.u32 %p1,%r2,0; @%p1 match.all.sync.b32 %d,%b,0x42108421;",
                      values))[5],
      0x42108421u);
}

TEST(WarpOps, Reduces) {
  std::vector<uint64_t> values;
  for (unsigned i = 0; i < 32; ++i)
    values.push_back(uint32_t((i + 1) * 0x9E3779B9u));
  auto expect = [&](const std::string &op, auto fold) {
    auto result = uint32_t(values[0]);
    for (unsigned i = 1; i < 32; ++i)
      result = uint32_t(fold(result, uint32_t(values[i])));
    for (uint64_t d : expectRuns(warp("redux.sync." + op + " %d,%b,-1;", values)))
      EXPECT_EQ(d, result) << op;
  };
  expect("add.u32", [](uint32_t a, uint32_t b) { return a + b; });
  expect("add.s32", [](uint32_t a, uint32_t b) { return a + b; });
  expect("min.u32", [](uint32_t a, uint32_t b) { return a < b ? a : b; });
  expect("max.u32", [](uint32_t a, uint32_t b) { return a > b ? a : b; });
  expect("min.s32", [](uint32_t a, uint32_t b) { return int32_t(a) < int32_t(b) ? a : b; });
  expect("max.s32", [](uint32_t a, uint32_t b) { return int32_t(a) > int32_t(b) ? a : b; });
  expect("and.b32", [](uint32_t a, uint32_t b) { return a & b; });
  expect("or.b32", [](uint32_t a, uint32_t b) { return a | b; });
  expect("xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; });
}

uint64_t bits(float value) {
  uint32_t out;
  std::memcpy(&out, &value, 4);
  return out;
}

TEST(WarpOps, ReducesFloats) {
  const uint64_t nan = 0xFFC00001, canonical = 0x7FFFFFFF;
  auto redux = [](const std::string &op, std::vector<uint64_t> values) {
    return expectRuns(
        warp("mov.b32 %f0,%b; redux.sync." + op + ".f32 %f1,%f0,-1; mov.b32 %d,%f1;", values))[9];
  };
  const std::vector<uint64_t> some = {bits(1), bits(-3), bits(2), bits(-0.5f)};
  EXPECT_EQ(redux("min", some), bits(-3));
  EXPECT_EQ(redux("max", some), bits(2));
  EXPECT_EQ(redux("min.abs", some), bits(0.5f));
  EXPECT_EQ(redux("max.abs", some), bits(3));
  // +0 is above -0 (PTX ISA 9.7.13.12).
  EXPECT_EQ(redux("max", {bits(-0.0f), bits(0.0f)}), bits(0.0f));
  EXPECT_EQ(redux("min", {bits(0.0f), bits(-0.0f)}), bits(-0.0f));
  // NaN counts only where it is asked for.
  EXPECT_EQ(redux("min", {nan, bits(4), bits(5)}), bits(4));
  EXPECT_EQ(redux("max.NaN", {bits(4), nan, bits(5)}), canonical);
  EXPECT_EQ(redux("max.abs.NaN", {bits(4), bits(-5)}), bits(5));
  EXPECT_EQ(redux("max", {nan}), canonical);
  // Of a single lane.
  auto alone = [](const std::string &op, uint64_t value) {
    return expectRuns(warp("setp.eq.u32 %p0,%n,3; mov.b32 %f0,%b; @%p0 redux.sync." + op +
                               ".f32 %f1,%f0,8; mov.b32 %d,%f1;",
                           {value}))[3];
  };
  EXPECT_EQ(alone("min.abs", bits(-7)), bits(7));
  EXPECT_EQ(alone("min", nan), canonical);
}

TEST(WarpOps, ElectsOneLeader) {
  const std::string body = "elect.sync %r0|%p0,%b; selp.b32 %r1,100,0,%p0; add.u32 %d,%r0,%r1;";
  std::vector<uint64_t> d = expectRuns(warp(body, {0xFFFFFFFF}));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(d[i], i == 0 ? 100u : 0u);
  d = expectRuns(warp("setp.gt.u32 %p1,%n,11; mov.b32 %d,55; @!%p1 bra END; elect.sync _|%p0,0xFFFFF000;"
                      "selp.b32 %d,100,0,%p0; END:"));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(d[i], i < 12 ? 55u : i == 12 ? 100u : 0u);
}

TEST(WarpOps, ReadsTheActiveMask) {
  std::vector<uint64_t> d =
      expectRuns(warp("setp.lt.u32 %p0,%n,7; @%p0 activemask.b32 %d; @!%p0 activemask.b32 %d;"));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(d[i], i < 7 ? 0x7Fu : 0xFFFFFF80u);
}

/// Sums by shuffles, as kernels do them, with values by shared memory in between.
TEST(WarpOps, OrdersMemoryOfAWarp) {
  std::vector<uint64_t> d = expectRuns(warp(
      "mov.u32 %r0,shared; shl.b32 %r1,%n,2; add.u32 %r2,%r0,%r1; st.shared.b32 [%r2],%a; bar.warp.sync -1;"
      "xor.b32 %r1,%r1,124; add.u32 %r2,%r0,%r1; ld.shared.b32 %d,[%r2];"));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(d[i], 1031 - i);
}

TEST(WarpOps, RefusesWhatThereIsNot) {
  EXPECT_NE(decodeError("shfl.sync.idx.f32 %f0,%f1,%b,31,-1;"), "");
  EXPECT_NE(decodeError("shfl.sync.idx.b32 %d,%a,%b,31;"), "");
  EXPECT_NE(decodeError("shfl.sync.left.b32 %d,%a,%b,31,-1;"), "");
  EXPECT_NE(decodeError("vote.sync.ballot.pred %p0,%p1,-1;"), "");
  EXPECT_NE(decodeError("match.any.sync.b32 %d|%p0,%a,-1;"), "");
  EXPECT_NE(decodeError("match.any.b32 %d,%a,-1;"), "");
  EXPECT_NE(decodeError("redux.sync.and.u32 %d,%a,-1;"), "");
  EXPECT_NE(decodeError("redux.sync.add.f32 %f0,%f1,-1;"), "");
  EXPECT_NE(decodeError("redux.sync.min.abs.s32 %d,%a,-1;"), "");
  EXPECT_NE(decodeError("elect.sync %d,-1;"), "");
  EXPECT_NE(decodeError("bar.warp.sync;"), "");
}

} // namespace
