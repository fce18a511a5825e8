// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt where two numbers share a register (PTX ISA 9.7.9.21): two f32, or a pair in a
// register, to a pair. The first operand, or the upper number, is the upper one of the
// result.

#include "ConvertLanes.h"

using namespace fp8emu;
using num::Format;
using num::Rounding;
using ptx::Type;

namespace {

/// The bits of a lane that hold a pair; pairs of 4-bit elements lie in the lower half.
template <const Format &format>
using Pair = std::conditional_t<format.width() == 16, uint32_t, uint16_t>;

template <const Format &to>
uint32_t encodeNumber(double value, CvtMode mode) {
  return uint32_t(num::encode(to, value, mode.rounding, mode.satfinite, mode.relu));
}

template <const Format &from>
double decodeNumber(uint32_t bits) {
  if constexpr (from.width() == 16)
    return num::toFloat<from>(uint16_t(bits));
  else
    return num::decode(from, bits & ((1U << from.width()) - 1));
}

template <const Format &to>
Pair<to> encodePair(double high, double low, CvtMode mode) {
  return Pair<to>(encodeNumber<to>(high, mode) << slotBits(to) | encodeNumber<to>(low, mode));
}

template <const Format &to>
void fromFloats(Warp &warp, const Op &op, Mask mask) {
  auto *d = warp.values<Pair<to>>(op.d);
  const float *a = warp.values<float>(op.a);
  const float *b = warp.values<float>(op.b);
  CvtMode mode = CvtMode::unpack(op.flags);
  forLanes(mask, [=](unsigned lane) { d[lane] = encodePair<to>(a[lane], b[lane], mode); });
}

/// f16x2 and bf16x2 to nearest even.
template <const Format &to>
void fromFloatsNearest(Warp &warp, const Op &op, Mask mask) {
  uint32_t *d = warp.values<uint32_t>(op.d);
  const float *a = warp.values<float>(op.a);
  const float *b = warp.values<float>(op.b);
  forLanes(mask, [=](unsigned lane) {
    d[lane] = uint32_t(num::fromFloat<to>(a[lane])) << 16 | num::fromFloat<to>(b[lane]);
  });
}

template <const Format &to, const Format &from>
void fromPair(Warp &warp, const Op &op, Mask mask) {
  auto *d = warp.values<Pair<to>>(op.d);
  const auto *a = warp.values<Pair<from>>(op.a);
  CvtMode mode = CvtMode::unpack(op.flags);
  forLanes(mask, [=](unsigned lane) {
    uint32_t pair = a[lane];
    d[lane] = encodePair<to>(decodeNumber<from>(pair >> slotBits(from)), decodeNumber<from>(pair), mode);
  });
}

/// From 8 bits and fewer to f16x2 and bf16x2 without .relu: exact, by the list of values.
template <const Format &to, const Format &from>
void widenPair(Warp &warp, const Op &op, Mask mask) {
  constexpr uint32_t kCode = (1U << from.width()) - 1;
  uint32_t *d = warp.values<uint32_t>(op.d);
  const auto *a = warp.values<Pair<from>>(op.a);
  const float *table = num::floatTable(from);
  forLanes(mask, [=](unsigned lane) {
    uint32_t pair = a[lane];
    uint32_t high = num::fromFloat<to>(table[pair >> slotBits(from) & kCode]);
    d[lane] = high << 16 | num::fromFloat<to>(table[pair & kCode]);
  });
}

/// Each number times a scale: 2^(s - 127) for the UE8M0 s in a byte of b.
template <const Format &from>
void fromScaledPair(Warp &warp, const Op &op, Mask mask) {
  uint32_t *d = warp.values<uint32_t>(op.d);
  const auto *a = warp.values<Pair<from>>(op.a);
  const uint16_t *b = warp.values<uint16_t>(op.b);
  CvtMode mode = CvtMode::unpack(op.flags);
  forLanes(mask, [=](unsigned lane) {
    uint32_t pair = a[lane], scales = b[lane];
    double high = decodeNumber<from>(pair >> slotBits(from)) * decodeNumber<num::UE8M0>(scales >> 8);
    double low = decodeNumber<from>(pair) * decodeNumber<num::UE8M0>(scales & 0xff);
    d[lane] = encodePair<num::BF16>(high, low, mode);
  });
}

/// The types of 8, 6 and 4 bits, without scales.
bool isNarrow(const CvtType &type) {
  return type.count == 2 && type.format->width() <= 8 && type.format->hasZero;
}

bool is(const CvtType &type, const Format &format) { return type.count == 2 && type.format == &format; }

/// A value of the format as an argument.
template <const Format &format>
struct FormatTag {
  static constexpr const Format &kFormat = format;
};

/// Calls `make` with the tag of a narrow type.
template <class Make>
Handler forNarrow(const CvtType &type, Make make) {
  const Format *format = type.format;
  return format == &num::E4M3   ? make(FormatTag<num::E4M3>())
         : format == &num::E5M2 ? make(FormatTag<num::E5M2>())
         : format == &num::E2M3 ? make(FormatTag<num::E2M3>())
         : format == &num::E3M2 ? make(FormatTag<num::E3M2>())
                                : make(FormatTag<num::E2M1>());
}

Handler halfPairHandler(const Conversion &c) {
  bool isF16 = is(*c.to, num::F16);
  if (c.from->count == 1) {
    if (c.mode.isPlain())
      return isF16 ? &fromFloatsNearest<num::F16> : &fromFloatsNearest<num::BF16>;
    return isF16 ? &fromFloats<num::F16> : &fromFloats<num::BF16>;
  }
  if (is(*c.from, num::UE8M0))
    return &widenPair<num::BF16, num::UE8M0>;
  return forNarrow(*c.from, [&](auto from) -> Handler {
    constexpr const Format &format = decltype(from)::kFormat;
    if (c.scaled)
      return &fromScaledPair<format>;
    if (c.mode.isPlain())
      return isF16 ? &widenPair<num::F16, format> : &widenPair<num::BF16, format>;
    return isF16 ? &fromPair<num::F16, format> : &fromPair<num::BF16, format>;
  });
}

Handler narrowPairHandler(const Conversion &c) {
  return forNarrow(*c.to, [&](auto to) -> Handler {
    constexpr const Format &format = decltype(to)::kFormat;
    if (c.from->count == 1)
      return &fromFloats<format>;
    return is(*c.from, num::F16) ? &fromPair<format, num::F16> : &fromPair<format, num::BF16>;
  });
}

Handler scalePairHandler(const Conversion &c) {
  return c.from->count == 1 ? &fromFloats<num::UE8M0> : &fromPair<num::UE8M0, num::BF16>;
}

/// The modifiers that a kind of packed conversion may have and must have.
struct Rule {
  std::initializer_list<Rounding> roundings;
  bool relu = false, satfinite = false, needsSatfinite = false, scaled = false;
};

void check(Decoder &decoder, const Conversion &c, const Rule &rule) {
  bool known = false;
  for (Rounding rounding : rule.roundings)
    known |= c.kind == CvtRounding::Float && c.mode.rounding == rounding;
  if (!known)
    decoder.fail(c.kind == CvtRounding::None ? "a rounding is missing"
                                             : "this rounding is not for this conversion");
  if (c.mode.ftz || c.mode.sat)
    decoder.fail(".ftz and .sat are not for this conversion");
  if (c.mode.relu && !rule.relu)
    decoder.fail(".relu is not for this conversion");
  if (c.mode.satfinite && !rule.satfinite)
    decoder.fail(".satfinite is not for this conversion");
  if (!c.mode.satfinite && rule.needsSatfinite)
    decoder.fail(".satfinite is missing");
  if (c.scaled && !rule.scaled)
    decoder.fail(".scaled::n2::ue8m0 is not for this conversion");
}

/// The handler, all modifiers checked. From narrow types to bf16x2, scaled or not, is of
/// PTX 9.2; from bf16x2 to narrow types and from f16x2 to those of 6 bits of 9.1.
Handler chooseHandler(Decoder &decoder, const Conversion &c) {
  bool fromF32 = c.isFrom(Type::F32), toHalf = is(*c.to, num::F16) || is(*c.to, num::BF16);
  if (toHalf && fromF32) {
    check(decoder, c, {{Rounding::NearestEven, Rounding::Zero}, true, true});
    return halfPairHandler(c);
  }
  if (is(*c.to, num::F16) && isNarrow(*c.from)) {
    check(decoder, c, {{Rounding::NearestEven}, true});
    return halfPairHandler(c);
  }
  if (is(*c.to, num::BF16) && isNarrow(*c.from)) {
    check(decoder, c, {{Rounding::NearestEven}, true, true, false, /*scaled=*/true});
    return halfPairHandler(c);
  }
  if (is(*c.to, num::BF16) && is(*c.from, num::UE8M0)) {
    check(decoder, c, {{Rounding::NearestEven}});
    return halfPairHandler(c);
  }
  if (isNarrow(*c.to) && (fromF32 || is(*c.from, num::F16) || is(*c.from, num::BF16))) {
    check(decoder, c, {{Rounding::NearestEven}, true, true, /*needsSatfinite=*/true});
    return narrowPairHandler(c);
  }
  if (is(*c.to, num::UE8M0) && (fromF32 || is(*c.from, num::BF16))) {
    check(decoder, c, {{Rounding::Zero, Rounding::Up}, false, true});
    return scalePairHandler(c);
  }
  decoder.fail("there is no conversion from ." + std::string(c.from->name) + " to ." + c.to->name);
}

} // namespace

void fp8emu::decodePackedConversion(Decoder &decoder, const Conversion &c) {
  if (c.kind == CvtRounding::Stochastic)
    return decodeStochasticConversion(decoder, c);
  if (!c.to->format || !c.from->format)
    decoder.fail("there is no conversion from ." + std::string(c.from->name) + " to ." + c.to->name);
  Op &op = decoder.op();
  op.handler = chooseHandler(decoder, c);
  op.flags = c.mode.pack();
  bool hasSecond = c.from->count == 1 || c.scaled;
  decoder.expectOperands(hasSecond ? 3 : 2);
  op.a = decoder.source(1, c.from->type);
  if (hasSecond)
    op.b = decoder.source(2, c.scaled ? Type::B16 : Type::F32);
  if (is(*c.to, num::F16) && c.isFrom(Type::F32))
    return setWideDestination(decoder, c.to->type);
  op.d = decoder.destination(0, c.to->type);
}
