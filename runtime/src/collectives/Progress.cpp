// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps of each collective. A small all_reduce sends the whole to everyone; of a large one each rank
// first gets and reduces its part of a piece, and then sends that part to everyone.

#include "Progress.h"
#include "Reduce.h"

#include <algorithm>
#include <cstring>

using namespace fp8rt;
using namespace fp8rt::collectives;

/// The largest all_reduce in bytes that takes one piece to everyone.
static constexpr uint64_t kSmallReduction = 96 << 10;

static uint64_t divideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

Progress::Progress(Channel &channel, const fp8rt_collective &given, uint64_t number, bool movesData)
    : channel(channel), collective(given, channel.rank(), channel.size()), stamp(number << 24) {
  uint64_t ranks = collective.groupSize();
  uint32_t kind = collective.description.kind;
  inParts = kind == FP8RT_REDUCE_SCATTER || kind == FP8RT_ALL_TO_ALL;
  elements = movesData ? collective.description.count / (inParts ? ranks : 1) : 0;
  elementsPerPiece = channel.capacity() / collective.elementBytes / (inParts ? ranks : 1);
}

bool Progress::isReduction() const {
  uint32_t kind = collective.description.kind;
  return kind == FP8RT_ALL_REDUCE || kind == FP8RT_REDUCE_SCATTER;
}

Route Progress::route() const {
  switch (collective.description.kind) {
  case FP8RT_BROADCAST:
    return Route::Root;
  case FP8RT_SHIFT:
    return Route::Shift;
  default:
    return inParts ? Route::Parts : Route::Everyone;
  }
}

Piece Progress::nextPiece(Route route, uint64_t bytes) {
  Piece piece;
  piece.stamp = stamp + ++pieces;
  piece.buffer = static_cast<uint32_t>((stamp >> 24) + pieces) & 1;
  piece.route = route;
  piece.bytes = bytes;
  return piece;
}

/// Writes this rank's elements [begin, begin + count) to `out`: of each part, or of the whole.
void Progress::pack(char *out, uint64_t begin, uint64_t count) const {
  const Description &asked = collective.description;
  if (asked.kind == FP8RT_BROADCAST && collective.index != static_cast<uint32_t>(asked.root))
    return;
  uint64_t width = collective.elementBytes, bytes = count * width;
  uint64_t parts = inParts ? collective.groupSize() : 1;
  for (uint64_t part = 0; bytes && part < parts; ++part)
    std::memcpy(out + part * bytes, collective.send + (part * elements + begin) * width, bytes);
}

void Progress::reduceFrom(const Piece &piece, void *target, uint64_t count) {
  std::vector<const void *> sources;
  for (uint32_t member = 0; member < collective.groupSize(); ++member)
    sources.push_back(channel.incoming(collective, piece, member));
  reduce(collective.description.type, collective.description.reduction, sources, target, count);
}

/// Writes what has arrived to the elements [begin, begin + count) of the result, or of each rank's part in
/// it.
void Progress::unpack(const Piece &piece, uint64_t begin, uint64_t count) {
  uint64_t width = collective.elementBytes;
  char *target = collective.receive + begin * width;
  if (!count)
    return;
  if (isReduction())
    return reduceFrom(piece, target, count);
  auto take = [&](uint32_t member, char *to) {
    std::memcpy(to, channel.incoming(collective, piece, member), count * width);
  };
  switch (collective.description.kind) {
  case FP8RT_BROADCAST:
    return take(static_cast<uint32_t>(collective.description.root), target);
  case FP8RT_SHIFT:
    return take(collective.shiftSource(), target);
  default: // all_gather and all_to_all: a part of each rank, one after the other
    for (uint32_t member = 0; member < collective.groupSize(); ++member)
      take(member, target + member * elements * width);
  }
}

void Progress::complete(const Piece &piece, uint64_t begin, uint64_t count) {
  channel.await(collective, piece);
  unpack(piece, begin, count);
  channel.release(collective, piece);
}

bool Progress::tryPost() {
  bool isSmall = collective.description.kind != FP8RT_ALL_REDUCE || collective.bytes() <= kSmallReduction;
  if (elements > elementsPerPiece || !isSmall)
    return false;
  Piece piece = nextPiece(route(), elements * collective.elementBytes);
  char *out = channel.outgoing(piece, /*waits=*/false);
  if (!out) {
    pieces = 0;
    return false;
  }
  pack(out, 0, elements);
  channel.post(collective, piece);
  posted = piece;
  isPosted = true;
  return true;
}

void Progress::run() {
  if (isPosted)
    return complete(posted, 0, elements);
  bool isLargeReduction =
      collective.description.kind == FP8RT_ALL_REDUCE && collective.bytes() > kSmallReduction;
  uint64_t begin = 0;
  do { // a collective of no elements has one empty piece: ranks wait for each other all the same
    uint64_t count = std::min(elementsPerPiece, elements - begin);
    if (isLargeReduction) {
      reduceInParts(begin, count);
    } else {
      Piece piece = nextPiece(route(), count * collective.elementBytes);
      pack(channel.outgoing(piece, /*waits=*/true), begin, count);
      channel.post(collective, piece);
      complete(piece, begin, count);
    }
    begin += count;
  } while (begin < elements);
}

/// All-reduces the elements [begin, begin + count): the last rank's part may be shorter, or empty.
void Progress::reduceInParts(uint64_t begin, uint64_t count) {
  uint64_t width = collective.elementBytes, ranks = collective.groupSize();
  uint64_t part = divideUp(count, ranks);
  auto beginOf = [&](uint64_t member) { return std::min(member * part, count); };
  auto sizeOf = [&](uint64_t member) { return std::min(part, count - beginOf(member)); };

  Piece scattered = nextPiece(Route::Parts, part * width);
  std::memcpy(channel.outgoing(scattered, true), collective.send + begin * width, count * width);
  channel.post(collective, scattered);
  channel.await(collective, scattered);
  Piece gathered = nextPiece(Route::Everyone, part * width);
  reduceFrom(scattered, channel.outgoing(gathered, true), sizeOf(collective.index));
  channel.release(collective, scattered);
  channel.post(collective, gathered);
  channel.await(collective, gathered);
  for (uint32_t member = 0; member < ranks; ++member)
    if (uint64_t bytes = sizeOf(member) * width)
      std::memcpy(collective.receive + (begin + beginOf(member)) * width,
                  channel.incoming(collective, gathered, member), bytes);
  channel.release(collective, gathered);
}
