// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of matrices, for mma, wmma and wgmma: what the types and shapes of an
// instruction mean, multiplicands unpacked to numbers, and one warp's d = a b + c.

#ifndef FP8EMU_ISA_MATRIX_PRODUCTS_H
#define FP8EMU_ISA_MATRIX_PRODUCTS_H

#include "Fragments.h"

#include "exec/Warp.h"
#include "isa/Decoder.h"
#include "num/DotProduct.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace fp8emu {

/// The type of a multiplicand's elements.
struct Element {
  enum Kind : uint8_t { Float, Double, Integer, Bit } kind;
  /// Of a float.
  const num::Format *format = nullptr;
  /// Bits of its place in a register and in memory, and how far above the lowest one of
  /// them it lies.
  uint8_t bits = 0;
  uint8_t shift = 0;
  bool isSigned = false;

  /// Elements in a register.
  unsigned perRegister() const { return kind == Double ? 1 : 32 / bits; }
  unsigned registerBytes() const { return kind == Double ? 8 : 4; }
};

enum class Accumulator : uint8_t { F16, F32, S32, F64 };

struct Shape {
  unsigned m = 0, n = 0, k = 0;
  bool operator==(const Shape &o) const { return m == o.m && n == o.n && k == o.k; }
};

/// One product of matrices.
struct Product {
  /// The shape that one warp computes.
  Shape shape;
  Element a, b;
  Accumulator c = Accumulator::F32, d = Accumulator::F32;
  /// Without its model, which the launch decides.
  num::Sum sum;
  num::Rounding rounding = num::Rounding::NearestEven;
  bool satfinite = false;
  /// Of single bits: xor instead of and.
  bool isXor = false;
  bool negateA = false, negateB = false;
  /// Scale factors along K; 0 without.
  unsigned scales = 0;
  const num::Format *scaleFormat = nullptr;

  /// wmma's fragments of f16 are never smaller.
  unsigned leastRegisters = 0;

  unsigned registersA() const {
    return std::max(leastRegisters, shape.m * shape.k / a.perRegister() / kLanes);
  }
  unsigned registersB() const {
    return std::max(leastRegisters, shape.n * shape.k / b.perRegister() / kLanes);
  }
  unsigned registersOf(Accumulator type) const {
    return shape.m * shape.n / kLanes / (type == Accumulator::F16 ? 2 : 1);
  }
};

/// Types are set; finds the sum that the module's target makes.
void setSum(Product &product, num::TensorUnit unit);
/// The tensor core that mma and wmma reach on the module's target.
num::TensorUnit warpUnit(const Decoder &decoder);

/// Values as the arithmetic takes them: floats; doubles; integers; words of 32 bits.
template <class V>
constexpr unsigned kPerValue = std::is_same_v<V, uint32_t> ? 32 : 1;

/// A multiplicand unpacked: the rows of A or the columns of B, each along K.
template <class V>
struct Multiplicand {
  explicit Multiplicand(unsigned k) : stride(k / kPerValue<V>) {}
  V *at(unsigned row, unsigned column) { return values.data() + row * stride + column / kPerValue<V>; }
  const V *row(unsigned i) const { return values.data() + i * stride; }

  unsigned stride;
  /// 256 columns of 32 numbers at most, or of 8 words.
  std::array<V, 256 * 32 / (sizeof(V) > 4 ? 8 : 1)> values;
};

/// `count` elements from packed bits.
template <class V>
void unpack(const Element &element, const uint8_t *bits, unsigned count, V *out);

/// The fragments of a warp, in these registers of a frame.
using Registers = const uint8_t *const *;
template <class V>
void unpackFragments(const Element &element, Registers registers, unsigned count, unsigned rows, unsigned k,
                     Multiplicand<V> &out);

/// An element of an accumulator in bits of its type.
using Sums = std::array<uint64_t, 16 * 256>;
void gatherSums(const Product &product, Registers registers, Sums &sums);
void scatterSums(const Product &product, const Sums &sums, uint8_t *const *registers);

/// Factors of rows of A and columns of B, `Product::scales` of each.
struct Scales {
  std::array<float, 16 * 4> a;
  std::array<float, 8 * 4> b;
};

/// sums = a b + sums.
template <class V>
void multiply(const Product &product, num::SumModel model, const Multiplicand<V> &a, const Multiplicand<V> &b,
              Sums &sums, const Scales *scales = nullptr);

/// Calls `f` with a value of what the elements are unpacked to.
template <class F>
auto forElement(Element::Kind kind, F f) {
  switch (kind) {
  case Element::Double:
    return f(double());
  case Element::Integer:
    return f(int16_t());
  case Element::Bit:
    return f(uint32_t());
  default:
    return f(float());
  }
}

// Decoding and executing.

/// .sync.aligned
void takeAligned(Decoder &decoder);
/// As in .m16n8k16.
Shape takeShape(Decoder &decoder);
/// The next in the text of these modifiers: its index.
unsigned takeNext(Decoder &decoder, std::initializer_list<const char *> names);
/// Types by name; takeAccumulator takes the next in the text.
Element findElement(const Decoder &decoder, const std::string &name);
Accumulator findAccumulator(const Decoder &decoder, const std::string &name);
inline Accumulator takeAccumulator(Decoder &decoder) { return findAccumulator(decoder, decoder.takeAny()); }
inline ptx::Type registerType(Accumulator type) {
  return type == Accumulator::F64   ? ptx::Type::F64
         : type == Accumulator::F32 ? ptx::Type::F32
                                    : ptx::Type::B32;
}

/// The registers of a fragment: `count` of them, in braces or alone.
std::vector<Ref> fragmentSource(Decoder &decoder, const ptx::Operand &operand, unsigned count,
                                ptx::Type type = ptx::Type::B32);
std::vector<Ref> fragmentDestination(Decoder &decoder, const ptx::Operand &operand, unsigned count,
                                     ptx::Type type = ptx::Type::B32);

/// Whether all lanes execute the instruction now; false while others are awaited. Faults
/// where the warp has less than 32 lanes left: .aligned needs all of them.
bool wholeWarp(Warp &warp, Mask mask);
/// Where registers lie: of the list's operands from `first` on.
template <size_t N>
void findRegisters(Warp &warp, const Ref *refs, unsigned count, std::array<uint8_t *, N> &out) {
  for (unsigned i = 0; i < count; ++i)
    out[i] = warp.values<uint8_t>(refs[i]);
}

} // namespace fp8emu

#endif // FP8EMU_ISA_MATRIX_PRODUCTS_H
