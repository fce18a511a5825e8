// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types of operands by one table: what each type of an instruction takes.

#include "OperandTypes.h"

#include <algorithm>
#include <string_view>

using namespace fp8emu;
using ptx::Type;

namespace {

/// Of a type of an instruction: the declared types of registers of its size that it takes, as a
/// list of names, and the numbers in the text that it takes.
struct OperandRule {
  Type type;
  std::string_view registers;
  enum Numbers : uint8_t { None, Integers, Floats, Single, Double } numbers;
};

constexpr std::string_view kBits16 = "b16 u16 s16 f16", kBits32 = "b32 u32 s32 f32 f16x2",
                           kBits64 = "b64 u64 s64 f64";
constexpr std::string_view kIntegers8 = "b8 u8 s8", kIntegers16 = "b16 u16 s16", kIntegers32 = "b32 u32 s32",
                           kIntegers64 = "b64 u64 s64";

constexpr OperandRule kRules[] = {
    {Type::Pred, "pred", OperandRule::Integers},
    // Bits are those of any type; a number with a point has those of the type of its size.
    {Type::B8, kIntegers8, OperandRule::Integers},
    {Type::B16, kBits16, OperandRule::Integers},
    {Type::B32, kBits32, OperandRule::Single},
    {Type::B64, kBits64, OperandRule::Double},
    {Type::B128, "b128", OperandRule::Integers},
    {Type::U8, kIntegers8, OperandRule::Integers},
    {Type::S8, kIntegers8, OperandRule::Integers},
    {Type::U16, kIntegers16, OperandRule::Integers},
    {Type::S16, kIntegers16, OperandRule::Integers},
    {Type::U32, kIntegers32, OperandRule::Integers},
    {Type::S32, kIntegers32, OperandRule::Integers},
    {Type::U64, kIntegers64, OperandRule::Integers},
    {Type::S64, kIntegers64, OperandRule::Integers},
    // No number in the text is one of 16 bits or a pair, and no register is declared as .bf16,
    // .bf16x2 or a pair other than .f16x2.
    {Type::F16, "b16 f16", OperandRule::None},
    {Type::BF16, "b16", OperandRule::None},
    {Type::U16x2, "b32 f16x2", OperandRule::None},
    {Type::S16x2, "b32 f16x2", OperandRule::None},
    {Type::F32x2, "b64", OperandRule::None},
    {Type::F16x2, "b32 f16x2", OperandRule::None},
    {Type::BF16x2, "b32", OperandRule::None},
    {Type::F32, "b32 f32", OperandRule::Floats},
    {Type::F64, "b64 f64", OperandRule::Floats},
};

const OperandRule &ruleOf(Type type) {
  return *std::find_if(std::begin(kRules), std::end(kRules),
                       [=](const OperandRule &rule) { return rule.type == type; });
}

/// Whether the name is a word of the list.
bool contains(std::string_view list, std::string_view name) {
  for (size_t at = list.find(name); at != std::string_view::npos; at = list.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' '))
      return true;
  }
  return false;
}

bool isBits(Type type) {
  return type == Type::B8 || type == Type::B16 || type == Type::B32 || type == Type::B64 ||
         type == Type::B128;
}

bool isFloating(Type type) {
  return ruleOf(type).numbers == OperandRule::Floats || ruleOf(type).numbers == OperandRule::None;
}

/// A register with more bits than the type: of bits for all types, of integers for bits and
/// integers, of floats for bits alone.
bool takesWider(Type type, Type declared) {
  if (byteSize(declared) <= byteSize(type) || declared == Type::Pred || declared == Type::B128)
    return false;
  if (isBits(type) || isBits(declared))
    return true;
  return !isFloating(type) && !isFloating(declared);
}

} // namespace

bool fp8emu::takesRegister(Type type, Type declared, bool wider) {
  return contains(ruleOf(type).registers, ptx::name(declared)) || (wider && takesWider(type, declared));
}

bool fp8emu::takesInteger(Type type) { return !isFloating(type); }

bool fp8emu::takesFloat(Type type, bool isSingle) {
  switch (ruleOf(type).numbers) {
  case OperandRule::Floats:
    return true;
  case OperandRule::Single:
    return isSingle;
  case OperandRule::Double:
    return !isSingle;
  default:
    return false;
  }
}

std::string fp8emu::registersFor(Type type, bool wider) {
  std::string out = ".";
  for (char c : ruleOf(type).registers)
    out += c == ' ' ? std::string(", .") : std::string(1, c);
  return out + (wider ? " or a wider one" : "");
}
