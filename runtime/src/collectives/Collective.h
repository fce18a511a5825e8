// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective that was asked for, checked: its group's ranks, and what it moves.

#ifndef FP8RT_COLLECTIVES_COLLECTIVE_H
#define FP8RT_COLLECTIVES_COLLECTIVE_H

#include "fp8rt/communicator.h"

#include <string>
#include <vector>

namespace fp8rt::collectives {

/// The properties that must be equal on all ranks of a group, and a name for messages. It lies in
/// shared memory and in messages between ranks.
struct Description {
  uint32_t kind, reduction, type, axes;
  int32_t root;
  uint32_t reserved;
  uint64_t count, grid; // a hash of the grid's extents
  char name[88];

  /// Returns whether the ranks do the same; names may differ.
  bool isSameAs(const Description &other) const;
  /// Returns a line such as: all_reduce max of 24 f32 'amaxes'
  std::string text() const;
};

struct Collective {
  /// Throws FP8RT_INVALID_ARGUMENT if the struct is not as communicator.h says.
  Collective(const fp8rt_collective &given, uint32_t rank, uint32_t size);

  uint64_t bytes() const { return description.count * elementBytes; }
  uint32_t groupSize() const { return static_cast<uint32_t>(members.size()); }
  /// The group's rank from which a shift takes its elements.
  uint32_t shiftSource() const;

  Description description;
  std::vector<uint32_t> members; // the group's ranks, in order
  uint32_t index;                // of this rank among them
  uint32_t elementBytes;
  const char *send;
  char *receive;
};

/// Returns the words for two ranks of a group that are in different collectives.
std::string describeDifference(uint32_t rank, const Description &ofRank, uint32_t other,
                               const Description &ofOther);

/// Returns the extents of a grid of `size` ranks; an extent that is 0 or negative is what the others leave.
/// Throws FP8RT_MISMATCH if they do not fit.
std::vector<uint32_t> extentsOfGrid(const std::vector<int64_t> &shape, uint32_t size);

/// Returns the size of an element of a type of communicator.h in bytes; 0 for an unknown type.
uint32_t bytesOfType(uint32_t type);

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_COLLECTIVE_H
