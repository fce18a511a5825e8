// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of matrices: unpacking fragments, summing, packing the result.

#include "Products.h"

#include "num/Arith.h"
#include "num/DotColumns.h"

#include <cstring>

using namespace fp8emu;

namespace {

template <class T>
T load(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Element `i` of packed ones of 4 or 8 bits.
unsigned code(const Element &element, const uint8_t *bits, unsigned i) {
  return element.bits == 4 ? bits[i / 2] >> (i % 2 * 4) & 15U : unsigned(bits[i]) >> element.shift;
}

void unpackValues(const Element &element, const uint8_t *bits, unsigned count, float *out) {
  if (element.bits <= 8) {
    const float *table = num::floatTable(*element.format);
    for (unsigned i = 0; i < count; ++i)
      out[i] = table[code(element, bits, i)];
  } else if (element.bits == 32) {
    // tf32: the lower 13 bits are ignored.
    for (unsigned i = 0; i < count; ++i)
      out[i] = num::floatOf(load<uint32_t>(bits + 4 * i) & 0xffffe000U);
  } else if (element.format == &num::F16) {
    for (unsigned i = 0; i < count; ++i)
      out[i] = num::halfToFloat(load<uint16_t>(bits + 2 * i));
  } else {
    for (unsigned i = 0; i < count; ++i)
      out[i] = num::bfloatToFloat(load<uint16_t>(bits + 2 * i));
  }
}

void unpackValues(const Element &element, const uint8_t *bits, unsigned count, int16_t *out) {
  for (unsigned i = 0; i < count; ++i) {
    unsigned value = code(element, bits, i), sign = element.isSigned ? 1U << (element.bits - 1) : 0;
    out[i] = int16_t(int(value ^ sign) - int(sign));
  }
}

void unpackValues(const Element &, const uint8_t *bits, unsigned count, double *out) {
  std::memcpy(out, bits, count * sizeof *out);
}

void unpackValues(const Element &, const uint8_t *bits, unsigned count, uint32_t *out) {
  std::memcpy(out, bits, count / 8);
}

uint32_t sumOfFloats(const Product &p, const num::Sum &sum, uint32_t c, const float *a, const float *b) {
  if (p.c == Accumulator::F16 && p.d == Accumulator::F16)
    return num::dotHalf(sum, uint16_t(c), a, b, p.shape.k);
  float addend = p.c == Accumulator::F16 ? num::halfToFloat(uint16_t(c)) : num::floatOf(c);
  float out = num::dot(sum, addend, a, b, p.shape.k);
  return p.d == Accumulator::F16 ? num::floatToHalf(out) : num::bitsOf(out);
}

uint64_t element(const Product &p, const num::Sum &sum, uint64_t c, const float *a, const float *b) {
  return sumOfFloats(p, sum, uint32_t(c), a, b);
}

/// Fused multiplications and additions, one after the other (PTX ISA 9.7.14.5.14).
uint64_t element(const Product &p, const num::Sum &, uint64_t c, const double *a, const double *b) {
  double sum = num::doubleOf(c);
  for (unsigned i = 0; i < p.shape.k; ++i)
    sum = num::fma(a[i], b[i], sum, p.rounding);
  return num::bitsOf(sum);
}

uint64_t element(const Product &p, const num::Sum &, uint64_t c, const int16_t *a, const int16_t *b) {
  return uint32_t(num::dotInteger(int32_t(uint32_t(c)), a, b, p.shape.k, p.satfinite));
}

uint64_t element(const Product &p, const num::Sum &, uint64_t c, const uint32_t *a, const uint32_t *b) {
  uint32_t sum = uint32_t(c);
  for (unsigned i = 0; i < p.shape.k / 32; ++i)
    sum += uint32_t(__builtin_popcount(p.isXor ? a[i] ^ b[i] : a[i] & b[i]));
  return sum;
}

template <class V>
uint64_t scaledElement(const Product &, const num::Sum &, uint64_t c, const V *, const V *, const float *,
                       const float *) {
  return c;
}

uint64_t scaledElement(const Product &p, const num::Sum &sum, uint64_t c, const float *a, const float *b,
                       const float *scaleA, const float *scaleB) {
  return num::bitsOf(
      num::dotScaled(sum, num::floatOf(uint32_t(c)), a, b, p.shape.k, scaleA, scaleB, p.shape.k / p.scales));
}

/// Whether rows are added to many columns at once.
bool hasVectors(const Product &p, const num::Sum &sum) {
  return p.scales <= 1 && p.c == Accumulator::F32 && p.d == Accumulator::F32 &&
         num::DotColumns::has(sum, p.shape.k, p.scales != 0);
}

void multiplyByRows(const Product &p, const num::Sum &sum, const Multiplicand<float> &a,
                    const Multiplicand<float> &b, Sums &sums, const Scales *scales) {
  num::DotColumns columns(sum, b.row(0), p.shape.n, p.shape.k);
  std::array<float, 256> values;
  for (unsigned row = 0; row < p.shape.m; ++row) {
    uint64_t *out = sums.data() + row * p.shape.n;
    for (unsigned i = 0; i < p.shape.n; ++i)
      values[i] = num::floatOf(uint32_t(out[i]));
    columns.dot(a.row(row), values.data(), scales ? &scales->a[row] : nullptr,
                scales ? scales->b.data() : nullptr);
    for (unsigned i = 0; i < p.shape.n; ++i)
      out[i] = num::bitsOf(values[i]);
  }
}

} // namespace

template <class V>
void fp8emu::unpack(const Element &element, const uint8_t *bits, unsigned count, V *out) {
  unpackValues(element, bits, count, out);
}

template <class V>
void fp8emu::unpackFragments(const Element &element, Registers registers, unsigned count, unsigned rows,
                             unsigned k, Multiplicand<V> &out) {
  unsigned per = element.perRegister(), bytes = element.registerBytes();
  for (unsigned i = 0; i < count; ++i)
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      Place place = multiplicandPlace(rows, k, per, lane, i);
      unpackValues(element, registers[i] + lane * bytes, per, out.at(place.row, place.column));
    }
}

template <class V>
void fp8emu::multiply(const Product &product, num::SumModel model, const Multiplicand<V> &a,
                      const Multiplicand<V> &b, Sums &sums, const Scales *scales) {
  num::Sum sum = product.sum;
  sum.model = model;
  if constexpr (std::is_same_v<V, float>)
    if (hasVectors(product, sum))
      return multiplyByRows(product, sum, a, b, sums, scales);
  uint64_t *out = sums.data();
  for (unsigned row = 0; row < product.shape.m; ++row)
    for (unsigned column = 0; column < product.shape.n; ++column, ++out)
      *out = scales ? scaledElement(product, sum, *out, a.row(row), b.row(column),
                                    scales->a.data() + row * product.scales,
                                    scales->b.data() + column * product.scales)
                    : element(product, sum, *out, a.row(row), b.row(column));
}

void fp8emu::gatherSums(const Product &product, Registers registers, Sums &sums) {
  auto [m, n, k] = product.shape;
  for (unsigned i = 0; i < m * n / kLanes; ++i)
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      Place place = accumulatorPlace(m, n, lane, i);
      uint64_t &sum = sums[place.row * n + place.column];
      if (product.c == Accumulator::F16)
        sum = load<uint16_t>(registers[i / 2] + lane * 4 + i % 2 * 2);
      else if (product.c == Accumulator::F64)
        sum = load<uint64_t>(registers[i] + lane * 8);
      else
        sum = load<uint32_t>(registers[i] + lane * 4);
    }
}

void fp8emu::scatterSums(const Product &product, const Sums &sums, uint8_t *const *registers) {
  auto [m, n, k] = product.shape;
  for (unsigned i = 0; i < m * n / kLanes; ++i)
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      Place place = accumulatorPlace(m, n, lane, i);
      const uint64_t &sum = sums[place.row * n + place.column];
      // The host is little-endian: the lower bytes come first.
      if (product.d == Accumulator::F16)
        std::memcpy(registers[i / 2] + lane * 4 + i % 2 * 2, &sum, 2);
      else if (product.d == Accumulator::F64)
        std::memcpy(registers[i] + lane * 8, &sum, 8);
      else
        std::memcpy(registers[i] + lane * 4, &sum, 4);
    }
}

#define FP8EMU_INSTANTIATE(V)                                                                                \
  template void fp8emu::unpack(const Element &, const uint8_t *, unsigned, V *);                             \
  template void fp8emu::unpackFragments(const Element &, Registers, unsigned, unsigned, unsigned,            \
                                        Multiplicand<V> &);                                                  \
  template void fp8emu::multiply(const Product &, num::SumModel, const Multiplicand<V> &,                    \
                                 const Multiplicand<V> &, Sums &, const Scales *);
FP8EMU_INSTANTIATE(float)
FP8EMU_INSTANTIATE(double)
FP8EMU_INSTANTIATE(int16_t)
FP8EMU_INSTANTIATE(uint32_t)
#undef FP8EMU_INSTANTIATE
