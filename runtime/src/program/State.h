// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensors of the FP8 state, in host or device memory.

#ifndef FP8RT_PROGRAM_STATE_H
#define FP8RT_PROGRAM_STATE_H

#include "Library.h"

#include "fp8rt/state.h"

#include <map>

namespace fp8rt {

/// The version in a state file's metadata.
inline const char *const kStateFileVersion = "1";
/// The prefix of the names of carried arguments in the same file.
inline const char *const kCarryPrefix = "carry.";
/// The names of the state tensors with a column for every quantized tensor; rows of the history are steps.
inline const char *const kScaleName = "scale";
inline const char *const kHistoryName = "amax_history";

class State {
public:
  State(std::shared_ptr<const Library> library, std::shared_ptr<Memory> memory);

  const Library &library() const { return *program; }
  const std::shared_ptr<Memory> &memory() const { return place; }
  /// Returns null if there is none.
  Tensor *find(const std::string &name);

  /// Tensors that are computed from arguments of an entry (Manifest.h, KeptCast) are valid for the memory of
  /// these arguments until its contents change: forget() says so of one argument, forgetAll() of all.
  using Addresses = std::vector<const void *>;
  bool isComputedFrom(const std::string &tensor, const Addresses &arguments) const;
  void setComputedFrom(const std::string &tensor, Addresses arguments);
  void forget(const void *argument);
  void forgetAll() { sources.clear(); }

  void exportTo(fp8rt_tensors &tensors);
  void importFrom(const fp8rt_tensors &tensors, const fp8rt_import_options &options);

private:
  std::shared_ptr<const Library> program;
  std::shared_ptr<Memory> place;
  std::vector<Tensor> values; // in the manifest's order
  /// The sources that derived tensors have been computed from, by name.
  std::map<std::string, Addresses> sources;
};

/// Returns the tensor `name` of the set; throws unless it has that type and
/// shape.
const Tensor &findFitting(const fp8rt_tensors &tensors, const std::string &name, const DType &type,
                          const Shape &shape);

} // namespace fp8rt

/// The C ABI's handle.
struct fp8rt_state {
  explicit fp8rt_state(std::shared_ptr<fp8rt::State> state);

  std::shared_ptr<fp8rt::State> shared;
  /// The tensors for C callers, in the manifest's order.
  std::vector<DLTensor> views;
};

#endif // FP8RT_PROGRAM_STATE_H
