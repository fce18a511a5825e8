// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stochastic rounding, and the values of the small formats as tables.

#include "Format.h"

#include <array>
#include <cassert>
#include <cstdint>

using namespace fp8emu;
using namespace fp8emu::num;

uint64_t num::encodeStochastic(const Format &format, double value, uint32_t random, unsigned randomBits,
                               bool satfinite, bool relu) {
  assert(format.hasZero && randomBits > 0 && randomBits <= 32);
  bool negative = (bitsOf(value) >> 63) != 0;
  if (isNaN(value) || !isFinite(value) || (relu && negative))
    return encode(format, value, Rounding::Zero, satfinite, relu);
  detail::Cut cut = detail::cut(format, value);
  uint64_t mask = (uint64_t(1) << randomBits) - 1;
  bool carry = (((cut.rest >> (64 - randomBits)) + (random & mask)) >> randomBits) != 0;
  return detail::finish(format, cut.code + carry, negative, !satfinite);
}

namespace {

using Table = std::array<float, 256>;

Table makeTable(const Format &format) {
  Table table;
  for (unsigned code = 0; code < table.size(); ++code) {
    auto value = static_cast<float>(decode(format, code));
    table[code] = isNaN(value) ? floatOf(static_cast<uint32_t>(F32.canonicalNaN())) : value;
  }
  return table;
}

} // namespace

const float *num::floatTable(const Format &format) {
  assert(format.width() <= 8);
  static const Table e4m3 = makeTable(E4M3), e5m2 = makeTable(E5M2), e2m3 = makeTable(E2M3),
                     e3m2 = makeTable(E3M2), e2m1 = makeTable(E2M1), ue8m0 = makeTable(UE8M0),
                     ue4m3 = makeTable(UE4M3);
  if (!format.hasZero)
    return ue8m0.data();
  switch (format.exponentBits) {
  case 5:
    return e5m2.data();
  case 4:
    return (format.isSigned ? e4m3 : ue4m3).data();
  case 3:
    return e3m2.data();
  default:
    return (format.mantissaBits == 3 ? e2m3 : e2m1).data();
  }
}
