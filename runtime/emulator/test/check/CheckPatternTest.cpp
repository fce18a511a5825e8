// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Patterns by which threads are ordered, as correct programs have them, and each with what
// makes it correct left out.

#include "CheckHarness.h"

#include "exec/Program.h"

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// Blocks come from 0 on: %r1 is the block's number, %r2 the thread's in it.
const std::string kWho = "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\nsetp.eq.u32 %p0, %r1, 0;\n"
                         "setp.eq.u32 %p1, %r2, 0;\n";

TEST(CheckPattern, AnObjectMadeOnce) {
  // A thread that finds the flag unset takes the lock, looks again, and makes the value.
  std::string text = kWho +
                     "ld.acquire.$2.global.u32 %r3, [%in0];\nsetp.ne.u32 %p2, %r3, 0;\n@%p2 bra USE;\n"
                     "LOCK:\natom.acquire.gpu.global.cas.b32 %r4, [%in0+8], 0, 1;\nsetp.ne.u32 %p3, %r4, 0;\n"
                     "@%p3 bra LOCK;\nld.relaxed.gpu.global.u32 %r3, [%in0];\nsetp.ne.u32 %p2, %r3, 0;\n"
                     "@%p2 bra FREE;\nst.global.u32 [%in0+64], 7;\n$1.global.u32 [%in0], 1;\n"
                     "FREE:\nst.release.gpu.global.u32 [%in0+8], 0;\nUSE:\nld.global.u32 %r5, [%in0+64];\n";
  for (std::string scope : {"gpu", "sys"}) {
    std::string scoped = with(text, scope, "$2");
    expectClean(with(scoped, "st.release." + scope), threads(1, 6));
    std::string wrong = with(scoped, "st.relaxed." + scope);
    // Only who finds the flag set without the lock is in danger.
    unsigned races = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed)
      if (auto fault = run(wrong, threads(1, 6), seed)) {
        EXPECT_EQ(fault->kind, FaultKind::Race) << "seed " << seed << ": " << fault->text();
        ++races;
      }
    EXPECT_GT(races, kSeeds / 4) << scope;
  }
}

TEST(CheckPattern, ASpinLockWithFences) {
  std::string text = "LOCK:\natom.relaxed.gpu.global.cas.b32 %r1, [%in0], 0, 1;\nsetp.ne.u32 %p0, %r1, 0;\n"
                     "@%p0 bra LOCK;\n$1ld.global.u32 %r2, [%in0+4];\nadd.u32 %r2, %r2, 1;\n"
                     "st.global.u32 [%in0+4], %r2;\n$2atom.relaxed.gpu.global.exch.b32 %r3, [%in0], 0;\n";
  std::string fence = "fence.acq_rel.gpu;\n", sc = "fence.sc.gpu;\n";
  expectClean(with(with(text, fence), fence, "$2"), threads(1, 6));
  expectClean(with(with(text, sc), "membar.gl;\n", "$2"), threads(1, 6));
  expectFault(with(with(text, ""), fence, "$2"), threads(1, 6), FaultKind::Race);
  expectFault(with(with(text, fence), "", "$2"), threads(1, 6), FaultKind::Race);
  // A fence of the block does not reach the others.
  expectFault(with(with(text, "fence.acq_rel.cta;\n"), fence, "$2"), threads(1, 6), FaultKind::Race);
}

TEST(CheckPattern, TheLastBlockResetsItsCounter) {
  // threadFenceReduction of CUDA's samples: every thread writes, one takes a ticket.
  std::string text = kWho +
                     "mad.wide.u32 %rd0, %i, 4, %in0;\nst.global.u32 [%rd0+256], %i;\n$1"
                     "bar.sync 0;\n.shared .align 4 .b32 last;\n@!%p1 bra TOLD;\n"
                     "atom.global.inc.u32 %r3, [%in0], 5;\nst.shared.u32 [last], %r3;\nTOLD:\nbar.sync 0;\n"
                     "ld.shared.u32 %r3, [last];\nsetp.ne.u32 %p2, %r3, 5;\n@%p2 bra DONE;\n$2"
                     "mov.u32 %r4, 0;\nmad.wide.u32 %rd1, %r2, 4, %in0;\n"
                     "SUM:\nld.global.u32 %r5, [%rd1+256];\nadd.u64 %rd1, %rd1, 256;\nadd.u32 %r4, %r4, 1;\n"
                     "setp.lt.u32 %p3, %r4, 6;\n@%p3 bra SUM;\n@%p1 st.global.u32 [%in0], 0;\nDONE:\n";
  std::string fence = "membar.gl;\n";
  expectClean(with(with(text, fence), fence, "$2"), threads(64, 6));
  expectFault(with(with(text, ""), fence, "$2"), threads(64, 6), FaultKind::Race);
}

TEST(CheckPattern, ABarrierOfTheGrid) {
  // Each block arrives by one thread and spins; then reads what its neighbour wrote.
  std::string text = kWho +
                     "mad.wide.u32 %rd0, %i, 4, %in0;\nst.global.u32 [%rd0+256], %i;\nbar.sync 0;\n"
                     "@!%p1 bra PASSED;\n$1atom.$2.gpu.global.add.u32 %r3, [%in0], 1;\n"
                     "SPIN:\nld.$3.gpu.global.u32 %r4, [%in0];\nsetp.lt.u32 %p2, %r4, 2;\n@%p2 bra SPIN;\n$4"
                     "PASSED:\n$5xor.b32 %r6, %r1, 1;\nmad.lo.u32 %r6, %r6, 64, %r2;\n"
                     "mad.wide.u32 %rd1, %r6, 4, %in0;\nld.global.u32 %r7, [%rd1+256];\n";
  auto of = [&](const char *first, const char *add, const char *load, const char *second, const char *last) {
    return with(with(with(with(with(text, first), add, "$2"), load, "$3"), second, "$4"), last, "$5");
  };
  // A thread that spins does so until its turn is over, which takes long: fewer seeds.
  constexpr unsigned kFewSeeds = 4;
  auto clean = [&](const std::string &kernel) {
    expectClean([&](uint64_t seed) { return run(kernel, threads(64, 2), seed); }, kFewSeeds);
  };
  auto races = [&](const std::string &kernel) {
    expectFault([&](uint64_t seed) { return run(kernel, threads(64, 2), seed); }, FaultKind::Race, {},
                kFewSeeds);
  };
  clean(of("", "acq_rel", "acquire", "", "bar.sync 0;\n"));
  clean(of("membar.gl;\n", "relaxed", "relaxed", "membar.gl;\n", "bar.sync 0;\n"));
  clean(of("fence.release.gpu;\n", "relaxed", "relaxed", "fence.acquire.gpu;\n", "bar.sync 0;\n"));
  races(of("", "relaxed", "acquire", "", "bar.sync 0;\n"));
  races(of("", "acq_rel", "relaxed", "", "bar.sync 0;\n"));
  races(of("", "acq_rel", "acquire", "", ""));
}

TEST(CheckPattern, AnArrivalAtAnotherBlocksMbarrier) {
  // Block 1 fills block 0's buffer and arrives there; block 0 reads.
  std::string barrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  std::string text =
      kWho +
      ".shared .align 16 .b8 buffer[256];\n.shared .align 8 .b64 full;\n"
      "mov.u32 %r3, buffer;\nshl.b32 %r4, %r2, 2;\nadd.u32 %r3, %r3, %r4;\nmov.u32 %r5, full;\n"
      "@%p1 mbarrier.init.shared.b64 [%r5], 64;\nst.shared.u32 [%r3], 0;\n" +
      barrier +
      "@%p0 bra READ;\nmov.u32 %r9, 0;\nmapa.shared::cluster.u32 %r6, %r3, %r9;\n"
      "mapa.shared::cluster.u32 %r7, %r5, %r9;\nst.shared::cluster.u32 [%r6], %i;\n"
      "mbarrier.arrive.$1.cluster.shared::cluster.b64 _, [%r7];\nbra DONE;\n"
      "READ:\nmbarrier.try_wait.parity.$2.cluster.shared::cta.b64 %p3, [%r5], 0;\n"
      "@!%p3 bra READ;\nxor.b32 %r3, %r3, 4;\nld.shared.u32 %r8, [%r3];\nDONE:\n" +
      barrier;
  auto pair = threads(64, 2, 2);
  expectClean(with(with(text, "release"), "acquire", "$2"), pair);
  expectFault(with(with(text, "relaxed"), "acquire", "$2"), pair, FaultKind::Race);
  expectFault(with(with(text, "release"), "relaxed", "$2"), pair, FaultKind::Race);
}

TEST(CheckPattern, ANamedBarrierOfProducersAndConsumers) {
  // Warp 0 fills, arrives at `full` and waits for `empty`; warp 1 the other way round.
  std::string text =
      ".shared .align 16 .b8 buffer[128];\nmov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 31;\n"
      "mov.u32 %r3, buffer;\nshl.b32 %r4, %r2, 2;\nadd.u32 %r3, %r3, %r4;\n"
      "xor.b32 %r5, %r3, 4;\nsetp.lt.u32 %p0, %r1, 32;\nmov.u32 %r6, 0;\n@!%p0 bra CONSUME;\n"
      "PRODUCE:\n$2st.shared.u32 [%r3], %r6;\n$1add.u32 %r6, %r6, 1;\n"
      "setp.lt.u32 %p1, %r6, 5;\n@%p1 bra PRODUCE;\nbar.sync 2, 64;\nbra DONE;\n"
      "CONSUME:\nbar.arrive 2, 64;\nMORE:\nbar.sync 1, 64;\nld.shared.u32 %r7, [%r5];\n"
      "bar.arrive 2, 64;\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, 5;\n@%p1 bra MORE;\nDONE:\n";
  expectClean(with(with(text, "bar.arrive 1, 64;\n"), "bar.sync 2, 64;\n", "$2"), threads(64));
  // It arrives before it has filled.
  expectFault(with(with(text, ""), "bar.sync 2, 64;\nbar.arrive 1, 64;\n", "$2"), threads(64),
              FaultKind::Race);
}

TEST(CheckPattern, AWarpThatAddsUp) {
  // The last steps of a reduction, within a warp.
  std::string text = ".shared .align 16 .b8 buffer[256];\nmov.u32 %r1, %tid.x;\nmov.u32 %r3, buffer;\n"
                     "shl.b32 %r4, %r1, 2;\nadd.u32 %r3, %r3, %r4;\nst.shared.u32 [%r3], %r1;\n"
                     "st.shared.u32 [%r3+128], 0;\nbar.warp.sync -1;\n";
  auto steps = [&](const std::string &between, const std::string &after) {
    std::string out = text;
    for (const char *step : {"64", "32", "16", "8", "4"})
      out += std::string("ld.shared.u32 %r5, [%r3];\nld.shared.u32 %r6, [%r3+") + step + "];\n" + between +
             "add.u32 %r5, %r5, %r6;\nst.shared.u32 [%r3], %r5;\n" + after;
    return out;
  };
  const std::string sync = "bar.warp.sync -1;\n";
  expectClean(steps(sync, sync), threads(32));
  expectFault(steps("", sync), threads(32), FaultKind::Race, {"bar.warp.sync"});
  expectFault(steps(sync, ""), threads(32), FaultKind::Race, {"bar.warp.sync"});
}

TEST(CheckPattern, AReductionThatReleases) {
  // All blocks but the last add to a counter once they have written; the last waits.
  std::string text =
      kWho + "setp.eq.u32 %p2, %r1, 4;\n@%p2 bra WAIT;\nmad.wide.u32 %rd0, %r1, 4, %in0;\n"
             "st.global.u32 [%rd0+64], %r1;\n$1.gpu.global.add.u32 [%in0], 1;\nbra DONE;\n"
             "WAIT:\nld.relaxed.gpu.global.u32 %r3, [%in0];\nsetp.lt.u32 %p3, %r3, 4;\n@%p3 bra WAIT;\n"
             "$2ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%in0+64];\nDONE:\n";
  auto grid = threads(1, 5);
  expectClean(with(with(text, "red.release"), "fence.acq_rel.gpu;\n", "$2"), grid);
  expectClean(with(with(text, "fence.acq_rel.gpu;\nred.relaxed"), "fence.acquire.gpu;\n", "$2"), grid);
  expectFault(with(with(text, "red.relaxed"), "fence.acq_rel.gpu;\n", "$2"), grid, FaultKind::Race);
  expectFault(with(with(text, "red.release"), "", "$2"), grid, FaultKind::Race);
}

TEST(CheckPattern, CountsThatNobodyReads) {
  // Blocks run on as many threads of the host as there are: whatever their order, the sum is
  // the same, and a plain read among them a race.
  const std::string adds = "and.b32 %r1, %i, 7;\nmad.wide.u32 %rd0, %r1, 4, %out;\n"
                           "red.global.add.u32 [%rd0], %i;\nred.relaxed.gpu.global.max.s32 [%rd0+64], %i;\n"
                           "red.global.xor.b32 [%rd0+128], %i;\n";
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Settings settings;
    settings.seed = seed;
    settings.threads = 4;
    TestMachine machine(kernelText(adds, 0), settings);
    EXPECT_FALSE(machine.module->program().blocksCommunicate);
    uint64_t out = machine.upload(std::vector<uint32_t>(64));
    auto fault = machine.launch("k", threads(64, 32), out);
    ASSERT_FALSE(fault) << fault->text();
    std::vector<uint32_t> expected(64), got = machine.download<uint32_t>(out, 64);
    for (uint32_t i = 0; i < 64 * 32; ++i) {
      expected[i % 8] += i;
      expected[16 + i % 8] = i;
      expected[32 + i % 8] ^= i;
    }
    EXPECT_EQ(got, expected);
  }
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    auto fault = run(adds + "ld.global.u32 %r2, [%rd0];\n", threads(64, 32), seed, /*workers=*/4);
    ASSERT_TRUE(fault) << seed;
    EXPECT_EQ(fault->kind, FaultKind::Race) << fault->text();
  }
  // Operations whose order shows.
  for (std::string text :
       {"atom.global.add.u32 %r2, [%out], 1;\n", "red.release.gpu.global.add.u32 [%out], 1;\n",
        "red.global.add.f32 [%out], 0f3F800000;\n", "red.global.inc.u32 [%out], 5;\n"})
    EXPECT_TRUE(TestMachine(kernelText(text, 0)).module->program().blocksCommunicate) << text;
  EXPECT_FALSE(TestMachine(kernelText("red.shared.add.f32 [%r1], 0f3F800000;\n", 0))
                   .module->program()
                   .blocksCommunicate);
}

TEST(CheckPattern, UpdatesThatOthersHaveMadeAreNotRead) {
  // A thread's own update says nothing of those of others, whatever the order.
  std::string text = kWho + "red.global.add.u32 [%in0], 1;\n$1ld.global.u32 %r3, [%in0];\n";
  expectFault(with(text, ""), threads(1, 2), FaultKind::Race, {"red.global", "ld.global"});
  expectFault(with(text, "bar.sync 0;\n"), threads(64, 2), FaultKind::Race);
  expectClean(with(text, "bar.sync 0;\n"), threads(64, 1));
  expectFault(with(text, "bar.warp.sync -1;\n"), threads(64, 1), FaultKind::Race);
  // Of many words each has its own two.
  std::string many = kWho + "mad.wide.u32 %rd0, %r2, 4, %in0;\nred.global.add.u32 [%rd0], 1;\n$1";
  expectClean(with(many, ""), threads(1024, 3));
  std::string last = "setp.eq.u32 %p2, %r2, 1023;\n@%p2 ld.global.u32 %r3, [%rd0];\n";
  expectFault(with(many, last), threads(1024, 3), FaultKind::Race, {"thread (1023,0,0)"});
}

} // namespace
