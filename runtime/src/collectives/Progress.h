// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One collective on a channel: cut into pieces, which are moved and combined.

#ifndef FP8RT_COLLECTIVES_PROGRESS_H
#define FP8RT_COLLECTIVES_PROGRESS_H

#include "Channel.h"

namespace fp8rt::collectives {

class Progress {
public:
  /// `number` counts the collectives of this rank, from 0. Without data, ranks only come together.
  Progress(Channel &channel, const fp8rt_collective &given, uint64_t number, bool movesData = true);

  /// Posts the collective's piece without waiting, if it has only one and the channel has memory for it.
  bool tryPost();
  /// Completes the collective.
  void run();

  const Collective &request() const { return collective; }

private:
  Piece nextPiece(Route route, uint64_t bytes);
  Route route() const;
  bool isReduction() const;
  void pack(char *out, uint64_t begin, uint64_t count) const;
  void unpack(const Piece &piece, uint64_t begin, uint64_t count);
  void complete(const Piece &piece, uint64_t begin, uint64_t count);
  void reduceFrom(const Piece &piece, void *target, uint64_t count);
  void reduceInParts(uint64_t begin, uint64_t count);

  Channel &channel;
  Collective collective;
  uint64_t stamp;
  uint32_t pieces = 0;
  /// The elements that are cut into pieces: for collectives of parts, those of one part.
  uint64_t elements, elementsPerPiece;
  bool inParts, isPosted = false;
  Piece posted;
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_PROGRESS_H
