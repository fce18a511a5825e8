// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The events that a launch reports to an observer other than the checks: accesses and barriers.

#include "exec/Observer.h"

#include "Harness.h"

#include "exec/Access.h"
#include "exec/Launch.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

struct Seen {
  unsigned blocks = 0, warps = 0, arrivals = 0, barriers = 0;
  /// Lanes, by the kind of access, in shared and in global memory.
  unsigned shared[3] = {}, global[3] = {};
};

class Counter : public Observer {
public:
  explicit Counter(Seen &seen) : seen(seen) {}
  std::unique_ptr<Notes> begin(const Cluster &) override { return nullptr; }
  std::unique_ptr<Notes> begin(const Block &) override {
    ++seen.blocks;
    return nullptr;
  }
  std::unique_ptr<Notes> begin(const Warp &) override {
    ++seen.warps;
    return nullptr;
  }
  void access(Warp &, Mask mask, const Target *targets, unsigned bytes, AccessKind kind) override {
    EXPECT_EQ(bytes, 4u);
    forLanes(mask,
             [&](unsigned lane) { ++(targets[lane].block ? seen.shared : seen.global)[unsigned(kind)]; });
  }
  void arriveAtBarrier(Warp &, unsigned id, Mask lanes) override {
    EXPECT_EQ(id, 0u);
    seen.arrivals += unsigned(__builtin_popcount(lanes));
  }
  void completeBarrier(Block &, unsigned) override { ++seen.barriers; }
  void waitedForCluster(Warp &, Mask, uint64_t) override { ADD_FAILURE(); }

private:
  Seen &seen;
};

} // namespace

TEST(Observer, IsToldOfAccessesAndBarriers) {
  TestMachine machine(kernelText(".shared .b32 tile[64];\nmov.u32 %r2, %tid.x;\nshl.b32 %r0, %r2, 2;\n"
                                 "mov.u32 %r1, tile;\nadd.u32 %r0, %r0, %r1;\nst.shared.u32 [%r0], %r2;\n"
                                 "bar.sync 0;\nld.shared.u32 %r3, [%r0];\nmad.wide.u32 %rd0, %i, 4, %out;\n"
                                 "setp.lt.u32 %p0, %r2, 10;\n@%p0 st.global.u32 [%rd0], %r3;\n",
                                 0));
  LaunchConfig config;
  config.block = {64, 1, 1};
  config.grid = {3, 1, 1};
  const uint64_t out = machine.allocate(3 * 64 * 4);
  config.parameters.assign(reinterpret_cast<const uint8_t *>(&out),
                           reinterpret_cast<const uint8_t *>(&out + 1));
  machine.settings.threads = 1;
  const Kernel &kernel = machine.find("k");
  Seen seen;
  Launch launch(*kernel.program, *kernel.code, config, machine.device.memory(), machine.settings, 0,
                [&](const Launch &, bool severalThreads) {
                  EXPECT_FALSE(severalThreads);
                  return std::make_unique<Counter>(seen);
                });
  ASSERT_FALSE(launch.run());
  EXPECT_EQ(seen.blocks, 3u);
  EXPECT_EQ(seen.warps, 6u);
  EXPECT_EQ(seen.arrivals, 192u);
  EXPECT_EQ(seen.barriers, 3u);
  EXPECT_EQ(seen.shared[unsigned(AccessKind::Store)], 192u);
  EXPECT_EQ(seen.shared[unsigned(AccessKind::Load)], 192u);
  EXPECT_EQ(seen.global[unsigned(AccessKind::Store)], 30u);
  EXPECT_EQ(seen.global[unsigned(AccessKind::Load)], 0u);
}
