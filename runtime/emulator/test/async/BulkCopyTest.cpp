// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cp.async.bulk and cp.reduce.async.bulk, st.async, red.async, st.bulk,
// clusterlaunchcontrol.

#include "CopyKernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

std::vector<uint8_t> someBytes(size_t count) {
  std::vector<uint8_t> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = uint8_t(i * 37 + i / 256 * 11 + 1);
  return out;
}

struct Ran {
  std::vector<uint8_t> out;
  std::optional<Fault> fault;
};

/// Runs a kernel of copyKernel; `out` begins with zeros.
Ran run(const std::string &body, const std::vector<uint8_t> &in, unsigned blocks = 1, unsigned cluster = 1,
        uint32_t word = 0, uint64_t seed = 0) {
  Settings settings;
  settings.seed = seed;
  TestMachine machine(copyKernel(body), settings);
  uint64_t from = machine.upload(in), to = machine.upload(std::vector<uint8_t>(blocks * kTileBytes));
  Ran result;
  result.fault = machine.launch("k", copyConfig(blocks, cluster), MapParameter(), to, from, word);
  result.out = machine.download<uint8_t>(to, blocks * kTileBytes);
  return result;
}

TEST(BulkCopy, ToSharedMemoryOfTheBlockAndBack) {
  const std::vector<uint8_t> in = someBytes(8192);
  for (uint64_t seed = 0; seed < 4; ++seed)
    for (uint32_t bytes : {16u, 4096u, 8192u}) {
      Ran result = run(expect(bytes) +
                           "@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                           "[tile+256], [%in], %word, [bar];\n" +
                           await() +
                           "fence.proxy.async.shared::cta;\nmov.u64 %rd1, 0;\n"
                           "@%p0 cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint "
                           "[%out+128], [tile+256], %word, %rd1;\n"
                           "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;",
                       in, 1, 1, bytes, seed);
      ASSERT_FALSE(result.fault) << result.fault->text();
      std::vector<uint8_t> expected(kTileBytes);
      std::copy(in.begin(), in.begin() + bytes, expected.begin() + 128);
      ASSERT_EQ(result.out, expected);
    }
}

TEST(BulkCopy, BytesOfAMask) {
  const std::vector<uint8_t> in = someBytes(kTileBytes);
  Ran result =
      run(copyIn() + "mov.u16 %rs0, 0x8421;\n"
                     "@%p0 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%out], [tile], 64, %rs0;\n"
                     "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;",
          in);
  ASSERT_FALSE(result.fault) << result.fault->text();
  for (unsigned i = 0; i < 128; ++i)
    EXPECT_EQ(result.out[i], i < 64 && i % 5 == i / 16 * 16 % 5 && i % 16 % 5 == 0 ? in[i] : 0) << i;
}

TEST(BulkCopy, Multicast) {
  const std::vector<uint8_t> in = someBytes(1024);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    // To blocks 0 and 2 of four.
    Ran result =
        run(expect(1024) + clusterBarrier() +
                "setp.eq.u32 %p2, %rank, 3;\nand.pred %p3, %p0, %p2;\n"
                "@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                "[tile+512], [%in], 1024, [bar], 5;\nand.b32 %r5, %rank, 1;\nsetp.eq.u32 %p2, %r5, 1;\n"
                "@%p2 bra DONE;\n" +
                await() + "DONE:\n" + copyOut() + clusterBarrier(),
            in, 4, 4, 0, seed);
    ASSERT_FALSE(result.fault) << result.fault->text();
    for (unsigned block = 0; block < 4; ++block)
      for (unsigned i = 0; i < kTileBytes; ++i)
        ASSERT_EQ(result.out[block * kTileBytes + i],
                  block % 2 == 0 && i >= 512 && i < 1536 ? in[i - 512] : 0xCC);
  }
}

std::string toNeighbour(const std::string &copy) {
  return expect(256) + clusterBarrier() +
         "xor.b32 %r5, %rank, 1;\nmov.u32 %r6, tile;\nadd.u32 %r6, %r6, 1024;\nmapa.shared::cluster.u32 %r6, "
         "%r6, "
         "%r5;\nmov.u32 %r7, bar;\nmapa.shared::cluster.u32 %r7, %r7, %r5;\n" +
         copy + await() + copyOut() + clusterBarrier();
}

TEST(BulkCopy, ToANeighbourAndReductionsThere) {
  const std::vector<uint8_t> in = someBytes(kTileBytes);
  const struct {
    const char *modifiers;
    std::function<uint32_t(uint32_t, uint32_t)> f;
  } copies[] = {{"cp.async", [](uint32_t, uint32_t b) { return b; }},
                {"cp.reduce.async.add.u32", [](uint32_t a, uint32_t b) { return a + b; }},
                {"cp.reduce.async.min.s32",
                 [](uint32_t a, uint32_t b) { return uint32_t(std::min(int32_t(a), int32_t(b))); }},
                {"cp.reduce.async.xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; }}};
  for (const auto &copy : copies) {
    std::string text = copy.modifiers, operation;
    if (size_t at = text.find("async."); at != std::string::npos) {
      operation = text.substr(at + 5);
      text = text.substr(0, at + 5);
    }
    Ran result = run(copyIn() + toNeighbour("@%p0 " + text +
                                            ".bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes" +
                                            operation + " [%r6], [tile], 256, [%r7];\n"),
                     in, 2, 2);
    ASSERT_FALSE(result.fault) << result.fault->text();
    for (unsigned block = 0; block < 2; ++block)
      for (unsigned i = 0; i < 64; ++i) {
        uint32_t a, b, got;
        std::memcpy(&a, &in[1024 + 4 * i], 4);
        std::memcpy(&b, &in[4 * i], 4);
        std::memcpy(&got, &result.out[block * kTileBytes + 1024 + 4 * i], 4);
        ASSERT_EQ(got, copy.f(a, b)) << copy.modifiers << " " << i;
      }
  }
}

/// The result of reducing 32 bytes of `b` into those of `a` in global memory.
template <class T>
std::vector<T> reduceGlobal(const std::string &operation, std::vector<T> a, std::vector<T> b) {
  a.resize(32 / sizeof(T));
  b.resize(32 / sizeof(T));
  TestMachine machine(copyKernel(copyIn() + "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group" +
                                 operation +
                                 " [%out], [tile], 32;\n@%p0 cp.async.bulk.commit_group;\n"
                                 "@%p0 cp.async.bulk.wait_group 0;"));
  uint64_t to = machine.upload(a);
  b.resize(kTileBytes / sizeof(T));
  uint64_t from = machine.upload(b);
  auto fault = machine.launch("k", copyConfig(), MapParameter(), to, from, uint32_t(0));
  EXPECT_FALSE(fault) << fault->text();
  return machine.download<T>(to, a.size());
}

template <class T>
void expectReduced(const std::string &operation, std::vector<T> a, std::vector<T> b,
                   std::vector<T> expected) {
  expected.resize(32 / sizeof(T));
  EXPECT_EQ(reduceGlobal(operation, a, b), expected) << operation;
}

TEST(BulkCopy, ReductionsOfEveryType) {
  const uint32_t big = 0xFFFFFFFF;
  const uint64_t huge = ~uint64_t(0);
  expectReduced<uint32_t>(".add.u32", {1, big}, {2, 3}, {3, 2});
  expectReduced<int32_t>(".add.s32", {-1, 5}, {2, -7}, {1, -2});
  expectReduced<uint64_t>(".add.u64", {huge, uint64_t(1) << 40}, {2, 3}, {1, (uint64_t(1) << 40) + 3});
  expectReduced<uint32_t>(".min.u32", {1, big}, {2, 3}, {1, 3});
  expectReduced<int32_t>(".min.s32", {1, -1}, {2, 3}, {1, -1});
  expectReduced<uint32_t>(".max.u32", {1, big}, {2, 3}, {2, big});
  expectReduced<int32_t>(".max.s32", {1, -1}, {2, 3}, {2, 3});
  expectReduced<uint64_t>(".min.u64", {1, huge}, {2, 3}, {1, 3});
  expectReduced<int64_t>(".max.s64", {-9, -1}, {-8, 3}, {-8, 3});
  expectReduced<int64_t>(".min.s64", {-9, -1}, {-8, 3}, {-9, -1});
  expectReduced<uint32_t>(".inc.u32", {1, 3, 4}, {3, 3, 3}, {2, 0, 0});
  expectReduced<uint32_t>(".dec.u32", {1, 0, 4}, {3, 3, 3}, {0, 3, 3});
  expectReduced<uint32_t>(".and.b32", {6, big}, {3, 5}, {2, 5});
  expectReduced<uint32_t>(".or.b32", {6, 0}, {3, 5}, {7, 5});
  expectReduced<uint64_t>(".xor.b64", {6, huge}, {3, 5}, {5, huge - 5});
  // Subnormal numbers are zero in f32, numbers in f64 and with .noftz.
  expectReduced<float>(".add.f32", {1.5f, 1e-39f, 3e38f}, {2.25f, 1e-39f, 3e38f}, {3.75f, 0.0f, INFINITY});
  expectReduced<double>(".add.f64", {1.5, 5e-324}, {2.25, 5e-324}, {3.75, 1e-323});
  // 1 + 2, the least number twice, 60000 twice.
  expectReduced<uint16_t>(".add.noftz.f16", {0x3C00, 0x0001, 0x7B53}, {0x4000, 0x0001, 0x7B53},
                          {0x4200, 0x0002, 0x7C00});
  expectReduced<uint16_t>(".add.noftz.bf16", {0x3F80, 0x0001}, {0x4000, 0x0001}, {0x4040, 0x0002});
  expectReduced<uint16_t>(".min.f16", {0x3C00, 0xC000}, {0x4000, 0x3C00}, {0x3C00, 0xC000});
  expectReduced<uint16_t>(".max.bf16", {0x3F80, 0xC000}, {0x4000, 0x3F80}, {0x4000, 0x3F80});
}

TEST(BulkCopy, WhatThereIsNot) {
  auto fails = [](const std::string &line) { EXPECT_THROW(TestMachine(copyKernel(line)), PtxError) << line; };
  fails("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%out], [tile], 32;");
  fails("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%out], [tile], 32;");
  fails("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%out], [tile], 32;");
  fails("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%r0], "
        "[tile], 32, "
        "[%r1];");
  fails("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u64 [%r0], %rd0, [%r1];");
  fails("cp.async.bulk.global.shared::cta [%out], [tile], 32;");
  fails("cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes [tile], [tile], 32, [bar];");
  fails("cp.async.bulk.shared::cta.global.bulk_group [tile], [%in], 32, [bar];");
}

TEST(BulkCopy, Mistakes) {
  const std::vector<uint8_t> in = someBytes(64);
  auto kind = [&](const std::string &copy, unsigned blocks = 1) {
    Ran result = run(expect(32) + "@%p0 " + copy + "\n" + await(), in, blocks, blocks);
    EXPECT_TRUE(result.fault) << copy;
    return result.fault ? result.fault->kind : FaultKind::Trap;
  };
  const std::string load = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes ";
  EXPECT_EQ(kind(load + "[tile], [%in], 24, [bar];"), FaultKind::IllegalOperand);
  EXPECT_EQ(kind(load + "[tile+8], [%in], 32, [bar];"), FaultKind::Misaligned);
  EXPECT_EQ(kind(load + "[tile], [%in+8], 32, [bar];"), FaultKind::Misaligned);
  EXPECT_EQ(kind(load + "[tile], [%in+48], 32, [bar];"), FaultKind::OutOfBounds);
  EXPECT_EQ(kind(load + "[tile], [%in], 32, [bar+8];"), FaultKind::BarrierMisuse);
  EXPECT_EQ(
      kind("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], "
           "[%in], 32, [bar], 4;",
           2),
      FaultKind::IllegalOperand);
  EXPECT_EQ(
      kind("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [tile], [tile+64], 32, "
           "[bar];",
           2),
      FaultKind::IllegalOperand);
}

TEST(BulkCopy, MemoryNobodyWrote) {
  TestMachine machine(copyKernel("@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [copy], 128;\n"
                                 "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;"));
  uint64_t out = machine.allocate(128);
  auto fault = machine.launch("k", copyConfig(), MapParameter(), out, out, uint32_t(0));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::UninitializedRead);
}

TEST(StoreAsync, VectorsAndReductions) {
  const std::vector<uint8_t> in = someBytes(kTileBytes);
  // Lane i of the first warp stores two words; the mbarrier counts 256 bytes.
  Ran result =
      run(copyIn() + toNeighbour("setp.lt.u32 %p2, %t, 32;\nshl.b32 %r8, %t, 3;\nadd.u32 %r6, %r6, %r8;\n"
                                 "add.u32 %r9, %t, 1000;\n@%p2 st.async.shared::cluster.mbarrier"
                                 "::complete_tx::bytes.v2.u32 [%r6], {%t, %r9}, [%r7];\n"),
          in, 2, 2);
  ASSERT_FALSE(result.fault) << result.fault->text();
  for (unsigned i = 0; i < 64; ++i) {
    uint32_t got;
    std::memcpy(&got, &result.out[kTileBytes + 1024 + 4 * i], 4);
    ASSERT_EQ(got, i % 2 * 1000 + i / 2);
  }
  result =
      run(copyIn() + toNeighbour("setp.lt.u32 %p2, %t, 64;\n@%p2 red.async.relaxed.cluster.shared::cluster."
                                 "mbarrier::complete_tx::bytes.add.u32 [%r6], %t, [%r7];\n"),
          in, 2, 2);
  ASSERT_FALSE(result.fault) << result.fault->text();
  uint32_t before, after;
  std::memcpy(&before, &in[1024], 4);
  std::memcpy(&after, &result.out[1024], 4);
  EXPECT_EQ(after, before + 64 * 63 / 2);
}

TEST(StoreAsync, ToGlobalMemory) {
  Ran result = run("shl.b32 %r1, %t, 3;\ncvt.u64.u32 %rd0, %r1;\nadd.u64 %rd0, %rd0, %out;\n"
                   "st.async.release.gpu.global.u32 [%rd0], %t;\nadd.u64 %rd1, %out, 4;\n"
                   "red.async.release.gpu.global.add.u32 [%rd1], %t;",
                   {0});
  ASSERT_FALSE(result.fault) << result.fault->text();
  const auto *words = reinterpret_cast<const uint32_t *>(result.out.data());
  for (unsigned i = 0; i < 128; ++i)
    EXPECT_EQ(words[2 * i], i);
  EXPECT_EQ(words[1], 128u * 127 / 2);
}

TEST(StoreAsync, NeedsACluster) {
  Ran result =
      run(expect(4) + "@%p0 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [tile], %t, [bar];\n" +
              await(),
          {0});
  ASSERT_TRUE(result.fault);
  EXPECT_EQ(result.fault->kind, FaultKind::IllegalOperand);
}

TEST(StoreBulk, Zeroes) {
  Ran result =
      run("@%p0 st.bulk.weak.shared::cta [tile+8], 64, 0;\nmov.u32 %r5, 16;\ncvta.shared.u64 %rd5, tile;\n"
          "add.u64 %rd5, %rd5, 256;\n@%p0 st.bulk [%rd5], %r5, 0;\nbar.sync 0;\n" +
              copyOut(),
          {0});
  ASSERT_FALSE(result.fault) << result.fault->text();
  for (unsigned i = 0; i < 512; ++i)
    EXPECT_EQ(result.out[i], (i >= 8 && i < 72) || (i >= 256 && i < 272) ? 0 : 0xCC) << i;
  result = run("@%p0 st.bulk.weak.shared::cta [tile+8], 12, 0;", {0});
  ASSERT_TRUE(result.fault);
  EXPECT_EQ(result.fault->kind, FaultKind::IllegalOperand);
}

/// Clusters take over the work of others: each block's is done exactly once.
TEST(LaunchControl, EveryBlockOnce) {
  const std::string body =
      "mov.u32 %r5, %ctaid.x;\nand.b32 %r5, %r5, -2;\nmov.u32 %r12, 0;\n@%p0 mbarrier.init.shared::cta.b64 "
      "[bar], 1;\n"
      "fence.mbarrier_init.release.cluster;\n" +
      clusterBarrier() +
      "NEXT:\nadd.u32 %r6, %r5, %rank;\nmul.wide.u32 %rd1, %r6, 4;\nadd.u64 %rd1, %rd1, %out;\n"
      "@%p0 red.global.add.u32 [%rd1], 1;\n"
      "@%p0 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar], 16;\n" +
      "setp.eq.and.u32 %p2, %rank, 0, %p0;\n"
      "@%p2 "
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::"
      "all.b128 "
      "[copy], "
      "[bar];\n"
      "AGAIN:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], %r12;\n@!%p3 bra AGAIN;\n"
      "xor.b32 %r12, %r12, 1;\n{ .reg .b128 %handle;\nld.shared.b128 %handle, [copy];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %handle;\n@!%p4 bra FINISH;\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r5, %handle;\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r7, %r8, %r9, _}, %handle;\n}\n"
      "setp.ne.u32 %p5, %r5, %r7;\n@%p5 trap;\n" +
      clusterBarrier() + "bra NEXT;\nFINISH:\n" + clusterBarrier();
  unsigned canceled = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Settings settings;
    settings.seed = seed;
    settings.multiprocessors = 2;
    TestMachine machine(copyKernel(body), settings);
    uint64_t out = machine.upload(std::vector<uint32_t>(24));
    auto fault = machine.launch("k", copyConfig(24, 2), MapParameter(), out, out, uint32_t(0));
    ASSERT_FALSE(fault) << fault->text();
    EXPECT_EQ(machine.download<uint32_t>(out, 24), std::vector<uint32_t>(24, 1));
    // Fewer blocks began than there are where some were taken over.
    uint64_t begun = machine.profile.kernels().at("k").instructions.begin()->second.counts.warpInstructions;
    canceled += begun < 24 * 4;
  }
  EXPECT_GT(canceled, 0u);
}

} // namespace
