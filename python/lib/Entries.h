// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry points that XLA's custom calls name.

#ifndef FP8_PYTHON_LIB_ENTRIES_H
#define FP8_PYTHON_LIB_ENTRIES_H

#include "DeviceEntry.h"
#include "Profiling.h"
#include "Ranks.h"

#include "fp8rt/call.h"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace fp8_jax {

/// An entry point of a library.
struct Entry {
  fp8rt_call_fn function;
  uint64_t workspaceBytes;
  uint32_t version;
  /// In place of the function, for a GPU or its emulator.
  std::shared_ptr<fp8_jax::DeviceEntry> onDevice;
  /// Where several devices run the program together.
  std::shared_ptr<fp8_jax::Ranks> ranks;
  /// How many custom calls of this entry point there are.
  uint64_t instances = 0;
  std::shared_ptr<fp8_jax::Profiling> profiling = std::make_shared<fp8_jax::Profiling>();
};

/// The entry points of this process by name. Entries are added and never removed.
struct Table {
  std::mutex mutex;
  std::unordered_map<std::string, Entry> entries;
};

/// Returns the table of this process.
Table &table();

} // namespace fp8_jax

#endif // FP8_PYTHON_LIB_ENTRIES_H
