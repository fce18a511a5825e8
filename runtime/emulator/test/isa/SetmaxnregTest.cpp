// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// setmaxnreg: warps that hand registers to each other, and each way to do it wrong next
// to the right one.

#include "Harness.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

constexpr unsigned kSeeds = 20;

/// Two groups of warps, or as many threads as given; %g is the group, %w the warp. Each
/// thread stores its number plus one behind `body`.
std::string text(const std::string &body, const std::string &directives) {
  return ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out) " + directives +
         " {\n.reg .b32 %t, %g, %w, %v; .reg .b64 %rd<3>; .reg .pred %p<4>;\n"
         "ld.param.u64 %rd0, [out];\nmov.u32 %t, %tid.x;\nshr.u32 %g, %t, 7;\nshr.u32 %w, %t, 5;\n"
         "setp.eq.u32 %p0, %g, 0;\nsetp.eq.u32 %p1, %w, 0;\n" +
         body +
         "\nEND:\nadd.u32 %v, %t, 1;\nmul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd0, %rd1;\n"
         "st.global.u32 [%rd1], %v;\nret;\n}\n";
}

std::optional<Fault> run(const std::string &text, unsigned threads, uint64_t seed) {
  Settings settings;
  settings.seed = seed;
  TestMachine machine(text, settings);
  LaunchConfig config;
  config.block = {threads, 1, 1};
  uint64_t out = machine.upload(std::vector<uint32_t>(threads));
  auto fault = machine.launch("k", config, out);
  if (!fault) {
    auto values = machine.download<uint32_t>(out, threads);
    for (unsigned i = 0; i < threads; ++i)
      EXPECT_EQ(values[i], i + 1) << "seed " << seed;
  }
  return fault;
}

void expectClean(const std::string &text, unsigned threads = 256) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    auto fault = run(text, threads, seed);
    ASSERT_FALSE(fault) << "seed " << seed << ": " << fault->text();
  }
}

void expectFault(const std::string &text, FaultKind kind, const std::vector<std::string> &words,
                 unsigned threads = 256) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    auto fault = run(text, threads, seed);
    ASSERT_TRUE(fault) << "seed " << seed << " found nothing";
    ASSERT_EQ(fault->kind, kind) << "seed " << seed << ": " << fault->text();
    for (const std::string &word : words)
      ASSERT_NE(fault->text().find(word), std::string::npos) << word << " is not in: " << fault->text();
  }
}

/// Group 0 gives, group 1 takes.
std::string handOver(unsigned left, unsigned wanted, const std::string &directives) {
  return text("@%p0 bra GIVE;\nsetmaxnreg.inc.sync.aligned.u32 " + std::to_string(wanted) +
                  ";\nbra END;\nGIVE:\nsetmaxnreg.dec.sync.aligned.u32 " + std::to_string(left) + ";\n",
              directives);
}

TEST(Setmaxnreg, TakesWhatOthersGive) {
  // 96 for each thread: 56 given, 56 taken.
  expectClean(handOver(40, 152, ".maxnreg 96"));
  expectClean(handOver(40, 152, ".maxntid 256 .minnctapersm 2 .maxnreg 96"));
  // 90 are allocated as 96.
  expectClean(handOver(40, 152, ".maxnreg 90"));
  expectFault(handOver(40, 160, ".maxnreg 96"), FaultKind::Deadlock,
              {"waiting for registers: ", " of 24576 free, it needs 2048 more", "setmaxnreg.inc"});
  expectFault(handOver(48, 152, ".maxnreg 96"), FaultKind::Deadlock, {"waiting for registers: "});
}

TEST(Setmaxnreg, GivesBackAndTakesAgain) {
  // One after the other: first group 0 has more, then group 1.
  const std::string body = "@%p0 bra A;\nsetmaxnreg.dec.sync.aligned.u32 40;\nbar.sync 1, 256;\n"
                           "setmaxnreg.inc.sync.aligned.u32 152;\nbra END;\n"
                           "A:\nsetmaxnreg.inc.sync.aligned.u32 152;\nbar.sync 1, 256;\n$";
  std::string gives = body, keeps = body;
  gives.replace(gives.find('$'), 1, "setmaxnreg.dec.sync.aligned.u32 40;\n");
  keeps.replace(keeps.find('$'), 1, "");
  expectClean(text(gives, ".maxnreg 96"));
  expectFault(text(keeps, ".maxnreg 96"), FaultKind::Deadlock, {"waiting for registers: 0 of 24576 free"});
}

TEST(Setmaxnreg, IsIgnoredWhereTheNumberOfRegistersIsNotKnown) {
  // More than there is, and by half a group: nobody looks.
  expectClean(handOver(40, 256, ".maxntid 256"));
  expectClean(handOver(40, 256, ""), 64);
}

TEST(Setmaxnreg, IsExecutedByAllWarpsOfAGroup) {
  const std::string change = "setmaxnreg.dec.sync.aligned.u32 40;\n";
  expectClean(text(change, ".maxnreg 96"));
  expectFault(text("@%p1 bra END;\n" + change, ".maxnreg 96"), FaultKind::BarrierDivergence,
              {"without", "all must execute the same"});
  expectFault(text("@!%p1 bra END;\n" + change, ".maxnreg 96"), FaultKind::BarrierDivergence,
              {"without", "all must execute the same"});
  // Warps may have one of their own with the same number, as compilers make it, and no other number.
  const std::string first = "@%p1 bra OTHER;\n" + change + "bra END;\nOTHER:\n";
  expectClean(text(first + change, ".maxnreg 96"));
  expectFault(text(first + "setmaxnreg.dec.sync.aligned.u32 48;\n", ".maxnreg 96"),
              FaultKind::BarrierDivergence, {"executes another setmaxnreg, at line "});
  expectClean(text(change, ".maxnreg 96"), 128);
  expectFault(text(change, ".maxnreg 96"), FaultKind::BarrierDivergence, {"the block has 3 warps"}, 96);
}

TEST(Setmaxnreg, IsExecutedByAllLanes) {
  const std::string change =
      "setp.lt.u32 %p2, %t, 16;\n@%p2 setmaxnreg.dec.sync.aligned.u32 40;\nbar.sync 0;\n";
  expectFault(text(change, ".maxnreg 96"), FaultKind::BarrierDivergence, {"waiting for lanes"}, 128);
}

TEST(Setmaxnreg, NeedsABarrierBetweenTwo) {
  const std::string first = "setmaxnreg.dec.sync.aligned.u32 64;\n",
                    second = "setmaxnreg.dec.sync.aligned.u32 40;\n";
  expectClean(text(first + "bar.sync 0;\n" + second, ".maxnreg 96"));
  // Warp 0 is ahead whatever the order.
  expectFault(text("@!%p1 bar.sync 1, 256;\n" + first + second + "@%p1 bar.sync 1, 256;\n", ".maxnreg 96"),
              FaultKind::BarrierDivergence, {"they must synchronize between two of them"});
}

TEST(Setmaxnreg, ChangesInTheDirectionThatItSays) {
  const std::string larger = "setmaxnreg.inc.sync.aligned.u32 104;\n";
  expectFault(text("setmaxnreg.dec.sync.aligned.u32 104;\n", ".maxnreg 96"), FaultKind::IllegalOperand,
              {"a thread has 96 registers, less than the 104 it is to have"});
  expectFault(text("setmaxnreg.inc.sync.aligned.u32 88;\nbar.sync 0;\n" + larger, ".maxnreg 96"),
              FaultKind::IllegalOperand, {"a thread has 96 registers, more than the 88 it is to have"});
  // As many as there are is both.
  expectClean(text("setmaxnreg.dec.sync.aligned.u32 96;\n", ".maxnreg 96"));
  expectClean(text("setmaxnreg.inc.sync.aligned.u32 96;\n", ".maxnreg 96"));
}

TEST(Setmaxnreg, HasANumberThatHardwareHas) {
  for (const char *count : {"24", "256", "128"})
    EXPECT_NO_THROW(TestMachine(text("setmaxnreg.inc.sync.aligned.u32 " + std::string(count) + ";\n", "")))
        << count;
  for (const char *bad : {"inc.sync.aligned.u32 20", "inc.sync.aligned.u32 28", "dec.sync.aligned.u32 264",
                          "dec.sync.aligned 40", "dec.aligned.u32 40", "dec.sync.u32 40",
                          "sync.aligned.u32 40", "inc.sync.aligned.u32 %t"})
    EXPECT_THROW(TestMachine(text("setmaxnreg." + std::string(bad) + ";\n", "")), PtxError) << bad;
}

} // namespace
