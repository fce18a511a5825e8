// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparing rectangles of tensor memory.

#include "TensorShadow.h"

#include <algorithm>

using namespace fp8emu;
using namespace fp8emu::check;

namespace {

/// Accesses that are remembered: beyond, the oldest is forgotten.
constexpr size_t kMostAccesses = 4096;

bool holds(const TensorRange &a, const TensorRange &b) {
  return a.lane <= b.lane && b.lane + b.lanes <= a.lane + a.lanes && a.column <= b.column &&
         b.column + b.columns <= a.column + a.columns;
}

bool isSame(const AccessInfo &a, const AccessInfo &b) {
  return a.queueBlock == b.queueBlock && a.queue == b.queue && a.epoch == b.epoch;
}

} // namespace

bool check::precedes(const TensorAccess &before, const TensorAccess &now, const ClockRef &known) {
  const Segment *segment = known ? known->find(before.info.queueBlock) : nullptr;
  if (!segment)
    return false;
  const bool isPipelined = before.pipe == TensorPipe::Engine && now.pipe == TensorPipe::Engine;
  return segment->queue(before.info.queue) >= before.info.epoch ||
         (isPipelined && segment->queue(before.issued) >= before.info.epoch);
}

std::optional<TensorAccess> TensorShadow::access(const TensorAccess &now, const ClockRef &known) {
  std::optional<TensorAccess> conflict;
  auto isOver = [&](const TensorAccess &before) {
    if (!before.range.overlaps(now.range) || isSame(before.info, now.info))
      return false;
    const bool ordered = precedes(before, now, known);
    if (!ordered && (before.info.isWrite || now.info.isWrite))
      conflict = before;
    // Accesses that race with the earlier one race with this one, too.
    return ordered && (now.info.isWrite || !before.info.isWrite) && holds(now.range, before.range);
  };
  accesses.erase(std::remove_if(accesses.begin(), accesses.end(), isOver), accesses.end());
  if (accesses.size() == kMostAccesses)
    accesses.erase(accesses.begin());
  accesses.push_back(now);
  return conflict;
}

void TensorShadow::forget(unsigned column, unsigned columns) {
  const TensorRange freed{0, column, kTensorLanes, columns};
  accesses.erase(std::remove_if(accesses.begin(), accesses.end(),
                                [&](const TensorAccess &access) { return freed.overlaps(access.range); }),
                 accesses.end());
}
