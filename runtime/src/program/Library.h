// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled library that is loaded into this process.

#ifndef FP8RT_PROGRAM_LIBRARY_H
#define FP8RT_PROGRAM_LIBRARY_H

#include "Manifest.h"

#include <memory>

namespace fp8rt {

/// A loaded library with its manifest. Immutable after loading; shared by
/// handles, states and sessions.
class Library {
public:
  /// Throws Errors whose text starts with the path.
  explicit Library(const std::string &path);
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;
  ~Library();

  const std::string &manifestText() const { return text; }
  const Manifest &manifest() const { return parsed; }
  /// The list of kernels as JSON; null for a library without one.
  const char *kernelsText() const { return kernels; }
  /// The kernels for devices; null for a library of the CPU.
  const fp8rt_device_code *deviceCode() const { return code; }
  /// Throws an Error if the kernels are for a device.
  void checkHost() const;

  /// Returns the number of the entry of that name; throws if there is none.
  size_t findEntry(const std::string &name) const;
  const Entry &entry(size_t index) const { return parsed.entries[index]; }
  fp8rt_call_fn function(size_t index) const { return functions[index]; }

private:
  void load();
  void loadDeviceCode();

  std::string path;
  void *handle = nullptr;
  std::string text;
  const char *kernels = nullptr;
  const fp8rt_device_code *code = nullptr;
  Manifest parsed;
  std::vector<fp8rt_call_fn> functions;
};

} // namespace fp8rt

/// The C ABI's handle.
struct fp8rt_library {
  std::shared_ptr<const fp8rt::Library> shared;
};

#endif // FP8RT_PROGRAM_LIBRARY_H
