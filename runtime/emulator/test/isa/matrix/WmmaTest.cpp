// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wmma: products of matrices in memory, by rows and by columns, with strides.

#include "MatrixHarness.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

struct Form {
  unsigned m, n, k;
  const char *element, *sum, *types;
  unsigned bits, sumBits, registersA, registersB, registersC;
  Encode encode, encodeSum;
  int least = -3, most = 3;
};

const Encode f16 = encoding(num::F16), f32 = encoding(num::F32), f64 = encoding(num::F64);

const Form kForms[] = {
    {16, 16, 16, "f16", "f32", "f32.f32", 16, 32, 8, 8, 8, f16, f32},
    {8, 32, 16, "f16", "f16", "f16.f16", 16, 16, 8, 8, 4, f16, f16},
    {32, 8, 16, "f16", "f32", "f32.f32", 16, 32, 8, 8, 8, f16, f32},
    {16, 16, 16, "bf16", "f32", "f32.bf16.bf16.f32", 16, 32, 4, 4, 8, encoding(num::BF16), f32},
    {8, 32, 16, "bf16", "f32", "f32.bf16.bf16.f32", 16, 32, 2, 8, 8, encoding(num::BF16), f32},
    {16, 16, 8, "tf32", "f32", "f32.tf32.tf32.f32", 32, 32, 4, 4, 8, f32, f32},
    {8, 8, 4, "f64", "f64", "rn.f64.f64.f64.f64", 64, 64, 1, 1, 2, f64, f64},
    {16, 16, 16, "s8", "s32", "s32.s8.s8.s32", 8, 32, 2, 2, 8, asInteger, asInteger, -128, 127},
    {8, 32, 16, "u8", "s32", "s32.u8.u8.s32.satfinite", 8, 32, 1, 4, 8, asInteger, asInteger, 0, 255},
    {32, 8, 16, "s8", "s32", "s32.s8.s8.s32", 8, 32, 4, 1, 8, asInteger, asInteger, -128, 127},
    {8, 8, 32, "s4", "s32", "s32.s4.s4.s32", 4, 32, 1, 1, 2, asInteger, asInteger, -8, 7},
    {8, 8, 128, "b1", "s32", "s32.b1.b1.s32", 1, 32, 1, 1, 2, asInteger, asInteger, 0, 1},
};

/// In memory, each row (or column) `stride` elements after the one before.
std::vector<uint8_t> inMemory(const Matrix &matrix, bool byRows, unsigned stride, unsigned bits,
                              const Encode &encode) {
  unsigned lines = byRows ? matrix.rows : matrix.columns;
  std::vector<uint8_t> out(lines * stride * bits / 8);
  for (unsigned row = 0; row < matrix.rows; ++row)
    for (unsigned column = 0; column < matrix.columns; ++column) {
      size_t bit = size_t(byRows ? row * stride + column : column * stride + row) * bits;
      uint64_t code = encode(matrix.at(row, column));
      for (unsigned b = 0; b < bits; ++b)
        if (code >> b & 1)
          out[(bit + b) / 8] |= uint8_t(1u << (bit + b) % 8);
    }
  return out;
}

const char *layout(bool byRows) { return byRows ? "row" : "col"; }

void testForm(const Form &form, bool rowsA, bool rowsB, bool rowsC, unsigned spare) {
  std::string shape =
      "m" + std::to_string(form.m) + "n" + std::to_string(form.n) + "k" + std::to_string(form.k);
  unsigned strideA = (rowsA ? form.k : form.m) + spare, strideB = (rowsB ? form.n : form.k) + spare,
           strideC = (rowsC ? form.n : form.m) + spare;
  bool isBit = form.bits == 1;
  auto load = [&](const char *role, bool byRows, const char *type, const char *reg, unsigned count,
                  const char *from, unsigned stride) {
    return std::string("wmma.load.") + role + ".sync.aligned." + layout(byRows) + "." + shape + ".global." +
           type + " {" + registerList(reg, count) + "}, [%" + from + "]" +
           (spare ? ", " + std::to_string(stride) : "") + ";\n";
  };
  std::string text =
      std::string(".reg ") + (form.bits == 64 ? ".b64" : ".b32") + " %a<8>, %b<8>, %c<8>, %d<8>;\n" +
      load("a", rowsA, form.element, "a", form.registersA, "in0", strideA) +
      load("b", rowsB, form.element, "b", form.registersB, "in1", strideB) +
      load("c", rowsC, form.sum, "c", form.registersC, "in2", strideC) + "wmma.mma." +
      (isBit ? "and.popc." : "") + "sync.aligned." + layout(rowsA) + "." + layout(rowsB) + "." + shape + "." +
      form.types + " {" + registerList("d", form.registersC) + "}, {" + registerList("a", form.registersA) +
      "}, {" + registerList("b", form.registersB) + "}, {" + registerList("c", form.registersC) + "};\n" +
      "mov.u32 %r0, " + std::to_string(strideC) + ";\nwmma.store.d.sync.aligned." + layout(rowsC) + "." +
      shape + ".global." + form.sum + " [%out], {" + registerList("d", form.registersC) + "}, %r0;\n";
  Matrix a(form.m, form.k, 1, form.least, form.most), b(form.k, form.n, 2, form.least, form.most),
      c(form.m, form.n, 3, -30, 30), expected(form.m, form.n);
  TestMachine machine(kernelText(text, 3, "sm_80"));
  uint64_t in0 = machine.upload(inMemory(a, rowsA, strideA, form.bits, form.encode)),
           in1 = machine.upload(inMemory(b, rowsB, strideB, form.bits, form.encode)),
           in2 = machine.upload(inMemory(c, rowsC, strideC, form.sumBits, form.encodeSum));
  auto empty = inMemory(expected, rowsC, strideC, form.sumBits, asInteger);
  uint64_t out = machine.upload(empty);
  auto fault = machine.launch("k", oneBlock(32), out, in0, in1, in2);
  ASSERT_FALSE(fault) << fault->text();
  for (unsigned row = 0; row < form.m; ++row)
    for (unsigned column = 0; column < form.n; ++column) {
      int &sum = expected.at(row, column) = c.at(row, column);
      for (unsigned k = 0; k < form.k; ++k)
        sum += a.at(row, k) * b.at(k, column);
    }
  EXPECT_EQ(machine.download<uint8_t>(out, empty.size()),
            inMemory(expected, rowsC, strideC, form.sumBits, form.encodeSum))
      << shape << " " << form.element << layout(rowsA) << layout(rowsB) << layout(rowsC) << spare;
}

TEST(Wmma, MultipliesByRowsAndColumns) {
  for (const Form &form : kForms)
    for (unsigned layouts = 0; layouts < 8; ++layouts) {
      bool rowsA = layouts & 1, rowsB = layouts & 2, rowsC = layouts & 4;
      // Small elements have one layout.
      if (form.bits < 8 && (!rowsA || rowsB))
        continue;
      testForm(form, rowsA, rowsB, rowsC, 0);
      testForm(form, rowsA, rowsB, rowsC, form.bits < 8 ? 32 / form.bits : 8);
    }
}

TEST(Wmma, WhatIsNotThereIsAnError) {
  auto fails = [](const std::string &instruction) {
    EXPECT_THROW(TestMachine(kernelText(instruction, 0)), PtxError) << instruction;
  };
  fails("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0, %r1}, [%out];\n");
  fails(
      "wmma.load.a.sync.aligned.row.m16n16k8.global.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%out];\n");
  fails("wmma.load.b.sync.aligned.row.m8n8k32.global.s4 {%r0}, [%out];\n");
  fails("wmma.load.a.sync.aligned.row.m16n16k16.global.e4m3 {%r0, %r1}, [%out];\n");
}

} // namespace
