// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps: their bytes, what they may say, the rows of a box, swizzles.

#include "TensorMap.h"

#include <algorithm>
#include <cstring>
#include <iterator>

using namespace fp8emu;

namespace {

/// The 128 bytes. Values that tensormap.replace writes are kept as they are: whether
/// they go together is seen when the map is used.
struct Layout {
  uint64_t address;
  uint64_t magic;
  uint64_t stride[kMaxTensorRank - 1];
  /// Less one, as sizes go up to 2^32.
  uint32_t size[kMaxTensorRank];
  uint16_t box[kMaxTensorRank], step[kMaxTensorRank];
  uint8_t type, rank, interleave, swizzle, atom, fillNaN;
  uint8_t unused[34];
};
static_assert(sizeof(Layout) == kTensorMapBytes, "a tensor map has 128 bytes");

constexpr uint64_t kMagic = 0x70614D726F736E54; // "TnsorMap"
/// Programs clear this bit of the second word (a workaround for drivers of CUDA 13.1 and before).
constexpr uint64_t kFreeBit = uint64_t(1) << 21;
static_assert(kMagic & kFreeBit, "the bit is set where nobody has cleared it");

struct TypeFacts {
  const char *name;
  TensorUnit unit;
  bool isFloat;
};
constexpr TypeFacts kTypes[] = {
    {"u8", {1, 1, 1}, false},          {"u16", {1, 2, 2}, false},   {"u32", {1, 4, 4}, false},
    {"s32", {1, 4, 4}, false},         {"u64", {1, 8, 8}, false},   {"s64", {1, 8, 8}, false},
    {"f16", {1, 2, 2}, true},          {"f32", {1, 4, 4}, true},    {"f32.ftz", {1, 4, 4}, true},
    {"f64", {1, 8, 8}, true},          {"bf16", {1, 2, 2}, true},   {"tf32", {1, 4, 4}, true},
    {"tf32.ftz", {1, 4, 4}, true},     {"b4x16", {2, 1, 1}, false}, {"b4x16_p64", {16, 8, 16}, false},
    {"b6x16_p32", {16, 12, 16}, false}};
static_assert(std::size(kTypes) == size_t(TensorType::Count), "facts of each type");

std::string number(uint64_t value) { return std::to_string(value); }

/// Bytes of a row that a swizzle mixes; 0 for none.
unsigned span(Swizzle swizzle) {
  constexpr unsigned spans[] = {0, 32, 64, 128, 96};
  return spans[unsigned(swizzle)];
}

} // namespace

TensorUnit fp8emu::unitOf(TensorType type) { return kTypes[unsigned(type)].unit; }

bool fp8emu::isPadded(TensorType type) { return type == TensorType::B4x16P64 || type == TensorType::B6x16; }

const char *fp8emu::name(TensorType type) { return kTypes[unsigned(type)].name; }

bool TensorMap::decode(const uint8_t *bytes, TensorMap &map) {
  Layout layout;
  std::memcpy(&layout, bytes, sizeof layout);
  if ((layout.magic | kFreeBit) != kMagic || layout.type >= unsigned(TensorType::Count) ||
      layout.swizzle >= unsigned(Swizzle::Count) || layout.atom >= unsigned(SwizzleAtom::Count))
    return false;
  map.address = layout.address;
  map.type = TensorType(layout.type);
  map.rank = layout.rank;
  map.interleave = layout.interleave;
  map.swizzle = Swizzle(layout.swizzle);
  map.atom = SwizzleAtom(layout.atom);
  map.fillNaN = layout.fillNaN;
  for (unsigned i = 0; i < kMaxTensorRank; ++i) {
    map.size[i] = uint64_t(layout.size[i]) + 1;
    map.box[i] = layout.box[i];
    map.step[i] = layout.step[i];
  }
  std::copy(std::begin(layout.stride), std::end(layout.stride), map.stride.begin());
  return true;
}

void TensorMap::encode(uint8_t *bytes) const {
  Layout layout{};
  layout.magic = kMagic;
  layout.address = address;
  layout.type = uint8_t(type);
  layout.rank = rank;
  layout.interleave = interleave;
  layout.swizzle = uint8_t(swizzle);
  layout.atom = uint8_t(atom);
  layout.fillNaN = fillNaN;
  for (unsigned i = 0; i < kMaxTensorRank; ++i) {
    layout.size[i] = uint32_t(size[i] - 1);
    layout.box[i] = uint16_t(std::min(box[i], 0xFFFFu));
    layout.step[i] = uint16_t(std::min(step[i], 0xFFFFu));
  }
  std::copy(stride.begin(), stride.end(), std::begin(layout.stride));
  std::memcpy(bytes, &layout, sizeof layout);
}

std::string TensorMap::problem() const {
  if (rank == 0 || rank > kMaxTensorRank)
    return "the rank is " + number(rank) + ", it must be 1 to 5";
  if (interleave && rank < 3)
    return "interleaved tensors have at least 3 dimensions";
  const bool wide = isPadded(type) || interleave == 2;
  const unsigned alignment = wide ? 32 : 16;
  if (address % alignment)
    return "the tensor's address must be a multiple of " + number(alignment);
  for (unsigned i = 0; i < rank; ++i) {
    std::string which = " of dimension " + number(i);
    if (size[i] == 0 || size[i] > uint64_t(1) << 32)
      return "the size" + which + " is " + number(size[i]) + ", it must be 1 to 2^32";
    if (i && (stride[i - 1] % alignment || stride[i - 1] >= uint64_t(1) << 40))
      return "the stride" + which + " is " + number(stride[i - 1]) + ", it must be a multiple of " +
             number(alignment) + " below 2^40";
    if (box[i] == 0 || box[i] > 256)
      return "the box's size" + which + " is " + number(box[i]) + ", it must be 1 to 256";
    if (step[i] == 0 || step[i] > 8)
      return "the element stride" + which + " is " + number(step[i]) + ", it must be 1 to 8";
  }
  const TensorUnit unit = unitOf(type);
  if (isPadded(type) && (size[0] % 128 || box[0] != 128))
    return std::string("of .") + name(type) + ", rows are multiples of 128 elements and the box has 128";
  if (type == TensorType::B4x16 && size[0] % 2)
    return "rows of .b4x16 have a multiple of 2 elements";
  if (!interleave && (box[0] % unit.elements || rowBytes() % 16))
    return "the rows of the box must be multiples of 16 bytes";
  if (!interleave && span(swizzle) && rowBytes() > span(swizzle))
    return "a row of the box has " + number(rowBytes()) + " bytes, the swizzle allows " +
           number(span(swizzle));
  if (interleave == 2 && swizzle != Swizzle::B32)
    return "tensors interleaved by 32 bytes are swizzled by 32 bytes";
  if (interleave && type == TensorType::B6x16)
    return ".b6x16_p32 cannot be interleaved";
  if (swizzle != Swizzle::B128 && atom != SwizzleAtom::B16)
    return "only the swizzle of 128 bytes has another atomicity than 16 bytes";
  if (isPadded(type) && swizzle != Swizzle::None && swizzle != Swizzle::B128)
    return std::string(".") + name(type) + " is not swizzled, or by 128 bytes";
  if (isPadded(type) && atom == SwizzleAtom::B32Flip8)
    return std::string(".") + name(type) + " cannot have the swizzle that flips 8 bytes";
  if (type == TensorType::B4x16P64 && atom == SwizzleAtom::B64)
    return ".b4x16_p64 cannot have the swizzle that keeps 64 bytes together";
  if (fillNaN && !kTypes[unsigned(type)].isFloat)
    return "only tensors of floating-point numbers can be filled with NaN";
  return "";
}

uint32_t TensorMap::rowBytes() const {
  const TensorUnit unit = unitOf(type);
  return box[0] / unit.elements * unit.sharedBytes;
}

uint32_t TensorMap::boxBytes() const {
  uint32_t bytes = rowBytes();
  for (unsigned i = 1; i < rank; ++i)
    bytes *= (box[i] + step[i] - 1) / step[i];
  return bytes;
}

/// The part of the box's row with these coordinates that lies in the tensor. Without
/// interleave the step of dimension 0 is ignored (PTX ISA 5.5.3.2).
TensorRow TensorMap::row(int64_t column, const int64_t *others) const {
  TensorRow out;
  const TensorUnit unit = unitOf(type);
  uint64_t begin = address;
  for (unsigned i = 1; i < rank; ++i) {
    if (others[i - 1] < 0 || uint64_t(others[i - 1]) >= size[i])
      return out;
    begin += uint64_t(others[i - 1]) * stride[i - 1];
  }
  const int64_t width = box[0] / unit.elements, limit = int64_t(size[0] / unit.elements);
  // Coordinates are multiples of the unit's elements: the copy sees to that.
  const int64_t from = column / int64_t(unit.elements);
  const int64_t first = std::clamp<int64_t>(from, 0, limit),
                end = std::clamp<int64_t>(from + width, 0, limit);
  if (first >= end)
    return out;
  out.skipped = uint32_t(first - from);
  out.units = uint32_t(end - first);
  out.address = begin + uint64_t(first) * unit.globalBytes;
  return out;
}

std::vector<TensorRow> TensorMap::rows(const int32_t *coordinates) const {
  std::vector<TensorRow> out;
  const uint32_t bytes = rowBytes(), count = boxBytes() / bytes;
  for (uint32_t r = 0; r < count; ++r) {
    int64_t others[kMaxTensorRank] = {};
    uint32_t rest = r;
    for (unsigned i = 1; i < rank; ++i) {
      uint32_t steps = (box[i] + step[i] - 1) / step[i];
      others[i - 1] = int64_t(coordinates[i]) + int64_t(rest % steps) * step[i];
      rest /= steps;
    }
    out.push_back(row(coordinates[0], others));
    out.back().offset = r * bytes;
  }
  return out;
}

std::vector<TensorRow> TensorMap::fourRows(const int32_t *coordinates) const {
  std::vector<TensorRow> out;
  for (uint32_t r = 0; r < 4; ++r) {
    int64_t other = coordinates[1 + r];
    out.push_back(row(coordinates[0], &other));
    out.back().offset = r * rowBytes();
  }
  return out;
}

/// PTX ISA 5.5.7: pieces of a line of 128 bytes change places by the number of the
/// line. Lines are those of shared memory, wherever the box begins in it.
uint32_t TensorMap::swizzled(uint32_t offset) const {
  const uint32_t line = offset / 128;
  switch (swizzle) {
  case Swizzle::None:
  case Swizzle::Count:
    return offset;
  case Swizzle::B32:
  case Swizzle::B96:
    return offset ^ (line & 1) << 4;
  case Swizzle::B64:
    return offset ^ (line & 3) << 4;
  case Swizzle::B128:
    break;
  }
  switch (atom) {
  case SwizzleAtom::B16:
    return offset ^ (line & 7) << 4;
  case SwizzleAtom::B32:
    return offset ^ (line & 3) << 5;
  case SwizzleAtom::B32Flip8:
    return offset ^ (line & 3) << 5 ^ (line & 1) << 3;
  default:
    return offset ^ (line & 1) << 6;
  }
}

/// Zeros, or the NaN that fma.oob takes for zero (num/Half.h); of wider types, for
/// which PTX does not tell its bits either, the one that ends in a zero as well.
std::array<uint8_t, 8> TensorMap::filling() const {
  std::array<uint8_t, 8> out{};
  if (!fillNaN)
    return out;
  const unsigned bytes = unitOf(type).sharedBytes;
  for (unsigned i = 0; i < 8; ++i)
    out[i] = i % bytes == 0 ? 0xFE : i % bytes == bytes - 1 ? 0x7F : 0xFF;
  return out;
}
