// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Carrying out copies of boxes: rows, packed elements, swizzles.

#include "TensorCopy.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;

namespace {

/// To 10 bits of mantissa, to nearest even. The engine rounds what it loads as tf32
/// (PTX ISA 5.5.1); that .ftz flushes subnormal numbers on the way is its name's
/// only meaning.
uint32_t convert(uint32_t bits, bool rounds, bool flushes) {
  if (flushes && !(bits & 0x7F800000))
    bits &= 0x80000000;
  const bool isFinite = (bits & 0x7F800000) != 0x7F800000;
  if (rounds && isFinite)
    bits = (bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFFu;
  return bits;
}

void convertSingles(const TensorMap &map, uint8_t *at, unsigned count) {
  const bool rounds = map.type == TensorType::TF32 || map.type == TensorType::TF32Ftz;
  const bool flushes = map.type == TensorType::F32Ftz || map.type == TensorType::TF32Ftz;
  if (!rounds && !flushes)
    return;
  for (unsigned i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, at + 4 * i, 4);
    bits = convert(bits, rounds, flushes);
    std::memcpy(at + 4 * i, &bits, 4);
  }
}

/// 16 bytes of which the lower 6 bits count, into 12 (.b6p2x16).
void packSixBits(uint8_t *to, const uint8_t *from) {
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t bits = 0;
    for (unsigned j = 0; j < 4; ++j)
      bits |= uint32_t(from[4 * i + j] & 0x3F) << 6 * j;
    std::memcpy(to + 3 * i, &bits, 3);
  }
}

std::vector<GlobalRange> rangesOf(const TensorMap &map, const std::vector<TensorRow> &rows) {
  std::vector<GlobalRange> ranges;
  for (const TensorRow &row : rows)
    if (row.units)
      ranges.push_back({row.address, row.units * unitOf(map.type).globalBytes, nullptr});
  return ranges;
}

} // namespace

uint32_t BoxToShared::read() {
  const TensorUnit unit = unitOf(map.type);
  box.resize(rows.size() * map.rowBytes());
  const auto filling = map.filling();
  for (size_t i = 0; i < box.size(); ++i)
    box[i] = filling[i % filling.size()];
  std::vector<GlobalRange> ranges = rangesOf(map, rows);
  resolveGlobal(block, ranges, AccessKind::Load);
  const GlobalRange *range = ranges.data();
  for (const TensorRow &row : rows) {
    if (!row.units)
      continue;
    uint8_t *to = box.data() + row.offset + row.skipped * unit.sharedBytes;
    const uint8_t *host = (range++)->host;
    if (unit.sharedBytes == unit.globalBytes)
      std::memcpy(to, host, size_t(row.units) * unit.globalBytes);
    else
      for (unsigned i = 0; i < row.units; ++i)
        std::memcpy(to + i * unit.sharedBytes, host + i * unit.globalBytes, unit.globalBytes);
    convertSingles(map, to, row.units);
  }
  // All of the box counts, whatever part of it lies in the tensor.
  return uint32_t(box.size());
}

template <class F>
void BoxToShared::eachPiece(F f) const {
  const TensorUnit unit = unitOf(map.type);
  const bool padded = unit.sharedBytes != unit.globalBytes;
  const unsigned bytes = unsigned(rows.size() * map.rowBytes());
  // Padding behind packed elements stays as it was (PTX ISA 5.5.1.1.1).
  const bool whole = map.swizzle == Swizzle::None && !padded;
  const unsigned piece = whole ? bytes : map.granule();
  for (unsigned at = 0; at < bytes; at += piece)
    f(at, padded ? unit.globalBytes : piece);
}

void BoxToShared::announce() const {
  if (destinations.size() == 1)
    for (const GlobalRange &range : rangesOf(map, rows))
      destinations[0].agent.reads({nullptr, range.address}, range.bytes);
  for (const Destination &to : destinations)
    eachPiece([&](unsigned at, unsigned count) {
      to.agent.writes({to.place.block, map.swizzled(to.place.offset + at)}, count);
    });
}

void BoxToShared::write(const SharedPlace &to) {
  eachPiece([&](unsigned at, unsigned count) {
    SharedPlace place{to.block, map.swizzled(to.offset + at)};
    std::memcpy(resolveShared(place, count, AccessKind::Store), box.data() + at, count);
  });
}

template <class F>
void BoxToGlobal::eachPiece(F f) const {
  const TensorUnit unit = unitOf(map.type);
  const unsigned granule = map.granule();
  for (const TensorRow &row : rows) {
    unsigned at = row.offset + row.skipped * unit.sharedBytes, end = at + row.units * unit.sharedBytes;
    while (at < end) {
      unsigned count = std::min(end - at, granule - at % granule);
      f(at, SharedPlace{from.block, map.swizzled(from.offset + at)}, count);
      at += count;
    }
  }
}

void BoxToGlobal::announce(const check::Agent &agent) const {
  eachPiece([&](unsigned, const SharedPlace &place, unsigned count) {
    agent.reads({place.block, place.offset}, count);
  });
  for (const GlobalRange &range : rangesOf(map, rows))
    reduction ? agent.updates({nullptr, range.address}, range.bytes)
              : agent.writes({nullptr, range.address}, range.bytes);
}

void BoxToGlobal::read() {
  box.resize(rows.size() * map.rowBytes());
  eachPiece([&](unsigned at, const SharedPlace &place, unsigned count) {
    std::memcpy(box.data() + at, resolveShared(place, count, AccessKind::Load), count);
  });
}

void BoxToGlobal::write() {
  const TensorUnit unit = unitOf(map.type);
  std::vector<GlobalRange> ranges = rangesOf(map, rows);
  resolveGlobal(*from.block, ranges, reduction ? AccessKind::Atomic : AccessKind::Store);
  const GlobalRange *range = ranges.data();
  for (const TensorRow &row : rows) {
    if (!row.units)
      continue;
    const uint8_t *data = box.data() + row.offset + row.skipped * unit.sharedBytes;
    if (reduction)
      reduction(range->host, data, range->bytes);
    else if (map.type == TensorType::B6x16)
      for (unsigned i = 0; i < row.units; ++i)
        packSixBits(range->host + i * unit.globalBytes, data + i * unit.sharedBytes);
    else
      std::memcpy(range->host, data, range->bytes);
    ++range;
  }
}
