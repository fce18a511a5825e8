// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The counts of a profile, by kernels whose counts can be told by hand.

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

/// The counts of all instructions that begin with `text`.
Counts countsOf(const TestMachine &machine, const std::string &text) {
  Counts out;
  for (const auto &[place, line] : machine.profile.kernels().at("k").instructions)
    if (line.instruction.rfind(text, 0) == 0)
      out.add(line.counts);
  return out;
}

/// The counts of `ld.global`, of a kernel in which each thread loads `type` from
/// in0 + stride i + offset.
Counts globalLoad(const std::string &type, unsigned stride, unsigned offset = 0, uint32_t block = 32) {
  TestMachine machine(kernelText("mad.wide.u32 %rd0, %i, " + std::to_string(stride) + ", %in0;\nld.global." +
                                     type + " [%rd0+" + std::to_string(offset) + "];\n",
                                 1));
  uint64_t in = machine.upload(std::vector<uint8_t>(1 << 16));
  auto fault = machine.launch("k", threads(block), machine.allocate(8), in);
  EXPECT_FALSE(fault) << fault->text();
  return countsOf(machine, "ld.global");
}

TEST(Profile, CountsWarpsThreadsAndBytes) {
  TestMachine machine(kernelText("setp.lt.u32 %p0, %i, 5;\nadd.u32 %r0, %i, 1;\n@%p0 add.u32 %r0, %r0, 2;\n"
                                 "mad.wide.u32 %rd0, %i, 4, %out;\nst.global.u32 [%rd0], %r0;\n",
                                 0));
  uint64_t out = machine.allocate(4 * 140);
  ASSERT_FALSE(machine.launch("k", threads(70, 2), out));
  EXPECT_EQ(countsOf(machine, "setp").warpInstructions, 6u);
  EXPECT_EQ(countsOf(machine, "setp").threadInstructions, 140u);
  Counts add = countsOf(machine, "add.u32");
  EXPECT_EQ(add.warpInstructions, 12u);
  EXPECT_EQ(add.threadInstructions, 145u);
  Counts store = countsOf(machine, "st.global");
  EXPECT_EQ(store.globalWritten, 560u);
  EXPECT_EQ(store.globalRead, 0u);
  EXPECT_EQ(countsOf(machine, "ld.param").constantRead, 140u * 8);
}

TEST(Profile, CoalescedLoadsTouchEachSectorOnce) {
  Counts counts = globalLoad("u32 %r0,", 4);
  EXPECT_EQ(counts.globalRead, 128u);
  EXPECT_EQ(counts.globalSectors, 4u);
  EXPECT_EQ(globalLoad("v4.u32 {%r0, %r1, %r2, %r3},", 16).globalSectors, 16u);
  EXPECT_EQ(globalLoad("u8 %rs0,", 1).globalSectors, 1u);
  EXPECT_EQ(globalLoad("u32 %r0,", 4, 0, 256).globalSectors, 32u);
}

TEST(Profile, StridedShiftedAndUniformLoads) {
  EXPECT_EQ(globalLoad("u32 %r0,", 8).globalSectors, 8u);
  EXPECT_EQ(globalLoad("u32 %r0,", 32).globalSectors, 32u);
  EXPECT_EQ(globalLoad("u32 %r0,", 512).globalSectors, 32u);
  // 128 bytes that begin in the middle of a sector.
  EXPECT_EQ(globalLoad("u32 %r0,", 4, 16).globalSectors, 5u);
  Counts uniform = globalLoad("u32 %r0,", 0);
  EXPECT_EQ(uniform.globalSectors, 1u);
  EXPECT_EQ(uniform.globalRead, 128u);
}

/// Bank conflicts of one warp that loads `type` from shared address f(lane).
uint64_t conflicts(const std::string &type, const std::string &address) {
  TestMachine machine(kernelText(".shared .align 16 .b8 buffer[16384];\nmov.u32 %r8, buffer;\n" + address +
                                     "add.u32 %r8, %r8, %r9;\nld.shared." + type + " [%r8];\n",
                                 0));
  machine.settings.checks = false;
  auto fault = machine.launch("k", threads(32), machine.allocate(8));
  EXPECT_FALSE(fault) << fault->text();
  return countsOf(machine, "ld.shared").bankConflicts;
}

std::string stride(unsigned bytes) { return "mul.lo.u32 %r9, %i, " + std::to_string(bytes) + ";\n"; }

TEST(Profile, BankConflictsOfWords) {
  EXPECT_EQ(conflicts("u32 %r0,", stride(4)), 0u);
  EXPECT_EQ(conflicts("u32 %r0,", stride(8)), 1u);
  EXPECT_EQ(conflicts("u32 %r0,", stride(64)), 15u);
  EXPECT_EQ(conflicts("u32 %r0,", stride(128)), 31u);
  // A column of a matrix with padded rows.
  EXPECT_EQ(conflicts("u32 %r0,", stride(132)), 0u);
  // One word for all, and bytes of the same words.
  EXPECT_EQ(conflicts("u32 %r0,", stride(0)), 0u);
  EXPECT_EQ(conflicts("u8 %rs0,", stride(1)), 0u);
  EXPECT_EQ(conflicts("u16 %rs0,", stride(128)), 31u);
}

TEST(Profile, BankConflictsOfVectors) {
  // 16 lanes of 8 bytes and 8 lanes of 16 fill a pass.
  EXPECT_EQ(conflicts("v2.u32 {%r0, %r1},", stride(8)), 0u);
  EXPECT_EQ(conflicts("v4.u32 {%r0, %r1, %r2, %r3},", stride(16)), 0u);
  EXPECT_EQ(conflicts("v4.u32 {%r0, %r1, %r2, %r3},", stride(128)), 4u * 7);
  EXPECT_EQ(conflicts("u64 %rd0,", stride(128)), 2u * 15);
  // Rows of 128 bytes, their 16-byte parts swizzled by the row.
  EXPECT_EQ(
      conflicts(
          "v4.u32 {%r0, %r1, %r2, %r3},",
          "and.b32 %r10, %i, 7;\nshl.b32 %r9, %r10, 7;\nshl.b32 %r10, %r10, 4;\nor.b32 %r9, %r9, %r10;\n"),
      0u);
}

TEST(Profile, GenericAddressesCountWhereTheyLie) {
  TestMachine machine(
      kernelText(".shared .align 4 .b8 buffer[128];\ncvta.shared.u64 %rd0, buffer;\n"
                 "setp.lt.u32 %p0, %i, 8;\nmad.wide.u32 %rd1, %i, 4, %out;\n"
                 "mad.wide.u32 %rd2, %i, 4, %rd0;\nselp.b64 %rd3, %rd1, %rd2, %p0;\nst.u32 [%rd3], %i;\n",
                 0));
  ASSERT_FALSE(machine.launch("k", threads(32), machine.allocate(128)));
  Counts store = countsOf(machine, "st.u32");
  EXPECT_EQ(store.globalWritten, 32u);
  EXPECT_EQ(store.globalSectors, 1u);
  EXPECT_EQ(store.sharedWritten, 96u);
  EXPECT_EQ(store.bankConflicts, 0u);
}

TEST(Profile, AtomicsReadAndWrite) {
  TestMachine machine(kernelText("atom.global.add.u32 %r0, [%out], 1;\n", 0));
  uint64_t out = machine.upload(std::vector<uint32_t>(1));
  ASSERT_FALSE(machine.launch("k", threads(64), out));
  Counts atomic = countsOf(machine, "atom");
  EXPECT_EQ(atomic.globalRead, 256u);
  EXPECT_EQ(atomic.globalWritten, 256u);
  EXPECT_EQ(atomic.globalSectors, 2u);
}

TEST(Profile, EachWarpWaitsAtABarrier) {
  TestMachine machine(kernelText("bar.sync 0;\nbar.sync 0;\n", 0));
  ASSERT_FALSE(machine.launch("k", threads(128, 3), machine.allocate(8)));
  EXPECT_EQ(countsOf(machine, "bar.sync").waits, 2u * 4 * 3);
}

TEST(Profile, ProductsCountTheirOperations) {
  TestMachine machine(kernelText("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, "
                                 "{%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};\n",
                                 0));
  ASSERT_FALSE(machine.launch("k", threads(64), machine.allocate(8)));
  EXPECT_EQ(countsOf(machine, "mma").tensorOperations, 2u * 2 * 16 * 8 * 16);
}

TEST(Profile, CopiesOfThreadsCountOnBothSides) {
  TestMachine machine(kernelText(".shared .align 16 .b8 buffer[512];\nmov.u32 %r0, buffer;\n"
                                 "mad.lo.u32 %r0, %i, 16, %r0;\nmad.wide.u32 %rd0, %i, 16, %in0;\n"
                                 "cp.async.cg.shared.global [%r0], [%rd0], 16;\ncp.async.wait_all;\n",
                                 1));
  uint64_t in = machine.upload(std::vector<uint8_t>(512));
  auto fault = machine.launch("k", threads(32), machine.allocate(8), in);
  ASSERT_FALSE(fault) << fault->text();
  Counts copy = countsOf(machine, "cp.async.cg");
  EXPECT_EQ(copy.globalRead, 512u);
  EXPECT_EQ(copy.globalSectors, 16u);
  EXPECT_EQ(copy.sharedWritten, 512u);
}

TEST(Profile, BulkCopiesCountForTheInstructionThatStartsThem) {
  TestMachine machine(kernelText(
      ".shared .align 16 .b8 buffer[1024];\n.shared .align 8 .b64 bar;\nmbarrier.init.shared.b64 [bar], 1;\n"
      "mbarrier.arrive.expect_tx.shared.b64 %rd1, [bar], 1024;\nmov.u32 %r0, buffer;\nmov.u32 %r1, bar;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%in0], 1024, [%r1];\n"
      "WAIT: mbarrier.try_wait.shared.b64 %p0, [%r1], %rd1;\n@!%p0 bra WAIT;\n",
      1));
  uint64_t in = machine.upload(std::vector<uint8_t>(1024));
  auto fault = machine.launch("k", threads(1), machine.allocate(8), in);
  ASSERT_FALSE(fault) << fault->text();
  Counts copy = countsOf(machine, "cp.async.bulk");
  EXPECT_EQ(copy.warpInstructions, 1u);
  EXPECT_EQ(copy.globalRead, 1024u);
  EXPECT_EQ(copy.globalSectors, 32u);
  EXPECT_EQ(copy.sharedWritten, 1024u);
}

TEST(Profile, ReportsJoinLaunchesAndNameLines) {
  TestMachine machine(kernelText("mad.wide.u32 %rd0, %i, 4, %out;\nst.global.u32 [%rd0], %i;\n", 0));
  uint64_t out = machine.allocate(128);
  for (unsigned i = 0; i < 2; ++i)
    ASSERT_FALSE(machine.launch("k", threads(32), out));
  std::string json = machine.profile.json();
  EXPECT_NE(json.find("{\"kernel\": \"k\", \"launches\": 2,"), std::string::npos) << json;
  EXPECT_NE(
      json.find("\"instruction\": \"st.global.u32\", \"warp_instructions\": 2, \"thread_instructions\": 64, "
                "\"global_written_bytes\": 256, \"global_sectors\": 8}"),
      std::string::npos)
      << json;
  std::string table = machine.profile.table();
  EXPECT_NE(table.find("k, launches: 2\n"), std::string::npos) << table;
  EXPECT_NE(table.find("st.global.u32\n"), std::string::npos) << table;
  EXPECT_EQ(table.find("conflicts"), std::string::npos) << table;
}

} // namespace
