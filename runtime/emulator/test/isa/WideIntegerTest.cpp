// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Carries, 24-bit products, dot products of small integers.

#include "EachThread.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

using Wide = unsigned __int128;
using In = std::vector<uint64_t>;

const Values k32{"b32", edges32()}, k64{"b64", edges64()};

TEST(WideInteger, AddsWordsWithCarry) {
  expectEach("mov.b64 {%r0,%r1}, %a; mov.b64 {%r2,%r3}, %b;"
             "add.cc.u32 %r4,%r0,%r2; addc.u32 %r5,%r1,%r3; mov.b64 %d, {%r4,%r5};",
             "b64", {k64, k64}, [](In in) { return in[0] + in[1]; });
  // Signed types carry as unsigned ones do (PTX ISA 9.7.2.1).
  expectEach("add.cc.s32 %r0,%a,%b; addc.s32 %d,0,0;", "b32", {k32, k32},
             [](In in) { return (in[0] + in[1]) >> 32; });
  expectEach("add.cc.u64 %l0,%a,%b; addc.u64 %d,0,0;", "b64", {k64, k64},
             [](In in) { return uint64_t((Wide(in[0]) + in[1]) >> 64); });
}

TEST(WideInteger, CarriesInAndOut) {
  // The carry of the first goes into the second, whose carry goes into the third.
  expectEach("add.cc.u32 %r0,%a,%b; addc.cc.u32 %r1,%b,%c; addc.u32 %r2,0,0; mov.b64 %d,{%r1,%r2};", "b64",
             {k32, k32, k32}, [](In in) { return in[1] + in[2] + ((in[0] + in[1]) >> 32); });
  expectEach("add.cc.s64 %l0,%a,%b; addc.cc.s64 %l1,%b,%c; addc.s64 %d,0,0;", "b64", {k64, k64, k64},
             [](In in) {
               Wide carry = (Wide(in[0]) + in[1]) >> 64;
               return uint64_t((Wide(in[1]) + in[2] + carry) >> 64);
             });
}

TEST(WideInteger, SubtractsWordsWithBorrow) {
  expectEach("mov.b64 {%r0,%r1}, %a; mov.b64 {%r2,%r3}, %b;"
             "sub.cc.u32 %r4,%r0,%r2; subc.u32 %r5,%r1,%r3; mov.b64 %d, {%r4,%r5};",
             "b64", {k64, k64}, [](In in) { return in[0] - in[1]; });
  expectEach("sub.cc.u32 %r0,%a,%b; subc.cc.u32 %r1,%b,%c; subc.u32 %r2,0,0; mov.b64 %d,{%r1,%r2};", "b64",
             {k32, k32, k32}, [](In in) { return in[1] - in[2] - (in[0] < in[1]); });
  expectEach("sub.cc.u64 %l0,%a,%b; subc.cc.u64 %l1,%b,%c; subc.u64 %d,0,0;", "b64", {k64, k64, k64},
             [](In in) { return uint64_t((Wide(in[1]) - in[2] - (in[0] < in[1])) >> 64); });
}

/// The flag of a subtraction is a carry: 1 where nothing is borrowed, as compiled divisions
/// of 128 bits count on.
TEST(WideInteger, ReadsTheFlagOfASubtractionAsACarry) {
  expectEach("sub.cc.u32 %r0,%a,%b; addc.u32 %r1,0,0; mov.b64 %d,{%r0,%r1};", "b64", {k32, k32},
             [](In in) { return uint64_t(uint32_t(in[0] - in[1])) | uint64_t(in[0] >= in[1]) << 32; });
  expectEach("add.cc.u32 %r0,%a,%b; subc.u32 %r1,0,0; mov.b64 %d,{%r0,%r1};", "b64", {k32, k32}, [](In in) {
    return uint64_t(uint32_t(in[0] + in[1])) | ((in[0] + in[1]) >> 32 ? 0 : uint64_t(0xFFFFFFFF) << 32);
  });
}

/// The example of PTX ISA 9.7.2.6: a product of 64-bit numbers from words.
TEST(WideInteger, MultipliesWordsWithCarry) {
  const std::string product =
      "mov.b64 {%r4,%r5}, %a; mov.b64 {%r6,%r7}, %b;"
      ".reg .b32 %x<4>;"
      "mul.lo.u32 %x0,%r4,%r6; mul.hi.u32 %x1,%r4,%r6; mad.lo.cc.u32 %x1,%r5,%r6,%x1;"
      "madc.hi.u32 %x2,%r5,%r6,0; mad.lo.cc.u32 %x1,%r4,%r7,%x1;"
      "madc.hi.cc.u32 %x2,%r4,%r7,%x2; addc.u32 %x3,0,0; mad.lo.cc.u32 %x2,%r5,%r7,%x2;"
      "madc.hi.u32 %x3,%r5,%r7,%x3;";
  expectEach(product + "mov.b64 %d,{%x0,%x1};", "b64", {k64, k64}, [](In in) { return in[0] * in[1]; });
  expectEach(product + "mov.b64 %d,{%x2,%x3};", "b64", {k64, k64},
             [](In in) { return uint64_t((Wide(in[0]) * in[1]) >> 64); });
}

TEST(WideInteger, MultipliesAndAddsWithCarry) {
  expectEach("mad.hi.cc.s32 %r0,%a,%b,%c; addc.u32 %r1,0,0; mov.b64 %d,{%r0,%r1};", "b64", {k32, k32, k32},
             [](In in) {
               int64_t product = int64_t(int32_t(in[0])) * int32_t(in[1]);
               return uint64_t(uint32_t(product >> 32)) + in[2];
             });
  expectEach("mad.lo.cc.s64 %l0,%a,%b,%c; madc.hi.s64 %d,%a,%b,%c;", "b64", {k64, k64, k64}, [](In in) {
    Wide low = Wide(uint64_t(in[0] * in[1])) + in[2];
    auto high = uint64_t(__int128(int64_t(in[0])) * int64_t(in[1]) >> 64);
    return high + in[2] + uint64_t(low >> 64);
  });
  expectEach("mad.hi.cc.u64 %l0,%a,%b,%c; madc.lo.cc.u64 %l1,%a,%b,%c; addc.u64 %d,0,0;", "b64",
             {k64, k64, k64}, [](In in) {
               Wide product = Wide(in[0]) * in[1], first = (product >> 64) + in[2];
               return uint64_t((Wide(uint64_t(product)) + in[2] + (first >> 64)) >> 64);
             });
}

TEST(WideInteger, CarryIsOfTheLanesThatExecute) {
  // Every second lane adds again, without a carry; the others keep the first one's.
  expectEach("setp.eq.u32 %p0,%c,0; add.cc.u32 %r1,%a,%b; @%p0 add.cc.u32 %r1,0,0; addc.u32 %d,0,0;", "b32",
             {{"b32", {0xFFFFFFFF}}, {"b32", {1}}, {"b32", {0, 1, 0, 1}}}, [](In in) { return in[2]; });
}

int32_t low24(uint64_t a, bool isSigned) {
  auto value = int32_t(a & 0xFFFFFF);
  return isSigned && value >= 0x800000 ? value - 0x1000000 : value;
}

TEST(WideInteger, Multiplies24Bits) {
  for (bool isSigned : {false, true}) {
    const std::string type = isSigned ? ".s32" : ".u32";
    auto product = [=](In in) { return int64_t(low24(in[0], isSigned)) * low24(in[1], isSigned); };
    expectEach("mul24.lo" + type + " %d,%a,%b;", "b32", {k32, k32},
               [=](In in) { return uint64_t(product(in)); });
    expectEach("mul24.hi" + type + " %d,%a,%b;", "b32", {k32, k32},
               [=](In in) { return uint64_t(product(in) >> 16); });
    expectEach("mad24.lo" + type + " %d,%a,%b,%c;", "b32", {k32, k32, k32},
               [=](In in) { return uint64_t(product(in)) + in[2]; });
    expectEach("mad24.hi" + type + " %d,%a,%b,%c;", "b32", {k32, k32, k32},
               [=](In in) { return uint64_t(product(in) >> 16) + in[2]; });
  }
  expectEach("mad24.hi.sat.s32 %d,%a,%b,%c;", "b32", {k32, k32, k32}, [](In in) {
    int64_t sum = (int64_t(low24(in[0], true)) * low24(in[1], true) >> 16) + int32_t(in[2]);
    return uint64_t(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
  });
}

int64_t part(uint64_t word, unsigned i, unsigned bits, bool isSigned) {
  auto value = int64_t(word >> (bits * i) & ((1u << bits) - 1));
  return isSigned && value >> (bits - 1) ? value - (1 << bits) : value;
}

TEST(WideInteger, SumsProductsOfBytes) {
  const Values bytes{"b32", {0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x01FF807F, 0x12345678, 0xF0E1D2C3}};
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      const std::string types = std::string(a ? ".s32" : ".u32") + (b ? ".s32" : ".u32");
      expectEach("dp4a" + types + " %d,%a,%b,%c;", "b32", {bytes, bytes, k32}, [=](In in) {
        uint64_t sum = in[2];
        for (unsigned i = 0; i < 4; ++i)
          sum += uint64_t(part(in[0], i, 8, a) * part(in[1], i, 8, b));
        return sum;
      });
      for (unsigned half : {0, 1})
        expectEach("dp2a" + std::string(half ? ".hi" : ".lo") + types + " %d,%a,%b,%c;", "b32",
                   {bytes, bytes, k32}, [=](In in) {
                     uint64_t sum = in[2];
                     for (unsigned i = 0; i < 2; ++i)
                       sum += uint64_t(part(in[0], i, 16, a) * part(in[1], 2 * half + i, 8, b));
                     return sum;
                   });
    }
}

TEST(WideInteger, RefusesWhatThereIsNot) {
  EXPECT_NE(decodeError("add.cc.u16 %h0,%h1,%h2;"), "");
  EXPECT_NE(decodeError("add.cc.b32 %d,%a,%b;"), "");
  EXPECT_NE(decodeError("add.cc.sat.s32 %d,%a,%b;"), "");
  EXPECT_NE(decodeError("madc.u32 %d,%a,%b,%c;"), "");
  EXPECT_NE(decodeError("mad.wide.cc.u32 %d,%a,%b,%c;"), "");
  EXPECT_NE(decodeError("mad24.lo.sat.s32 %d,%a,%b,%c;"), "");
  EXPECT_NE(decodeError("dp4a.u32 %d,%a,%b,%c;"), "");
  EXPECT_NE(decodeError("dp2a.s32.s32 %d,%a,%b,%c;"), "");
  EXPECT_EQ(decodeError("dp2a.lo.s32.s32 %d,%a,%b,%c;"), "");
}

} // namespace
