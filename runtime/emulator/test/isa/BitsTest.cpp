// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bit fields, counts and positions of bits, against the loops of PTX ISA 9.7.1.14 to
// 9.7.1.22.

#include "EachThread.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

using In = std::vector<uint64_t>;

const Values k32{"b32", edges32()}, k64{"b64", edges64()}, kAmounts{"b32", amounts()};

bool bit(uint64_t value, uint64_t i) { return value >> i & 1; }

uint64_t extract(const In &in, unsigned width, bool isSigned) {
  uint64_t msb = width - 1, position = in[1] & 0xFF, length = in[2] & 0xFF, out = 0;
  bool sign = isSigned && length && bit(in[0], std::min(position + length - 1, msb));
  for (uint64_t i = 0; i <= msb; ++i)
    out |= uint64_t(i < length && position + i <= msb ? bit(in[0], position + i) : sign) << i;
  return out;
}

TEST(Bits, ExtractsFields) {
  expectEach("bfe.u32 %d,%a,%b,%c;", "b32", {k32, kAmounts, kAmounts},
             [](In in) { return extract(in, 32, false); });
  expectEach("bfe.s32 %d,%a,%b,%c;", "b32", {k32, kAmounts, kAmounts},
             [](In in) { return extract(in, 32, true); });
  expectEach("bfe.u64 %d,%a,%b,%c;", "b64", {k64, kAmounts, kAmounts},
             [](In in) { return extract(in, 64, false); });
  expectEach("bfe.s64 %d,%a,%b,%c;", "b64", {k64, kAmounts, kAmounts},
             [](In in) { return extract(in, 64, true); });
}

uint64_t insert(const In &in, unsigned width) {
  uint64_t position = in[2] & 0xFF, length = in[3] & 0xFF, out = in[1];
  for (uint64_t i = 0; i < length && position + i < width; ++i)
    out = (out & ~(uint64_t(1) << (position + i))) | uint64_t(i < width && bit(in[0], i)) << (position + i);
  return out;
}

TEST(Bits, InsertsFields) {
  const Values a32{"b32", {0, 0xFFFFFFFF, 0xA5C3F00F}}, a64{"b64", {0, ~uint64_t(0), 0xFEDCBA9876543210}};
  expectEach("bfi.b32 %d,%a,%b,%c,%e;", "b32", {a32, a32, kAmounts, kAmounts},
             [](In in) { return insert(in, 32); });
  expectEach("bfi.b64 %d,%a,%b,%c,%e;", "b64", {a64, a64, kAmounts, kAmounts},
             [](In in) { return insert(in, 64); });
}

TEST(Bits, ExtendsSigns) {
  for (bool wrap : {false, true})
    for (bool isSigned : {false, true})
      expectEach("szext." + std::string(wrap ? "wrap" : "clamp") + (isSigned ? ".s32" : ".u32") +
                     " %d,%a,%b;",
                 "b32", {k32, kAmounts}, [=](In in) -> uint64_t {
                   if (!wrap && in[1] >= 32)
                     return in[0];
                   uint64_t n = in[1] % 32, out = 0;
                   for (uint64_t i = 0; i < 32; ++i)
                     out |= uint64_t(i < n ? bit(in[0], i) : isSigned && n && bit(in[0], n - 1)) << i;
                   return out;
                 });
}

TEST(Bits, MakesMasks) {
  expectEach("bmsk.wrap.b32 %d,%a,%b;", "b32", {kAmounts, kAmounts}, [](In in) {
    uint64_t out = 0;
    for (uint64_t i = in[0] % 32; i < std::min<uint64_t>(in[0] % 32 + in[1] % 32, 32); ++i)
      out |= uint64_t(1) << i;
    return out;
  });
  expectEach("bmsk.clamp.b32 %d,%a,%b;", "b32", {kAmounts, kAmounts}, [](In in) {
    uint64_t out = 0;
    for (uint64_t i = in[0]; i < std::min<uint64_t>(in[0] + in[1], 32); ++i)
      out |= uint64_t(1) << i;
    return out;
  });
}

TEST(Bits, Counts) {
  auto ones = [](In in) {
    uint64_t count = 0;
    for (unsigned i = 0; i < 64; ++i)
      count += bit(in[0], i);
    return count;
  };
  auto zeros = [](unsigned width) {
    return [=](In in) {
      uint64_t count = 0;
      while (count < width && !bit(in[0], width - 1 - count))
        ++count;
      return count;
    };
  };
  expectEach("popc.b32 %d,%a;", "b32", {k32}, ones);
  expectEach("popc.b64 %d,%a;", "b32", {k64}, ones);
  expectEach("clz.b32 %d,%a;", "b32", {k32}, zeros(32));
  expectEach("clz.b64 %d,%a;", "b32", {k64}, zeros(64));
}

TEST(Bits, FindsTheHighestBit) {
  for (unsigned width : {32, 64})
    for (bool isSigned : {false, true})
      for (bool shift : {false, true})
        expectEach("bfind" + std::string(shift ? ".shiftamt" : "") + (isSigned ? ".s" : ".u") +
                       std::to_string(width) + " %d,%a;",
                   "b32", {width == 32 ? k32 : k64}, [=](In in) -> uint64_t {
                     bool sign = isSigned && bit(in[0], width - 1);
                     for (int i = int(width) - 1; i >= 0; --i)
                       if (bit(in[0], uint64_t(i)) != sign)
                         return shift ? width - 1 - unsigned(i) : unsigned(i);
                     return 0xFFFFFFFF;
                   });
}

TEST(Bits, Reverses) {
  auto reverse = [](unsigned width) {
    return [=](In in) {
      uint64_t out = 0;
      for (unsigned i = 0; i < width; ++i)
        out |= uint64_t(bit(in[0], width - 1 - i)) << i;
      return out;
    };
  };
  expectEach("brev.b32 %d,%a;", "b32", {k32}, reverse(32));
  expectEach("brev.b64 %d,%a;", "b64", {k64}, reverse(64));
}

TEST(Bits, FindsTheNthSetBit) {
  const Values masks{"b32", {0, 0xAAAAAAAA, 0xFFFFFFFF, 0x80000001, 0x00010000}},
      bases{"b32", {0, 1, 2, 3, 16, 31}};
  const Values offsets{"b32", {0, 1, 2, 16, 32, 33, 0xFFFFFFFF, 0xFFFFFFFE, 0x80000000, 0x7FFFFFFF}};
  expectEach("fns.b32 %d,%a,%b,%c;", "b32", {masks, bases, offsets}, [](In in) -> uint64_t {
    auto offset = int32_t(in[2]);
    if (offset == 0)
      return bit(in[0], in[1]) ? in[1] : 0xFFFFFFFF;
    // All set bits in the direction, in order.
    std::vector<uint64_t> found;
    for (int64_t i = int64_t(in[1]); i >= 0 && i < 32; i += offset > 0 ? 1 : -1)
      if (bit(in[0], uint64_t(i)))
        found.push_back(uint64_t(i));
    uint64_t n = offset > 0 ? uint64_t(offset) : uint64_t(-int64_t(offset));
    return n <= found.size() ? found[n - 1] : 0xFFFFFFFF;
  });
  // The examples of PTX ISA 9.7.1.17.
  const Values none{"b32", {0}};
  expectEach("fns.b32 %d,0xaaaaaaaa,3,1;", "b32", {none}, [](In) { return 3; });
  expectEach("fns.b32 %d,0xaaaaaaaa,2,-1;", "b32", {none}, [](In) { return 1; });
}

TEST(Bits, RefusesWhatThereIsNot) {
  EXPECT_NE(decodeError("bfe.b32 %d,%a,%b,%c;"), "");
  EXPECT_NE(decodeError("bfe.u16 %h0,%h1,%b,%c;"), "");
  EXPECT_NE(decodeError("bfi.u32 %d,%a,%b,%c,%e;"), "");
  EXPECT_NE(decodeError("bfi.b32 %d,%a,%b,%c;"), "");
  EXPECT_NE(decodeError("popc.u32 %d,%a;"), "");
  EXPECT_NE(decodeError("clz.b16 %d,%h0;"), "");
  EXPECT_NE(decodeError("bfind.b32 %d,%a;"), "");
  EXPECT_NE(decodeError("szext.s32 %d,%a,%b;"), "");
  EXPECT_NE(decodeError("bmsk.wrap.u32 %d,%a,%b;"), "");
}

} // namespace
