// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the ranks of a group pass pieces of host memory to each other: through shared memory or MPI.

#ifndef FP8RT_COLLECTIVES_CHANNEL_H
#define FP8RT_COLLECTIVES_CHANNEL_H

#include "Collective.h"

namespace fp8rt::collectives {

/// The parts of a rank's piece, and the ranks of the group that they go to.
enum class Route {
  Everyone, ///< the whole piece to every rank
  Parts,    ///< part number r, one of equal size for each rank, to rank r
  Root,     ///< the piece of rank `root` to every rank
  Shift,    ///< to the one rank whose shift takes it
};

/// A piece that is on its way.
struct Piece {
  uint64_t stamp = 0;  ///< of later pieces it is larger: the collective's number and the piece's number in it
  uint32_t buffer = 0; ///< 0 or 1: which of the memories holds it
  Route route = Route::Everyone;
  uint64_t bytes = 0; ///< that each receiver gets of each sender
};

/// How far a rank has come with collectives that no channel moves: those of devices.
struct Standing {
  uint64_t number = 0; ///< counts the collectives that it has come to
  Description at = {}; ///< the last of them
  uint64_t asks = 0;   ///< counts how often it has asked the others where they are
};

/// Whether more may come from a rank.
enum class Absence { None, Ended, Gone };

/// Returns "the run there has ended" or "the process is gone".
inline const char *describe(Absence absence) {
  return absence == Absence::Gone ? "the process is gone" : "the run there has ended";
}

/// All ranks of a group take the same steps for each piece: write it to `outgoing`, `post`, `await`, read
/// what is `incoming`, `release`. Two pieces may be posted at a time. One thread at a time calls. Functions
/// throw FP8RT_RANKS if the collective cannot be completed: a rank is gone, has failed, is in another
/// collective, or has not arrived after the deadline.
class Channel {
public:
  virtual ~Channel() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  /// The longest time in seconds that another rank is waited for.
  virtual double deadline() const = 0;
  /// The largest size of a rank's piece in bytes.
  virtual uint64_t capacity() const = 0;

  /// Returns memory for this rank's piece; null if there is none at the moment and `waits` is false.
  virtual char *outgoing(const Piece &piece, bool waits) = 0;
  virtual void post(const Collective &collective, const Piece &piece) = 0;
  virtual void await(const Collective &collective, const Piece &piece) = 0;
  /// Returns what rank number `member` of the group sent to this rank.
  virtual const char *incoming(const Collective &collective, const Piece &piece, uint32_t member) = 0;
  virtual void release(const Collective &collective, const Piece &piece) = 0;

  /// Tells the other ranks that this one goes no further, and why. The first reason of all counts.
  virtual void tellFailure(const std::string &reason) noexcept = 0;

  // These four, and tellFailure, another thread may call at the same time.

  /// Tells the other ranks how far this one is.
  virtual void announce(const Standing &own) = 0;
  /// Returns what a rank has announced last.
  virtual Standing standing(uint32_t rank) = 0;
  /// Returns whether a rank is there.
  virtual Absence absence(uint32_t rank) = 0;
  /// Returns why the ranks go no further; empty if they do.
  virtual std::string failure() = 0;
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_CHANNEL_H
