// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between a tensor and its parts, run by run of bytes that lie together in both.

#include "Parts.h"
#include "../core/Status.h"
#include "Program.h"

#include <cstring>

using namespace fp8rt;
using namespace fp8rt::collectives;

namespace {

using Division = std::vector<Part>; // for each dimension

Division divisionOf(const Library &library, const Value &value, uint32_t rank, uint32_t size) {
  Division division;
  for (size_t dim = 0; dim < value.shape.size(); ++dim)
    division.push_back(partOf(library, value, static_cast<int32_t>(dim), rank, size));
  return division;
}

/// Calls `move(offset in the whole, offset in the part, bytes)` for each run.
template <typename Move>
void forEachRun(const Shape &part, const Division &division, uint64_t elementBytes, Move &&move) {
  size_t outer = part.size(); // the dimensions before it are walked through
  uint64_t runBytes = elementBytes, runs = 1;
  while (outer > 0) {
    runBytes *= static_cast<uint64_t>(part[--outer]);
    if (division[outer].count > 1)
      break;
  }
  for (size_t d = 0; d < outer; ++d)
    runs *= static_cast<uint64_t>(part[d]);
  for (uint64_t run = 0; runBytes && run < runs; ++run) {
    uint64_t offset = 0, stride = elementBytes, rest = run;
    for (size_t d = part.size(); d-- > 0;) {
      auto extent = static_cast<uint64_t>(part[d]);
      uint64_t place = d < outer ? rest % extent : 0;
      rest = d < outer ? rest / extent : rest;
      offset += (division[d].number * extent + place) * stride;
      stride *= extent * division[d].count;
    }
    move(offset, run * runBytes, runBytes);
  }
}

char *bytesOf(const Tensor &tensor) { return static_cast<char *>(tensor.data()); }

} // namespace

Tensor collectives::cutPart(const Library &library, const Value &value, const Tensor &whole, uint32_t rank,
                            uint32_t size) {
  Division division = divisionOf(library, value, rank, size);
  Shape shape = whole.shape();
  if (shape.size() != division.size())
    fail(FP8RT_MISMATCH,
         "it has " + std::to_string(shape.size()) + " dimensions, not " + std::to_string(division.size()));
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] % division[dim].count)
      fail(FP8RT_MISMATCH, "dimension " + std::to_string(dim) + " is " + std::to_string(shape[dim]) +
                               ", which is not divisible by " + std::to_string(division[dim].count) +
                               " ranks");
    shape[dim] /= division[dim].count;
  }
  Tensor part(whole.type(), shape);
  forEachRun(shape, division, whole.type().bytes(), [&](uint64_t from, uint64_t to, uint64_t bytes) {
    std::memcpy(bytesOf(part) + to, bytesOf(whole) + from, bytes);
  });
  return part;
}

Tensor collectives::gatherParts(const Library &library, const Value &value, const Tensor &part,
                                Ranks &ranks) {
  Shape shape = part.shape();
  Division first = divisionOf(library, value, 0, ranks.size());
  for (size_t dim = 0; dim < shape.size(); ++dim)
    shape[dim] *= first[dim].count;
  Tensor whole(part.type(), shape);
  std::vector<char> parts(part.bytes() * ranks.size());
  ranks.gather(part.data(), part.bytes(), parts.data());
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const char *source = parts.data() + rank * part.bytes();
    forEachRun(part.shape(), divisionOf(library, value, rank, ranks.size()), part.type().bytes(),
               [&](uint64_t to, uint64_t from, uint64_t bytes) {
                 std::memcpy(bytesOf(whole) + to, source + from, bytes);
               });
  }
  return whole;
}
