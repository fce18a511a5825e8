// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tcgen05: products in all layouts of shared and tensor memory; moves; what is reported.

#include "Tcgen05Harness.h"

#include <functional>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

TEST(Tcgen05, productsInAllSwizzles) {
  for (auto [width, mode] : {std::pair<unsigned, unsigned>{32, 6}, {64, 4}, {128, 2}}) {
    for (unsigned step = 0; step < width; step += 32) {
      TensorKernel kernel;
      for (unsigned row = 0; row < 128; ++row)
        for (unsigned k = 0; k < 32; ++k)
          put(kernel.tile, alongK(width, row, step + k), num::E4M3, valueA(row, k));
      kernel.tile.resize(kTileB + 64 * 128);
      for (unsigned row = 0; row < 64; ++row)
        for (unsigned k = 0; k < 32; ++k)
          put(kernel.tile, kTileB + alongK(width, row, step + k), num::E5M2, valueB(row, k));
      kernel.issue = setDescriptor("%rd3", step, 16, width * 8, mode) +
                     setDescriptor("%rd4", kTileB + step, 16, width * 8, mode) +
                     "setp.ne.u32 %p4, 0, 0;\ntcgen05.mma.cta_group::1.kind::f8f6f4 [%r3], %rd3, %rd4, " +
                     text(shape(128, 64) | kF32 | 1u << 10) + ", %p4;";
      std::vector<uint32_t> d = kernel.run();
      ASSERT_FALSE(d.empty());
      for (unsigned row = 0; row < 128; ++row)
        for (unsigned column = 0; column < 64; ++column)
          ASSERT_EQ(asFloat(d[row * 64 + column]), product(row, column, 32))
              << width << " " << row << " " << column;
    }
  }
}

/// A kernel with A and B in f16, without swizzle.
TensorKernel plain(unsigned m, unsigned n, const std::string &modifiers, uint32_t bits,
                   const std::string &last) {
  TensorKernel kernel;
  auto offset = [](unsigned rows, unsigned row, unsigned byte) {
    return size_t(byte / 16) * rows * 16 + row * 16 + byte % 16;
  };
  for (unsigned row = 0; row < m; ++row)
    for (unsigned k = 0; k < 16; ++k)
      put(kernel.tile, offset(m, row, 2 * k), num::F16, valueA(row, k));
  kernel.tile.resize(kTileB);
  for (unsigned row = 0; row < n; ++row)
    for (unsigned k = 0; k < 16; ++k)
      put(kernel.tile, kTileB + offset(n, row, 2 * k), num::F16, valueB(row, k));
  kernel.columns = std::max(32u, n);
  kernel.issue = setDescriptor("%rd3", 0, m * 16, 128, 0) + setDescriptor("%rd4", kTileB, n * 16, 128, 0) +
                 "setp.ne.u32 %p4, 0, 0;\nsetp.eq.u32 %p5, 0, 0;\ntcgen05.mma" + modifiers +
                 " [%r3], %rd3, %rd4, " + text(shape(m, n) | bits) + ", " + last + ";";
  return kernel;
}

TEST(Tcgen05, layoutsOfTheResult) {
  struct Case {
    unsigned m;
    const char *modifiers;
    /// Row and column, from lane and column of tensor memory; -1 for none.
    std::function<std::pair<int, int>(int, int)> place;
  };
  const Case cases[] = {
      {128, ".cta_group::1.kind::f16", [](int lane, int c) { return std::pair<int, int>{lane, c}; }},
      {64, ".cta_group::1.kind::f16",
       [](int lane, int c) {
         return std::pair<int, int>{lane % 32 < 16 ? lane / 32 * 16 + lane % 32 : -1, c};
       }},
      {64, ".ws.cta_group::1.kind::f16.collector::b0::discard",
       [](int lane, int c) { return std::pair<int, int>{c < 32 ? lane % 64 : -1, lane / 64 * 32 + c}; }},
      {32, ".ws.cta_group::1.kind::f16",
       [](int lane, int c) { return std::pair<int, int>{c < 16 ? lane % 32 : -1, lane / 32 * 16 + c}; }},
  };
  for (const Case &test : cases) {
    std::vector<uint32_t> d = plain(test.m, 64, test.modifiers, kF32, "%p4").run();
    ASSERT_FALSE(d.empty());
    for (int lane = 0; lane < 128; ++lane)
      for (int c = 0; c < 64; ++c) {
        auto [row, column] = test.place(lane, c);
        if (row < 0)
          ASSERT_EQ(d[lane * 64 + c], ~0u) << test.m << " " << lane << " " << c;
        else
          ASSERT_EQ(asFloat(d[lane * 64 + c]), product(row, column, 16)) << test.m << " " << lane << " " << c;
      }
  }
}

TEST(Tcgen05, zeroColumns) {
  // PTX ISA 9.7.16.4.3, example 3: spans of 3 and 4, the first part begins with zeros.
  uint64_t mask = uint64_t(3) << 48 | uint64_t(2) << 40 | uint64_t(1) << 39 | uint64_t(1) << 32;
  std::vector<uint32_t> d = plain(64, 64, ".ws.cta_group::1.kind::f16", kF32, "%p4, " + text(mask)).run();
  ASSERT_FALSE(d.empty());
  for (unsigned lane = 0; lane < 128; ++lane)
    for (unsigned c = 0; c < 32; ++c) {
      bool zero = lane < 64 ? c % 7 < 3 : c % 7 >= 4;
      ASSERT_EQ(asFloat(d[lane * 64 + c]), zero ? 0 : product(lane % 64, lane / 64 * 32 + c, 16))
          << lane << " " << c;
    }
}

TEST(Tcgen05, addsToWhatIsThere) {
  // Lanes hold 8 in each column; D is taken a quarter, and lanes 0 to 31 stay.
  TensorKernel kernel =
      plain(128, 64, ".cta_group::1.kind::f16", kF32 | 1u << 13, "{%r20, %r21, %r21, %r21}, %p5, 2");
  kernel.prepare = "mov.b32 %r20, -1;\nmov.b32 %r21, 0;\nmov.b32 %r22, 0x41000000;\n";
  for (unsigned c = 0; c < 64; ++c)
    kernel.prepare += "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4+" + text(c) + "], {%r22};\n";
  kernel.prepare += "tcgen05.wait::st.sync.aligned;\n";
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<uint32_t> d = kernel.run(nullptr, seed);
    ASSERT_FALSE(d.empty());
    for (unsigned row = 0; row < 128; ++row)
      for (unsigned c = 0; c < 64; ++c)
        ASSERT_EQ(asFloat(d[row * 64 + c]), row < 32 ? 8 : 2 - product(row, c, 16)) << row << " " << c;
  }
}

TEST(Tcgen05, resultInF16) {
  std::vector<uint32_t> d = plain(128, 64, ".cta_group::1.kind::f16", 0, "%p4").run();
  ASSERT_FALSE(d.empty());
  for (unsigned row = 0; row < 128; ++row)
    for (unsigned c = 0; c < 64; ++c)
      ASSERT_EQ(num::halfToFloat(uint16_t(d[row * 64 + c])), product(row, c, 16));
}

TEST(Tcgen05, transposedByMAndN) {
  // Rows of 64 f16 along M or N for each K, swizzled by 128 bytes; 8 K's in each 1024.
  TensorKernel kernel;
  auto offset = [](unsigned row, unsigned k) {
    return size_t(row / 64) * 2048 + k / 8 * 1024 + k % 8 * 128 + ((row % 64 / 8) ^ (k % 8)) * 16 +
           row % 8 * 2;
  };
  for (unsigned k = 0; k < 16; ++k)
    for (unsigned row = 0; row < 128; ++row)
      put(kernel.tile, offset(row, k), num::BF16, valueA(row, k));
  kernel.tile.resize(kTileB);
  for (unsigned k = 0; k < 16; ++k)
    for (unsigned row = 0; row < 64; ++row)
      put(kernel.tile, kTileB + offset(row, k), num::BF16, valueB(row, k));
  kernel.issue = setDescriptor("%rd3", 0, 2048, 1024, 2) + setDescriptor("%rd4", kTileB, 2048, 1024, 2) +
                 "setp.ne.u32 %p4, 0, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%r3], %rd3, %rd4, " +
                 text(shape(128, 64) | kF32 | 1u << 7 | 1u << 10 | 1u << 15 | 1u << 16) + ", %p4;";
  std::vector<uint32_t> d = kernel.run();
  ASSERT_FALSE(d.empty());
  for (unsigned row = 0; row < 128; ++row)
    for (unsigned c = 0; c < 64; ++c)
      ASSERT_EQ(asFloat(d[row * 64 + c]), product(row, c, 16)) << row << " " << c;
}

TEST(Tcgen05, faultsOfDescriptors) {
  for (auto [bits, words] : {std::pair<uint32_t, const char *>{kF32 | 1u << 2, "bit 2"},
                             {kF32 | 2u << 7, "bits 7 to 9"},
                             {2u << 4, "bits 4 and 5"},
                             {kF32 | 1u << 3, "saturation"},
                             {kF32 | 1u << 23, "reserved"},
                             {kF32 | 1u << 24, "no shape 144 x 64"},
                             {kF32 | 3u << 30, "for .ws"}}) {
    std::optional<Fault> fault;
    plain(128, 64, ".cta_group::1.kind::f16", bits, "%p4").run(&fault);
    ASSERT_TRUE(fault) << words;
    EXPECT_EQ(fault->kind, FaultKind::IllegalOperand);
    EXPECT_NE(fault->text().find(words), std::string::npos) << fault->text();
  }
  std::optional<Fault> fault;
  TensorKernel outside = plain(128, 64, ".cta_group::1.kind::f16", kF32, "%p4");
  outside.columns = 32;
  outside.run(&fault);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::OutOfBounds);
  EXPECT_NE(fault->text().find("not all allocated"), std::string::npos) << fault->text();
}

/// Each thread stores %r(10+i) = 1000 i + thread in one shape and loads in 32x32b.
std::vector<uint32_t> stored(const std::string &shape, unsigned registers) {
  TensorKernel kernel;
  kernel.columns = 32;
  std::string list;
  for (unsigned i = 0; i < registers; ++i) {
    kernel.prepare += "add.u32 %r" + text(10 + i) + ", %i, " + text(1000 * i) + ";\n";
    list += (i ? ", %r" : "%r") + text(10 + i);
  }
  std::string operand = shape.find("x2.x") != std::string::npos ? "[%r4], 16, {" : "[%r4], {";
  kernel.prepare +=
      "tcgen05.st.sync.aligned." + shape + ".b32 " + operand + list + "};\ntcgen05.wait::st.sync.aligned;\n";
  return kernel.run();
}

TEST(Tcgen05, shapesOfMoves) {
  struct Case {
    const char *shape;
    unsigned registers;
    std::function<std::pair<unsigned, unsigned>(unsigned lane, unsigned i)> place;
  };
  using P = std::pair<unsigned, unsigned>;
  const Case cases[] = {
      {"32x32b.x4", 4, [](unsigned lane, unsigned i) { return P{lane, i}; }},
      {"16x64b.x2", 2,
       [](unsigned lane, unsigned i) { return P{lane / 4 + lane % 2 * 8, 2 * i + lane / 2 % 2}; }},
      {"16x128b.x2", 4,
       [](unsigned lane, unsigned i) { return P{lane / 4 + i % 2 * 8, i / 2 * 4 + lane % 4}; }},
      {"16x256b.x2", 8,
       [](unsigned lane, unsigned i) {
         return P{lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2};
       }},
      {"16x32bx2.x4", 4, [](unsigned lane, unsigned i) { return P{lane % 16, i + lane / 16 * 16}; }},
  };
  for (const Case &test : cases) {
    std::vector<uint32_t> got = stored(test.shape, test.registers);
    ASSERT_FALSE(got.empty());
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned i = 0; i < test.registers; ++i) {
        auto [lane, column] = test.place(thread % 32, i);
        ASSERT_EQ(got[(thread / 32 * 32 + lane) * 32 + column], 1000 * i + thread) << test.shape << " " << i;
      }
  }
  std::vector<uint32_t> got = stored("32x32b.x2.unpack::16b", 2);
  ASSERT_FALSE(got.empty());
  for (unsigned thread = 0; thread < 128; ++thread)
    for (unsigned i = 0; i < 4; ++i)
      ASSERT_EQ(got[thread * 32 + i], i % 2 ? 0 : i / 2 * 1000 + thread);
}

TEST(Tcgen05, copies) {
  TensorKernel kernel;
  kernel.tile.resize(128 * 32);
  for (unsigned i = 0; i < kernel.tile.size(); ++i)
    kernel.tile[i] = uint8_t(i * 7 + i / 256);
  kernel.columns = 32;
  // Rows of 32 bytes, 8 of which make 256; 16 bytes each of two halves 128 apart.
  kernel.issue = setDescriptor("%rd3", 0, 128, 256, 0) +
                 "tcgen05.cp.cta_group::1.128x256b [%r3], %rd3;\n"
                 "tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [%r3+8], %rd3;\n"
                 "tcgen05.cp.cta_group::1.64x128b.warpx2::01_23 [%r3+12], %rd3;\n"
                 "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r3+16], %rd3;\n"
                 "tcgen05.cp.cta_group::1.128x128b.b8x16.b4x16_p64 [%r3+20], %rd3;\n"
                 "tcgen05.cp.cta_group::1.128x128b.b8x16.b6x16_p32 [%r3+24], %rd3;\n";
  std::vector<uint32_t> got = kernel.run();
  ASSERT_FALSE(got.empty());
  auto byte = [&](unsigned row, unsigned i) {
    return kernel.tile[row / 8 * 256 + i / 16 * 128 + row % 8 * 16 + i % 16];
  };
  auto at = [&](unsigned lane, unsigned column, unsigned i) {
    return uint8_t(got[lane * 32 + column + i / 4] >> i % 4 * 8);
  };
  for (unsigned lane = 0; lane < 128; ++lane) {
    for (unsigned i = 0; i < 32; ++i)
      ASSERT_EQ(at(lane, 0, i), byte(lane, i)) << lane << " " << i;
    for (unsigned i = 0; i < 16; ++i) {
      ASSERT_EQ(at(lane, 8, i), byte(lane % 64, i)) << lane << " " << i;
      ASSERT_EQ(at(lane, 12, i), byte(lane / 64 * 32 + lane % 32, i)) << lane << " " << i;
      ASSERT_EQ(at(lane, 16, i), byte(lane % 32, i)) << lane << " " << i;
      ASSERT_EQ(at(lane, 20, i), (byte(lane, i / 2) >> i % 2 * 4 & 15) << 2) << lane << " " << i;
      unsigned both = byte(lane, i * 6 / 8) | byte(lane, i * 6 / 8 + 1) << 8;
      ASSERT_EQ(at(lane, 24, i), both >> i * 6 % 8 & 63) << lane << " " << i;
    }
  }
}

std::optional<Fault> faultOf(const std::string &body) {
  TestMachine machine(kernelText(".shared .align 4 .b32 where;\n" + body, 0, "sm_100a"));
  LaunchConfig config;
  config.block = {128, 1, 1};
  return machine.launch("k", config, uint64_t(0));
}

TEST(Tcgen05, allocationIsChecked) {
  const std::string allocate = "setp.lt.u32 %p2, %i, 32;\n@!%p2 bra L1;\n"
                               "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], ";
  auto leak = faultOf(allocate + "32;\nL1: bar.sync 0;\n");
  ASSERT_TRUE(leak);
  EXPECT_EQ(leak->kind, FaultKind::TensorMemoryLeak) << leak->text();
  EXPECT_NE(leak->instruction.find("tcgen05.alloc"), std::string::npos);
  auto odd = faultOf(allocate + "48;\nL1: bar.sync 0;\n");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->kind, FaultKind::IllegalOperand) << odd->text();
  auto full =
      faultOf(allocate + "512;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 32;\n"
                         "L1: bar.sync 0;\n");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->kind, FaultKind::Deadlock) << full->text();
  auto unallocated = faultOf("setp.lt.u32 %p2, %i, 32;\n@!%p2 bra L1;\n"
                             "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [0];\nL1:\n");
  ASSERT_TRUE(unallocated);
  EXPECT_EQ(unallocated->kind, FaultKind::OutOfBounds) << unallocated->text();
  auto quarter = faultOf("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [0];\n");
  ASSERT_TRUE(quarter);
}

} // namespace
