// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma: products of all types, matrices in shared memory in every canonical layout of
// PTX ISA 9.7.15.5.1.2, and registers that are touched while a product has them.

#include "MatrixHarness.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

constexpr unsigned kThreads = 128, kTileBytes = 65536;

/// A matrix of rows (M or N) by K in shared memory.
struct Tile {
  /// The descriptor's code: 0 none, 1 128 bytes, 2 64, 3 32.
  unsigned mode = 1;
  /// Whether the other dimension than K is contiguous.
  bool acrossK = false;
  /// Bytes before it in its row, as of a later step along K.
  unsigned along = 0;
  /// Rows of 128 bytes by which the swizzle's pattern begins late.
  unsigned phase = 0;

  unsigned width() const { return mode == 0 ? 16 : 256u >> mode; }
  unsigned leading(unsigned rows) const { return acrossK && mode ? 8 * width() : 128 * (rows / 8); }
  unsigned stride(unsigned rows, unsigned bits) const {
    if (mode == 0)
      return 128;
    unsigned perAtom = width() * 8 / bits;
    return acrossK ? leading(rows) * ((rows + perAtom - 1) / perAtom) : 8 * width();
  }
  uint64_t descriptor(unsigned rows, unsigned bits) const {
    return (along + phase * 128) >> 4 | uint64_t(leading(rows) >> 4) << 16 |
           uint64_t(stride(rows, bits) >> 4) << 32 | uint64_t(phase) << 49 | uint64_t(mode) << 62;
  }
  /// The bit at which an element lies, as the layouts of CuTe have it (9.7.15.5.1.2.1.3).
  size_t place(unsigned row, unsigned k, unsigned rows, unsigned bits) const {
    unsigned per = 128 / bits, at = along, inChunk;
    if (acrossK) {
      unsigned chunk = row / per, perAtom = mode ? width() / 16 : 1;
      inChunk = row % per;
      at += mode ? chunk % perAtom * 16 + chunk / perAtom * leading(rows) + k % 8 * width() +
                       k / 8 * stride(rows, bits)
                 : chunk * stride(rows, bits) + k % 8 * 16 + k / 8 * leading(rows);
    } else {
      inChunk = k % per;
      at += row % 8 * width() + row / 8 * stride(rows, bits) + k / per * (mode ? 16 : leading(rows));
    }
    at ^= (at >> 7 & (width() / 16 - 1)) << 4;
    return size_t(at + phase * 128) * 8 + inChunk * bits;
  }
  void put(const Matrix &matrix, unsigned bits, const Encode &encode, uint8_t *out) const {
    for (unsigned row = 0; row < matrix.rows; ++row)
      for (unsigned k = 0; k < matrix.columns; ++k) {
        size_t bit = place(row, k, matrix.rows, bits);
        uint64_t code = encode(matrix.at(row, k));
        for (unsigned b = 0; b < bits; ++b)
          if (code >> b & 1)
            out[(bit + b) / 8] |= uint8_t(1u << (bit + b) % 8);
      }
  }
};

std::pair<unsigned, unsigned> layoutD(unsigned thread, unsigned i) {
  unsigned lane = thread % 32;
  return {thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2};
}
Layout layoutA(unsigned per) {
  return [per](unsigned thread, unsigned i) {
    unsigned lane = thread % 32, reg = i / per;
    return std::pair(thread / 32 * 16 + lane / 4 + reg % 2 * 8, reg / 2 * 4 * per + lane % 4 * per + i % per);
  };
}

struct Form {
  const char *types;
  unsigned n, bits;
  Encode a, b, sum;
  unsigned sumBits = 32;
  int least = -3, most = 3;
  bool fromRegisters = false;
  Tile tileA = {}, tileB = {};
  int signA = 1, signB = 1;
  bool accumulates = true;
  unsigned k() const { return 256 / bits; }
};

const Encode f16 = encoding(num::F16), bf16 = encoding(num::BF16), f32 = encoding(num::F32),
             e4m3 = encoding(num::E4M3), e5m2 = encoding(num::E5M2);

/// The kernel's begin: A and B from in0 to shared memory, d from in1, A's registers from in2.
std::string prologue(unsigned sums, uint64_t descriptorA, uint64_t descriptorB) {
  std::string text =
      ".shared .align 1024 .b8 tiles[" + std::to_string(2 * kTileBytes) +
      "];\n.reg .b32 %d<128>, %e<128>, "
      "%a<4>;\n.reg .b64 %descA, %descB, %pd, %pe, %pa;\n.reg .b32 %at;\n"
      "mov.u32 %at, %i4;\nmul.wide.u32 %rd0, %i, 4;\nadd.u64 %rd0, %rd0, %in0;\n"
      "COPY:\nld.global.b32 %r0, [%rd0];\nst.shared.b32 [%at], %r0;\nadd.u64 %rd0, %rd0, 512;\n"
      "add.u32 %at, %at, 512;\nsetp.lt.u32 %p0, %at, " +
      std::to_string(2 * kTileBytes) +
      ";\n@%p0 bra COPY;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
      "mov.u64 %descA, " +
      std::to_string(descriptorA) + ";\nmov.u64 %descB, " + std::to_string(descriptorB + (kTileBytes >> 4)) +
      ";\n"
      "mad.wide.u32 %pd, %i, 4, %in1;\nmad.wide.u32 %pe, %i, 4, %out;\nmad.wide.u32 %pa, %i, 4, %in2;\n";
  return text + moveRegisters(true, "d", sums, 4, "%pd", kThreads) +
         moveRegisters(true, "a", 4, 4, "%pa", kThreads);
}

std::string product(const std::string &types, unsigned n, unsigned k, unsigned sums, const std::string &a,
                    const std::string &rest, const std::string &d = "d") {
  return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k" + std::to_string(k) + "." + types +
         " {" + registerList(d, sums) + "}, " + a + ", %descB, " + rest + ";\n";
}

std::string immediates(const Form &form) {
  bool isFloat = form.types[0] == 'f';
  std::string out = form.accumulates ? "1" : "0";
  if (isFloat)
    out += ", " + std::to_string(form.signA) + ", " + std::to_string(form.signB);
  if (isFloat && form.bits == 16)
    out += std::string(form.fromRegisters   ? ""
                       : form.tileA.acrossK ? ", 1"
                                            : ", 0") +
           (form.tileB.acrossK ? ", 1" : ", 0");
  return out;
}

void testForm(const Form &form, bool checks) {
  unsigned sums = form.n / 2 * form.sumBits / 32, k = form.k();
  Matrix a(64, k, 1, form.least, form.most), b(form.n, k, 2, form.least, form.most),
      c(64, form.n, 3, -20, 20), expected(64, form.n);
  std::string text =
      prologue(sums, form.tileA.descriptor(64, form.bits), form.tileB.descriptor(form.n, form.bits)) +
      "wgmma.fence.sync.aligned;\n" +
      product(form.types, form.n, k, sums, form.fromRegisters ? "{" + registerList("a", 4) + "}" : "%descA",
              immediates(form)) +
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" +
      moveRegisters(false, "d", sums, 4, "%pe", kThreads);
  Settings settings;
  settings.checks = checks;
  TestMachine machine(kernelText(text, 3), settings);
  std::vector<uint8_t> image(2 * kTileBytes);
  form.tileA.put(a, form.bits, form.a, image.data());
  form.tileB.put(b, form.bits, form.b, image.data() + kTileBytes);
  uint64_t in0 = machine.upload(image),
           in1 = machine.upload(fragment(c, sums, 4, form.sumBits, form.sum, layoutD, kThreads)),
           in2 = machine.upload(fragment(a, 4, 4, form.bits, form.a, layoutA(32 / form.bits), kThreads)),
           out = machine.allocate(sums * 512);
  auto fault = machine.launch("k", oneBlock(kThreads), out, in0, in1, in2);
  ASSERT_FALSE(fault) << fault->text();
  for (unsigned row = 0; row < 64; ++row)
    for (unsigned column = 0; column < form.n; ++column) {
      int sum = 0;
      for (unsigned i = 0; i < k; ++i)
        sum += a.at(row, i) * b.at(column, i);
      expected.at(row, column) = (form.accumulates ? c.at(row, column) : 0) + form.signA * form.signB * sum;
    }
  EXPECT_EQ(machine.download<uint8_t>(out, sums * 512),
            fragment(expected, sums, 4, form.sumBits, form.sum, layoutD, kThreads))
      << form.types << " n " << form.n << " mode " << form.tileA.mode << "," << form.tileB.mode << " across "
      << form.tileA.acrossK << form.tileB.acrossK;
}

TEST(Wgmma, MultipliesEveryType) {
  const Form forms[] = {
      {"f32.f16.f16", 8, 16, f16, f16, f32},
      {"f32.bf16.bf16", 24, 16, bf16, bf16, f32},
      {"f16.f16.f16", 64, 16, f16, f16, f16, 16},
      {"f32.tf32.tf32", 40, 32, f32, f32, f32},
      {"f32.e4m3.e5m2", 256, 8, e4m3, e5m2, f32},
      {"f16.e5m2.e4m3", 128, 8, e5m2, e4m3, f16, 16},
      {"s32.s8.s8", 96, 8, asInteger, asInteger, asInteger, 32, -128, 127},
      {"s32.u8.u8", 16, 8, asInteger, asInteger, asInteger, 32, 0, 255},
      {"s32.b1.b1.and.popc", 32, 1, asInteger, asInteger, asInteger, 32, 0, 1},
  };
  for (Form form : forms)
    for (bool fromRegisters : {false, true}) {
      form.fromRegisters = fromRegisters;
      testForm(form, /*checks=*/true);
      testForm(form, /*checks=*/false);
    }
}

TEST(Wgmma, FindsMatricesInEveryLayout) {
  for (unsigned mode = 0; mode < 4; ++mode)
    for (bool acrossK : {false, true})
      for (unsigned n : {8u, 80u, 256u}) {
        Form form{"f32.f16.f16", n, 16, f16, f16, f32};
        form.tileA = {mode, acrossK};
        form.tileB = {(mode + 1) % 4, !acrossK};
        testForm(form, true);
      }
}

TEST(Wgmma, BeginsWithinThePatternOfASwizzle) {
  for (unsigned mode : {1u, 2u}) {
    Form form{"f32.e4m3.e4m3", 64, 8, e4m3, e4m3, f32};
    form.tileA = {mode, false, 32};
    form.tileB = {mode, false, mode == 1 ? 96u : 32u};
    testForm(form, true);
  }
  Form form{"f32.e4m3.e4m3", 64, 8, e4m3, e4m3, f32};
  form.tileA = {1, false, 0, 3};
  form.tileB = {1, false, 0, 7};
  testForm(form, true);
}

TEST(Wgmma, NegatesAndOverwrites) {
  Form form{"f32.e4m3.e4m3", 16, 8, e4m3, e4m3, f32};
  for (int sign : {1, -1}) {
    form.signA = sign;
    form.signB = -1;
    form.accumulates = sign == 1;
    testForm(form, true);
  }
}

/// The fault of a program with these instructions after the loads.
std::string faultOf(const std::string &body, FaultKind kind = FaultKind::RegistersInFlight,
                    unsigned threads = kThreads) {
  Tile tile;
  std::string text = prologue(8, tile.descriptor(64, 8), tile.descriptor(16, 8)) + body +
                     moveRegisters(false, "d", 8, 4, "%pe", kThreads);
  std::string found = "none";
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Settings settings;
    settings.seed = seed;
    TestMachine machine(kernelText(text, 3), settings);
    uint64_t data = machine.upload(std::vector<uint8_t>(2 * kTileBytes)), out = machine.allocate(16 * 512);
    auto fault = machine.launch("k", oneBlock(threads), out, data, data, data);
    std::string now = !fault ? "none" : fault->kind == kind ? fault->instruction : fault->text();
    EXPECT_TRUE(seed == 0 || now == found) << now << " after " << found;
    found = now;
  }
  return found;
}

const std::string kFence = "wgmma.fence.sync.aligned;\n", kCommit = "wgmma.commit_group.sync.aligned;\n";
std::string wait(unsigned count) { return "wgmma.wait_group.sync.aligned " + std::to_string(count) + ";\n"; }
std::string ofShared(const std::string &d = "d") {
  return product("f32.e4m3.e4m3", 16, 32, 8, "%descA", "1, 1, 1", d);
}
std::string ofRegisters(const std::string &d = "d") {
  return product("f32.e4m3.e4m3", 16, 32, 8, "{%a0, %a1, %a2, %a3}", "1, 1, 1", d);
}

TEST(Wgmma, RegistersInFlightMayNotBeTouched) {
  // Read, written, used by another product, before the wait; waiting for too little.
  EXPECT_EQ(faultOf(kFence + ofShared() + kCommit + "add.f32 %f0, %f1, %d3;\n" + wait(0)), "add.f32");
  EXPECT_EQ(faultOf(kFence + ofShared() + "mov.b32 %d7, 0;\n" + kCommit + wait(0)), "mov.b32");
  EXPECT_EQ(faultOf(kFence + ofRegisters() + kCommit + "mov.b32 %a2, 0;\n" + wait(0)), "mov.b32");
  EXPECT_EQ(faultOf(kFence + ofShared() + kCommit + "st.global.v2.b32 [%pe], {%r0, %d1};\n" + wait(0)),
            "st.global.v2.b32");
  EXPECT_EQ(faultOf(kFence + ofShared() + kCommit + wait(1)), "st.global.b32");
  EXPECT_EQ(faultOf(kFence + ofShared() + wait(0)), "st.global.b32");
}

TEST(Wgmma, RegistersInFlightMayNotGoToOtherProducts) {
  std::string other = product("f32.e4m3.e4m3", 8, 32, 4, "%descA", "1, 1, 1");
  EXPECT_EQ(faultOf(kFence + ofShared() + other + kCommit + wait(0)),
            "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3");
  std::string asInput = product("f32.e4m3.e4m3", 16, 32, 8, "{%d0, %d1, %d2, %d3}", "1, 1, 1", "e");
  EXPECT_EQ(faultOf(kFence + ofShared() + asInput + kCommit + wait(0)),
            "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3");
  EXPECT_EQ(faultOf(ofShared() + kCommit + wait(0)), "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3");
}

TEST(Wgmma, NeedsAWholeWarpgroup) {
  EXPECT_EQ(faultOf(kFence + ofShared() + kCommit + wait(0), FaultKind::BarrierDivergence, 96),
            "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3");
}

TEST(Wgmma, CorrectTwinsAreClean) {
  EXPECT_EQ(
      faultOf(kFence + ofShared() + ofRegisters() + ofShared() + kCommit + wait(0) + "mov.b32 %a2, 0;\n"),
      "none");
  // Two groups on other registers; the first is over.
  EXPECT_EQ(faultOf(kFence + ofShared() + kCommit + ofRegisters("e") + kCommit + wait(1) +
                    "mov.b32 %d0, 0;\n" + wait(0) + "mov.b32 %a0, %e1;\n"),
            "none");
}

TEST(Wgmma, WhatIsNotThereIsAnError) {
  auto error = [](const std::string &instruction, const std::string &target) -> std::string {
    try {
      TestMachine machine(kernelText(prologue(8, 0, 0) + instruction, 3, target));
    } catch (const PtxError &caught) {
      return caught.message;
    }
    return "";
  };
  EXPECT_NE(error(ofShared(), "sm_100a").find("sm_90a"), std::string::npos);
  EXPECT_NE(error(product("f32.e4m3.e4m3", 12, 32, 6, "%descA", "1, 1, 1"), "sm_90a").find("shape"),
            std::string::npos);
  EXPECT_NE(error(product("s32.s8.s8", 40, 32, 20, "%descA", "1"), "sm_90a").find("shape"),
            std::string::npos);
  EXPECT_NE(error(product("f32.f16.bf16", 16, 16, 8, "%descA", "1, 1, 1, 0, 0"), "sm_90a").find("types"),
            std::string::npos);
  EXPECT_NE(error(product("f32.e4m3.e4m3", 16, 32, 8, "%descA", "1, 1, 1, 0, 0"), "sm_90a").find("operands"),
            std::string::npos);
  EXPECT_NE(error(product("f32.e4m3.e4m3", 16, 32, 8, "%descA", "1, 2, 1"), "sm_90a").find("1 or -1"),
            std::string::npos);
}

} // namespace
