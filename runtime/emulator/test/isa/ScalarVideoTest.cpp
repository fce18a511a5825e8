// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalar video instructions by value, against a reference that follows the text of PTX ISA 9.7.18.1:
// all operations, types, parts, saturation and secondary operations on numbers at the edges.

#include "Harness.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

using Number = __int128;

const std::vector<uint32_t> kEdges = {0,          1,          0x7F,       0x80,       0xFF,
                                      0x8001FF7F, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678};

/// partSelectSignExtend of the ISA; "" is all of the word.
Number part(uint32_t word, const std::string &selector, bool isSigned) {
  const unsigned bits = selector.empty() ? 32 : selector[1] == 'b' ? 8 : 16;
  const unsigned at = selector.empty() ? 0 : unsigned(selector[2] - '0') * bits;
  const Number value = Number(word >> at) % (Number(1) << bits);
  return isSigned && value >= Number(1) << (bits - 1) ? value - (Number(1) << bits) : value;
}

struct Form {
  std::string op, dtype, atype, btype, mode, partA, partB, partD, second;
  bool saturates;

  bool isSet() const { return op.substr(0, 4) == "vset"; }
  std::string text() const {
    return op + (isSet() ? "" : "." + dtype) + "." + atype + "." + btype + (saturates ? ".sat" : "") + mode +
           second + " %r0" + partD + ", %r1" + partA + ", %r2" + partB +
           (second.empty() && partD.empty() ? "" : ", %r3") + ";";
  }
};

Number operation(const Form &form, Number a, Number b) {
  if (form.op == "vadd")
    return a + b;
  if (form.op == "vsub")
    return a - b;
  if (form.op == "vabsdiff")
    return a < b ? b - a : a - b;
  if (form.op == "vmin")
    return std::min(a, b);
  if (form.op == "vmax")
    return std::max(a, b);
  if (form.isSet())
    return form.mode == ".eq"   ? a == b
           : form.mode == ".ne" ? a != b
           : form.mode == ".lt" ? a < b
           : form.mode == ".le" ? a <= b
           : form.mode == ".gt" ? a > b
                                : a >= b;
  const Number amount = form.mode == ".wrap" ? b % 32 : std::min<Number>(b, 32);
  const Number power = Number(1) << int(amount);
  // Rounded down, as a shift is.
  return form.op == "vshl" ? a * power : (a - ((a % power) + power) % power) / power;
}

uint32_t expected(const Form &form, uint32_t a, uint32_t b, uint32_t c) {
  const bool isSigned = !form.isSet() && form.dtype == "s32";
  Number value =
      operation(form, part(a, form.partA, form.atype == "s32"), part(b, form.partB, form.btype == "s32"));
  const unsigned bits = form.partD.empty() ? 32 : form.partD[1] == 'b' ? 8 : 16;
  const Number one = 1;
  if (form.saturates)
    value = std::clamp<Number>(value, isSigned ? -(one << (bits - 1)) : 0,
                               (one << (isSigned ? bits - 1 : bits)) - 1);
  const Number third = part(c, "", isSigned);
  if (form.second == ".add")
    value += third;
  else if (form.second == ".min")
    value = std::min(value, third);
  else if (form.second == ".max")
    value = std::max(value, third);
  if (form.partD.empty())
    return uint32_t(value);
  const unsigned at = unsigned(form.partD[2] - '0') * bits;
  const uint32_t mask = uint32_t((one << bits) - 1) << at;
  return (uint32_t(value) << at & mask) | (c & ~mask);
}

/// The forms' results for all pairs of edges, a thread each; c is another edge.
void check(const std::vector<Form> &forms) {
  std::string body =
      "mad.wide.u32 %rd1, %i, 12, %in0;\nld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1+4];\n"
      "ld.global.u32 %r3, [%rd1+8];\nmul.wide.u32 %rd2, %i, " +
      std::to_string(4 * forms.size()) + ";\nadd.u64 %rd2, %rd2, %out;\n";
  for (size_t i = 0; i < forms.size(); ++i)
    body += forms[i].text() + "\nst.global.u32 [%rd2+" + std::to_string(4 * i) + "], %r0;\n";
  std::vector<uint32_t> in;
  for (uint32_t a : kEdges)
    for (uint32_t b : kEdges)
      in.insert(in.end(), {a, b, kEdges[(a + b) % kEdges.size()]});
  const auto threads = uint32_t(in.size() / 3);
  TestMachine machine(kernelText(body, 1));
  const uint64_t out = machine.allocate(4 * threads * forms.size());
  LaunchConfig config;
  config.block = {threads, 1, 1};
  auto fault = machine.launch("k", config, out, machine.upload(in));
  ASSERT_FALSE(fault) << fault->text();
  const auto values = machine.download<uint32_t>(out, threads * forms.size());
  for (uint32_t t = 0; t < threads; ++t)
    for (size_t i = 0; i < forms.size(); ++i)
      ASSERT_EQ(values[t * forms.size() + i], expected(forms[i], in[3 * t], in[3 * t + 1], in[3 * t + 2]))
          << forms[i].text() << std::hex << " of " << in[3 * t] << ", " << in[3 * t + 1] << ", "
          << in[3 * t + 2];
}

std::vector<Form> forms(const std::string &op, const std::vector<std::string> &modes, bool unsignedB) {
  std::vector<Form> out;
  const std::vector<std::string> selectors = {"", ".b0", ".b3", ".h0", ".h1"};
  unsigned turn = 0;
  for (const std::string &mode : modes)
    for (const char *d : {"u32", "s32"})
      for (const char *a : {"u32", "s32"})
        for (const char *b : {"u32", "s32"})
          for (bool saturates : {false, true})
            for (const char *rest : {"", ".add", ".min", ".max", "d.b1", "d.b2", "d.h0", "d.h1"}) {
              if ((unsignedB && b[0] == 's') || (op == "vset" && (saturates || d[0] == 's')))
                continue;
              const std::string text = rest;
              const bool merges = text[0] == 'd';
              ++turn;
              // An unsaturated sum of 34 bits is one of 33 before .min and .max: apart.
              if (!saturates && (text == ".min" || text == ".max") && op != "vmin" && op != "vmax" &&
                  op != "vset")
                continue;
              out.push_back({op, d, a, b, mode, selectors[turn % 5], selectors[turn / 5 % 5],
                             merges ? text.substr(1) : "", merges ? "" : text, saturates});
            }
  return out;
}

TEST(ScalarVideo, Arithmetic) {
  for (const char *op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"})
    check(forms(op, {""}, false));
}

TEST(ScalarVideo, Shifts) {
  for (const char *op : {"vshl", "vshr"})
    check(forms(op, {".clamp", ".wrap"}, true));
}

TEST(ScalarVideo, Comparisons) { check(forms("vset", {".eq", ".ne", ".lt", ".le", ".gt", ".ge"}, false)); }

/// One thread's result.
uint32_t run(const std::string &instruction, uint32_t a, uint32_t b, uint32_t c) {
  TestMachine machine(kernelText("ld.global.u32 %r1, [%in0];\nld.global.u32 %r2, [%in0+4];\n"
                                 "ld.global.u32 %r3, [%in0+8];\n" +
                                     instruction + "\nst.global.u32 [%out], %r0;\n",
                                 1));
  uint64_t out = machine.allocate(4), in = machine.upload(std::vector<uint32_t>{a, b, c});
  auto fault = machine.launch("k", LaunchConfig(), out, in);
  EXPECT_FALSE(fault) << fault->text();
  return machine.download<uint32_t>(out, 1)[0];
}

TEST(ScalarVideo, UnsaturatedResultsHave33Bits) {
  // 2^32 + 4 has 34 bits with its sign, in 33 it is 4 - 2^32.
  EXPECT_EQ(run("vadd.u32.u32.u32.max %r0, %r1, %r2, %r3;", 0xFFFFFFFF, 5, 9), 9u);
  EXPECT_EQ(run("vsub.s32.s32.s32.min %r0, %r1, %r2, %r3;", 0x80000000, 1, 7), 0x7FFFFFFFu);
}

TEST(ScalarVideo, MultiplyAndAdd) {
  EXPECT_EQ(run("vmad.s32.s32.s32 %r0, %r1, %r2, %r3;", 7, uint32_t(-3), 100), 79u);
  EXPECT_EQ(run("vmad.s32.s32.s32 %r0, -%r1, %r2, %r3;", 7, 3, 100), 79u);
  EXPECT_EQ(run("vmad.s32.s32.s32 %r0, %r1, -%r2, %r3;", 7, 3, 100), 79u);
  EXPECT_EQ(run("vmad.s32.s32.s32 %r0, -%r1, -%r2, %r3;", 7, 3, 100), 121u);
  EXPECT_EQ(run("vmad.s32.s32.s32 %r0, %r1, %r2, -%r3;", 7, 3, 100), uint32_t(-79));
  EXPECT_EQ(run("vmad.u32.u32.u32.po %r0, %r1, %r2, %r3;", 7, 3, 100), 122u);
  // Parts: -1 x 0x80 as signed bytes; as unsigned ones.
  EXPECT_EQ(run("vmad.s32.s32.s32 %r0, %r1.b1, %r2.b0, %r3;", 0xFF00, 0x80, 0), 128u);
  EXPECT_EQ(run("vmad.u32.u32.u32 %r0, %r1.b1, %r2.b0, %r3;", 0xFF00, 0x80, 0), 255u * 128);
  EXPECT_EQ(run("vmad.s32.u32.s32 %r0, %r1.h1, %r2.h0, %r3;", 0xFFFF0000, 0xFFFF, 1), uint32_t(1 - 65535));
  // The sum is scaled with all of its bits, with the sign of the result.
  EXPECT_EQ(run("vmad.u32.u32.u32.shr7 %r0, %r1, %r2, %r3;", 0xFFFFFFFF, 0x100, 0),
            uint32_t(0xFFFFFFFFull * 256 >> 7));
  EXPECT_EQ(run("vmad.s32.s32.s32.shr15 %r0, %r1, %r2, %r3;", uint32_t(-1), 1, 0), 0xFFFFFFFFu);
  // Saturation by the sign of the result: signed where a, b or a negation is.
  EXPECT_EQ(run("vmad.u32.u32.u32.sat %r0, %r1, %r2, %r3;", 0xFFFFFFFF, 2, 0), 0xFFFFFFFFu);
  EXPECT_EQ(run("vmad.s32.s32.s32.sat %r0, %r1, %r2, %r3;", 0x7FFFFFFF, 2, 0), 0x7FFFFFFFu);
  EXPECT_EQ(run("vmad.s32.u32.u32.sat %r0, -%r1, %r2, %r3;", 0xFFFFFFFF, 2, 0), 0x80000000u);
  EXPECT_EQ(run("vmad.s32.s32.s32.sat.shr7 %r0, %r1, %r2, %r3;", 0x7FFFFFFF, 0x7FFFFFFF, 0), 0x7FFFFFFFu);
}

TEST(ScalarVideo, FormsThatThereAreNot) {
  for (const char *text :
       {"vadd.u32.u32.u32.add %r0.b0, %r1, %r2, %r3;", "vadd.f32.u32.u32 %r0, %r1, %r2;",
        "vadd.u32.u32.u32 %r0.b0, %r1, %r2;", "vshl.u32.u32.u32 %r0, %r1, %r2;",
        "vshl.u32.u32.s32.clamp %r0, %r1, %r2;", "vmad.u32.u32.u32.po %r0, -%r1, %r2, %r3;",
        "vmad.s32.s32.s32 %r0, -%r1, %r2, -%r3;", "vadd.s32.s32.s32 %r0, -%r1, %r2;",
        "vset.u32.u32.eq.sat %r0, %r1, %r2;"})
    EXPECT_THROW(TestMachine(kernelText(text, 0)), PtxError) << text;
}

} // namespace
