// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading --arg.

#include "Arguments.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <cstring>
#include <optional>

using namespace fp8ptx;
using llvm::APFloat;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Error fp8ptx::failure(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "fp8-ptx: error: " + message);
}

namespace {

struct TypeName {
  const char *name;
  uint8_t code, bits;
  /// The semantics of a float type.
  const llvm::fltSemantics &(*semantics)() = nullptr;
};

const TypeName kTypes[] = {
    {"bool", kDLBool, 8},
    {"i8", kDLInt, 8},
    {"i16", kDLInt, 16},
    {"i32", kDLInt, 32},
    {"i64", kDLInt, 64},
    {"u8", kDLUInt, 8},
    {"u16", kDLUInt, 16},
    {"u32", kDLUInt, 32},
    {"u64", kDLUInt, 64},
    {"f16", kDLFloat, 16, &APFloat::IEEEhalf},
    {"bf16", kDLBfloat, 16, &APFloat::BFloat},
    {"f32", kDLFloat, 32, &APFloat::IEEEsingle},
    {"f64", kDLFloat, 64, &APFloat::IEEEdouble},
    {"e4m3", FP8RT_DTYPE_CODE_F8E4M3FN, 8, &APFloat::Float8E4M3FN},
    {"e5m2", FP8RT_DTYPE_CODE_F8E5M2, 8, &APFloat::Float8E5M2},
    {"e8m0", FP8RT_DTYPE_CODE_F8E8M0FNU, 8, &APFloat::Float8E8M0FNU},
};

const TypeName *findType(StringRef name) {
  for (const TypeName &type : kTypes)
    if (name == type.name)
      return &type;
  return nullptr;
}

std::string typeNames() {
  std::string out;
  for (const TypeName &type : kTypes)
    out += (out.empty() ? "" : ", ") + std::string(type.name);
  return out;
}

Error wrong(StringRef text, const llvm::Twine &message) { return failure("--arg=" + text + ": " + message); }

/// Returns the bits of a number; unset if the text is not a number of the type.
std::optional<uint64_t> bitsOf(const TypeName &type, StringRef number) {
  if (type.semantics) {
    APFloat value(type.semantics());
    auto status = value.convertFromString(number, APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      return std::nullopt;
    }
    return value.bitcastToAPInt().getZExtValue();
  }
  if (type.code == kDLBool)
    return number == "true" || number == "1"    ? std::optional<uint64_t>(1)
           : number == "false" || number == "0" ? std::optional<uint64_t>(0)
                                                : std::nullopt;
  uint64_t bits = 0;
  if (type.code == kDLUInt)
    return number.getAsInteger(0, bits) || (type.bits < 64 && bits >> type.bits) ? std::nullopt
                                                                                 : std::optional(bits);
  int64_t value = 0;
  if (number.getAsInteger(0, value) || (type.bits < 64 && !llvm::isIntN(type.bits, value)))
    return std::nullopt;
  return uint64_t(value);
}

Expected<Argument> parseScalar(StringRef text, const TypeName &type, StringRef number) {
  auto bits = bitsOf(type, number);
  if (!bits)
    return wrong(text, "'" + number + "' is not a number of type " + type.name);
  Argument out;
  out.text = text.str();
  out.bytes.resize(type.bits / 8);
  std::memcpy(out.bytes.data(), &*bits, out.bytes.size());
  return out;
}

Expected<Argument> parseOut(StringRef text, StringRef rest) {
  auto [name, shaped] = rest.rsplit(':');
  auto [typeName, sizes] = shaped.split('[');
  const TypeName *type = findType(typeName);
  if (name.empty() || !sizes.consume_back("]"))
    return wrong(text, "expected out:NAME:TYPE[SIZE,SIZE,...]");
  if (!type)
    return wrong(text, "'" + typeName + "' is none of the types " + typeNames());
  Argument out;
  out.kind = Argument::Out;
  out.text = text.str();
  out.name = name.str();
  out.type = {type->code, type->bits, 1};
  llvm::SmallVector<StringRef> parts;
  sizes.split(parts, ',', -1, /*KeepEmpty=*/false);
  uint64_t elements = 1;
  for (StringRef part : parts) {
    uint64_t size = 0;
    if (part.trim().getAsInteger(10, size) || size > (uint64_t(1) << 40) / std::max<uint64_t>(elements, 1))
      return wrong(text, "'" + part + "' is not a size");
    elements *= size;
    out.shape.push_back(int64_t(size));
  }
  return out;
}

} // namespace

Expected<Argument> fp8ptx::parseArgument(StringRef text) {
  auto [prefix, rest] = text.split(':');
  if (prefix == "out")
    return parseOut(text, rest);
  if (const TypeName *type = findType(prefix); type && prefix.size() != text.size())
    return parseScalar(text, *type, rest);
  Argument out;
  out.text = text.str();
  out.kind = prefix == "inout" ? Argument::InOut : prefix == "value" ? Argument::Value : Argument::In;
  bool hasPrefix = prefix.size() != text.size() && (out.kind != Argument::In || prefix == "in");
  out.name = (hasPrefix ? rest : text).str();
  if (out.name.empty())
    return wrong(text, "expected a tensor's name, out:NAME:TYPE[SIZES] or TYPE:NUMBER");
  return out;
}

uint64_t fp8ptx::byteSize(DLDataType type, llvm::ArrayRef<int64_t> shape) {
  uint64_t bytes = type.bits / 8;
  for (int64_t size : shape)
    bytes *= uint64_t(size);
  return bytes;
}
