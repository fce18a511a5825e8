// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.sync of every type and shape, on fragments laid out by the formulas of PTX ISA
// 9.7.14.5.

#include "MatrixHarness.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

struct Registers {
  unsigned count, bytes = 4;
};

/// A kernel of one warp: d = a b + c in fragments; `tail` are more operands, `setup` comes
/// before.
std::string mmaText(const std::string &instruction, const std::string &target, Registers d, Registers a,
                    Registers b, Registers c, const std::string &setup = "", const std::string &tail = "") {
  auto bits = [](Registers r) { return std::string(r.bytes == 8 ? ".b64" : ".b32"); };
  std::string text = ".reg " + bits(d) + " %d<16>;\n.reg " + bits(a) + " %a<16>;\n.reg " + bits(b) +
                     " %b<16>;\n.reg " + bits(c) + " %c<16>;\n.reg .b64 %pa, %pb, %pc, %pd;\n";
  auto pointer = [&](const std::string &name, const std::string &from, Registers r) {
    text += "mad.wide.u32 %p" + name + ", %i, " + std::to_string(r.bytes) + ", %" + from + ";\n";
  };
  pointer("d", "out", d);
  pointer("a", "in0", a);
  pointer("b", "in1", b);
  pointer("c", "in2", c);
  text += moveRegisters(true, "a", a.count, a.bytes, "%pa") +
          moveRegisters(true, "b", b.count, b.bytes, "%pb") +
          moveRegisters(true, "c", c.count, c.bytes, "%pc") + setup + instruction + " {" +
          registerList("d", d.count) + "}, {" + registerList("a", a.count) + "}, {" +
          registerList("b", b.count) + "}, {" + registerList("c", c.count) + "}" + tail + ";\n" +
          moveRegisters(false, "d", d.count, d.bytes, "%pd");
  return kernelText(text, 4, target);
}

/// One form: a shape, the bits of an element and how it is coded, that of a sum.
struct Form {
  const char *instruction;
  const char *target;
  unsigned m, n, k, bits, sumBits;
  Encode a, b, sum;
  int least = -3, most = 3, leastB = -3;
};

const Encode f16 = encoding(num::F16), bf16 = encoding(num::BF16),
             tf32 = [](int value) { return num::encode(num::F32, value, num::Rounding::NearestEven); };
const Encode f32 = encoding(num::F32), f64 = encoding(num::F64), e4m3 = encoding(num::E4M3),
             e5m2 = encoding(num::E5M2), e2m3 = encoding(num::E2M3), e3m2 = encoding(num::E3M2),
             e2m1 = encoding(num::E2M1), e2m1InByte = encoding(num::E2M1, 2);

const Form kForms[] = {
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_80", 16, 8, 8, 16, 32, f16, f16, f32},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a", 16, 8, 16, 16, 32, f16, f16, f32},
    {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", "sm_80", 16, 8, 8, 16, 16, f16, f16, f16},
    {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_89", 16, 8, 16, 16, 16, f16, f16, f16},
    {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", "sm_80", 16, 8, 8, 16, 32, bf16, bf16, f32},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_120a", 16, 8, 16, 16, 32, bf16, bf16, f32},
    {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", "sm_80", 16, 8, 4, 32, 32, tf32, tf32, f32},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90a", 16, 8, 8, 32, 32, tf32, tf32, f32},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_80", 8, 8, 4, 64, 64, f64, f64, f64},
    {"mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64.rn", "sm_90", 16, 8, 4, 64, 64, f64, f64, f64},
    {"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64.rz", "sm_90", 16, 8, 8, 64, 64, f64, f64, f64},
    {"mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64.rm", "sm_90", 16, 8, 16, 64, 64, f64, f64, f64},
    {"mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32", "sm_89", 16, 8, 16, 8, 32, e4m3, e5m2, f32},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32", "sm_89", 16, 8, 32, 8, 32, e5m2, e4m3, f32},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90a", 16, 8, 32, 8, 32, e4m3, e4m3, f32},
    {"mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e4m3.f16", "sm_120a", 16, 8, 16, 8, 16, e4m3, e4m3, f16},
    {"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32", "sm_120a", 16, 8, 32, 8, 32, e3m2,
     e2m3, f32},
    {"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e2m1.e4m3.f16", "sm_120a", 16, 8, 32, 8, 16,
     e2m1InByte, e4m3, f16},
    {"mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32", "sm_80", 8, 8, 16, 8, 32, asInteger, asInteger,
     asInteger, -128, 127, 0},
    {"mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32", "sm_80", 16, 8, 16, 8, 32, asInteger, asInteger,
     asInteger, 0, 127, -128},
    {"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", "sm_80", 16, 8, 32, 8, 32, asInteger,
     asInteger, asInteger, -128, 127, -128},
    {"mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32", "sm_80", 8, 8, 32, 4, 32, asInteger, asInteger,
     asInteger, -8, 7, -8},
    {"mma.sync.aligned.m16n8k32.row.col.s32.u4.s4.s32", "sm_80", 16, 8, 32, 4, 32, asInteger, asInteger,
     asInteger, 0, 7, -8},
    {"mma.sync.aligned.m16n8k64.row.col.s32.u4.u4.s32", "sm_80", 16, 8, 64, 4, 32, asInteger, asInteger,
     asInteger, 0, 15, 0},
    {"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc", "sm_80", 8, 8, 128, 1, 32, asInteger,
     asInteger, asInteger, 0, 1, 0},
    {"mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc", "sm_80", 16, 8, 128, 1, 32, asInteger,
     asInteger, asInteger, 0, 1, 0},
    {"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", "sm_80", 16, 8, 256, 1, 32, asInteger,
     asInteger, asInteger, 0, 1, 0},
};

/// As the formulas of each shape: A has the rows of groupID first, then those of + 8, and
/// then the upper half of K; of f64 with m16n8k16 each quarter.
Layout layoutA(unsigned m, unsigned per) {
  return [=](unsigned lane, unsigned i) {
    unsigned reg = i / per, half = m == 16 ? reg % 2 : 0, step = m == 16 ? reg / 2 : reg;
    return std::pair(lane / 4 + 8 * half, lane % 4 * per + i % per + step * 4 * per);
  };
}
/// By columns: the transpose.
Layout layoutB(unsigned per) {
  return [=](unsigned lane, unsigned i) {
    return std::pair(lane / 4, lane % 4 * per + i % per + i / per * 4 * per);
  };
}
std::pair<unsigned, unsigned> layoutC(unsigned lane, unsigned i) {
  return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2};
}

int sumAt(const Form &form, const Matrix &a, const Matrix &b, unsigned row, unsigned column) {
  bool isXor = std::string(form.instruction).find("xor") != std::string::npos;
  int sum = 0;
  for (unsigned k = 0; k < form.k; ++k)
    sum += isXor ? a.at(row, k) ^ b.at(column, k) : a.at(row, k) * b.at(column, k);
  return sum;
}

class MmaForm : public testing::TestWithParam<Form> {};

TEST_P(MmaForm, MultipliesByTheDocumentedLayout) {
  const Form &form = GetParam();
  Registers a{form.m * form.k * form.bits / 1024}, b{form.n * form.k * form.bits / 1024},
      c{form.m * form.n * form.sumBits / 1024};
  if (form.bits == 64)
    a = {a.count / 2, 8}, b = {b.count / 2, 8}, c = {c.count / 2, 8};
  unsigned per = a.bytes * 8 / form.bits;
  Matrix x(form.m, form.k, 1, form.least, form.most), y(form.n, form.k, 2, form.leastB, form.most),
      z(form.m, form.n, 3, -50, 50);
  TestMachine machine(mmaText(form.instruction, form.target, c, a, b, c));
  uint64_t in0 = machine.upload(fragment(x, a.count, a.bytes, form.bits, form.a, layoutA(form.m, per))),
           in1 = machine.upload(fragment(y, b.count, b.bytes, form.bits, form.b, layoutB(per))),
           in2 = machine.upload(fragment(z, c.count, c.bytes, form.sumBits, form.sum, layoutC)),
           out = machine.allocate(c.count * c.bytes * 32), none = out;
  auto fault = machine.launch("k", oneBlock(32), out, in0, in1, in2, none);
  ASSERT_FALSE(fault) << fault->text();
  Matrix expected(form.m, form.n);
  for (unsigned row = 0; row < form.m; ++row)
    for (unsigned column = 0; column < form.n; ++column)
      expected.at(row, column) = z.at(row, column) + sumAt(form, x, y, row, column);
  EXPECT_EQ(machine.download<uint8_t>(out, c.count * c.bytes * 32),
            fragment(expected, c.count, c.bytes, form.sumBits, form.sum, layoutC));
}

INSTANTIATE_TEST_SUITE_P(All, MmaForm, testing::ValuesIn(kForms), [](const auto &info) {
  std::string name = std::string(info.param.instruction).substr(17) + "." + info.param.target;
  for (char &c : name)
    c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

/// mma.m8n8k4 of f16 (9.7.14.5.1).
TEST(Mma, FourProductsAtOnce) {
  for (unsigned form = 0; form < 8; ++form) {
    bool rowA = form & 1, colB = form & 2, wide = form & 4;
    std::string instruction = std::string("mma.sync.aligned.m8n8k4.") + (rowA ? "row." : "col.") +
                              (colB ? "col." : "row.") + (wide ? "f32.f16.f16.f32" : "f16.f16.f16.f16");
    Registers c{wide ? 8u : 4u};
    // Four products: number q of them in rows 8 q and following.
    Matrix x(32, 4, 1, -3, 3), y(32, 4, 2, -3, 3), z(32, 8, 3, -9, 9), expected(32, 8);
    auto base = [](unsigned lane) { return lane / 4 % 4 * 8; };
    auto upper = [](unsigned lane) { return lane < 16 ? 0u : 4u; };
    auto multiplicand = [=](bool alongK) {
      return [=](unsigned lane, unsigned i) {
        return alongK ? std::pair(base(lane) + upper(lane) + lane % 4, i)
                      : std::pair(base(lane) + upper(lane) + i, lane % 4);
      };
    };
    Layout sums = [=](unsigned lane, unsigned i) {
      return wide ? std::pair(base(lane) + upper(lane) + (lane & 1) + (i & 2), (i & 4) + (lane & 2) + (i & 1))
                  : std::pair(base(lane) + upper(lane) + lane % 4, i);
    };
    TestMachine machine(mmaText(instruction, "sm_70", c, {2}, {2}, c));
    uint64_t in0 = machine.upload(fragment(x, 2, 4, 16, f16, multiplicand(rowA))),
             in1 = machine.upload(fragment(y, 2, 4, 16, f16, multiplicand(colB))),
             in2 = machine.upload(fragment(z, c.count, 4, wide ? 32 : 16, wide ? f32 : f16, sums)),
             out = machine.allocate(c.count * 128), none = out;
    ASSERT_FALSE(machine.launch("k", oneBlock(32), out, in0, in1, in2, none));
    for (unsigned q = 0; q < 32; q += 8)
      for (unsigned row = 0; row < 8; ++row)
        for (unsigned column = 0; column < 8; ++column) {
          int &sum = expected.at(q + row, column) = z.at(q + row, column);
          for (unsigned k = 0; k < 4; ++k)
            sum += x.at(q + row, k) * y.at(q + column, k);
        }
    EXPECT_EQ(machine.download<uint8_t>(out, c.count * 128),
              fragment(expected, c.count, 4, wide ? 32 : 16, wide ? f32 : f16, sums))
        << instruction;
  }
}

/// Every lane has other scales in every byte: selectors find the right ones (9.7.14.3).
void testScales(const std::string &kind, const std::string &types, unsigned k, unsigned bits, unsigned scales,
                const Encode &encode, unsigned byteA, unsigned pairA, unsigned byteB, unsigned laneB) {
  auto power = [](unsigned lane, unsigned byte) { return int((lane * 5 + byte * 3) % 5) - 2; };
  std::string selectors = "{%sa}, {" + std::to_string(byteA) + ", " + std::to_string(pairA) + "}, {%sb}, {" +
                          std::to_string(byteB) + ", " + std::to_string(laneB) + "}";
  bool ue4m3 = types.find("ue4m3") != std::string::npos;
  TestMachine machine(mmaText("mma.sync.aligned.m16n8k" + std::to_string(k) + ".row.col.kind::" + kind +
                                  ".block_scale.scale_vec::" + std::to_string(scales) + "X." + types,
                              "sm_120a", {4}, {4}, {2}, {4},
                              ".reg .b32 %sa, %sb;\n.reg .b64 %ps;\nmad.wide.u32 %ps, %i, 4, %in3;\n"
                              "ld.global.b32 %sa, [%ps];\nld.global.b32 %sb, [%ps + 128];\n",
                              ", " + selectors));
  std::vector<uint32_t> data(64);
  for (unsigned i = 0; i < 64; ++i)
    for (unsigned byte = 0; byte < 4; ++byte)
      data[i] |= uint32_t(ue4m3 ? (power(i, byte) + 7) << 3 : power(i, byte) + 127) << 8 * byte;
  Matrix x(16, k, 1, -3, 3), y(8, k, 2, -3, 3), z(16, 8, 3, -9, 9);
  unsigned per = 32 / bits;
  uint64_t in0 = machine.upload(fragment(x, 4, 4, bits, encode, layoutA(16, per))),
           in1 = machine.upload(fragment(y, 2, 4, bits, encode, layoutB(per))),
           in2 = machine.upload(fragment(z, 4, 4, 32, f32, layoutC)), in3 = machine.upload(data),
           out = machine.allocate(512);
  auto fault = machine.launch("k", oneBlock(32), out, in0, in1, in2, in3);
  ASSERT_FALSE(fault) << fault->text();
  auto d = machine.download<float>(out, 128);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      auto [row, column] = layoutC(lane, i);
      double sum = z.at(row, column);
      for (unsigned kk = 0; kk < k; ++kk) {
        unsigned block = kk / (k / scales);
        int exponent = power(row % 8 * 4 + 2 * pairA + row / 8, byteA + block) +
                       power(32 + column * 4 + laneB, byteB + block);
        sum += std::ldexp(double(x.at(row, kk) * y.at(column, kk)), exponent);
      }
      ASSERT_EQ(d[i * 32 + lane], float(sum)) << kind << " row " << row << " column " << column;
    }
}

TEST(Mma, SelectorsFindBlockScales) {
  for (unsigned byte = 0; byte < 4; ++byte)
    testScales("mxf8f6f4", "f32.e4m3.e4m3.f32.ue8m0", 32, 8, 1, e4m3, byte, byte % 2, 3 - byte, byte);
}
TEST(Mma, SelectorsFindPairsOfBlockScales) {
  for (unsigned byte : {0u, 2u})
    for (unsigned lane = 0; lane < 4; ++lane)
      testScales(lane % 2 ? "mxf4" : "mxf4nvf4", "f32.e2m1.e2m1.f32.ue8m0", 64, 4, 2, e2m1, byte, lane / 2,
                 2 - byte, lane);
}
TEST(Mma, SelectorsFindFourBlockScales) {
  testScales("mxf4nvf4", "f32.e2m1.e2m1.f32.ue4m3", 64, 4, 4, e2m1, 0, 1, 0, 2);
  testScales("mxf4nvf4", "f32.e2m1.e2m1.f32.ue8m0", 64, 4, 4, e2m1, 0, 0, 0, 3);
}

/// 2^24 + 1 + 1 ...: what is lost tells how it was summed.
float sumOf(TensorSums sums, const char *target) {
  TestMachine machine(
      mmaText("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target, {4}, {4}, {2}, {4}));
  machine.settings.sums = sums;
  Matrix ones(16, 16, 0, 1, 1), columns(8, 16, 0, 1, 1);
  uint64_t in0 = machine.upload(fragment(ones, 4, 4, 16, f16, layoutA(16, 2))),
           in1 = machine.upload(fragment(columns, 2, 4, 16, f16, layoutB(2))),
           in2 = machine.upload(std::vector<float>(128, 0x1p25f)), out = machine.allocate(512);
  EXPECT_FALSE(machine.launch("k", oneBlock(32), out, in0, in1, in2, out));
  return machine.download<float>(out, 1)[0];
}

TEST(Mma, SumsAsTheSettingSays) {
  // In f32, 2^25 + 1 is 2^25 each time.
  EXPECT_EQ(sumOf(TensorSums::KOrder, "sm_90a"), 0x1p25f);
  EXPECT_EQ(sumOf(TensorSums::Exact, "sm_90a"), 0x1p25f + 16);
  EXPECT_EQ(sumOf(TensorSums::Hardware, "sm_90a"), 0x1p25f + 16);
}

std::string mmaError(const std::string &instruction, Registers d, Registers a, Registers b, Registers c) {
  try {
    TestMachine machine(mmaText(instruction, "sm_120a", d, a, b, c));
  } catch (const PtxError &error) {
    return error.message;
  }
  return "";
}

TEST(Mma, WhatIsNotThereIsAnError) {
  EXPECT_NE(mmaError("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", {4}, {2}, {2}, {4})
                .find("4 registers are expected, there are 2"),
            std::string::npos);
  EXPECT_NE(mmaError("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", {4}, {4}, {2}, {4}).find("types"),
            std::string::npos);
  EXPECT_NE(mmaError("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", {4}, {8}, {4}, {4}).find("shape"),
            std::string::npos);
  EXPECT_NE(mmaError("mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32", {4}, {4}, {2}, {4}).find(".kind"),
            std::string::npos);
  EXPECT_NE(mmaError("mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32", {4}, {4}, {2}, {4}).find(".row"),
            std::string::npos);
  EXPECT_NE(mmaError("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", {4}, {2}, {2}, {4}).find("sp"),
            std::string::npos);
}

TEST(Mma, NeedsAllLanes) {
  std::string text = mmaText("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_80", {4}, {2}, {1}, {4});
  TestMachine machine(text);
  uint64_t data = machine.upload(std::vector<uint32_t>(128)), out = machine.allocate(512);
  auto fault = machine.launch("k", oneBlock(20), out, data, data, data, data);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::BarrierDivergence) << fault->text();
  TestMachine diverging(
      mmaText("setp.lt.u32 %p0, %i, 7;\n@%p0 mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_80", {4},
              {2}, {1}, {4}));
  data = diverging.upload(std::vector<uint32_t>(128));
  out = diverging.allocate(512);
  fault = diverging.launch("k", oneBlock(32), out, data, data, data, data);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::BarrierDivergence) << fault->text();
}

} // namespace
