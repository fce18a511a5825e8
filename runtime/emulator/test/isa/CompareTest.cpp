// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparisons: subnormals, and which types have which.

#include "EachThread.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

using In = std::vector<uint64_t>;

TEST(Compare, FlushesSubnormals) {
  struct Format {
    std::string type, bits;
    uint64_t sign, leastNormal;
  };
  for (const Format &f :
       {Format{"f32", "b32", 0x80000000, 0x00800000}, Format{"f16", "b16", 0x8000, 0x0400}}) {
    const Values values{f.bits, {0, 1, f.leastNormal - 1, f.leastNormal, f.sign, f.sign | 1}};
    // -0 and negative subnormals are the ones with a sign.
    auto order = [&](uint64_t x) { return x & f.sign ? -int64_t(x & ~f.sign) : int64_t(x); };
    auto flushed = [&](uint64_t x) { return x >= f.leastNormal && !(x & f.sign) ? 1 : 0; };
    const std::string set = "selp.u32 %d,1,0,%p0;";
    expectEach("setp.lt." + f.type + " %p0,%a,%b;" + set, "u32", {values, values},
               [&](In in) { return order(in[0]) < order(in[1]); });
    expectEach("setp.lt.ftz." + f.type + " %p0,%a,%b;" + set, "u32", {values, values},
               [&](In in) { return flushed(in[0]) < flushed(in[1]); });
    expectEach("set.neu.ftz.u32." + f.type + " %d,%a,%b;", "u32", {values, values},
               [&](In in) { return flushed(in[0]) != flushed(in[1]) ? ~0ull : 0; });
  }
  // Of pairs each half on its own: a subnormal beside 1.0.
  const Values pairs{"b32", {0x3C000001, 0x3C000000, 0x3C000400}};
  expectEach("set.eq.ftz.f16x2.f16x2 %d,%a,%b;", "b32", {pairs, pairs},
             [](In in) { return 0x3C000000 | ((in[0] & 0x400) == (in[1] & 0x400) ? 0x3C00 : 0); });
  expectEach("set.eq.f16x2.f16x2 %d,%a,%b;", "b32", {pairs, pairs},
             [](In in) { return 0x3C000000 | (in[0] == in[1] ? 0x3C00 : 0); });
}

/// Types that ptxas refuses too.
TEST(Compare, OtherTypesAreErrors) {
  for (const char *text :
       {"setp.lt.b32 %p0,%r0,%r1;", "setp.hs.s32 %p0,%r0,%r1;", "setp.lo.f32 %p0,%f0,%f1;",
        "setp.hi.f16x2 %p0|%p1,%r0,%r1;", "setp.num.u32 %p0,%r0,%r1;", "setp.eq.ftz.s32 %p0,%r0,%r1;",
        "setp.eq.ftz.f64 %p0,%g0,%g1;", "setp.eq.ftz.bf16 %p0,%h0,%h1;", "set.eq.f32.f16 %f0,%h0,%h1;",
        "set.eq.u16.u32 %h0,%r0,%r1;", "set.eq.b32.u32 %r0,%r0,%r1;", "set.eq.u64.u32 %l0,%r0,%r1;",
        "set.eq.f16x2.u32 %r0,%r0,%r1;", "set.eq.bf16x2.f16x2 %r0,%r0,%r1;",
        "slct.ftz.u32.s32 %r0,%r0,%r1,%r2;", "slct.u32.u32 %r0,%r0,%r1,%r2;"})
    EXPECT_NE(decodeError(text), "") << text;
  for (const char *text :
       {"setp.ne.b32 %p0,%r0,%r1;", "setp.hs.u32 %p0,%r0,%r1;", "setp.eq.ftz.f16x2 %p0|%p1,%r0,%r1;",
        "set.eq.u16.f16 %h0,%h0,%h1;", "set.eq.f16.u32 %h0,%r0,%r1;", "set.eq.bf16.f16 %h0,%h0,%h1;",
        "set.eq.f32.u16 %f0,%h0,%h1;", "slct.ftz.u32.f32 %r0,%r0,%r1,%f2;"})
    EXPECT_EQ(decodeError(text), "") << text;
}

} // namespace
