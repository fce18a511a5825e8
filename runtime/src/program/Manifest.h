// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The manifest of a compiled library, parsed and checked.

#ifndef FP8RT_PROGRAM_MANIFEST_H
#define FP8RT_PROGRAM_MANIFEST_H

#include "../core/Processor.h"
#include "../core/Tensor.h"

#include "fp8rt/library.h"

namespace fp8rt {

/// A dimension of a tensor of which each rank has a part, by its place along an axis of the grid.
struct Shard {
  uint32_t axis, dim;
};

/// An argument or result of an entry.
struct Value {
  std::string name;
  const DType *type = nullptr;
  Shape shape;
  fp8rt_kind kind = FP8RT_KIND_USER;
  int32_t carry = -1; // arguments: the result that is its next value
  int32_t alias = -1; // results: the argument whose memory holds it
  bool written = false;
  std::vector<Shard> shards;
  bool differs = false; // by rank, without being a part of something
};

/// Tensors of the state that an entry reads in place of casts of its arguments.
struct KeptCast {
  std::vector<uint32_t> arguments;
  std::vector<std::string> tensors;
};

struct Entry {
  std::string name;
  std::vector<Value> arguments;
  std::vector<Value> results;
  /// The entry that computes the tensors of `casts`, and the arguments of this one that are its first
  /// arguments; empty without such casts.
  std::string initializer;
  std::vector<uint32_t> initializerArguments;
  std::vector<KeptCast> casts;
  uint64_t workspaceBytes = 0;
  uint64_t workspaceAlignment = 64;
  /// Whether a call of it on a device can be captured: it only enqueues work, the same for the same memory.
  bool capturable = false;
  /// How many conditions of the program it checks, for each of which a call on a device waits unless it is
  /// captured.
  uint64_t checks = 0;
};

struct StateTensor {
  std::string name;
  const DType *type = nullptr;
  Shape shape;
  /// One number for all elements, or one for each in row-major order.
  std::vector<Number> initial = {Number{}};
  /// Whether it is computed from arguments, so that it is not saved.
  bool derived = false;
};

struct Manifest {
  /// The version of fp8rt_call that the library takes.
  uint32_t callVersion = 1;
  std::vector<Entry> entries;
  std::vector<StateTensor> state;
  std::string layoutHash;
  /// The extents of the grid of ranks, kDynamicDim where any number will do; empty for a program of one rank.
  Shape grid;
  RequiredProcessor processor;
  std::string columns; // JSON, as in state files

  /// Return null if there is none.
  const StateTensor *findState(const std::string &name) const;
  const Entry *findEntry(const std::string &name) const;
};

/// Parses the text and checks everything that the runtime relies on; throws
/// Errors that name the place in the manifest.
Manifest parseManifest(const std::string &text);

} // namespace fp8rt

#endif // FP8RT_PROGRAM_MANIFEST_H
