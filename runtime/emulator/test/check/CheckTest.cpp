// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data races: each mistake is found whatever the seed, and the same kernel without
// it is clean.

#include "CheckHarness.h"

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

const char *const kBuffer = ".shared .align 128 .b8 buffer[8192];\nmov.u32 %r40, buffer;\n"
                            "mov.u32 %r41, %tid.x;\nshl.b32 %r42, %r41, 2;\nadd.u32 %r43, %r40, %r42;\n";
/// The same, 1024 bytes of which have a value that all may read.
const std::string kFilled = std::string(kBuffer) + "mov.u32 %r44, 0;\nst.shared.u32 [%r43], %r44;\n"
                                                   "st.shared.u32 [%r43+512], %r44;\nbar.sync 0;\n";
const char *const kStoreResult = "mad.wide.u32 %rd60, %i, 4, %out;\nst.global.u32 [%rd60], %r0;\n";

/// Threads write a word each and read that of the thread `step` away.
std::string pairwise(const std::string &between, unsigned step) {
  return std::string(kFilled) + "st.shared.u32 [%r43], %r41;\n" + between + "xor.b32 %r1, %r42, " +
         std::to_string(4 * step) + ";\nadd.u32 %r1, %r1, %r40;\nld.shared.u32 %r0, [%r1];\n" + kStoreResult;
}

TEST(Check, SharedMemoryWithoutABarrier) {
  expectClean(pairwise("bar.sync 0;\n", 32), threads(128));
  expectClean(pairwise("barrier.sync 0;\n", 1), threads(100, 2));
  expectFault(pairwise("", 32), threads(128), FaultKind::Race,
              {"shared offset", "st.shared.u32", "ld.shared.u32", "a barrier of the block is missing"});
}

TEST(Check, ABarrierOfTheWrongNumber) {
  std::string text = "shr.u32 %r2, %r41, 6;\nadd.u32 %r2, %r2, 1;\nbar.sync $1;\n";
  expectClean(pairwise(with(text, "1, 128"), 64), threads(128));
  expectFault(pairwise(with(text, "%r2, 64"), 64), threads(128), FaultKind::Race);
  expectClean(pairwise(with(text, "%r2, 64"), 32), threads(128));
}

TEST(Check, AWarpWithoutItsBarrier) {
  expectClean(pairwise("bar.warp.sync 0xFFFFFFFF;\n", 1), threads(64));
  expectFault(pairwise("", 1), threads(64), FaultKind::Race, {"bar.warp.sync is missing"});
  // Some of its lanes only.
  std::string text =
      "setp.lt.u32 %p0, %r41, 16;\n@%p0 bar.warp.sync 0xFFFF;\n@!%p0 bar.warp.sync 0xFFFF0000;\n";
  expectClean(pairwise(text, 8), threads(32));
  expectFault(pairwise(text, 16), threads(32), FaultKind::Race);
  // Exchanging values orders nothing.
  expectFault(pairwise("shfl.sync.bfly.b32 %r5, %r41, 1, 31, -1;\n", 1), threads(32), FaultKind::Race);
}

TEST(Check, ArrivalsWithoutWaiting) {
  // The first half arrives, the second waits: these may read, those may not.
  std::string text = "setp.lt.u32 %p0, %r41, 64;\n@%p0 bar.arrive 3, 128;\n@!%p0 bar.sync 3, 128;\n";
  std::string reads = kFilled + "st.shared.u32 [%r43], %r41;\n" + text +
                      "mov.u32 %r0, 0;\n@$1 xor.b32 %r1, %r42, 256;\n@$1 add.u32 %r1, %r1, %r40;\n"
                      "@$1 ld.shared.u32 %r0, [%r1];\n" +
                      kStoreResult;
  expectClean(with(reads, "!%p0"), threads(128));
  expectFault(with(reads, "%p0"), threads(128), FaultKind::Race);
}

/// A tree over 128 threads; barriers after each step but the one of `without` threads.
std::string tree(unsigned without) {
  std::string text = std::string(kBuffer) + "st.shared.u32 [%r43], %r41;\nbar.sync 0;\n";
  for (unsigned half = 64; half; half /= 2) {
    std::string n = std::to_string(half);
    text += "setp.lt.u32 %p0, %r41, " + n +
            ";\n@%p0 ld.shared.u32 %r2, [%r43];\n@%p0 ld.shared.u32 %r3, [%r43+" + std::to_string(4 * half) +
            "];\nadd.u32 %r2, %r2, %r3;\n@%p0 st.shared.u32 [%r43], %r2;\n";
    if (half != without)
      text += "bar.sync 0;\n";
  }
  return text + "ld.shared.u32 %r0, [%r40];\n" + kStoreResult;
}

TEST(Check, ATreeWithAMissingBarrier) {
  expectClean(tree(0), threads(128));
  for (unsigned half : {64, 32, 4, 1})
    expectFault(tree(half), threads(128), FaultKind::Race);
}

TEST(Check, BytesOfAWordAreNoRace) {
  std::string text = kFilled + "add.u32 %r1, %r40, %r41;\nst.shared.u8 [%r1], %r41;\n$1"
                               "ld.shared.u8 %r0, [%r1$2];\n"
                               "add.u64 %rd1, %out, 8192;\ncvt.u64.u32 %rd2, %i;\n"
                               "add.u64 %rd1, %rd1, %rd2;\nst.global.u8 [%rd1], %r0;\n";
  expectClean(with(with(text, ""), "", "$2"), threads(128));
  expectClean(with(with(text, "bar.sync 0;\nsetp.lt.u32 %p0, %r41, 127;\n@%p0 "), "+1", "$2"), threads(128));
  expectFault(with(with(text, "setp.lt.u32 %p0, %r41, 127;\n@%p0 "), "+1", "$2"), threads(128),
              FaultKind::Race);
}

TEST(Check, WritingTheSameIsNoRace) {
  std::string text = std::string(kBuffer) +
                     "mov.u32 %r1, $1;\nst.shared.u32 [%r40], %r1;\nbar.sync 0;\n"
                     "ld.shared.u32 %r0, [%r40];\n" +
                     kStoreResult;
  expectClean(with(text, "7"), threads(128));
  expectFault(with(text, "%r41"), threads(128), FaultKind::Race);
  std::string global = "mov.u32 %r1, $1;\nst.global.u32 [%in0], %r1;\n";
  expectClean(with(global, "7"), threads(64, 4));
  expectFault(with(global, "%ctaid.x"), threads(1, 4), FaultKind::Race);
}

TEST(Check, LanesOfOneStoreAreNoRace) {
  std::string text = std::string(kBuffer) +
                     "$1st.shared.u32 [%r40], %r41;\n$2bar.sync 0;\n"
                     "ld.shared.u32 %r0, [%r40];\n" +
                     kStoreResult;
  expectClean(with(with(text, ""), "", "$2"), threads(32));
  // Two warps; lanes that store at two places.
  expectFault(with(with(text, ""), "", "$2"), threads(64), FaultKind::Race);
  expectFault(
      with(with(text, "setp.eq.u32 %p0, %r41, 3;\n@%p0 "), "@!%p0 st.shared.u32 [%r40], %r41;\n", "$2"),
      threads(32), FaultKind::Race);
}

TEST(Check, BlocksThatMeetInGlobalMemory) {
  // Each block writes 64 words; the other reads its neighbour's last.
  std::string text = "mad.wide.u32 %rd0, %i, 4, %in0;\nst.global.u32 [%rd0], %i;\nbar.sync 0;\n"
                     "ld.global.u32 %r0, [%rd0$1];\n" +
                     std::string(kStoreResult);
  expectClean(with(text, ""), threads(64, 8));
  expectFault(with(text, "+4"), threads(64, 8), FaultKind::Race, {"release and an acquire"});
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_TRUE(run(with(text, "+4"), threads(64, 8), seed, /*workers=*/2)) << seed;
}

/// Block 0 writes a word and sets a flag; block 1 waits for it and reads.
std::string message(const std::string &fence, const std::string &store, const std::string &load,
                    const std::string &after) {
  return "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p0, %r1, 0;\n@!%p0 bra READER;\nmov.u32 %r2, 42;\n"
         "st.global.u32 [%in0], %r2;\n" +
         fence + "mov.u32 %r3, 1;\n" + store + " [%in0+64], %r3;\nret;\nREADER:\n" + load +
         " %r4, [%in0+64];\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra READER;\n" + after +
         "ld.global.u32 %r0, [%in0];\n" + kStoreResult;
}

TEST(Check, AFlagWithoutReleaseOrAcquire) {
  auto two = threads(1, 2);
  expectClean(message("", "st.release.gpu.global.u32", "ld.acquire.gpu.global.u32", ""), two);
  expectClean(message("fence.acq_rel.gpu;\n", "st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32",
                      "fence.acq_rel.gpu;\n"),
              two);
  expectClean(message("membar.gl;\n", "st.volatile.global.u32", "ld.volatile.global.u32", "membar.gl;\n"),
              two);
  expectClean(message("", "red.release.gpu.global.add.u32", "ld.acquire.sys.global.u32", ""), two);
  // The flag itself.
  expectFault(message("membar.gl;\n", "st.global.u32", "ld.volatile.global.u32", "membar.gl;\n"), two,
              FaultKind::Race);
  // The word: no release, no acquire, a scope too small.
  expectFault(message("", "st.relaxed.gpu.global.u32", "ld.acquire.gpu.global.u32", ""), two,
              FaultKind::Race);
  expectFault(message("", "st.release.gpu.global.u32", "ld.relaxed.gpu.global.u32", ""), two,
              FaultKind::Race);
  expectFault(message("membar.gl;\n", "st.volatile.global.u32", "ld.volatile.global.u32", ""), two,
              FaultKind::Race);
  expectFault(message("membar.cta;\n", "st.relaxed.gpu.global.u32", "ld.acquire.gpu.global.u32", ""), two,
              FaultKind::Race);
  expectFault(message("", "st.release.cta.global.u32", "ld.acquire.gpu.global.u32", ""), two, FaultKind::Race,
              {"scope"});
}

/// Blocks leave a sum each; the last one to take a ticket adds them.
std::string lastBlock(const std::string &fence) {
  return "mov.u32 %r1, %ctaid.x;\nmad.wide.u32 %rd0, %r1, 4, %in0;\nst.global.u32 [%rd0+64], %r1;\n" + fence +
         "atom.global.add.u32 %r2, [%in0], 1;\nsetp.ne.u32 %p0, %r2, 7;\n@%p0 bra DONE;\n" + fence +
         "mov.u32 %r0, 0;\nmov.u32 %r3, 0;\nLOOP:\nmad.wide.u32 %rd1, %r3, 4, %in0;\n"
         "ld.global.u32 %r4, [%rd1+64];\nadd.u32 %r0, %r0, %r4;\nadd.u32 %r3, %r3, 1;\n"
         "setp.lt.u32 %p1, %r3, 8;\n@%p1 bra LOOP;\n" +
         kStoreResult + "DONE:\n";
}

TEST(Check, TheLastBlockAddsUp) {
  expectClean(lastBlock("membar.gl;\n"), threads(1, 8));
  expectClean(lastBlock("fence.acq_rel.gpu;\n"), threads(1, 8));
  expectFault(lastBlock(""), threads(1, 8), FaultKind::Race);
}

TEST(Check, AtomicsAndPlainAccesses) {
  std::string text = kFilled +
                     "setp.eq.u32 %p0, %r41, 0;\nmov.u32 %r1, 0;\n"
                     "@%p0 st.shared.u32 [%r40], %r1;\n$1"
                     "atom.shared.add.u32 %r2, [%r40], %r41;\n$2"
                     "ld.shared.u32 %r0, [%r40];\n" +
                     kStoreResult;
  expectClean(with(with(text, "bar.sync 0;\n"), "bar.sync 0;\n", "$2"), threads(96));
  expectFault(with(with(text, "bar.sync 0;\n"), "", "$2"), threads(96), FaultKind::Race, {"updated"});
  expectFault(with(with(text, "", "$2"), ""), threads(96), FaultKind::Race);
  // Two blocks, one of which means its own threads only.
  std::string global = "red.$1.global.add.u32 [%in0], 1;\n";
  expectClean(with(global, "gpu"), threads(64, 4));
  expectFault(with(global, "relaxed.cta"), threads(64, 4), FaultKind::Race, {"scope"});
}

TEST(Check, ALockOrdersWhoHoldsIt) {
  std::string text = "LOCK:\natom.$1.gpu.global.cas.b32 %r1, [%in0], 0, 1;\nsetp.ne.u32 %p0, %r1, 0;\n"
                     "@%p0 bra LOCK;\nld.global.u32 %r2, [%in0+4];\nadd.u32 %r2, %r2, 1;\n"
                     "st.global.u32 [%in0+4], %r2;\nst.$2.gpu.global.u32 [%in0], 0;\n";
  expectClean(with(with(text, "acquire"), "release", "$2"), threads(1, 6));
  expectFault(with(with(text, "acquire"), "relaxed", "$2"), threads(1, 6), FaultKind::Race);
  expectFault(with(with(text, "relaxed"), "release", "$2"), threads(1, 6), FaultKind::Race);
}

/// A producing warp fills stages, a consuming one reads them, ten times.
std::string ring(unsigned stages, bool waitsForFull, bool waitsForEmpty) {
  std::string n = std::to_string(stages);
  std::string wait = "mbarrier.try_wait.parity.shared.b64 %p3, [%r13], %r14;\n@!%p3 bra ";
  auto waits = [&](bool really, const std::string &label) {
    return really ? label + ":\n" + wait + label + ";\n" : std::string();
  };
  return kFilled +
         ".shared .align 8 .b8 bars[64];\nmov.u32 %r10, bars;\n"
         "setp.eq.u32 %p0, %r41, 0;\n@!%p0 bra READY;\nmov.u32 %r1, 0;\n"
         "INIT:\nshl.b32 %r2, %r1, 3;\nadd.u32 %r2, %r2, %r10;\nmbarrier.init.shared.b64 [%r2], 32;\n"
         "mbarrier.init.shared.b64 [%r2+32], 32;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, " +
         n +
         ";\n@%p1 bra INIT;\nREADY:\nbar.sync 0;\nand.b32 %r5, %r41, 31;\nmov.u32 %r0, 0;\nmov.u32 %r1, 0;\n"
         "setp.ge.u32 %p2, %r41, 32;\nLOOP:\nrem.u32 %r2, %r1, " +
         n + ";\ndiv.u32 %r3, %r1, " + n +
         ";\nshl.b32 %r11, %r2, 3;\nadd.u32 %r11, %r11, %r10;\n"
         "shl.b32 %r12, %r2, 7;\nadd.u32 %r12, %r12, %r40;\nshl.b32 %r6, %r5, 2;\nadd.u32 %r12, %r12, %r6;\n"
         "@%p2 bra CONSUME;\nadd.u32 %r13, %r11, 32;\nxor.b32 %r14, %r3, 1;\nand.b32 %r14, %r14, 1;\n" +
         waits(waitsForEmpty, "EMPTY") +
         "st.shared.u32 [%r12], %r1;\nmbarrier.arrive.shared.b64 _, [%r11];\nbra NEXT;\n"
         "CONSUME:\nmov.u32 %r13, %r11;\nand.b32 %r14, %r3, 1;\n" +
         waits(waitsForFull, "FULL") +
         "xor.b32 %r12, %r12, 4;\nld.shared.u32 %r7, [%r12];\nadd.u32 %r0, %r0, %r7;\n"
         "mbarrier.arrive.shared.b64 _, [%r11+32];\n"
         "NEXT:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p4, %r1, 10;\n@%p4 bra LOOP;\n" +
         kStoreResult;
}

TEST(Check, ARingOfStages) {
  for (unsigned stages = 1; stages <= 3; ++stages)
    expectClean(ring(stages, true, true), threads(64));
  for (unsigned stages = 1; stages <= 3; ++stages) {
    // A thread that runs ahead without waiting races, or arrives once too often, or
    // leaves the other behind forever: whichever comes first.
    for (bool producer : {false, true}) {
      unsigned races = 0;
      for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        auto fault = run(ring(stages, producer, !producer), threads(64), seed);
        ASSERT_TRUE(fault);
        races += fault->kind == FaultKind::Race;
      }
      EXPECT_GT(races, 0u) << stages;
    }
  }
}

TEST(Check, AnMbarrierUsedBeforeItIsKnown) {
  std::string text = ".shared .align 8 .b64 bar;\nmov.u32 %r10, bar;\nmov.u32 %r41, %tid.x;\n"
                     "setp.eq.u32 %p0, %r41, 0;\n@%p0 mbarrier.init.shared.b64 [%r10], 32;\n$1"
                     "mbarrier.arrive.shared.b64 _, [%r10];\n";
  expectClean(with(text, "bar.sync 0;\n"), threads(32));
  expectFault(with(text, ""), threads(32), FaultKind::Race);
}

/// A warp copies 512 bytes, waits as told, and reads them back in another order.
std::string copied(const std::string &wait, unsigned step) {
  return kFilled +
         "shl.b32 %r1, %r41, 4;\nadd.u32 %r2, %r40, %r1;\ncvt.u64.u32 %rd0, %r1;\n"
         "add.u64 %rd0, %rd0, %in0;\n"
         "cp.async.ca.shared.global [%r2], [%rd0], 16;\ncp.async.commit_group;\n" +
         wait + "xor.b32 %r1, %r1, " + std::to_string(16 * step) +
         ";\nadd.u32 %r1, %r1, %r40;\nld.shared.u32 %r0, [%r1];\n" + kStoreResult;
}

TEST(Check, CopiesThatAreNotWaitedFor) {
  expectClean(copied("cp.async.wait_group 0;\n", 0), threads(32));
  expectClean(copied("cp.async.wait_all;\nbar.sync 0;\n", 1), threads(64));
  expectFault(copied("", 0), threads(32), FaultKind::Race, {"cp.async.wait_group", "asynchronous operation"});
  expectFault(copied("cp.async.wait_group 1;\n", 0), threads(32), FaultKind::Race);
  // Its own copies only.
  expectFault(copied("cp.async.wait_group 0;\n", 1), threads(32), FaultKind::Race);
  expectFault(copied("bar.sync 0;\ncp.async.wait_group 0;\n", 1), threads(64), FaultKind::Race);
}

TEST(Check, CopiesThatArriveAtAnMbarrier) {
  std::string text = std::string(".shared .align 8 .b64 bar;\nmov.u32 %r30, bar;\nmov.u32 %r41, %tid.x;\n"
                                 "setp.eq.u32 %p0, %r41, 0;\n@%p0 mbarrier.init.shared.b64 [%r30], 32;\n"
                                 "bar.sync 0;\n") +
                     copied("cp.async.mbarrier.arrive.noinc.shared.b64 [%r30];\n$1", 1);
  expectClean(with(text, "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r30], 0;\n@!%p3 bra WAIT;\n"),
              threads(32));
  expectFault(with(text, "bar.sync 0;\n"), threads(32), FaultKind::Race);
}

/// Thread 0 copies 512 bytes into the buffer, which all have written before, and all
/// read them.
std::string bulkLoad(const std::string &fence, const std::string &wait) {
  return kFilled + ".shared .align 8 .b64 bar;\nmov.u32 %r30, bar;\nst.shared.u32 [%r43], %r41;\n" + fence +
         "setp.eq.u32 %p0, %r41, 0;\n@!%p0 bra READY;\nmbarrier.init.shared.b64 [%r30], 1;\n"
         "fence.mbarrier_init.release.cluster;\nREADY:\nbar.sync 0;\n@!%p0 bra STARTED;\n"
         "mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 512;\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r40], [%in0], 512, [%r30];\n"
         "STARTED:\n" +
         wait + "ld.shared.u32 %r0, [%r43];\n" + kStoreResult;
}

TEST(Check, BulkCopiesIntoSharedMemory) {
  std::string fence = "fence.proxy.async.shared::cta;\n";
  std::string wait = "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r30], 0;\n@!%p3 bra WAIT;\n";
  expectClean(bulkLoad(fence, wait), threads(128, 2));
  expectFault(bulkLoad(fence, ""), threads(128), FaultKind::Race);
  expectFault(bulkLoad(fence, "bar.sync 0;\n"), threads(128), FaultKind::Race);
  expectFault(bulkLoad("", wait), threads(128), FaultKind::MissingProxyFence, {"fence.proxy.async"});
  // One that waits is enough where a barrier follows.
  expectClean(bulkLoad(fence, "@!%p0 bra GO;\n" + wait + "GO:\nbar.sync 0;\n"), threads(128));
}

/// All write the buffer, thread 0 stores it, all write it again.
std::string bulkStore(const std::string &fence, const std::string &barrier, const std::string &wait,
                      const std::string &after = "st.shared.u32 [%r43], %r42;\n") {
  return std::string(kBuffer) + "st.shared.u32 [%r43], %r41;\n" + fence + barrier +
         "setp.ne.u32 %p0, %r41, 0;\n@%p0 bra OTHERS;\n"
         "cp.async.bulk.global.shared::cta.bulk_group [%in0], [%r40], 512;\ncp.async.bulk.commit_group;\n" +
         wait + "OTHERS:\nbar.sync 0;\n" + after;
}

TEST(Check, BulkCopiesOutOfSharedMemory) {
  std::string fence = "fence.proxy.async.shared::cta;\n", barrier = "bar.sync 0;\n";
  std::string read = "cp.async.bulk.wait_group.read 0;\n", wait = "cp.async.bulk.wait_group 0;\n";
  auto block = threads(128);
  expectClean(bulkStore(fence, barrier, read), block);
  expectClean(bulkStore(fence, barrier, wait), block);
  // A thread that is ordered after the others may fence for them.
  expectClean(bulkStore(barrier, fence, read), block);
  expectFault(bulkStore("", barrier, read), block, FaultKind::MissingProxyFence,
              {"st.shared.u32", "fence.proxy.async"});
  expectFault(bulkStore(fence, "", read), block, FaultKind::Race);
  expectFault(bulkStore(fence, barrier, ""), block, FaultKind::AsyncOverwrite);
  expectFault(bulkStore(fence, barrier, "cp.async.bulk.wait_group.read 1;\n"), block,
              FaultKind::AsyncOverwrite);
  // That it has read does not say that it has written.
  std::string reads = "cvt.u64.u32 %rd1, %r42;\nadd.u64 %rd1, %rd1, %in0;\nld.global.u32 %r0, [%rd1];\n";
  expectClean(bulkStore(fence, barrier, wait, reads), block);
  expectFault(bulkStore(fence, barrier, read, reads), block, FaultKind::Race);
}

/// Blocks of a cluster write into their own shared memory and read the neighbour's.
std::string neighbour(const std::string &between, const std::string &last) {
  return kFilled +
         "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nst.shared.u32 [%r43], %i;\n" +
         between +
         "mov.u32 %r1, %cluster_ctarank;\nxor.b32 %r1, %r1, 1;\nmapa.shared::cluster.u32 %r2, %r43, %r1;\n"
         "ld.shared::cluster.u32 %r0, [%r2];\n" +
         last + kStoreResult;
}

TEST(Check, AClusterWithoutItsBarrier) {
  std::string barrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  std::string relaxed = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n";
  expectClean(neighbour(barrier, barrier), threads(64, 4, 2));
  expectClean(neighbour("fence.acq_rel.cluster;\n" + relaxed, barrier), threads(64, 4, 2));
  expectFault(neighbour("bar.sync 0;\n", barrier), threads(64, 4, 2), FaultKind::Race);
  expectFault(neighbour(relaxed, barrier), threads(64, 4, 2), FaultKind::Race, {"of the cluster is missing"});
}

TEST(Check, LaunchesAreOrdered) {
  TestMachine machine(kernelText("mov.u32 %r0, %nctaid.x;\nmov.u32 %r1, %ctaid.x;\nsub.u32 %r0, %r0, %r1;\n"
                                 "mad.wide.u32 %rd0, %r0, 4, %out;\nst.global.u32 [%rd0], %i;\n",
                                 0));
  uint64_t out = machine.allocate(64);
  for (unsigned blocks = 1; blocks <= 8; ++blocks)
    ASSERT_FALSE(machine.launch("k", threads(1, blocks), out));
}

TEST(Check, OffCostsNothingAndFindsNothing) {
  Settings settings;
  settings.races = false;
  TestMachine machine(kernelText(pairwise("", 32), 0), settings);
  EXPECT_FALSE(machine.launch("k", threads(128), machine.allocate(1024)));
}

} // namespace
