// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules, variables, initialisers and constant expressions, by value.

#include "ParserSupport.h"

#include <cstring>

using namespace fp8emu;
using namespace fp8emu::ptx;
using namespace fp8emu_test;

namespace {

using Bytes = std::vector<uint8_t>;

Variable parseVariable(const std::string &text) { return parseModule(text).variables.back(); }

/// The value of a constant expression, as a .b64 is initialised with it.
uint64_t evaluate(const std::string &expression) {
  uint64_t value = 0;
  Bytes init = parseVariable(".global .b64 x = " + expression + ";").init;
  EXPECT_EQ(init.size(), 8u) << expression;
  std::memcpy(&value, init.data(), std::min<size_t>(init.size(), 8));
  return value;
}

double evaluateReal(const std::string &expression) {
  double value = 0;
  Bytes init = parseVariable(".global .f64 x = " + expression + ";").init;
  EXPECT_EQ(init.size(), 8u) << expression;
  std::memcpy(&value, init.data(), std::min<size_t>(init.size(), 8));
  return value;
}

uint32_t evaluateSingle(const std::string &expression) {
  uint32_t value = 0;
  Bytes init = parseVariable(".global .f32 x = " + expression + ";").init;
  EXPECT_EQ(init.size(), 4u) << expression;
  std::memcpy(&value, init.data(), std::min<size_t>(init.size(), 4));
  return value;
}

TEST(ParserDeclarationTest, ModuleSettings) {
  Module module = parse(".version 8.6 .target sm_100a, debug .address_size 64\n"
                        ".pragma \"one\", \"two\";\n.file 2 \"a b.cu\", 1700000000, 42");
  EXPECT_EQ(module.version, std::make_pair(8u, 6u));
  EXPECT_EQ(module.target, "sm_100a");
  EXPECT_EQ(module.addressSize, 64u);
  EXPECT_EQ(module.pragmas, (std::vector<std::string>{"one", "two"}));
  ASSERT_EQ(module.files.size(), 1u);
  EXPECT_EQ(module.files[0], std::make_pair(2u, std::string("a b.cu")));
}

TEST(ParserDeclarationTest, CommentsSectionsAndTrailingNulsFallAway) {
  Module module = parse("// one\n/* two\n * three */.version 9.0 @@DWARF .b8 \"\n.target sm_89\n"
                        ".section .debug_abbrev { .b8 1 { .b32 $L__info } $L__end: }\n" +
                        std::string(3, '\0'));
  EXPECT_EQ(module.target, "sm_89");
  EXPECT_TRUE(module.variables.empty());
}

TEST(ParserDeclarationTest, SpacesLinkageAlignmentTypes) {
  Module module = parseModule(".visible .global .align 16 .v4 .f32 a;\n"
                              ".extern .shared .align 128 .b8 b[];\n"
                              "  .weak .const .u16 c[2][3], d;\n"
                              ".common .global .attribute(.managed) .s64 e;");
  ASSERT_EQ(module.variables.size(), 5u);
  const Variable &a = module.variables[0], &b = module.variables[1], &c = module.variables[2];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.space, Space::Global);
  EXPECT_EQ(a.linkage, Linkage::Visible);
  EXPECT_EQ(a.alignment, 16u);
  EXPECT_EQ(a.vectorWidth, 4u);
  EXPECT_EQ(a.type, Type::F32);
  EXPECT_EQ(a.bytes(), 16u);
  EXPECT_FALSE(a.isArray);
  EXPECT_EQ(b.space, Space::Shared);
  EXPECT_EQ(b.linkage, Linkage::Extern);
  EXPECT_EQ(b.alignment, 128u);
  EXPECT_EQ(b.count, 0u);
  EXPECT_TRUE(b.isArray);
  EXPECT_EQ(c.count, 6u);
  EXPECT_EQ(c.alignment, 2u);
  EXPECT_EQ(c.where.line, 6u);
  EXPECT_EQ(c.where.column, 21u);
  EXPECT_EQ(module.variables[3].name, "d");
  EXPECT_EQ(module.variables[3].linkage, Linkage::Weak);
  EXPECT_EQ(module.variables[3].count, 1u);
  EXPECT_EQ(module.variables[4].linkage, Linkage::Common);
}

TEST(ParserDeclarationTest, EveryTypeIsNamed) {
  for (unsigned i = 0; i <= static_cast<unsigned>(Type::F64); ++i) {
    auto type = static_cast<Type>(i);
    Function function = parseKernel(std::string(".reg .") + name(type) + " r;");
    EXPECT_EQ(function.registers.at(0).type, type);
  }
  EXPECT_EQ(byteSize(Type::B128), 16u);
  EXPECT_EQ(byteSize(Type::BF16x2), 4u);
  EXPECT_EQ(byteSize(Type::Pred), 1u);
}

TEST(ParserDeclarationTest, InitialisersPadRowsWithZeros) {
  Variable rows = parseVariable(".global .u16 x[2][3] = {{1}, {2, -1}};");
  EXPECT_EQ(rows.init, (Bytes{1, 0, 0, 0, 0, 0, 2, 0, 0xFF, 0xFF}));
  EXPECT_EQ(rows.bytes(), 12u);
  EXPECT_TRUE(parseVariable(".const .b32 x[4] = {};").init.empty());
  EXPECT_EQ(parseVariable(".const .b8 x = 3000;").init, Bytes{0xB8});
  Bytes wide = parseVariable(".global .b128 x = -5;").init;
  EXPECT_EQ(wide, (Bytes{0xFB, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(ParserDeclarationTest, InitialisersGiveArraysTheirSize) {
  Variable x = parseVariable(".global .b8 x[][2] = {{1, 2}, {3}, {}};");
  EXPECT_EQ(x.count, 6u);
  EXPECT_EQ(x.init, (Bytes{1, 2, 3}));
  Variable vectors = parseVariable(".global .v2 .b8 x[] = {{1, 2}, {3, 4}};");
  EXPECT_EQ(vectors.count, 2u);
  EXPECT_EQ(vectors.bytes(), 4u);
  EXPECT_EQ(vectors.init, (Bytes{1, 2, 3, 4}));
}

TEST(ParserDeclarationTest, FloatingPointInitialisers) {
  EXPECT_EQ(evaluateSingle("0f3F8CCCCD"), 0x3F8CCCCDu);
  EXPECT_EQ(evaluateSingle("1.1"), 0x3F8CCCCDu);
  EXPECT_EQ(evaluateSingle("0d3FF199999999999A"), 0x3F8CCCCDu);
  EXPECT_EQ(evaluateSingle("-1.5e0"), 0xBFC00000u);
  EXPECT_EQ(evaluateReal("0D3ff199999999999a"), 1.1);
  EXPECT_EQ(evaluateReal("1.e3"), 1000);
  EXPECT_EQ(evaluateReal(".5E-1"), 0.05);
  EXPECT_EQ(evaluateReal("-(1.5) * 2.0 + 0.25 / 0.5 - 1.0"), -3.5);
  EXPECT_EQ(evaluate("0f3F800000"), 0x3F800000u);
  EXPECT_EQ(evaluate("1.5"), 0x3FF8000000000000u);
  EXPECT_EQ(evaluate("(1.5 < 2.0) + (1.0 != 1.0) + (2.0 >= 2.0)"), 2u);
  EXPECT_EQ(parseVariable(".global .b32 x = 1.5;").init, (Bytes{0, 0, 0xC0, 0x3F}));
  EXPECT_EQ(parseVariable(".global .b16 x = 0d3FF199999999999A;").init, (Bytes{0x9A, 0x99}));
}

TEST(ParserDeclarationTest, Addresses) {
  Variable x = parseModule(".global .b8 a[9]; .func f() { ret; }\n"
                           ".global .u64 x[4] = {a, generic(a)+4, a+-2+1, f};")
                   .variables.back();
  EXPECT_EQ(x.init, Bytes(32));
  ASSERT_EQ(x.relocations.size(), 4u);
  const int64_t addends[] = {0, 4, -1, 0};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(x.relocations[i].offset, 8 * i);
    EXPECT_EQ(x.relocations[i].size, 8u);
    EXPECT_EQ(x.relocations[i].shift, 0u);
    EXPECT_EQ(x.relocations[i].symbol, i == 3 ? "f" : "a");
    EXPECT_EQ(x.relocations[i].addend, addends[i]);
    EXPECT_EQ(x.relocations[i].generic, i == 1);
  }
}

TEST(ParserDeclarationTest, BytesOfAddresses) {
  Variable x = parseVariable(".global .b8 a;\n.global .u8 x[4] = {7, 0xFF(a), 0xFF00(generic(a)+3), "
                             "0xFF00000000000000(a)};");
  EXPECT_EQ(x.init, (Bytes{7, 0, 0, 0}));
  ASSERT_EQ(x.relocations.size(), 3u);
  EXPECT_EQ(x.relocations[0].shift, 0u);
  EXPECT_EQ(x.relocations[1].shift, 8u);
  EXPECT_EQ(x.relocations[1].offset, 2u);
  EXPECT_EQ(x.relocations[1].size, 1u);
  EXPECT_EQ(x.relocations[1].addend, 3);
  EXPECT_TRUE(x.relocations[1].generic);
  EXPECT_EQ(x.relocations[2].shift, 56u);
}

TEST(ParserDeclarationTest, DefinitionsTakeThePlaceOfExterns) {
  Module module = parseModule(".extern .global .b32 a[]; .global .b32 b;\n"
                              ".visible .global .b32 a[4] = {1}; .extern .global .b32 a[];");
  ASSERT_EQ(module.variables.size(), 2u);
  EXPECT_EQ(module.variables[0].count, 4u);
  EXPECT_EQ(module.variables[0].linkage, Linkage::Visible);
}

TEST(ParserDeclarationTest, IntegerLiterals) {
  EXPECT_EQ(evaluate("0x1F"), 31u);
  EXPECT_EQ(evaluate("0X1fU"), 31u);
  EXPECT_EQ(evaluate("017"), 15u);
  EXPECT_EQ(evaluate("0b1011"), 11u);
  EXPECT_EQ(evaluate("0"), 0u);
  EXPECT_EQ(evaluate("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(evaluate("WARP_SZ"), 32u);
}

// Each value is what NVIDIA's assembler puts in the same variable.
TEST(ParserDeclarationTest, ConstantExpressions) {
  EXPECT_EQ(evaluate("2+3*4-(6/4)*2"), 12u);
  EXPECT_EQ(evaluate("- - 5"), 5u);
  EXPECT_EQ(evaluate("3 -1"), 2u);
  EXPECT_EQ(evaluate("!5 + !0"), 1u);
  EXPECT_EQ(evaluate("1 | 2 ^ 3 & 2"), 1u);
  EXPECT_EQ(evaluate("6 & 3 == 3"), 0u);
  EXPECT_EQ(evaluate("3 > 2 > 1"), 0u);
  EXPECT_EQ(evaluate("5 && 2 || 0"), 1u);
  EXPECT_EQ(evaluate("1 ? 2 : 3 ? 4 : 5"), 2u);
  EXPECT_EQ(evaluate("0 ? 2 : 0 ? 4 : 5"), 5u);
}

TEST(ParserDeclarationTest, SignsInConstantExpressions) {
  EXPECT_EQ(evaluate("-7 / 3"), static_cast<uint64_t>(-2));
  EXPECT_EQ(evaluate("-7 % 3"), 0u);
  EXPECT_EQ(evaluate("5 % -3"), 5u);
  EXPECT_EQ(evaluate("(7 % 4) - 8 < 0"), 0u);
  EXPECT_EQ(evaluate("-7 >> 1"), static_cast<uint64_t>(-4));
  EXPECT_EQ(evaluate("-7U >> 1"), 0x7FFFFFFFFFFFFFFCu);
  EXPECT_EQ(evaluate("~0 >> 1"), 0x7FFFFFFFFFFFFFFFu);
  EXPECT_EQ(evaluate("1 << 70"), 64u);
  EXPECT_EQ(evaluate("1 << -1"), uint64_t(1) << 63);
  EXPECT_EQ(evaluate("-1 < 1U"), 0u);
  EXPECT_EQ(evaluate("(-1 | 0) < 1"), 1u);
  EXPECT_EQ(evaluate("((.u64)5 & 3) - 4 < 0"), 0u);
  EXPECT_EQ(evaluate("(.s64)3U - 4 < 0"), 1u);
  EXPECT_EQ(evaluate("(1 ? -1 : 1U) < 0"), 1u);
  EXPECT_EQ(evaluate("9223372036854775808 < 0"), 0u);
  EXPECT_EQ(evaluate("-0x7FFFFFFFFFFFFFFF - 1"), uint64_t(1) << 63);
  EXPECT_EQ(evaluate("(-0x7FFFFFFFFFFFFFFF - 1) / -1"), uint64_t(1) << 63);
  EXPECT_EQ(evaluate("0x8000000000000000 / -1"), 0u);
}

} // namespace
