// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of collectives, groups on a grid, and their description in messages.

#include "Collective.h"
#include "../core/Status.h"

#include <algorithm>
#include <cstring>

using namespace fp8rt;
using namespace fp8rt::collectives;

namespace {

constexpr const char *kKinds[] = {"all_reduce", "all_gather", "reduce_scatter",
                                  "broadcast",  "shift",      "all_to_all"};
constexpr const char *kReductions[] = {"sum", "max", "min", "mean", "product"};
constexpr const char *kTypes[] = {"bytes", "i8", "i32", "i64", "f16", "bf16", "f32", "f64"};
constexpr uint32_t kBytes[] = {1, 1, 4, 8, 2, 2, 4, 8};

template <size_t n>
const char *nameIn(const char *const (&names)[n], uint32_t number) {
  return number < n ? names[number] : "unknown";
}

bool isReduction(uint32_t kind) { return kind == FP8RT_ALL_REDUCE || kind == FP8RT_REDUCE_SCATTER; }

uint64_t hashOfGrid(const fp8rt_group &group) {
  uint64_t hash = 14695981039346656037u; // FNV-1a over the extents
  for (uint32_t d = 0; d < group.rank; ++d)
    hash = (hash ^ static_cast<uint64_t>(group.grid[d])) * 1099511628211u;
  return hash;
}

[[noreturn]] void refuse(const Description &description, const std::string &why) {
  fail(FP8RT_INVALID_ARGUMENT, description.text() + ": " + why);
}

/// Returns the ranks that differ from `rank` only in coordinates of the group's axes, in order.
std::vector<uint32_t> membersOf(const std::vector<uint32_t> &grid, uint32_t axes, uint32_t rank) {
  std::vector<uint32_t> members = {rank};
  uint32_t stride = 1;
  for (size_t d = grid.size(); d-- > 0;) {
    if (axes >> d & 1) {
      uint32_t own = rank / stride % grid[d];
      std::vector<uint32_t> wider;
      for (uint32_t place = 0; place < grid[d]; ++place)
        for (uint32_t member : members)
          wider.push_back(member + (place - own) * stride);
      members = std::move(wider);
    }
    stride *= grid[d];
  }
  std::sort(members.begin(), members.end());
  return members;
}

Description describe(const fp8rt_collective &given) {
  Description description = {};
  description.kind = given.kind;
  description.reduction = isReduction(given.kind) ? given.reduction : 0;
  description.type = given.type;
  description.root = given.kind == FP8RT_BROADCAST || given.kind == FP8RT_SHIFT ? given.root : 0;
  description.count = given.count;
  if (given.group) {
    description.axes = given.group->axes;
    description.grid = hashOfGrid(*given.group);
  }
  if (given.name)
    std::strncpy(description.name, given.name, sizeof(description.name) - 1);
  return description;
}

void check(const Collective &collective) {
  const Description &asked = collective.description;
  if (asked.kind > FP8RT_ALL_TO_ALL)
    refuse(asked, "its kind is " + std::to_string(asked.kind));
  if (!collective.elementBytes || asked.count > UINT64_MAX / 16 / collective.groupSize())
    refuse(asked, "its type is unknown or its count too large");
  if (asked.count && (!collective.send || !collective.receive))
    refuse(asked, "its memory is null");
  if (isReduction(asked.kind) && (asked.reduction > FP8RT_PRODUCT || asked.type == FP8RT_BYTE))
    refuse(asked, "this is no reduction of numbers");
  if (isReduction(asked.kind) && asked.reduction == FP8RT_MEAN && asked.type < FP8RT_F16)
    refuse(asked, "a mean is of floating-point numbers");
  bool inParts = asked.kind == FP8RT_REDUCE_SCATTER || asked.kind == FP8RT_ALL_TO_ALL;
  if (inParts && asked.count % collective.groupSize())
    refuse(asked, "the count is no multiple of the " + std::to_string(collective.groupSize()) +
                      " ranks of the group");
  if (asked.kind == FP8RT_BROADCAST &&
      (asked.root < 0 || static_cast<uint32_t>(asked.root) >= collective.groupSize()))
    refuse(asked, "rank " + std::to_string(asked.root) + " is not in the group");
}

} // namespace

uint32_t collectives::bytesOfType(uint32_t type) { return type <= FP8RT_F64 ? kBytes[type] : 0; }

std::vector<uint32_t> collectives::extentsOfGrid(const std::vector<int64_t> &shape, uint32_t size) {
  uint64_t known = 1;
  size_t unknown = 0;
  std::string text;
  for (int64_t extent : shape) {
    unknown += extent <= 0;
    text += (text.empty() ? "" : "x") + (extent > 0 ? std::to_string(extent) : "?");
    if (extent > 0 && known <= size)
      known *= static_cast<uint64_t>(extent);
  }
  if (unknown > 1 || (unknown ? size % known : known != size))
    fail(FP8RT_MISMATCH, "the program's grid is " + (text.empty() ? "1" : text) + ", which does not fit " +
                             std::to_string(size) + " ranks");
  std::vector<uint32_t> extents;
  for (int64_t extent : shape)
    extents.push_back(static_cast<uint32_t>(extent > 0 ? static_cast<uint64_t>(extent) : size / known));
  return extents;
}

std::string collectives::describeDifference(uint32_t rank, const Description &ofRank, uint32_t other,
                                            const Description &ofOther) {
  if (other < rank)
    return describeDifference(other, ofOther, rank, ofRank);
  return "the ranks are in different collectives: rank " + std::to_string(rank) + " in " + ofRank.text() +
         ", rank " + std::to_string(other) + " in " + ofOther.text();
}

bool Description::isSameAs(const Description &other) const {
  return kind == other.kind && reduction == other.reduction && type == other.type && axes == other.axes &&
         root == other.root && count == other.count && grid == other.grid;
}

std::string Description::text() const {
  std::string text = nameIn(kKinds, kind);
  if (isReduction(kind))
    text += std::string(" ") + nameIn(kReductions, reduction);
  text += " of " + std::to_string(count) + " " + nameIn(kTypes, type);
  if (kind == FP8RT_BROADCAST)
    text += " from rank " + std::to_string(root) + " of the group";
  if (kind == FP8RT_SHIFT)
    text += " by " + std::to_string(root);
  return *name ? text + " '" + name + "'" : text;
}

Collective::Collective(const fp8rt_collective &given, uint32_t rank, uint32_t size)
    : description(describe(given)), elementBytes(bytesOfType(given.type)),
      send(static_cast<const char *>(given.send)), receive(static_cast<char *>(given.receive)) {
  const fp8rt_group &group = required(given.group, "group");
  if (group.rank > 32 || (group.rank && !group.grid))
    refuse(description, "its group has " + std::to_string(group.rank) + " dimensions");
  members = membersOf(extentsOfGrid({group.grid, group.grid + group.rank}, size), group.axes, rank);
  index = static_cast<uint32_t>(std::find(members.begin(), members.end(), rank) - members.begin());
  check(*this);
}

uint32_t Collective::shiftSource() const {
  int64_t ranks = groupSize();
  int64_t source = (static_cast<int64_t>(index) - description.root) % ranks;
  return static_cast<uint32_t>(source < 0 ? source + ranks : source);
}
