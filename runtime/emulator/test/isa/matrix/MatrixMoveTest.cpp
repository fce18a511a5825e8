// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ldmatrix, stmatrix and movmatrix: which byte of shared memory comes to which lane.

#include "MatrixHarness.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// 32 rows of 16 bytes in shared memory, from in0; %r0 is the address of the lane's row.
const char *const kRows = ".shared .align 16 .b8 rows[512];\n.reg .b64 %p;\nmov.u32 %r0, rows;\n"
                          "mad.lo.u32 %r0, %i, 16, %r0;\nmul.wide.u32 %p, %i, 16;\nadd.u64 %p, %p, %in0;\n"
                          "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%p];\n"
                          "st.shared.v4.b32 [%r0], {%r1, %r2, %r3, %r4};\nbar.warp.sync 0xffffffff;\n"
                          "mad.wide.u32 %rd0, %i, 4, %out;\n";

/// The registers that a load gives the lanes.
std::vector<uint32_t> load(const std::string &form, unsigned registers, const std::vector<uint8_t> &rows) {
  TestMachine machine(kernelText(
      kRows + ("ldmatrix.sync.aligned." + form + " {%r10") + (registers > 1 ? ", %r11" : "") +
          (registers > 2 ? ", %r12, %r13" : "") + "}, [%r0];\n" +
          [&] {
            std::string text;
            for (unsigned i = 0; i < registers; ++i)
              text +=
                  "st.global.b32 [%rd0 + " + std::to_string(i * 128) + "], %r1" + std::to_string(i) + ";\n";
            return text;
          }(),
      1, "sm_120a"));
  uint64_t in = machine.upload(rows), out = machine.allocate(512);
  auto fault = machine.launch("k", oneBlock(32), out, in);
  EXPECT_FALSE(fault) << fault->text();
  return machine.download<uint32_t>(out, registers * 32);
}

/// Bytes that all differ from their neighbours.
std::vector<uint8_t> someRows() {
  std::vector<uint8_t> rows(512);
  for (unsigned i = 0; i < 512; ++i)
    rows[i] = uint8_t(i * 37 + i / 256);
  return rows;
}

uint32_t join(unsigned a, unsigned b, unsigned c, unsigned d) { return a | b << 8 | c << 16 | d << 24; }

TEST(MatrixMove, LoadsEightByEight) {
  auto rows = someRows();
  auto at = [&](unsigned matrix, unsigned row, unsigned column) {
    return rows[matrix * 128 + row * 16 + column * 2] |
           unsigned(rows[matrix * 128 + row * 16 + column * 2 + 1]) << 8;
  };
  for (unsigned count : {1u, 2u, 4u})
    for (bool transposed : {false, true}) {
      auto d =
          load("m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "") + ".shared.b16", count, rows);
      for (unsigned m = 0; m < count; ++m)
        for (unsigned lane = 0; lane < 32; ++lane) {
          unsigned row = lane / 4, column = lane % 4 * 2;
          uint32_t expected = transposed ? at(m, column, row) | at(m, column + 1, row) << 16
                                         : at(m, row, column) | at(m, row, column + 1) << 16;
          ASSERT_EQ(d[m * 32 + lane], expected) << count << transposed << " lane " << lane;
        }
    }
}

/// Lane 4 g + t has bytes g and g + 8 of rows 4 t to 4 t + 3 (PTX ISA Figure 105).
TEST(MatrixMove, LoadsSixteenBySixteenBytes) {
  auto rows = someRows();
  for (unsigned count : {1u, 2u}) {
    auto d = load("m16n16.x" + std::to_string(count) + ".trans.shared.b8", 2 * count, rows);
    for (unsigned reg = 0; reg < 2 * count; ++reg)
      for (unsigned lane = 0; lane < 32; ++lane) {
        auto at = [&](unsigned i) {
          return rows[reg / 2 * 256 + (lane % 4 * 4 + i) * 16 + lane / 4 + reg % 2 * 8];
        };
        ASSERT_EQ(d[reg * 32 + lane], join(at(0), at(1), at(2), at(3)));
      }
  }
}

TEST(MatrixMove, LoadsFourAndSixBitsAsBytes) {
  auto rows = someRows();
  for (unsigned bits : {4u, 6u}) {
    auto element = [&](unsigned row, unsigned i) {
      unsigned value = 0;
      for (unsigned b = 0; b < bits; ++b)
        value |= unsigned(rows[row * 16 + (i * bits + b) / 8] >> (i * bits + b) % 8 & 1) << b;
      return value;
    };
    std::string format = bits == 4 ? ".shared.b8x16.b4x16_p64" : ".shared::cta.b8x16.b6x16_p32";
    auto d = load("m8n16.x4" + format, 4, rows);
    for (unsigned reg = 0; reg < 4; ++reg)
      for (unsigned lane = 0; lane < 32; ++lane) {
        auto at = [&](unsigned i) { return element(reg * 8 + lane / 4, lane % 4 * 4 + i); };
        ASSERT_EQ(d[reg * 32 + lane], join(at(0), at(1), at(2), at(3))) << bits;
      }
    d = load("m16n16.x1.trans" + format, 2, rows);
    for (unsigned reg = 0; reg < 2; ++reg)
      for (unsigned lane = 0; lane < 32; ++lane) {
        auto at = [&](unsigned i) { return element(lane % 4 * 4 + i, lane / 4 + reg * 8); };
        ASSERT_EQ(d[reg * 32 + lane], join(at(0), at(1), at(2), at(3))) << bits;
      }
  }
}

/// .m16n8: the four bytes of lane 4 g + t are those of rows g, columns 2 t and 2 t + 1, and
/// of row g + 8; a column is 16 bytes in memory (Figure 108).
TEST(MatrixMove, StoresBytes) {
  std::string text = kRows;
  text += "bar.warp.sync 0xffffffff;\n"
          "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%r0], {%r1, %r2, %r3, %r4};\nbar.warp.sync "
          "0xffffffff;\n"
          "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r0];\nmad.wide.u32 %rd0, %i, 16, %out;\n"
          "st.global.v4.b32 [%rd0], {%r1, %r2, %r3, %r4};\n";
  TestMachine machine(kernelText(text, 1, "sm_100a"));
  auto rows = someRows();
  uint64_t in = machine.upload(rows), out = machine.allocate(512);
  auto fault = machine.launch("k", oneBlock(32), out, in);
  ASSERT_FALSE(fault) << fault->text();
  auto stored = machine.download<uint8_t>(out, 512);
  for (unsigned matrix = 0; matrix < 4; ++matrix)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 4; ++i) {
        unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        ASSERT_EQ(stored[matrix * 128 + column * 16 + row], rows[lane * 16 + matrix * 4 + i]);
      }
}

TEST(MatrixMove, TransposesInRegisters) {
  TestMachine machine(kernelText("mad.wide.u32 %rd0, %i, 4, %in0;\nld.global.b32 %r0, [%rd0];\n"
                                 "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r0;\n"
                                 "mad.wide.u32 %rd0, %i, 4, %out;\nst.global.b32 [%rd0], %r0;\n",
                                 1));
  std::vector<uint16_t> x(64);
  std::iota(x.begin(), x.end(), uint16_t(100));
  uint64_t in = machine.upload(x), out = machine.allocate(128);
  ASSERT_FALSE(machine.launch("k", oneBlock(32), out, in));
  auto d = machine.download<uint16_t>(out, 64);
  for (unsigned i = 0; i < 64; ++i)
    ASSERT_EQ(d[i], x[i % 8 * 8 + i / 8]);
}

TEST(MatrixMove, ChecksAddresses) {
  auto kindOf = [](const std::string &body) {
    TestMachine machine(kernelText(kRows + body, 1));
    uint64_t in = machine.upload(someRows()), out = machine.allocate(512);
    auto fault = machine.launch("k", oneBlock(32), out, in);
    return fault ? describe(fault->kind) : "none";
  };
  std::string load = "ldmatrix.sync.aligned.m8n8.x1";
  EXPECT_STREQ(kindOf("add.u32 %r0, %r0, 8;\n" + load + ".shared.b16 {%r1}, [%r0];\n"),
               describe(FaultKind::Misaligned));
  EXPECT_STREQ(kindOf("add.u32 %r0, %r0, 512;\n" + load + ".shared.b16 {%r1}, [%r0];\n"),
               describe(FaultKind::OutOfBounds));
  EXPECT_STREQ(kindOf(load + ".b16 {%r1}, [%in0];\n"), describe(FaultKind::IllegalOperand));
  // Lanes whose rows are not asked for may have any address.
  EXPECT_STREQ(
      kindOf("setp.gt.u32 %p0, %i, 7;\n@%p0 mov.u32 %r0, 3;\n" + load + ".shared.b16 {%r1}, [%r0];\n"),
      "none");
}

TEST(MatrixMove, WhatIsNotThereIsAnError) {
  for (const char *form : {"m8n8.x1.shared.b8", "m16n16.x1.shared.b8", "m16n16.x4.trans.shared.b8",
                           "m8n16.x1.trans.shared.b8x16.b4x16_p64", "m8n8.x1.global.b16"})
    EXPECT_THROW(
        TestMachine(kernelText(std::string("ldmatrix.sync.aligned.") + form + " {%r0}, [%r1];\n", 0)),
        PtxError)
        << form;
  EXPECT_THROW(TestMachine(kernelText("stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r1], {%r0};\n", 0)),
               PtxError);
  EXPECT_THROW(TestMachine(kernelText("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r1];\n", 0)),
               PtxError);
}

} // namespace
