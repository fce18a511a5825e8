// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of element types, and the values of single elements.

#include "DType.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace fp8rt;

static constexpr DLDataType dl(int code, int bits) {
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
}

static const DType kTypes[] = {
    {"i1", "BOOL", dl(kDLBool, 8)},
    {"i8", "I8", dl(kDLInt, 8)},
    {"i16", "I16", dl(kDLInt, 16)},
    {"i32", "I32", dl(kDLInt, 32)},
    {"i64", "I64", dl(kDLInt, 64)},
    {"ui8", "U8", dl(kDLUInt, 8)},
    {"ui16", "U16", dl(kDLUInt, 16)},
    {"ui32", "U32", dl(kDLUInt, 32)},
    {"ui64", "U64", dl(kDLUInt, 64)},
    {"f16", "F16", dl(kDLFloat, 16)},
    {"bf16", "BF16", dl(kDLBfloat, 16)},
    {"f32", "F32", dl(kDLFloat, 32)},
    {"f64", "F64", dl(kDLFloat, 64)},
    {"f8E4M3FN", "F8_E4M3", dl(FP8RT_DTYPE_CODE_F8E4M3FN, 8)},
    {"f8E5M2", "F8_E5M2", dl(FP8RT_DTYPE_CODE_F8E5M2, 8)},
    {"f8E8M0FNU", "F8_E8M0", dl(FP8RT_DTYPE_CODE_F8E8M0FNU, 8)},
};

static bool same(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

const DType *fp8rt::findMlirType(const std::string &name) {
  // si32 has the same representation as i32.
  std::string signless = name.compare(0, 2, "si") ? name : name.substr(1);
  for (const DType &type : kTypes)
    if (signless == type.mlir)
      return &type;
  return nullptr;
}

const DType *fp8rt::findSafetensorsType(const std::string &name) {
  for (const DType &type : kTypes)
    if (name == type.safetensors)
      return &type;
  return nullptr;
}

const DType *fp8rt::findDLPackType(DLDataType wanted) {
  for (const DType &type : kTypes)
    if (same(type.dlpack, wanted))
      return &type;
  return nullptr;
}

std::string fp8rt::typeName(DLDataType type) {
  if (const DType *known = findDLPackType(type))
    return known->mlir;
  return "DLPack type " + std::to_string(type.code) + " of " + std::to_string(type.bits) + " bits";
}

bool fp8rt::accepts(DLDataType wanted, DLDataType given) {
  if (wanted.code == kDLInt && given.code == kDLUInt)
    given.code = kDLInt;
  return same(wanted, given);
}

template <typename T>
static T load(const void *data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

/// Returns the value of a small float: `bits` holds the sign, `exponentBits` and
/// `mantissaBits`. IEEE semantics; with `finiteOnly` only all ones is NaN.
static double decodeFloat(unsigned bits, int exponentBits, int mantissaBits, bool finiteOnly) {
  unsigned mantissa = bits & ((1u << mantissaBits) - 1);
  int top = (1 << exponentBits) - 1;
  int exponent = static_cast<int>(bits >> mantissaBits) & top;
  double sign = bits >> (exponentBits + mantissaBits) ? -1.0 : 1.0;
  int bias = top / 2;
  bool allOnes = mantissa + 1 == 1u << mantissaBits;
  if (exponent == top && (finiteOnly ? allOnes : mantissa != 0))
    return NAN;
  if (exponent == top && !finiteOnly)
    return sign * INFINITY;
  double fraction = std::ldexp(mantissa, -mantissaBits);
  if (exponent == 0)
    return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1.0 + fraction, exponent - bias);
}

static double decodeSmallFloat(const DType &type, const void *data) {
  switch (type.dlpack.code) {
  case kDLFloat:
    return decodeFloat(load<uint16_t>(data), 5, 10, false);
  case kDLBfloat:
    return decodeFloat(load<uint16_t>(data), 8, 7, false);
  case FP8RT_DTYPE_CODE_F8E4M3FN:
    return decodeFloat(load<uint8_t>(data), 4, 3, true);
  case FP8RT_DTYPE_CODE_F8E5M2:
    return decodeFloat(load<uint8_t>(data), 5, 2, false);
  default: // f8E8M0FNU: an exponent alone
    uint8_t exponent = load<uint8_t>(data);
    return exponent == 255 ? NAN : std::ldexp(1.0, exponent - 127);
  }
}

static std::string formatFloat(double value, int digits) {
  if (std::isnan(value))
    return "nan"; // printf may print its sign
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

static int64_t loadSigned(int bits, const void *data) {
  switch (bits) {
  case 8:
    return load<int8_t>(data);
  case 16:
    return load<int16_t>(data);
  case 32:
    return load<int32_t>(data);
  default:
    return load<int64_t>(data);
  }
}

static uint64_t loadUnsigned(int bits, const void *data) {
  switch (bits) {
  case 8:
    return load<uint8_t>(data);
  case 16:
    return load<uint16_t>(data);
  case 32:
    return load<uint32_t>(data);
  default:
    return load<uint64_t>(data);
  }
}

std::string fp8rt::formatElement(const DType &type, const void *data) {
  int bits = type.dlpack.bits;
  switch (type.dlpack.code) {
  case kDLInt:
    return std::to_string(loadSigned(bits, data));
  case kDLUInt:
  case kDLBool:
    return std::to_string(loadUnsigned(bits, data));
  case kDLFloat:
    if (bits == 64)
      return formatFloat(load<double>(data), 17);
    if (bits == 32)
      return formatFloat(static_cast<double>(load<float>(data)), 9);
    [[fallthrough]];
  default:
    return formatFloat(decodeSmallFloat(type, data), 9);
  }
}

/// The bits of a 16-bit float with that many bits of exponent and mantissa.
static bool encodeHalf(double value, int exponentBits, int mantissaBits, uint16_t &bits) {
  int bias = (1 << (exponentBits - 1)) - 1, exponent = 0;
  double fraction = std::frexp(std::fabs(value), &exponent); // 0.5 ≤ fraction < 1
  int field = value == 0 ? 0 : exponent - 1 + bias;
  double mantissa = field > 0 ? std::ldexp(2 * fraction - 1, mantissaBits)
                              : std::ldexp(std::fabs(value), bias - 1 + mantissaBits);
  if (!std::isfinite(value) || field >= 2 * bias + 1 || std::trunc(mantissa) != mantissa)
    return false;
  bits = static_cast<uint16_t>((std::signbit(value) ? 0x8000 : 0) | std::max(field, 0) << mantissaBits |
                               static_cast<int>(mantissa));
  return true;
}

/// The bits of NaN in a type of 8 bits: all ones, without the sign if there is one.
static bool encodeNaN(const DType &type, void *data) {
  if (type.dlpack.bits != 8 || type.dlpack.lanes != 1)
    return false;
  uint8_t bits = type.dlpack.code == FP8RT_DTYPE_CODE_F8E8M0FNU ? 0xFF : 0x7F;
  std::memcpy(data, &bits, sizeof(bits));
  return true;
}

static bool encodeReal(const DType &type, double value, void *data) {
  if (same(type.dlpack, dl(kDLFloat, 64))) {
    std::memcpy(data, &value, sizeof(value));
    return true;
  }
  if (same(type.dlpack, dl(kDLFloat, 32))) {
    float narrow = static_cast<float>(value);
    std::memcpy(data, &narrow, sizeof(narrow));
    return true;
  }
  if (std::isnan(value))
    return encodeNaN(type, data);
  bool isBFloat = same(type.dlpack, dl(kDLBfloat, 16));
  uint16_t bits = 0;
  if (!(isBFloat ? encodeHalf(value, 8, 7, bits)
                 : same(type.dlpack, dl(kDLFloat, 16)) && encodeHalf(value, 5, 10, bits)))
    return false;
  std::memcpy(data, &bits, sizeof(bits));
  return true;
}

bool fp8rt::encodeElement(const DType &type, const Number &value, void *data) {
  std::memset(data, 0, type.bytes());
  if (value.isWhole ? value.whole == 0 : value.real == 0.0 && !std::signbit(value.real))
    return type.dlpack.code != FP8RT_DTYPE_CODE_F8E8M0FNU;
  if (type.dlpack.code != kDLInt && type.dlpack.code != kDLUInt && type.dlpack.code != kDLBool)
    return encodeReal(type, value.real, data);
  if (!value.isWhole)
    return false;
  bool isSigned = type.dlpack.code == kDLInt;
  int bits = type.dlpack.code == kDLBool ? 1 : type.dlpack.bits - isSigned;
  int64_t high = bits >= 63 ? INT64_MAX : (int64_t(1) << bits) - 1;
  if (value.whole > high || value.whole < (isSigned ? -high - 1 : 0))
    return false;
  // The low bytes of a two's complement number come first.
  std::memcpy(data, &value.whole, type.bytes());
  return true;
}
