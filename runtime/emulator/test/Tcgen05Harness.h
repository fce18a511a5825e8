// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the tests of tcgen05: a kernel around its instructions, matrices of small
// integers, whose sums are exact in every model.

#ifndef FP8EMU_TEST_TCGEN05HARNESS_H
#define FP8EMU_TEST_TCGEN05HARNESS_H

#include "Harness.h"

#include "num/Format.h"

#include <gtest/gtest.h>

namespace fp8emu::test {

inline std::string text(uint64_t value) { return std::to_string(value); }

/// A kernel of 128 threads: shared memory `tile` is what it is given, thread 0 executes
/// `issue` and waits for it, every thread stores its lane's columns. Before, all execute
/// `prepare` (%r4 is the address of the warp's lanes, %r3 that of the allocation, and
/// %rd1 the descriptor's bits of the tile's address).
struct TensorKernel {
  std::string issue, prepare;
  unsigned columns = 64;
  std::vector<uint8_t> tile = std::vector<uint8_t>(16);
  /// The first of each 16 bytes, which are written; the bytes behind them are not.
  unsigned dataBytes = 16;

  std::string ptx() const {
    std::string
        size = text(tile.size()),
        body = ".shared .align 1024 .b8 tile[" + size +
               "];\n.shared .align 8 .b64 bar;\n.shared .align 4 .b32 where;\n"
               "mov.u32 %r0, %i4;\nL0: setp.ge.u32 %p0, %r0, " +
               size +
               ";\n@%p0 bra L1;\n"
               "cvt.u64.u32 %rd0, %r0;\nadd.u64 %rd0, %in0, %rd0;\nld.global.u32 %r1, [%rd0];\nmov.u32 %r2, "
               "tile;\n"
               "add.u32 %r2, %r2, %r0;\nand.b32 %r7, %r0, 15;\nsetp.lt.u32 %p9, %r7, " +
               text(dataBytes) +
               ";\n@%p9 st.shared.u32 [%r2], %r1;\nadd.u32 %r0, %r0, 512;\nbra L0;\nL1:\n"
               "fence.proxy.async.shared::cta;\n"
               "setp.eq.u32 %p1, %i, 0;\nsetp.lt.u32 %p2, %i, 32;\n@%p1 mbarrier.init.shared.b64 [bar], 1;\n"
               "@!%p2 bra L2;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], " +
               text(columns) +
               ";\ntcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nL2: bar.sync 0;\n"
               "ld.shared.u32 %r3, [where];\nshr.u32 %r4, %i, 5;\nshl.b32 %r4, %r4, 21;\nadd.u32 %r4, %r3, "
               "%r4;\n"
               "mov.u32 %r5, tile;\nshr.u32 %r5, %r5, 4;\ncvt.u64.u32 %rd1, %r5;\n" +
               prepare +
               "\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n@!%p1 "
               "bra L3;\n" +
               issue +
               "\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
               "L3: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra "
               "L3;\ntcgen05.fence::after_thread_sync;\n"
               "mul.lo.u32 %r6, %i, " +
               text(columns * 4) + ";\ncvt.u64.u32 %rd2, %r6;\nadd.u64 %rd2, %out, %rd2;\n";
    for (unsigned c = 0; c < columns; c += 4)
      body += "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r10, %r11, %r12, %r13}, [%r4+" + text(c) +
              "];\ntcgen05.wait::ld.sync.aligned;\nst.global.v4.u32 [%rd2+" + text(c * 4) +
              "], {%r10, %r11, %r12, %r13};\n";
    body += "bar.sync 0;\n@!%p2 bra L4;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, " +
            text(columns) + ";\nL4:\n";
    return kernelText(body, 1, "sm_100a");
  }

  /// Each lane's columns; nothing where it faults.
  std::vector<uint32_t> run(std::optional<Fault> *fault = nullptr, uint64_t seed = 0) {
    Settings settings;
    settings.seed = seed;
    TestMachine machine(ptx(), settings);
    uint64_t out = machine.allocate(128 * columns * 4), in = machine.upload(tile);
    LaunchConfig config;
    config.block = {128, 1, 1};
    std::optional<Fault> got = machine.launch("k", config, out, in);
    if (fault)
      *fault = got;
    else
      EXPECT_FALSE(got) << got->text();
    return got ? std::vector<uint32_t>() : machine.download<uint32_t>(out, 128 * columns);
  }
};

inline std::string setDescriptor(const char *name, uint64_t offset, uint64_t leading, uint64_t stride,
                                 uint64_t swizzle) {
  uint64_t bits = leading >> 4 << 16 | stride >> 4 << 32 | uint64_t(1) << 46 | swizzle << 61;
  return std::string("add.u64 ") + name + ", %rd1, " + text(offset >> 4) + ";\nor.b64 " + name + ", " + name +
         ", " + text(bits) + ";\n";
}

inline int valueA(unsigned row, unsigned k) { return int((row * 7 + k * 5 + row / 16) % 9) - 4; }
inline int valueB(unsigned column, unsigned k) { return int((column * 5 + k * 3 + column / 8) % 7) - 3; }

inline int product(unsigned row, unsigned column, unsigned k) {
  int sum = 0;
  for (unsigned i = 0; i < k; ++i)
    sum += valueA(row, i) * valueB(column, i);
  return sum;
}

inline void put(std::vector<uint8_t> &tile, size_t offset, const num::Format &format, int value) {
  uint64_t code = num::encode(format, value, num::Rounding::NearestEven);
  if (tile.size() < offset + 4)
    tile.resize((offset + 4 + 3) / 4 * 4);
  std::memcpy(tile.data() + offset, &code, format.width() / 8);
}

inline uint32_t shape(unsigned m, unsigned n) { return n / 8 << 17 | m / 16 << 24; }
constexpr uint32_t kF32 = 1u << 4;
inline float asFloat(uint32_t bits) { return num::floatOf(bits); }

/// Along K: rows of `width` bytes, 16-byte parts swapped by the row (PTX ISA 9.7.16.10.6).
inline size_t alongK(unsigned width, unsigned row, unsigned byte) {
  unsigned part = byte / 16, turn = width == 128  ? row % 8
                                    : width == 64 ? row / 2 % 4
                                    : width == 32 ? row / 4 % 2
                                                  : 0;
  return size_t(row) * width + (part ^ turn) * 16 + byte % 16;
}

constexpr size_t kTileB = 128 * 128;

} // namespace fp8emu::test

#endif // FP8EMU_TEST_TCGEN05HARNESS_H
