// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tcgen05 as the checks of memory order know it (PTX ISA 9.7.16.6): shared memory that
// products and copies read, the waits and fences that order tensor memory.

#include "CheckHarness.h"
#include "Tcgen05Harness.h"

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

const std::string kProxy = "fence.proxy.async.shared::cta;\n", kBarrier = "bar.sync 0;\n",
                  kBefore = "tcgen05.fence::before_thread_sync;\n",
                  kAfter = "tcgen05.fence::after_thread_sync;\n", kOrdered = kBefore + kBarrier + kAfter;
/// Columns 0 to 15 are its sums.
const std::string kProduct = "tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd3, %rd4, %r9, %p1;\n";
/// To columns 32 to 35.
const std::string kCopy = "tcgen05.cp.cta_group::1.128x128b [%r3+32], %rd3;\n";
const std::string kCommit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n";
const std::string kLoad = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r10, %r11}, [%r4];\n",
                  kStore = "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r4], {%i, %i};\n",
                  kWaitLoad = "tcgen05.wait::ld.sync.aligned;\n",
                  kWaitStore = "tcgen05.wait::st.sync.aligned;\n";

/// By thread 0 alone.
std::string byOne(const std::string &what, const std::string &label) {
  return "@!%p1 bra " + label + ";\n" + what + label + ":\n";
}
/// All wait for the commit's mbarrier, `relaxed` or not.
std::string waited(const std::string &semantics = "") {
  return "WAIT:\nmbarrier.try_wait.parity" + semantics + ".shared::cta.b64 %p3, [bar], 0;\n@!%p3 bra WAIT;\n";
}

/// A block of 128 threads: `tile` of 8 KiB of zeros, of which %rd3 and %rd4 describe two
/// matrices, 64 columns at %r3, of which the warp's lanes are at %r4; every sum and the
/// stores of each warp have been waited for. Thread 0 is told by %p1. `strict`: tcgen05.fence
/// alone orders threads.
Run block(const std::string &body, bool strict = false) {
  std::string text =
      ".shared .align 1024 .b8 tile[8192];\n.shared .align 8 .b64 bar;\n.shared .align 4 .b32 where;\n"
      "mov.u32 %r8, tile;\nmul.lo.u32 %r7, %i, 64;\nadd.u32 %r8, %r8, %r7;\nmov.u32 %r9, 0;\n"
      "mov.u32 %r6, 0;\nFILL:\nst.shared.u32 [%r8], %r9;\nadd.u32 %r8, %r8, 4;\nadd.u32 %r6, %r6, 1;\n"
      "setp.lt.u32 %p0, %r6, 16;\n@%p0 bra FILL;\n" +
      kProxy +
      "setp.eq.u32 %p1, %i, 0;\nsetp.lt.u32 %p2, %i, 32;\n@%p1 mbarrier.init.shared.b64 [bar], 1;\n"
      "@!%p2 bra ALLOCATED;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 64;\n"
      "ALLOCATED:\n" +
      kBarrier +
      "ld.shared.u32 %r3, [where];\nshr.u32 %r4, %i, 5;\nshl.b32 %r4, %r4, 21;\nadd.u32 %r4, %r3, %r4;\n"
      "mov.u32 %r5, tile;\nshr.u32 %r5, %r5, 4;\ncvt.u64.u32 %rd1, %r5;\n" +
      setDescriptor("%rd3", 0, 128, 256, 0) + setDescriptor("%rd4", 4096, 128, 256, 0) + "mov.u32 %r9, " +
      std::to_string(shape(128, 16) | kF32) + ";\n" + kStore + kWaitStore + kOrdered + body + kBarrier +
      "@!%p2 bra FREED;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;\nFREED:\n";
  Settings settings;
  settings.tensorFences = strict;
  return [=](uint64_t seed) { return run(text, threads(128), seed, 1, "sm_100a", settings); };
}
/// Orders by barriers and acquiring waits, and a missing fence where these alone order.
void expectOrdered(const std::string &body, FaultKind kind, const std::vector<std::string> &words) {
  expectClean(block(body));
  expectFault(block(body, /*strict=*/true), kind, words);
}
void expectCleanBothWays(const std::string &body) {
  expectClean(block(body));
  expectClean(block(body, /*strict=*/true));
}

TEST(CheckTensor, SourcesInSharedMemory) {
  for (const std::string &what : {kProduct, kCopy}) {
    const std::string name = what.substr(0, 10);
    // Each thread writes its first word: what of it the operation reads must be seen.
    std::string text = "st.shared.u32 [%r8+-64], %r6;\n$1" + byOne(what + kCommit, "ISSUED") + "$2";
    expectClean(block(with(with(text, kProxy + kBarrier), waited(), "$2")));
    expectFault(block(with(with(text, kBarrier), waited(), "$2")), FaultKind::MissingProxyFence,
                {name, "st.shared", "fence.proxy.async"});
    expectFault(block(with(with(text, kProxy), waited(), "$2")), FaultKind::Race, {name, "st.shared"});
    // Overwriting it needs the commit's wait, of any thread.
    std::string again = byOne(what + "$1", "ISSUED") + "$2st.shared.u32 [%r8+-64], %r6;\n";
    expectClean(block(with(with(again, kCommit), waited(), "$2")));
    expectClean(block(with(with(again, kCommit), waited(".acquire.cta"), "$2")));
    expectFault(block(with(with(again, kCommit), kBarrier, "$2")), FaultKind::AsyncOverwrite,
                {name, "st.shared", "mbarrier"});
    expectFault(
        block(with(byOne(kCommit + what, "ISSUED") + waited() + "st.shared.u32 [%r8+-64], %r6;\n", "")),
        FaultKind::AsyncOverwrite);
  }
}

TEST(CheckTensor, ABulkCopyOverwritesWhatAProductHasRead) {
  // Another thread starts the copy, and knows of the first one by the product alone.
  std::string copy =
      "mbarrier.arrive.expect_tx.shared.b64 _, [$1], 256;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in0], 256, [$1];\n";
  std::string wait = "$1_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [$1], 0;\n@!%p3 bra $1_WAIT;\n";
  std::string text = ".shared .align 8 .b64 full;\n.shared .align 8 .b64 last;\n"
                     "@%p1 mbarrier.init.shared.b64 [full], 1;\n@%p1 mbarrier.init.shared.b64 [last], 1;\n"
                     "bar.sync 0;\nsetp.eq.u32 %p5, %i, 32;\nsetp.eq.u32 %p6, %i, 64;\n@!%p5 bra SECOND;\n" +
                     with(copy, "full") + "SECOND:\n" +
                     byOne(with(wait, "full") + kProduct + kCommit, "ISSUED") + "@!%p6 bra LAST;\n$2" +
                     with(copy, "last") + "LAST:\n" + with(wait, "last") + waited();
  std::string first = "FIRST:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0;\n@!%p3 bra FIRST;\n";
  expectClean(block(with(text, first, "$2")));
  // It may be started before the first copy is over, or the product is.
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    auto fault = block(with(text, "", "$2"))(seed);
    ASSERT_TRUE(fault) << seed;
    EXPECT_TRUE(fault->kind == FaultKind::Race || fault->kind == FaultKind::AsyncOverwrite) << fault->text();
  }
}

TEST(CheckTensor, SumsAreReadAfterTheirCommit) {
  std::string text = byOne(kProduct + "$1", "ISSUED") + "$2" + kLoad + kWaitLoad;
  auto of = [&](const std::string &commit, const std::string &wait) {
    return block(with(with(text, commit), wait, "$2"));
  };
  expectCleanBothWays(with(with(text, kCommit), waited() + kAfter, "$2"));
  // An order of execution is enough (9.7.16.6.4).
  expectClean(of(kCommit, waited(".relaxed.cluster") + kAfter));
  // One that waits for all.
  expectClean(of(kCommit, byOne(waited() + kAfter + kBefore, "WAITED") + kBarrier + kAfter));
  expectFault(of(kCommit, kOrdered), FaultKind::Race,
              {"tcgen05.mma", "tcgen05.ld", "lanes", "a wait for the mbarrier of a tcgen05.commit"});
  expectOrdered(with(with(text, kCommit), waited(), "$2"), FaultKind::Race,
                {"tcgen05.fence::after_thread_sync is missing"});
  // Another thread's wait, and a barrier.
  expectClean(of(kCommit, byOne(waited(), "WAITED") + kBarrier));
  expectFault(of(kCommit, waited(".relaxed.cluster")), FaultKind::Race,
              {"tcgen05.fence::after_thread_sync is missing"});
  expectClean(of(kCommit, waited(".relaxed.cluster") + "fence.acq_rel.cta;\n"));
  expectFault(of("", kOrdered), FaultKind::Race);
  expectFault(block(byOne(kCommit + kProduct, "ISSUED") + waited() + kAfter + kLoad + kWaitLoad),
              FaultKind::Race, {"tcgen05.commit"});
}

TEST(CheckTensor, ProductsFollowEachOther) {
  expectClean(block(byOne(kProduct + kCopy + kProduct + kCommit, "ISSUED") + waited()));
  // Products of two threads where these are ordered.
  std::string other = "setp.eq.u32 %p5, %i, 64;\n@!%p5 bra OTHER;\n" + kProduct + kCommit + "OTHER:\n";
  expectClean(block(byOne(kProduct, "ISSUED") + kOrdered + other + waited()));
  expectFault(block(byOne(kProduct, "ISSUED") + kBarrier + kAfter + other + waited()), FaultKind::Race,
              {"tcgen05.mma", "before_thread_sync"});
  expectOrdered(byOne(kProduct, "ISSUED") + kBefore + kBarrier + other + waited(), FaultKind::Race,
                {"tcgen05.mma", "after_thread_sync"});
}

TEST(CheckTensor, LoadsAndStoresAreWaitedFor) {
  std::string product = byOne(kProduct + kCommit, "ISSUED") + waited();
  expectClean(block(kStore + kWaitStore + kOrdered + product));
  expectFault(block(kStore + kOrdered + product), FaultKind::Race,
              {"tcgen05.st", "tcgen05.mma", "tcgen05.wait::st"});
  for (const std::string &order : {kBarrier + kAfter, kBarrier})
    expectOrdered(kStore + kWaitStore + order + product, FaultKind::Race,
                  {"tcgen05.st", "before_thread_sync"});
  expectClean(block(kLoad + kWaitLoad + kOrdered + product));
  expectFault(block(kLoad + kOrdered + product), FaultKind::AsyncOverwrite,
              {"tcgen05.ld", "tcgen05.mma", "tcgen05.wait::ld"});
  expectOrdered(kLoad + kWaitLoad + kBefore + kBarrier + product, FaultKind::AsyncOverwrite,
                {"tcgen05.fence::after_thread_sync is missing"});
  expectOrdered(kLoad + kWaitLoad + kBarrier + product, FaultKind::AsyncOverwrite, {"tcgen05.ld"});
  expectFault(block(kStore + kBarrier + product), FaultKind::Race, {"tcgen05.wait::st"});
  // Of one warp the waits alone.
  expectClean(block(kStore + kWaitStore + kLoad + kWaitLoad + kStore + kWaitStore));
  expectFault(block(kStore + kLoad + kWaitLoad), FaultKind::Race, {"tcgen05.wait::st is missing"});
  expectFault(block(kLoad + kStore + kWaitStore), FaultKind::AsyncOverwrite, {"tcgen05.wait::ld is missing"});
  // Loads of the same are no race, nor stores of others.
  expectClean(block(kLoad + kLoad + kWaitLoad));
  expectClean(block(kStore + with(kStore, "[%r4+2]", "[%r4]") + kWaitStore));
}

/// Arrivals release and waits acquire unless they are .relaxed: then fences must.
TEST(CheckTensor, MbarriersOrderUnlessTheyAreRelaxed) {
  const auto order = [](const std::string &arrive, const std::string &wait) {
    return ".shared .align 8 .b64 stored;\n@%p1 mbarrier.init.shared.b64 [stored], 128;\nbar.sync 0;\n" +
           kStore + kWaitStore + arrive + "[stored];\n" +
           byOne("STORED:\nmbarrier.try_wait.parity" + wait + "@!%p3 bra STORED;\n$1" + kProduct + kCommit,
                 "ISSUED") +
           waited();
  };
  const std::string release = "mbarrier.arrive.shared::cta.b64 _, ",
                    relaxed = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, ",
                    acquire = ".shared::cta.b64 %p3, [stored], 0;\n",
                    weak = ".relaxed.cta.shared::cta.b64 %p3, [stored], 0;\n";
  expectOrdered(with(order(release, acquire), ""), FaultKind::Race, {"tcgen05.st", "tcgen05.mma"});
  expectFault(block(with(order(relaxed, acquire), "")), FaultKind::Race, {"tcgen05.st"});
  expectFault(block(with(order(release, weak), "")), FaultKind::Race, {"tcgen05.st"});
  expectFault(block(with(order(release, weak), kAfter)), FaultKind::Race, {"tcgen05.st"});
  expectCleanBothWays(with(order(kBefore + relaxed, weak), kAfter));
  expectFault(block(with(order(kBefore + relaxed, weak), "")), FaultKind::Race, {"after_thread_sync"});
  // A fence before the arrival makes it release, one after the wait makes that acquire.
  expectClean(block(with(order("fence.acq_rel.cta;\n" + relaxed, weak), "fence.acq_rel.cta;\n")));
  expectClean(block(with(order(kBefore + relaxed, acquire), "")));
}

/// Allocations keep the order of accesses to one address (PTX ISA 9.7.16.6.1); stores do not.
TEST(CheckTensor, TheWordOfAnAllocationIsOverwritten) {
  const std::string copy =
      "@%p1 mbarrier.init.shared.b64 [full], 1;\nbar.sync 0;\n"
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;\n"
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [word], [%in0], 16, [full];\n"
      "FULL:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;\n@!%p3 bra FULL;\n"
      "@!%p2 bra GIVEN;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r12, 32;\nGIVEN:\n";
  const std::string variables = ".shared .align 128 .b8 word[128];\n.shared .align 8 .b64 full;\n";
  const std::string allocated = variables +
                                "@!%p2 bra TAKEN;\n"
                                "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [word], 32;\n"
                                "TAKEN:\n$1" +
                                kBarrier + "ld.shared.u32 %r12, [word];\n" + kBarrier + copy;
  expectClean(block(with(allocated, "")));
  expectFault(block(with(allocated, "@%p1 st.shared.u32 [word+4], 1;\n")), FaultKind::MissingProxyFence,
              {"st.shared"});
}

TEST(CheckTensor, CopiesAndShifts) {
  std::string text = byOne("$2$1", "ISSUED") + "$3" + with(kLoad, "[%r4+32]", "[%r4]") + kWaitLoad;
  for (std::string what : {kCopy, std::string("tcgen05.shift.cta_group::1.down [%r3+32];\n")}) {
    std::string filled = with(kStore, "[%r4+32]", "[%r4]") + kWaitStore + kOrdered + with(text, what, "$2");
    const std::string name = what.substr(0, what.find(".cta"));
    expectClean(block(with(with(filled, kCommit), waited() + kAfter, "$3")));
    expectFault(block(with(with(filled, kCommit), kOrdered, "$3")), FaultKind::Race,
                {name, "tcgen05.ld", "mbarrier"});
  }
}

TEST(CheckTensor, ScaleFactorsAndMultiplicandsInTensorMemory) {
  // A in columns 32 to 39.
  std::string product = byOne(with(kProduct, "[%r3+32], %rd4", "%rd3, %rd4") + kCommit, "ISSUED") + waited();
  std::string store = with(kStore, "[%r4+32]", "[%r4]");
  std::string others;
  for (const char *column : {"34", "36", "38"})
    others += with(kStore, std::string("[%r4+") + column + "]", "[%r4]");
  expectClean(block(others + store + kWaitStore + kOrdered + product));
  expectFault(block(others + kWaitStore + store + kOrdered + product), FaultKind::Race,
              {"tcgen05.st", "tcgen05.mma", "columns 32 to 33"});
}

} // namespace
