// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor memory: allocations and operations under way.

#include "TensorMemory.h"

#include <algorithm>

using namespace fp8emu;

std::string TensorRange::text() const {
  auto span = [](unsigned first, unsigned count) {
    return std::to_string(first) + " to " + std::to_string(first + count - 1);
  };
  return "lanes " + span(lane, lanes) + " of columns " + span(column, columns);
}

TensorMemory::TensorMemory() : cells(std::make_unique<uint32_t[]>(size_t(kTensorLanes) * kTensorColumns)) {}

bool TensorMemory::isFree(unsigned first, unsigned columns) const {
  return std::all_of(allocations.begin(), allocations.end(), [&](const auto &known) {
    return known.first + known.second.columns <= first || first + columns <= known.first;
  });
}

void TensorMemory::allocate(unsigned first, unsigned columns, const Fault &where) {
  allocations[first] = {columns, where};
  for (unsigned lane = 0; lane < kTensorLanes; ++lane)
    std::fill_n(&cell(lane, first), columns, ~uint32_t(0));
}

bool TensorMemory::deallocate(unsigned first, unsigned columns) {
  auto known = allocations.find(first);
  if (known == allocations.end() || known->second.columns != columns)
    return false;
  allocations.erase(known);
  return true;
}

bool TensorMemory::isAllocated(unsigned first, unsigned columns) const {
  for (unsigned end = first + columns; first < end;) {
    auto next = allocations.upper_bound(first);
    if (next == allocations.begin())
      return false;
    --next;
    if (next->first + next->second.columns <= first)
      return false;
    first = next->first + next->second.columns;
  }
  return true;
}

void TensorMemory::checkLeak() const {
  if (allocations.empty())
    return;
  const auto &[first, allocation] = *allocations.begin();
  Fault fault = allocation.where;
  fault.kind = FaultKind::TensorMemoryLeak;
  fault.message = std::to_string(allocation.columns) + " columns of tensor memory at " +
                  std::to_string(first) + " were not deallocated before the block ended";
  throw fault;
}

uint64_t TensorMemory::issue(unsigned thread) {
  lastOfThread[thread] = issued + 1;
  return issued++;
}

uint64_t TensorMemory::issuedBy(unsigned thread) const {
  auto last = lastOfThread.find(thread);
  return last == lastOfThread.end() ? 0 : last->second;
}

bool TensorMemory::storesInFlight(unsigned warp) const {
  auto known = stores.find(warp);
  return known != stores.end() && known->second;
}
