// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels run from PTX text in tests, without the driver's entry points.

#ifndef FP8EMU_TEST_HARNESS_H
#define FP8EMU_TEST_HARNESS_H

#include "fp8emu/Machine.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fp8emu::test {

/// A machine with one module.
class TestMachine {
public:
  explicit TestMachine(const std::string &ptx, Settings settings = {});

  /// Device memory with these values.
  template <class T>
  uint64_t upload(const std::vector<T> &values) {
    uint64_t address = allocate(values.size() * sizeof(T));
    std::memcpy(reinterpret_cast<void *>(address), values.data(), values.size() * sizeof(T));
    device.markWritten(address, values.size() * sizeof(T));
    return address;
  }
  uint64_t allocate(uint64_t bytes);
  template <class T>
  std::vector<T> download(uint64_t address, size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), reinterpret_cast<const void *>(address), count * sizeof(T));
    return values;
  }

  /// Runs a kernel; each argument is laid out with its own size as alignment.
  template <class... Args>
  std::optional<Fault> launch(const std::string &kernel, LaunchConfig config, Args... args) {
    (append(config.parameters, &args, sizeof args), ...);
    return run(kernel, std::move(config));
  }
  std::optional<Fault> run(const std::string &kernel, LaunchConfig config);

  const Kernel &find(const std::string &kernel) const;

  Machine device;
  Settings settings;
  std::unique_ptr<Module> module;
  /// Of all launches.
  ProfileReport profile;

private:
  static void append(std::vector<uint8_t> &bytes, const void *value, size_t size);
};

/// The body of a kernel `k(out, in0, in1, ...)`: loads of parameters into %out,
/// %in0, ... and of the thread's number into %i (u32) and %i4, %i8 (its bytes as
/// offsets), then `body`. Registers %r<64> %rd<64> %rs<64> %f<64> %fd<64> %p<16>
/// are there for it.
std::string kernelText(const std::string &body, unsigned inputs, const std::string &target = "sm_90a");

} // namespace fp8emu::test

#endif // FP8EMU_TEST_HARNESS_H
