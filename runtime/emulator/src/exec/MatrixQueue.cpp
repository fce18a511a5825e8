// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registers that products in flight use.

#include "MatrixQueue.h"

#include <algorithm>

using namespace fp8emu;

bool MatrixQueue::Use::writes(uint32_t offset) const {
  return std::find(accumulators.begin(), accumulators.end(), offset) != accumulators.end();
}

bool MatrixQueue::Use::reads(uint32_t offset) const {
  return std::find(inputs.begin(), inputs.end(), offset) != inputs.end();
}

void MatrixQueue::count(const Use &use, int change) {
  auto found = std::find_if(busy.begin(), busy.end(),
                            [&](const auto &entry) { return entry.first == use.frame.get(); });
  if (found == busy.end())
    found = busy.insert(busy.end(), {use.frame.get(), {}});
  std::vector<uint16_t> &counts = found->second;
  for (const auto *offsets : {&use.accumulators, &use.inputs})
    for (uint32_t offset : *offsets) {
      counts.resize(std::max<size_t>(counts.size(), offset / kGranule + 1));
      counts[offset / kGranule] = uint16_t(counts[offset / kGranule] + change);
    }
}

void MatrixQueue::guard(Use use) {
  use.group = groups;
  count(use, 1);
  uses.push_back(std::move(use));
}

void MatrixQueue::waited(uint64_t allowed) {
  auto isOver = [&](const Use &use) { return use.group + allowed < groups; };
  for (const Use &use : uses)
    if (isOver(use))
      count(use, -1);
  uses.erase(std::remove_if(uses.begin(), uses.end(), isOver), uses.end());
  if (uses.empty())
    busy.clear();
}
