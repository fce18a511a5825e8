// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Logic, shifts, permutes of bytes.

#include "EachThread.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

using In = std::vector<uint64_t>;

const Values k16{"b16", edges16()}, k32{"b32", edges32()}, k64{"b64", edges64()}, kAmounts{"b32", amounts()};

struct Width {
  unsigned bits;
  std::string type;
  Values values;
  uint64_t mask() const { return bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }
};
const Width kWidths[] = {{16, "b16", k16}, {32, "b32", k32}, {64, "b64", k64}};

TEST(Logic, CombinesBits) {
  for (const Width &w : kWidths) {
    expectEach("and." + w.type + " %d,%a,%b;", w.type, {w.values, w.values},
               [](In in) { return in[0] & in[1]; });
    expectEach("or." + w.type + " %d,%a,%b;", w.type, {w.values, w.values},
               [](In in) { return in[0] | in[1]; });
    expectEach("xor." + w.type + " %d,%a,%b;", w.type, {w.values, w.values},
               [](In in) { return in[0] ^ in[1]; });
    expectEach("not." + w.type + " %d,%a;", w.type, {w.values}, [&](In in) { return ~in[0] & w.mask(); });
    expectEach("cnot." + w.type + " %d,%a;", w.type, {w.values}, [](In in) { return in[0] == 0; });
  }
  expectEach("and.b32 %d,%a,0x80000000;", "b32", {k32}, [](In in) { return in[0] & 0x80000000; });
  // Bits are untyped: floats are as good (PTX ISA 9.7.8).
  expectEach("mov.b32 %f0,%a; and.b32 %f1,%f0,0x7fffffff; mov.b32 %d,%f1;", "b32", {k32},
             [](In in) { return in[0] & 0x7FFFFFFF; });
}

TEST(Logic, CombinesPredicates) {
  const Values truth{"b32", {0, 1}};
  const std::string load = "setp.ne.u32 %p0,%a,0; setp.ne.u32 %p1,%b,0;", store = "selp.b32 %d,1,0,%p2;";
  auto expect = [&](const std::string &body, const Reference &reference) {
    expectEach(load + body + store, "b32", {truth, truth}, reference);
  };
  expect("and.pred %p2,%p0,%p1;", [](In in) { return in[0] & in[1]; });
  expect("or.pred %p2,%p0,%p1;", [](In in) { return in[0] | in[1]; });
  expect("xor.pred %p2,%p0,%p1;", [](In in) { return in[0] ^ in[1]; });
  expect("not.pred %p2,%p0;", [](In in) { return in[0] ^ 1; });
  expect("not.pred %p2,!%p0;", [](In in) { return in[0]; });
  expect("and.pred %p2,!%p0,%p1;", [](In in) { return (in[0] ^ 1) & in[1]; });
  expect("or.pred %p2,%p0,!%p1;", [](In in) { return in[0] | (in[1] ^ 1); });
  // Other lanes keep theirs.
  expect("mov.pred %p2,%p0; @%p1 not.pred %p2,%p2;", [](In in) { return in[0] ^ in[1]; });
}

TEST(Logic, LooksUpThreeBits) {
  const Values some{"b32", {0, 0xFFFFFFFF, 0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, 0x12345678}};
  for (unsigned table = 0; table < 256; ++table)
    expectEach("lop3.b32 %d,%a,%b,%c," + std::to_string(table) + ";", "b32", {some, some, some}, [=](In in) {
      uint64_t out = 0;
      for (unsigned i = 0; i < 32; ++i) {
        unsigned index = unsigned((in[0] >> i & 1) * 4 + (in[1] >> i & 1) * 2 + (in[2] >> i & 1));
        out |= uint64_t(table >> index & 1) << i;
      }
      return out;
    });
}

TEST(Logic, LooksUpWithPredicate) {
  const Values truth{"b32", {0, 1}}, some{"b32", {0, 1, 0x80000000}};
  const std::string load = "setp.ne.u32 %p0,%e,0;", store = "selp.b32 %r1,2,0,%p1;setp.ne.u32 %p2,%r0,0;"
                                                            "selp.b32 %d,1,0,%p2;or.b32 %d,%d,%r1;";
  auto result = [](In in) { return (in[0] & in[1]) != 0 ? 1u : 0u; };
  expectEach(load + "lop3.or.b32 %r0|%p1,%a,%b,%c,0xC0,%p0;" + store, "b32", {some, some, some, truth},
             [=](In in) { return result(in) | uint64_t(result(in) || in[3]) << 1; });
  expectEach(load + "lop3.and.b32 %r0|%p1,%a,%b,%c,0xC0,!%p0;" + store, "b32", {some, some, some, truth},
             [=](In in) { return result(in) | uint64_t(result(in) && !in[3]) << 1; });
  expectEach(load + "mov.b32 %r0,0;lop3.and.b32 _|%p1,%a,%b,%c,0xC0,%p0;" + store, "b32",
             {some, some, some, truth}, [=](In in) { return uint64_t(result(in) && in[3]) << 1; });
}

TEST(Logic, Shifts) {
  for (const Width &w : kWidths) {
    const std::string bits = std::to_string(w.bits);
    auto left = [=](In in) { return in[1] < w.bits ? in[0] << in[1] & w.mask() : 0; };
    auto right = [=](In in) { return in[1] < w.bits ? in[0] >> in[1] : 0; };
    auto arithmetic = [=](In in) {
      // The sign in all bits above the width.
      uint64_t extended = in[0] >> (w.bits - 1) ? in[0] | ~w.mask() : in[0];
      return uint64_t(int64_t(extended) >> std::min<uint64_t>(in[1], 63)) & w.mask();
    };
    expectEach("shl.b" + bits + " %d,%a,%b;", w.type, {w.values, kAmounts}, left);
    expectEach("shr.b" + bits + " %d,%a,%b;", w.type, {w.values, kAmounts}, right);
    expectEach("shr.u" + bits + " %d,%a,%b;", w.type, {w.values, kAmounts}, right);
    expectEach("shr.s" + bits + " %d,%a,%b;", w.type, {w.values, kAmounts}, arithmetic);
  }
}

TEST(Logic, ShiftsFunnels) {
  auto amount = [](bool wrap, uint64_t c) { return wrap ? c % 32 : std::min<uint64_t>(c, 32); };
  for (bool wrap : {false, true}) {
    const std::string mode = wrap ? "wrap" : "clamp";
    expectEach("shf.l." + mode + ".b32 %d,%a,%b,%c;", "b32", {k32, k32, kAmounts}, [=](In in) {
      uint64_t n = amount(wrap, in[2]);
      return n == 0 ? in[1] : n == 32 ? in[0] : in[1] << n | in[0] >> (32 - n);
    });
    expectEach("shf.r." + mode + ".b32 %d,%a,%b,%c;", "b32", {k32, k32, kAmounts}, [=](In in) {
      uint64_t n = amount(wrap, in[2]);
      return n == 0 ? in[0] : n == 32 ? in[1] : in[1] << (32 - n) | in[0] >> n;
    });
  }
}

uint64_t byteOf(const In &in, unsigned i) {
  return (i < 4 ? in[0] >> (8 * i) : in[1] >> (8 * (i - 4))) & 0xFF;
}

TEST(Logic, PermutesBytes) {
  const Values some{"b32", {0x7F80FF01, 0x81828384, 0x12345678, 0xFFFFFFFF}};
  const Values selectors{"b32", {0x3210, 0x7654, 0x0123, 0xFEDC, 0x89AB, 0x0000, 0xFFFF, 0x5140, 0x12347531}};
  expectEach("prmt.b32 %d,%a,%b,%c;", "b32", {some, some, selectors}, [](In in) {
    uint64_t out = 0;
    for (unsigned i = 0; i < 4; ++i) {
      unsigned selector = unsigned(in[2] >> (4 * i) & 15);
      uint64_t byte = byteOf(in, selector % 8);
      out |= (selector >= 8 ? (byte >= 0x80 ? 0xFF : 0) : byte) << (8 * i);
    }
    return out;
  });
}

/// Each mode by what its name says; byte i of the result for selector c.
TEST(Logic, PermutesBytesByModes) {
  const Values some{"b32", {0x03020100, 0x83C2E1F0}}, others{"b32", {0x07060504, 0x8796A5B4}};
  const Values selectors{"b32", {0, 1, 2, 3, 4, 0xFFFFFFFE}};
  auto expect = [&](const std::string &mode, unsigned (*source)(unsigned c, unsigned i)) {
    expectEach("prmt.b32." + mode + " %d,%a,%b,%c;", "b32", {some, others, selectors}, [=](In in) {
      uint64_t out = 0;
      for (unsigned i = 0; i < 4; ++i)
        out |= byteOf(in, source(unsigned(in[2] & 3), i)) << (8 * i);
      return out;
    });
  };
  expect("f4e", [](unsigned c, unsigned i) { return c + i; });
  expect("b4e", [](unsigned c, unsigned i) { return (c - i) % 8; });
  expect("rc8", [](unsigned c, unsigned) { return c; });
  expect("ecl", [](unsigned c, unsigned i) { return std::max(c, i); });
  expect("ecr", [](unsigned c, unsigned i) { return std::min(c, i); });
  expect("rc16", [](unsigned c, unsigned i) { return c % 2 * 2 + i % 2; });
}

TEST(Logic, RefusesWhatThereIsNot) {
  EXPECT_NE(decodeError("and.u32 %d,%a,%b;"), "");
  EXPECT_NE(decodeError("and.b64 %d,%a,%b;"), "");
  EXPECT_NE(decodeError("cnot.pred %p0,%p1;"), "");
  EXPECT_NE(decodeError("shl.u32 %d,%a,%b;"), "");
  EXPECT_NE(decodeError("shl.b32 %d,%a,%h0;"), "");
  EXPECT_NE(decodeError("shr.f32 %d,%a,%b;"), "");
  EXPECT_NE(decodeError("shf.l.b32 %d,%a,%b,%c;"), "");
  EXPECT_NE(decodeError("lop3.b32 %d,%a,%b,%c,256;"), "");
  EXPECT_NE(decodeError("lop3.b32 %d,%a,%b,%c,%e;"), "");
  EXPECT_NE(decodeError("lop3.xor.b32 %d|%p0,%a,%b,%c,1,%p1;"), "");
  EXPECT_NE(decodeError("lop3.and.b32 %d,%a,%b,%c,1,%p1;"), "");
  EXPECT_NE(decodeError("prmt.b32.f5e %d,%a,%b,%c;"), "");
}

} // namespace
