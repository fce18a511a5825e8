// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tcgen05.mma's kinds: integers, tf32, elements of 4 and 6 bits, block scales; A from
// tensor memory; and mistakes in synchronising with what is in flight.

#include "Tcgen05Harness.h"

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// A and B of 32 bytes along K, without swizzle: `part(row, i, isB)` is 16 bytes.
template <class F>
TensorKernel packed(const std::string &kind, uint32_t bits, F part, const std::string &rest = ", %p4") {
  TensorKernel kernel;
  kernel.tile.resize(kTileB + 64 * 32);
  for (unsigned row = 0; row < 128; ++row)
    for (unsigned i = 0; i < 2; ++i) {
      std::array<uint8_t, 16> bytes = part(row, i, false);
      std::memcpy(kernel.tile.data() + i * 2048 + row * 16, bytes.data(), 16);
      if (row >= 64)
        continue;
      bytes = part(row, i, true);
      std::memcpy(kernel.tile.data() + kTileB + i * 1024 + row * 16, bytes.data(), 16);
    }
  kernel.issue = setDescriptor("%rd3", 0, 2048, 128, 0) + setDescriptor("%rd4", kTileB, 1024, 128, 0) +
                 "setp.ne.u32 %p4, 0, 0;\ntcgen05.mma.cta_group::1.kind::" + kind + " [%r3], %rd3, %rd4, " +
                 text(bits) + rest + ";";
  return kernel;
}

void expectProducts(TensorKernel kernel, unsigned k, float factor = 1) {
  std::vector<uint32_t> d = kernel.run();
  ASSERT_FALSE(d.empty());
  for (unsigned row = 0; row < 128; ++row)
    for (unsigned c = 0; c < 64; ++c)
      ASSERT_EQ(asFloat(d[row * kernel.columns + c]), factor * product(row, c, k)) << row << " " << c;
}

/// 16 bytes of codes of `bits` each from the first on.
template <class Value>
std::array<uint8_t, 16> codes(const num::Format &format, unsigned count, unsigned bits, Value value) {
  std::array<uint8_t, 16> out{};
  for (unsigned i = 0; i < count; ++i) {
    uint64_t code = num::encode(format, value(i), num::Rounding::NearestEven);
    for (unsigned b = 0; b < bits; ++b)
      if (code >> b & 1)
        out[(i * bits + b) / 8] |= uint8_t(1u << (i * bits + b) % 8);
  }
  return out;
}

auto valuesOf(unsigned row, unsigned first, bool isB) {
  return [=](unsigned i) { return isB ? valueB(row, first + i) : valueA(row, first + i); };
}

TEST(Tcgen05Kinds, tf32) {
  expectProducts(packed("tf32", shape(128, 64) | kF32 | 2u << 7 | 2u << 10,
                        [](unsigned row, unsigned part, bool isB) {
                          return codes(num::F32, 4, 32, valuesOf(row, part * 4, isB));
                        }),
                 8);
}

TEST(Tcgen05Kinds, integers) {
  TensorKernel kernel =
      packed("i8", shape(128, 64) | 2u << 4 | 1u << 7, [](unsigned row, unsigned part, bool isB) {
        std::array<uint8_t, 16> out;
        for (unsigned i = 0; i < 16; ++i)
          out[i] =
              isB ? uint8_t(200 + valueB(row, part * 16 + i)) : uint8_t(-100 + valueA(row, part * 16 + i));
        return out;
      });
  std::vector<uint32_t> d = kernel.run();
  ASSERT_FALSE(d.empty());
  for (unsigned row = 0; row < 128; ++row)
    for (unsigned c = 0; c < 64; ++c) {
      int sum = 0;
      for (unsigned k = 0; k < 32; ++k)
        sum += (-100 + valueA(row, k)) * (200 + valueB(c, k));
      ASSERT_EQ(int(d[row * 64 + c]), sum);
    }
}

TEST(Tcgen05Kinds, elementsOf6And4Bits) {
  // E3M2 in A, E2M1 in B: 16 of them from the beginning of each 16 bytes.
  expectProducts(packed("f8f6f4", shape(128, 64) | kF32 | 4u << 7 | 5u << 10,
                        [](unsigned row, unsigned part, bool isB) {
                          return isB ? codes(num::E2M1, 16, 4, valuesOf(row, part * 16, true))
                                     : codes(num::E3M2, 16, 6, valuesOf(row, part * 16, false));
                        }),
                 32);
}

/// Of 16 bytes with elements of 4 bits the last 8 are padding, with elements of 6 bits the last 4.
TEST(Tcgen05Kinds, paddingIsNotRead) {
  const auto product = [](uint32_t type, const num::Format &format, unsigned bits) {
    return packed("f8f6f4", shape(128, 64) | kF32 | type << 7 | type << 10,
                  [&format, bits](unsigned row, unsigned part, bool isB) {
                    return codes(format, 16, bits, valuesOf(row, part * 16, isB));
                  });
  };
  TensorKernel fours = product(5, num::E2M1, 4), sixes = product(4, num::E3M2, 6);
  fours.dataBytes = 8;
  expectProducts(fours, 32);
  sixes.dataBytes = 12;
  expectProducts(sixes, 32);
  for (const char *unpacking : {"b4x16_p64", "b6x16_p32"}) {
    TensorKernel copy;
    copy.tile.resize(128 * 32);
    copy.columns = 32;
    copy.dataBytes = unpacking[1] == '4' ? 8 : 12;
    copy.issue = setDescriptor("%rd3", 0, 128, 256, 0) + "tcgen05.cp.cta_group::1.128x128b.b8x16." +
                 unpacking + " [%r3], %rd3;\n";
    copy.prepare = "mov.b32 %r20, 0;\n";
    for (unsigned c = 0; c < 32; ++c)
      copy.prepare += "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4+" + text(c) + "], {%r20};\n";
    copy.prepare += "tcgen05.wait::st.sync.aligned;\n";
    EXPECT_FALSE(copy.run().empty());
  }
  // The elements themselves are.
  fours.dataBytes = 4;
  std::optional<Fault> fault;
  fours.run(&fault);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::UninitializedRead) << fault->text();
}

/// All lanes hold `word` in the columns from 64 on.
TensorKernel scaled(TensorKernel kernel, uint32_t word) {
  kernel.columns = 128;
  kernel.prepare = "mov.b32 %r20, " + text(word) + ";\n";
  for (unsigned c = 64; c < 72; ++c)
    kernel.prepare += "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4+" + text(c) + "], {%r20};\n";
  kernel.prepare += "tcgen05.wait::st.sync.aligned;\n";
  return kernel;
}

TEST(Tcgen05Kinds, blockScales) {
  auto fours = [](unsigned row, unsigned part, bool isB) {
    return codes(num::E2M1, 32, 4, valuesOf(row, part * 32, isB));
  };
  uint32_t scaledShape = 64 / 8 << 17 | 1u << 27 | 1u << 7 | 1u << 10;
  // UE4M3: 1.5 is 0x3c.
  expectProducts(
      scaled(packed("mxf4nvf4.block_scale.scale_vec::4X", scaledShape, fours, ", [%r3+64], [%r3+68], %p4"),
             0x3c3c3c3c),
      64, 2.25f);
  // UE8M0 in the upper two bytes: 2^1 and 2^1.
  expectProducts(scaled(packed("mxf4.block_scale", scaledShape | 1u << 23 | 2u << 4 | 2u << 29, fours,
                               ", [%r3+64], [%r3+68], %p4"),
                        0x80800000),
                 64, 4);
}

TEST(Tcgen05Kinds, multiplicandFromTensorMemory) {
  // A in f16: each lane its row, two elements in a column, from column 64 on.
  TensorKernel kernel = packed("f16", shape(128, 64) | kF32, [](unsigned row, unsigned part, bool isB) {
    return codes(num::F16, 8, 16, valuesOf(row, part * 8, isB));
  });
  kernel.columns = 128;
  kernel.prepare = "cvt.u64.u32 %rd5, %i;\nmul.lo.u64 %rd5, %rd5, 16;\nadd.u64 %rd5, %in0, %rd5;\n";
  for (unsigned i = 0; i < 8; ++i)
    kernel.prepare += "ld.global.u32 %r20, [%rd5+" + text(i / 4 * 2048 + i % 4 * 4) +
                      "];\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%r4+" + text(64 + i) + "], {%r20};\n";
  kernel.prepare += "tcgen05.wait::st.sync.aligned;\n";
  size_t at = kernel.issue.find("[%r3], %rd3");
  kernel.issue.replace(at, 11, "[%r3], [%r3+64]");
  expectProducts(kernel, 16);
}

TensorKernel simple() {
  return packed("f16", shape(128, 64) | kF32, [](unsigned row, unsigned part, bool isB) {
    return codes(num::F16, 8, 16, valuesOf(row, part * 8, isB));
  });
}

TEST(Tcgen05Kinds, sumsInTheOrderOfIssue) {
  // The same product twice, the second on top of the first.
  TensorKernel kernel = simple();
  size_t at = kernel.issue.find("tcgen05.mma");
  std::string again = kernel.issue.substr(at);
  again.replace(again.find("%p4"), 3, "%p1");
  kernel.issue += "\n" + again;
  for (uint64_t seed = 0; seed < 4; ++seed)
    expectProducts(kernel, 16, 2);
}

TEST(Tcgen05Kinds, mistakesInWaiting) {
  // Warps read before the end of what one of them started, or even its beginning.
  std::optional<Fault> fault;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    TensorKernel early = simple();
    early.prepare = "@!%p1 bra L7;\n" + early.issue +
                    "\nL7: bar.warp.sync 0xffffffff;\n"
                    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r4];\ntcgen05.wait::ld.sync.aligned;\n";
    early.issue = "";
    early.run(&fault, seed);
    ASSERT_TRUE(fault) << seed;
    EXPECT_TRUE(fault->kind == FaultKind::Race || fault->kind == FaultKind::AsyncOverwrite) << fault->text();
  }
  // A load that no wait::ld follows, then a product that writes there.
  TensorKernel late = simple();
  late.prepare = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r4];\n";
  late.run(&fault);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::AsyncOverwrite) << fault->text();
  late.prepare += "tcgen05.wait::ld.sync.aligned;\n";
  expectProducts(late, 16);
}

TEST(Tcgen05Kinds, shiftsRows) {
  TensorKernel kernel;
  kernel.columns = 32;
  kernel.prepare = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4+3], {%i};\ntcgen05.wait::st.sync.aligned;\n";
  kernel.issue = "tcgen05.shift.cta_group::1.down [%r3];";
  std::vector<uint32_t> d = kernel.run();
  ASSERT_FALSE(d.empty());
  for (unsigned lane = 0; lane < 128; ++lane)
    ASSERT_EQ(d[lane * 32 + 3], lane < 31 ? lane + 1 : lane);
}

} // namespace
