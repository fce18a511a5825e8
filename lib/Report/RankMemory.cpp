// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory that each rank of a program keeps from step to step, and that of all ranks together, for the
// report.

#include "fp8/Report/RankMemory.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace fp8;

namespace {
/// Bytes of one rank and of all together; unset where a size or an extent of the grid is not known.
struct Total {
  std::optional<int64_t> own = 0, whole = 0;

  void add(std::optional<int64_t> bytes, std::optional<int64_t> parts) {
    own = own && bytes ? std::optional(*own + *bytes) : std::nullopt;
    whole = whole && bytes && parts ? std::optional(*whole + *bytes * *parts) : std::nullopt;
  }
};
} // namespace

/// Returns how many parts a value has on the grid; unset where an extent is not known.
static std::optional<int64_t> countParts(const ManifestValue &value, ArrayRef<int64_t> grid) {
  int64_t parts = 1;
  for (auto [axis, dim] : value.shards) {
    if (ShapedType::isDynamic(grid[axis]))
      return std::nullopt;
    parts *= grid[axis];
  }
  return parts;
}

/// Adds up the carried arguments of an entry.
static Total countCarried(const ManifestEntry &entry, ArrayRef<int64_t> grid) {
  Total total;
  for (const ManifestValue &argument : entry.arguments)
    if (argument.alias && argument.kind == "user")
      total.add(argument.bytes, countParts(argument, grid));
  return total;
}

/// Adds up the tensors of all entries that are casts of parameters. The casts of a divided parameter are
/// divided, but for scales of whole tensors.
static Total countCasts(const Manifest &manifest) {
  Total total;
  llvm::StringSet<> known;
  for (const ManifestEntry &entry : manifest.entries) {
    llvm::StringMap<const ManifestValue *> states;
    for (const ManifestValue &argument : entry.arguments)
      if (argument.kind == "state")
        states[argument.name] = &argument;
    for (const ManifestCast &cast : entry.casts) {
      std::optional<int64_t> parts = 1;
      for (int64_t source : cast.arguments) {
        std::optional<int64_t> own = countParts(entry.arguments[source], manifest.gridShape);
        parts = parts && own ? std::optional(std::max(*parts, *own)) : std::nullopt;
      }
      for (StringRef name : cast.tensors)
        if (const ManifestValue *tensor = states.lookup(name); tensor && known.insert(name).second)
          total.add(tensor->bytes, tensor->shape.empty() ? std::optional<int64_t>(1) : parts);
    }
  }
  return total;
}

std::vector<MemoryFigure> fp8::describeRankMemory(const Manifest &manifest) {
  if (manifest.gridShape.empty())
    return {};
  Total carried;
  for (const ManifestEntry &entry : manifest.entries) {
    Total own = countCarried(entry, manifest.gridShape);
    if (!own.own || (carried.own && *own.own > *carried.own))
      carried = own;
  }
  std::vector<MemoryFigure> figures{
      {"carried_bytes", "carried by each rank: parameters, optimizer", carried.own},
      {"carried_bytes_whole", "the same, were nothing divided", carried.whole}};
  Total casts = countCasts(manifest);
  if (casts.own != 0)
    figures.push_back(
        {"fp8_parameter_bytes_whole", "weights kept in FP8, were they not divided", casts.whole});
  return figures;
}
