// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory on a device for calls with tensors in host memory.

#ifndef FP8RT_RUN_HOSTCOPIES_H
#define FP8RT_RUN_HOSTCOPIES_H

#include "../core/Memory.h"
#include "../program/Manifest.h"

#include <vector>

namespace fp8rt {

/// A copy on the device of every argument, and of every result that does not have an argument's memory.
class HostCopies {
public:
  /// The addresses that a prepared call takes: null for a tensor of the state, for a result in an argument's
  /// memory, and for a tensor without elements.
  struct Pointers {
    void *const *arguments;
    void *const *results;
  };

  /// Allocates the copies of tensors with these descriptions.
  HostCopies(std::shared_ptr<Memory> memory, const Entry &entry, const std::vector<DLTensor> &arguments,
             const std::vector<DLTensor> &results);

  /// Copies the arguments in host memory to the device.
  void write(Pointers host);
  /// The call on the device that stands for the one that was written.
  Pointers pointers() const { return {call.arguments.data(), call.results.data()}; }
  /// Copies the results to host memory: those in the memory of an argument that the call left out lie in the
  /// state's tensors, `states` by argument.
  void read(Pointers host, const std::vector<void *> &states);

private:
  struct Copy {
    Buffer buffer;
    uint64_t bytes;
  };
  void add(std::vector<Copy> &copies, const DLTensor &tensor, bool hasMemory);

  std::shared_ptr<Memory> memory;
  const Entry &entry;
  std::vector<Copy> arguments, results;
  struct {
    std::vector<void *> arguments, results;
  } call;
};

} // namespace fp8rt

#endif // FP8RT_RUN_HOSTCOPIES_H
