// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places of ranks on a program's grid.

#include "Program.h"
#include "../core/Status.h"
#include "Collective.h"
#include "Ranks.h"

using namespace fp8rt;
using namespace fp8rt::collectives;

void collectives::checkRanks(const Library &library, const fp8rt_communicator *communicator) {
  const Shape &grid = library.manifest().grid;
  if (!grid.empty())
    extentsOfGrid(grid, communicator ? communicator->size : 1);
}

void collectives::tellFailure(const fp8rt_communicator *communicator, const std::string &reason) noexcept {
  if (Ranks *ranks = Ranks::find(communicator))
    ranks->tellFailure("rank " + std::to_string(ranks->rank()) + " failed: " + reason);
}

void collectives::checkCollectives(const fp8rt_communicator *communicator) {
  if (Ranks *ranks = Ranks::find(communicator))
    ranks->check();
}

Part collectives::partOf(const Library &library, const Value &value, int32_t dim, uint32_t rank,
                         uint32_t size) {
  if (dim < 0 || static_cast<size_t>(dim) >= value.shape.size() || rank >= size)
    fail(FP8RT_INVALID_ARGUMENT,
         "dimension " + std::to_string(dim) + " of rank " + std::to_string(rank) + " is out of range");
  std::vector<uint32_t> extents = extentsOfGrid(library.manifest().grid, size);
  Part part;
  for (const Shard &shard : value.shards) {
    if (shard.dim != static_cast<uint32_t>(dim))
      continue;
    uint32_t stride = 1;
    for (size_t axis = shard.axis + 1; axis < extents.size(); ++axis)
      stride *= extents[axis];
    part.number = part.number * extents[shard.axis] + rank / stride % extents[shard.axis];
    part.count *= extents[shard.axis];
  }
  return part;
}
