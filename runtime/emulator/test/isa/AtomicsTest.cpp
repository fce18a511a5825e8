// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// atom and red: what is in memory afterwards, and what was there before.

#include "EachThread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

template <class T>
std::vector<uint8_t> bytesOf(const std::vector<T> &values, size_t size = 256) {
  std::vector<uint8_t> out(size);
  std::memcpy(out.data(), values.data(), values.size() * sizeof(T));
  return out;
}

template <class T>
T at(const std::vector<uint8_t> &memory, size_t offset) {
  T out;
  std::memcpy(&out, memory.data() + offset, sizeof out);
  return out;
}

struct Applied {
  uint64_t before, after;
};

/// Up to 32 threads each apply an operation to a value of their own in the named
/// space: what was there before, which is left in %d, and what is there afterwards.
std::vector<Applied> apply(const std::string &space, const std::string &operation, const std::string &type,
                           const std::vector<uint64_t> &memory, const std::vector<uint64_t> &b,
                           const std::vector<uint64_t> &c) {
  const bool shared = space.find("shared") != std::string::npos;
  const std::string extra = operation == "cas" ? ",%b" : "";
  // In shared memory the value is put there and taken back.
  std::string body = "add.u64 %l7,%m,%offset; mov.u32 %r0,shared; mad.lo.u32 %r0,%n,8,%r0;";
  if (shared)
    body += "ld.global." + type + " %d,[%l7]; st.shared." + type + " [%r0],%d;";
  body += "atom" + space + "." + operation + "." + type + " %d,[" + (shared ? "%r0" : "%l7") + "],%a" +
          extra + ";";
  if (shared)
    body += "ld.shared." + type + " %b,[%r0]; st.global." + type + " [%l7],%b;";
  EachThread test{type, body, {{type, b}, {type, c}}};
  test.threads = unsigned(memory.size());
  test.memory = bytesOf<uint64_t>(memory);
  Outcome outcome = test.run();
  EXPECT_FALSE(outcome.fault) << body << outcome.fault->text();
  outcome.d.resize(memory.size());
  std::vector<Applied> out;
  for (size_t i = 0; i < memory.size(); ++i)
    out.push_back({outcome.d[i], at<uint64_t>(test.memory, 8 * i)});
  return out;
}

Applied apply(const std::string &space, const std::string &operation, const std::string &type,
              uint64_t memory, uint64_t b, uint64_t c = 0) {
  return apply(space, operation, type, std::vector<uint64_t>{memory}, std::vector<uint64_t>{b},
               std::vector<uint64_t>{c})[0];
}

const char *const kSpaces[] = {"",
                               ".global",
                               ".shared",
                               ".shared::cta",
                               ".shared::cluster",
                               ".relaxed.gpu.global",
                               ".acq_rel.sys",
                               ".release.cta.shared"};

template <class T>
void expectOperation(const std::string &operation, const std::string &type, T (*reference)(T, T)) {
  const std::vector<uint64_t> values = sizeof(T) == 8 ? edges64() : edges32();
  for (const std::string space : kSpaces)
    for (uint64_t b : values) {
      const std::vector<uint64_t> operands(values.size(), b);
      std::vector<Applied> applied = apply(space, operation, type, values, operands, operands);
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(T(applied[i].before), T(values[i])) << space << operation << type;
        EXPECT_EQ(T(applied[i].after), reference(T(values[i]), T(b)))
            << space << "." << operation << "." << type << " " << values[i] << " " << b;
      }
    }
}

template <class T>
void expectIntegers(const std::string &type) {
  expectOperation<T>("min", type, [](T a, T b) { return b < a ? b : a; });
  expectOperation<T>("max", type, [](T a, T b) { return a < b ? b : a; });
}
template <class T>
void expectBits(const std::string &type) {
  expectOperation<T>("and", type, [](T a, T b) { return T(a & b); });
  expectOperation<T>("or", type, [](T a, T b) { return T(a | b); });
  expectOperation<T>("xor", type, [](T a, T b) { return T(a ^ b); });
  expectOperation<T>("exch", type, [](T, T b) { return b; });
}

TEST(Atomics, Integers) {
  expectIntegers<uint32_t>("u32");
  expectIntegers<int32_t>("s32");
  expectIntegers<uint64_t>("u64");
  expectIntegers<int64_t>("s64");
  expectOperation<uint32_t>("add", "u32", [](uint32_t a, uint32_t b) { return a + b; });
  expectOperation<uint32_t>("add", "s32", [](uint32_t a, uint32_t b) { return a + b; });
  expectOperation<uint64_t>("add", "u64", [](uint64_t a, uint64_t b) { return a + b; });
  expectOperation<uint32_t>("inc", "u32", [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; });
  expectOperation<uint32_t>("dec", "u32", [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; });
}

TEST(Atomics, Bits) {
  expectBits<uint32_t>("b32");
  expectBits<uint64_t>("b64");
}

TEST(Atomics, ComparesAndSwaps) {
  for (const std::string space : kSpaces)
    for (const auto &[type, mask] :
         {std::pair<std::string, uint64_t>("b16", 0xFFFF), {"b32", 0xFFFFFFFF}, {"b64", ~uint64_t(0)}}) {
      const uint64_t memory = 0x8123456789ABCDEF;
      Applied swapped = apply(space, "cas", type, memory, memory & mask, 0x55AA),
              kept = apply(space, "cas", type, memory, 5, 6);
      EXPECT_EQ(swapped.before, memory & mask);
      EXPECT_EQ(swapped.after, (memory & ~mask) | 0x55AA) << space << type;
      EXPECT_EQ(kept.before, memory & mask);
      EXPECT_EQ(kept.after, memory);
    }
}

TEST(Atomics, WideValues) {
  EachThread test{"b64",
                  "mov.b128 %w0,{%a,%b}; mov.b128 %w1,{%b,%a}; atom.global.cas.b128 %w2,[%m],%w0,%w1;"
                  "atom.global.exch.b128 %w3,[%m+16],%w0; mov.b128 {%l0,%l1},%w2; mov.b128 {%l2,%l3},%w3;"
                  "xor.b64 %d,%l0,%l3;",
                  {{"b64", {1}}, {"b64", {2}}}};
  test.threads = 1;
  test.memory = bytesOf<uint64_t>({1, 2, 30, 40});
  Outcome outcome = test.run();
  ASSERT_FALSE(outcome.fault) << outcome.fault->text();
  EXPECT_EQ(outcome.d[0], 1u ^ 40u);
  for (unsigned i : {0, 1})
    EXPECT_EQ(at<uint64_t>(test.memory, i * 8), 2 - i);
  for (unsigned i : {0, 1})
    EXPECT_EQ(at<uint64_t>(test.memory, 16 + i * 8), 1 + i);
}

/// Every thread of many blocks counts; each sees another number, whatever the seed.
TEST(Atomics, CountsThreads) {
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    EachThread test{"b32",
                    "atom.global.add.u32 %d,[%m],1; red.global.add.u64 [%m+8],3; red.max.u32 [%m+16],%n;"
                    "atom.add.u32 _,[%m+20],2;",
                    {}};
    test.threads = 1000;
    test.seed = seed;
    Outcome outcome = test.run();
    ASSERT_FALSE(outcome.fault) << outcome.fault->text();
    orders.insert(outcome.d);
    std::sort(outcome.d.begin(), outcome.d.end());
    for (unsigned i = 0; i < 1000; ++i)
      EXPECT_EQ(outcome.d[i], i);
    EXPECT_EQ(at<uint32_t>(test.memory, 0), 1000u);
    EXPECT_EQ(at<uint64_t>(test.memory, 8), 3000u);
    EXPECT_EQ(at<uint32_t>(test.memory, 16), 999u);
    EXPECT_EQ(at<uint32_t>(test.memory, 20), 2000u);
  }
  EXPECT_GT(orders.size(), 1u) << "lanes always go in the same order";
}

TEST(Atomics, RepeatsWithASeed) {
  auto run = [](uint64_t seed) {
    EachThread test{"b32", "atom.global.add.u32 %d,[%m],1;", {}};
    test.threads = 500;
    test.seed = seed;
    return test.run().d;
  };
  EXPECT_EQ(run(7), run(7));
}

/// A lock: one thread at a time adds to a plain number.
TEST(Atomics, LockedUpdates) {
  EachThread test{
      "b32",
      "AGAIN: atom.global.acquire.gpu.cas.b32 %r0,[%m],0,1; setp.ne.u32 %p0,%r0,0; @%p0 bra AGAIN;"
      "ld.global.u32 %r1,[%m+4]; add.u32 %r1,%r1,1; st.global.u32 [%m+4],%r1;"
      "atom.global.release.gpu.exch.b32 %r0,[%m],0;",
      {}};
  test.threads = 64;
  Outcome outcome = test.run();
  ASSERT_FALSE(outcome.fault) << outcome.fault->text();
  EXPECT_EQ(at<uint32_t>(test.memory, 4), 64u);
}

uint64_t single(float value) {
  uint32_t out;
  std::memcpy(&out, &value, 4);
  return out;
}

TEST(Atomics, AddsFloats) {
  for (const std::string space : kSpaces) {
    EXPECT_EQ(uint32_t(apply(space, "add", "f32", single(1.5f), single(2.25f)).after), single(3.75f));
    // To nearest even.
    EXPECT_EQ(uint32_t(apply(space, "add", "f32", 0x4B800000, single(1)).after), 0x4B800000u);
    EXPECT_EQ(uint32_t(apply(space, "add", "f32", 0x4B800001, single(1)).after), 0x4B800002u);
    double one = 1, small = 0x1p-52, sum = one + small;
    uint64_t a, b, c;
    std::memcpy(&a, &one, 8), std::memcpy(&b, &small, 8), std::memcpy(&c, &sum, 8);
    EXPECT_EQ(apply(space, "add", "f64", a, b).after, c);
    // A subnormal f64 stays one everywhere.
    EXPECT_EQ(apply(space, "add", "f64", 1, 2).after, 3u);
  }
}

/// f32 flushes subnormals in global memory and keeps them in shared (PTX ISA
/// 9.7.13.5), as the address says, not the instruction.
TEST(Atomics, FlushesSubnormalsInGlobalMemoryOnly) {
  for (const std::string space : {"", ".global"}) {
    EXPECT_EQ(uint32_t(apply(space, "add", "f32", 1, 2).after), 0u);
    EXPECT_EQ(uint32_t(apply(space, "add", "f32", 0x80000001, 0x80000002).after), 0x80000000u);
    EXPECT_EQ(uint32_t(apply(space, "add", "f32", 1, single(1)).after), single(1));
    // 2^-126 and less than half of it away: subnormal, so zero.
    EXPECT_EQ(uint32_t(apply(space, "add", "f32", 0x00800000, 0x80800001).after), 0x80000000u);
  }
  EXPECT_EQ(uint32_t(apply(".shared", "add", "f32", 1, 2).after), 3u);
  EachThread test{"b32",
                  "mov.u32 %r0,shared; st.shared.u32 [%r0],1; mov.b32 %r1,0; mov.b64 %l0,{%r0,%r1}; "
                  "cvta.shared.u64 %l0,%l0;"
                  "mov.b32 %f0,%a; atom.add.f32 %f1,[%l0],%f0; ld.shared.u32 %d,[%r0];",
                  {{"b32", {2}}}};
  test.threads = 1;
  EXPECT_EQ(test.run().d, std::vector<uint64_t>{3});
}

TEST(Atomics, AddsHalves) {
  // 1 + 2^-11 is a tie: to even; subnormals stay (.noftz).
  struct Case {
    const char *type;
    uint64_t a, b, sum;
  };
  const Case cases[] = {{"f16", 0x3C00, 0x1000, 0x3C00},
                        {"f16", 0x3C01, 0x1000, 0x3C02},
                        {"f16", 1, 2, 3},
                        {"f16", 0x7BFF, 0x7BFF, 0x7C00},
                        {"bf16", 0x3F80, 0x3B80, 0x3F80},
                        {"bf16", 0x3F81, 0x3B80, 0x3F82},
                        {"bf16", 1, 2, 3},
                        {"bf16", 0x7F80, 0xFF80, 0x7FFF}};
  for (const std::string space : {"", ".global", ".shared"})
    for (const Case &c : cases) {
      const std::string type = c.type;
      auto memory = [&](const std::string &t, const std::string &reg, uint64_t a, uint64_t b) {
        bool shared = space == ".shared";
        const std::string place = shared ? "[%r0+2]" : "[%m+4]", width = t.back() == '2' ? "b32" : "b16";
        const std::string where = width == "b32" ? (shared ? "[%r0]" : "[%m]") : place;
        EachThread test{
            "b32",
            "mov.u32 %r0,shared; mov.b32 {%h0,%h7},%a; mov.b32 {%h1,%h7},%b; mov.b32 %r1,%a; mov.b32 %r2,%b;"
            "st" +
                (shared ? std::string(".shared.") : std::string(".global.")) + width + " " + where + "," +
                (width == "b32" ? "%r1" : "%h0") + "; red" + space + ".add.noftz." + t + " " + where + ",%" +
                reg + "; ld" + (shared ? ".shared." : ".global.") + width + " " +
                (width == "b32" ? "%d" : "%h2") + "," + where + ";" +
                (width == "b32" ? "" : "mov.b16 %h7,0; mov.b32 %d,{%h2,%h7};"),
            {{"b32", {a}}, {"b32", {b}}}};
        test.threads = 1;
        Outcome outcome = test.run();
        EXPECT_FALSE(outcome.fault) << outcome.fault->text();
        return outcome.fault ? 0 : outcome.d[0];
      };
      EXPECT_EQ(memory(type, "h1", c.a, c.b), c.sum) << space << type;
      EXPECT_EQ(memory(type + "x2", "r2", c.a | c.b << 16, c.b | c.a << 16), c.sum | c.sum << 16)
          << space << type;
    }
}

TEST(Atomics, Vectors) {
  EachThread floats{"b32",
                    "mov.b32 %f0,%a; mov.b32 %f1,%b; mov.b32 %f2,%c; mov.b32 %f3,%e;"
                    // Results into registers of operands.
                    "atom.global.v4.f32.add {%f3,%f2,%f1,%f0},[%m],{%f0,%f1,%f2,%f3}; mov.b32 %d,%f2;",
                    {{"b32", {single(1)}}, {"b32", {single(2)}}, {"b32", {single(3)}}, {"b32", {single(4)}}}};
  floats.threads = 1;
  floats.memory = bytesOf<float>({10, 20, 30, 40});
  Outcome outcome = floats.run();
  ASSERT_FALSE(outcome.fault) << outcome.fault->text();
  EXPECT_EQ(outcome.d[0], single(20));
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_EQ(at<float>(floats.memory, i * 4), 11 * float(i + 1));
  EachThread halves{"b32",
                    "mov.b32 {%h0,%h1},%a; mov.b32 {%h2,%h3},%b;"
                    "atom.global.max.noftz.v4.f16 {%h4,_,%h5,%h6},[%m],{%h0,%h1,%h2,%h3};"
                    "red.global.v2.bf16x2.min.noftz [%m+8],{%a,%b};"
                    "red.global.v2.f16.add.noftz [%m+16],{%h0,%h1};"
                    "mov.b32 %d,{%h4,%h6};",
                    {{"b32", {0x3C00BC00}}, {"b32", {0x40007E00}}}};
  halves.threads = 1;
  halves.memory =
      bytesOf<uint16_t>({0x3800, 0x3800, 0x3800, 0x4400, 0x3F80, 0x3F80, 0xC000, 0x4080, 0x3C00, 0x3C00});
  outcome = halves.run();
  ASSERT_FALSE(outcome.fault) << outcome.fault->text();
  EXPECT_EQ(outcome.d[0], 0x44003800u);
  // f16: -1, 1, NaN, 2 against 0.5, 0.5, 0.5, 4; a number wins over a NaN.
  const uint16_t maxima[] = {0x3800, 0x3C00, 0x3800, 0x4400};
  // bf16: 0xBC00 and 0x3C00 are small numbers, 0x7E00 is large, 0x4000 is 2.
  const uint16_t minima[] = {0xBC00, 0x3C00, 0xC000, 0x4000};
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(at<uint16_t>(halves.memory, i * 2), maxima[i]) << i;
    EXPECT_EQ(at<uint16_t>(halves.memory, 8 + i * 2), minima[i]) << i;
  }
  EXPECT_EQ(at<uint16_t>(halves.memory, 16), 0u);
  EXPECT_EQ(at<uint16_t>(halves.memory, 18), 0x4000u);
}

TEST(Atomics, FaultsOnAddresses) {
  auto fault = [](const std::string &body) {
    EachThread test{"b32", body, {{"b32", {1}}}};
    test.threads = 1;
    Outcome outcome = test.run();
    EXPECT_TRUE(outcome.fault) << body;
    return outcome.fault ? outcome.fault->kind : FaultKind::Trap;
  };
  EXPECT_EQ(fault("atom.global.add.u32 %d,[%m+2],%a;"), FaultKind::Misaligned);
  EXPECT_EQ(fault("red.global.add.u32 [%m+256],%a;"), FaultKind::OutOfBounds);
  EXPECT_EQ(fault("red.global.add.v2.f32 [%m+4],{%f0,%f1};"), FaultKind::Misaligned);
  EXPECT_EQ(fault("mov.u32 %r0,shared; atom.shared.add.u32 %d,[%r0],%a;"), FaultKind::UninitializedRead);
  EXPECT_EQ(fault(".local .b32 here; mov.u64 %l0,here; cvta.local.u64 %l0,%l0; atom.add.u32 %d,[%l0],%a;"),
            FaultKind::IllegalOperand);
}

TEST(Atomics, RefusesWhatThereIsNot) {
  for (const char *body :
       {"atom.global.add.s64 %l0,[%m],%l1;",
        "atom.global.min.b32 %d,[%m],%a;",
        "atom.global.and.u32 %d,[%m],%a;",
        "atom.global.exch.f32 %f0,[%m],%f1;",
        "atom.global.inc.u64 %l0,[%m],%l1;",
        "atom.global.min.f32 %f0,[%m],%f1;",
        "red.global.min.noftz.f16x2 [%m],%a;",
        "atom.global.exch.b16 %h0,[%m],%h1;",
        "atom.global.add.f16 %h0,[%m],%h1;",
        "red.global.gpu.acquire.add.u32 [%m],%a;",
        "red.shared.exch.b32 [%m],%a;",
        "atom.const.add.u32 %d,[%m],%a;",
        "atom.volatile.global.add.u32 %d,[%m],%a;",
        "atom.global.add.sat.s32 %d,[%m],%a;",
        "atom.global.v8.f16x2.add.noftz {%a,%a,%a,%a,%a,%a,%a,%a},[%m],{%a,%a,%a,%a,%a,%a,%a,%a};",
        "atom.shared.max.noftz.v2.f16 {%h0,%h1},[%m],{%h2,%h3};",
        "red.global.add.noftz.v2.f32 [%m],{%f0,%f1};",
        "atom.global.add.v2.u32 {%a,%b},[%m],{%a,%b};",
        "atom.global.cas.b32 %d,[%m],%a;",
        "atom.global.add.u32 %d,[%m],%a,%l0;",
        "atom.global.add.ftz.f32 %f0,[%m],%f1;"})
    EXPECT_NE(decodeError(body), "") << body;
  EXPECT_EQ(decodeError("atom.global.add.L2::cache_hint.f32 %f0,[%m],%f1,%l0;"), "");
}

/// .mmio wants each access once and whole, as every access here is.
TEST(Atomics, OrderedAccesses) {
  expectEach("st.mmio.relaxed.sys.global.u32 [%m],7; ld.mmio.relaxed.sys.u32 %d,[%m];", "u32", {{"u32", {1}}},
             [](std::vector<uint64_t>) { return 7; });
  for (const char *text :
       {"ld.mmio.u32 %r0,[%l0];", "ld.mmio.relaxed.gpu.u32 %r0,[%l0];", "ld.mmio.acquire.sys.u32 %r0,[%l0];",
        "ld.relaxed.global.u32 %r0,[%l0];", "ld.cta.u32 %r0,[%l0];", "ld.volatile.gpu.u32 %r0,[%l0];",
        "ld.release.gpu.u32 %r0,[%l0];", "st.acquire.gpu.u32 [%l0],%r0;", "st.acq_rel.gpu.u32 [%l0],%r0;",
        "ld.mmio.relaxed.sys.shared.u32 %r0,[%r1];", "atom.mmio.relaxed.sys.global.add.u32 %r0,[%l0],%r1;",
        "st.async.mmio.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r0],%r1,[%r2];"})
    EXPECT_NE(decodeError(text), "") << text;
}

} // namespace
