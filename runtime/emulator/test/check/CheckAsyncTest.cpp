// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations in flight as the checks of memory order know them: what each kind of them reads
// and writes, that nobody touches it before the operation is over, and how that is waited
// for. CheckTest.cpp has cp.async, CheckTensorTest.cpp tcgen05.

#include "CheckHarness.h"
#include "CopyKernels.h"

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// A kernel of CopyKernels.h; `in` and `out` are of 64 KiB, zeros. The map is of the 32
/// words at `in` where there is no other.
Run copies(const std::string &body, unsigned blocks = 1) {
  return [=](uint64_t seed) {
    Settings settings;
    settings.seed = seed;
    TestMachine machine(copyKernel(body), settings);
    std::vector<uint32_t> zeros(16384);
    uint64_t out = machine.upload(zeros), in = machine.upload(zeros);
    TensorMap map;
    map.address = in;
    map.type = TensorType::U32;
    map.size[0] = map.box[0] = 32;
    map.step.fill(1);
    return machine.launch("k", copyConfig(blocks, blocks), MapParameter(map), out, in, uint32_t(0));
  };
}

/// %p2: warp 0; %r12: the thread's word of the tile, %r13: its neighbour's.
const std::string kPlaces = "setp.lt.u32 %p2, %t, 32;\nmov.u32 %r10, tile;\nmov.u32 %r11, bar;\n"
                            "shl.b32 %r13, %t, 2;\nadd.u32 %r12, %r10, %r13;\nxor.b32 %r13, %r12, 4;\n";
/// %r10 and %r11: the tile and the mbarrier of the cluster's other block; %r14: the thread's
/// word of its tile.
const std::string kOther = kPlaces + "xor.b32 %r9, %rank, 1;\nmapa.shared::cluster.u32 %r10, %r10, %r9;\n"
                                     "mapa.shared::cluster.u32 %r11, %r11, %r9;\n"
                                     "mapa.shared::cluster.u32 %r14, %r12, %r9;\n";

const std::string kReadNeighbour = "@%p2 ld.shared.u32 %r20, [%r13];\n";
const std::string kFence = "fence.proxy.async.shared::cta;\nbar.sync 0;\n";

TEST(CheckAsync, StoresToAnotherBlock) {
  std::string text = expect(128) + clusterBarrier() + kOther + "@%p2 $1.u32 [%r14], %t, [%r11];\n$2" +
                     kReadNeighbour + clusterBarrier();
  for (std::string store : {"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes",
                            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add"}) {
    expectClean(copies(with(with(text, store), await(), "$2"), 2));
    expectFault(copies(with(with(text, store), "", "$2"), 2), FaultKind::Race,
                {store.substr(0, 8), "ld.shared", "asynchronous operation"});
    // That the thread has started its own says nothing of the other block's.
    expectFault(copies(with(with(text, store), "bar.sync 0;\n", "$2"), 2), FaultKind::Race);
  }
}

TEST(CheckAsync, StoresToAnotherBlockNeedNoProxyFence) {
  // Writes of threads of the other block, ordered by the cluster's barrier.
  std::string text = expect(128) + kOther + "@%p2 st.shared.u32 [%r12], %t;\n$1" +
                     "@%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r14], %t, [%r11];\n" +
                     await() + clusterBarrier();
  expectClean(copies(with(text, clusterBarrier()), 2));
  expectFault(copies(with(text, "bar.sync 0;\n"), 2), FaultKind::Race, {"st.async", "st.shared"});
}

TEST(CheckAsync, StoresThatABulkCopyReads) {
  std::string text = expect(128) + clusterBarrier() + kOther +
                     "@%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r14], %t, [%r11];\n" +
                     await() +
                     "$1mul.wide.u32 %rd1, %rank, 1024;\nadd.u64 %out, %out, %rd1;\n"
                     "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 128;\n"
                     "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;\n" +
                     clusterBarrier();
  expectClean(copies(with(text, "fence.proxy.async;\n"), 2));
  expectFault(copies(with(text, ""), 2), FaultKind::MissingProxyFence,
              {"st.async", "cp.async.bulk", "fence.proxy.async"});
}

TEST(CheckAsync, AStoreThatReleases) {
  // Block 0 leaves a word and a flag, block 1 waits for it and reads.
  std::string text = "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@!%p0 bra DONE;\n@!%p1 bra READER;\n"
                     "st.global.u32 [%in], 42;\n$1 [%in+64], 1;\nbra DONE;\n"
                     "READER:\n$2.global.u32 %r4, [%in+64];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra READER;\n"
                     "ld.global.u32 %r0, [%in];\nDONE:\n";
  for (std::string store : {"st.async.release.gpu.global.u32", "red.async.release.gpu.global.add.u32"}) {
    expectClean(copies(with(with(text, store), "ld.acquire.gpu", "$2"), 2));
    expectFault(copies(with(with(text, store), "ld.relaxed.gpu", "$2"), 2), FaultKind::Race, {"st.global"});
  }
  // The flag itself, read by a weak load once.
  std::string weak = with(text, "st.async.release.gpu.global.u32");
  expectFault(copies(with(with(weak, "ld", "$2"), "@%p2 bra DONE;\n", "@%p2 bra READER;\n"), 2),
              FaultKind::Race, {"st.async"});
}

TEST(CheckAsync, TheResponseOfARequest) {
  std::string text =
      expect(16) + "@%p0 st.shared.u32 [copy], %t;\n$1@%p0 clusterlaunchcontrol.try_cancel.async.shared::cta."
                   "mbarrier::complete_tx::bytes.b128 [copy], [bar];\n$2"
                   "ld.shared.u32 %r20, [copy];\n";
  expectClean(copies(with(with(text, kFence), await(), "$2")));
  expectFault(copies(with(with(text, kFence), "bar.sync 0;\n", "$2")), FaultKind::Race,
              {"try_cancel", "ld.shared"});
  expectFault(copies(with(with(text, "bar.sync 0;\n"), await(), "$2")), FaultKind::MissingProxyFence,
              {"try_cancel", "st.shared", "fence.proxy.async"});
}

TEST(CheckAsync, CopiesToAnotherBlock) {
  // Each block sends its tile; the source is read until the other block's mbarrier says so.
  std::string text = expect(128) + clusterBarrier() + kOther +
                     "@%p0 $1cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                     "[%r10+1024], [tile], 128, "
                     "[%r11];\n$2@%p2 st.shared.u32 [%r12], 7;\n" +
                     clusterBarrier();
  std::string both = await() + clusterBarrier();
  expectClean(copies(with(with(text, ""), both, "$2"), 2));
  expectFault(copies(with(with(text, ""), "bar.sync 0;\n", "$2"), 2), FaultKind::AsyncOverwrite,
              {"cp.async.bulk", "st.shared"});
  // A block's own mbarrier speaks of what has come.
  expectFault(copies(with(with(text, ""), await(), "$2"), 2), FaultKind::AsyncOverwrite);
  std::string read =
      expect(128) + clusterBarrier() + kOther +
      "@%p0 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 "
      "[%r10], [tile+1024], 128, [%r11];\n$1" +
      kReadNeighbour + clusterBarrier();
  expectClean(copies(with(read, await()), 2));
  expectFault(copies(with(read, ""), 2), FaultKind::Race, {"cp.reduce.async.bulk", "ld.shared"});
}

/// Thread 0 stores the tile as told; `after` is what it does then.
std::string stored(const std::string &copy, const std::string &wait, const std::string &after) {
  return "@!%p0 bra DONE;\nst.shared.u32 [tile], 7;\n$1" + copy + "\ncp.async.bulk.commit_group;\n" + wait +
         after + "\nDONE:\n";
}

TEST(CheckAsync, CopiesToGlobalMemory) {
  const std::string fence = "fence.proxy.async;\n", write = "st.shared.u32 [tile], 8;",
                    read = "ld.global.u32 %r20, [%in];", none;
  for (std::string copy :
       {"cp.async.bulk.global.shared::cta.bulk_group [%in], [tile], 128;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%in], [tile], 128;",
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%map, {0}], [tile];",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%map, {0}], [tile];"}) {
    SCOPED_TRACE(copy);
    const std::string name = copy.substr(0, copy.find(".global"));
    const std::string waits = "cp.async.bulk.wait_group 0;\n", reads = "cp.async.bulk.wait_group.read 0;\n";
    auto of = [&](const std::string &wait, const std::string &after, const std::string &before) {
      return copies(with(stored(copy, wait, after), before));
    };
    expectClean(of(waits, read, fence));
    expectClean(of(reads, write, fence));
    expectFault(of(reads, read, fence), FaultKind::Race, {name, "ld.global", "mbarrier or group"});
    expectFault(of(none, write, fence), FaultKind::AsyncOverwrite, {name, "st.shared"});
    expectFault(of(waits, none, none), FaultKind::MissingProxyFence,
                {name, "st.shared", "fence.proxy.async"});
  }
}

TEST(CheckAsync, CopiesIntoSharedMemory) {
  const std::string load = "cp.async.bulk", to = ".shared::cta.global.mbarrier::complete_tx::bytes [tile], ";
  for (std::string copy :
       {load + to + "[%in], 128, [bar];", load + ".tensor.1d" + to + "[%map, {0}], [bar];"}) {
    SCOPED_TRACE(copy);
    const std::string name = copy.substr(0, copy.find(".shared"));
    std::string text =
        expect(128) + kPlaces + "@%p2 st.shared.u32 [%r12], %t;\n$1@%p0 " + copy + "\n$2" + kReadNeighbour;
    expectClean(copies(with(with(text, kFence), await(), "$2")));
    expectFault(copies(with(with(text, kFence), "", "$2")), FaultKind::Race, {name, "ld.shared", "mbarrier"});
    expectFault(copies(with(with(text, "bar.sync 0;\n"), await(), "$2")), FaultKind::MissingProxyFence,
                {name, "st.shared"});
    // The source: global memory that generic writes have changed needs the fence, too.
    std::string source = expect(128) + kPlaces + "@%p0 st.global.u32 [%in], 1;\n$1@%p0 " + copy + "\n$2";
    expectClean(copies(with(with(source, "fence.proxy.async.global;\n"), await(), "$2")));
    expectFault(copies(with(with(source, ""), await(), "$2")), FaultKind::MissingProxyFence,
                {name, "st.global"});
    expectFault(
        copies(with(with(source, "fence.proxy.async.global;\n"), "@%p0 st.global.u32 [%in], 2;\n", "$2")),
        FaultKind::AsyncOverwrite, {name, "st.global"});
  }
}

TEST(CheckAsync, ProductsOfWarpgroups) {
  // A is at 0, B at 2048, both zeros; thread 0 writes a word of its own warp's rows again.
  std::string text =
      ".shared .align 128 .b8 buffer[8192];\nmov.u32 %r1, buffer;\nmul.lo.u32 %r2, %i, 64;\n"
      "add.u32 %r2, %r1, %r2;\nmov.u32 %r3, 0;\nFILL:\nst.shared.u32 [%r2], 0;\nadd.u32 %r2, %r2, 4;\n"
      "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p0, %r3, 16;\n@%p0 bra FILL;\n$1bar.sync 0;\n"
      "shr.u32 %r1, %r1, 4;\ncvt.u64.u32 %rd1, %r1;\nadd.u64 %rd3, %rd1, " +
      std::to_string(uint64_t(1024 >> 4) << 16 | uint64_t(128 >> 4) << 32) + ";\nadd.u64 %rd4, %rd1, " +
      std::to_string(2048 >> 4 | uint64_t(128 >> 4) << 16 | uint64_t(128 >> 4) << 32) +
      ";\nsetp.eq.u32 %p1, %i, 0;\nwgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f0, %f1, %f2, %f3}, %rd3, %rd4, 0, 1, 1;\n"
      "wgmma.commit_group.sync.aligned;\n$2@%p1 st.shared.u32 [buffer], 1;\n";
  std::string wait = "wgmma.wait_group.sync.aligned 0;\n";
  expectClean(with(with(text, "fence.proxy.async;\n"), wait, "$2"), threads(128));
  expectFault(with(with(text, ""), wait, "$2"), threads(128), FaultKind::MissingProxyFence,
              {"wgmma.mma_async", "st.shared", "fence.proxy.async"});
  expectFault(with(with(text, "fence.proxy.async;\n"), "", "$2"), threads(128), FaultKind::AsyncOverwrite,
              {"wgmma.mma_async", "st.shared"});
  // Writes of cp.async are of the generic proxy, and waiting for them is no proxy fence.
  std::string copy = "bar.sync 0;\nsetp.lt.u32 %p2, %i, 16;\nshl.b32 %r4, %i, 4;\nadd.u32 %r4, %r1, %r4;\n"
                     "@%p2 cp.async.ca.shared.global [%r4+2048], [%in0], 16;\ncp.async.wait_all;\n";
  expectClean(with(with(text, copy + "fence.proxy.async;\n"), wait, "$2"), threads(128));
  expectFault(with(with(text, "fence.proxy.async;\n" + copy), wait, "$2"), threads(128),
              FaultKind::MissingProxyFence, {"wgmma.mma_async", "cp.async.ca", "fence.proxy.async"});
}

TEST(CheckAsync, TensorMapsThatWereChanged) {
  // A map in global memory, made anew from the parameter's by the block's first warp.
  std::string text =
      expect(128) + kPlaces +
      "@!%p2 bra USE;\nshl.b32 %r1, %t, 2;\ncvt.u64.u32 %rd2, %r1;\nadd.u64 %rd3, %map, %rd2;\n"
      "add.u64 %rd4, %out, %rd2;\nld.u32 %r4, [%rd3];\nst.global.u32 [%rd4], %r4;\n$1\nUSE:\n"
      "$3\n$2\n@%p0 cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::"
      "complete_tx::bytes [tile], [%out, {0}], [bar];\n" +
      await();
  std::string unordered = with(text, "", "$3");
  text = with(text, "bar.sync 0;", "$3");
  std::string release = "fence.proxy.tensormap::generic.release.gpu;",
              acquire = "fence.proxy.tensormap::generic.acquire.gpu [%out], 128;";
  expectClean(copies(with(with(text, release), acquire, "$2")));
  // One thread's fence is enough for who is ordered after it.
  expectClean(copies(with(with(text, release), "@%p2 " + acquire + "\nbar.sync 0;", "$2")));
  expectFault(copies(with(with(text, release), "", "$2")), FaultKind::MissingProxyFence,
              {"st.global", "cp.async.bulk.tensor", "fence.proxy.tensormap"});
  // The other proxy's fence is none for maps.
  expectFault(copies(with(with(text, release), "fence.proxy.async;", "$2")), FaultKind::MissingProxyFence);
  expectFault(copies(with(with(unordered, release), acquire, "$2")), FaultKind::Race,
              {"st.global", "cp.async.bulk.tensor"});
}

} // namespace
