// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry point of a library for GPUs, as XLA calls it: on XLA's stream of a GPU, or on the emulator with
// buffers of the CPU.

#ifndef FP8_JAX_DEVICEENTRY_H
#define FP8_JAX_DEVICEENTRY_H

#include "Ranks.h"

#include "fp8rt/gpu.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fp8_jax {

/// The functions of libfp8rt, which Python has loaded: this library is linked without it.
struct Runtime {
  decltype(&fp8rt_gpu_open) openGPU;
  decltype(&fp8rt_prepare_on) prepareOn;
  decltype(&fp8rt_prepared_enqueue_in) enqueueIn;
  decltype(&fp8rt_prepared_call_from_host) callFromHost;
  decltype(&fp8rt_last_error) lastError;
  decltype(&fp8rt_prepared_set_communicator) setCommunicator;
  decltype(&fp8rt_communicator_gather) gather;
  decltype(&fp8rt_communicator_fail) fail;
};

class DeviceEntry {
public:
  /// `library` stays loaded. `numArguments` and `numResults` are the manifest's.
  DeviceEntry(const Runtime &runtime, const fp8rt_library *library, std::string entry, bool isEmulated,
              uint32_t numArguments, uint32_t numResults)
      : runtime(runtime), library(library), entry(std::move(entry)), isEmulated(isEmulated),
        numArguments(numArguments), numResults(numResults) {}

  bool runsOnEmulator() const { return isEmulated; }

  /// Opens a GPU for the entry point, by XLA's number; once for all calls there. `rank` is that of the device
  /// in a program of several, else null. Returns the error, or nothing.
  std::string open(int32_t ordinal, Rank *rank);

  /// Enqueues a call on a GPU that was opened. Returns the error, or nothing.
  std::string enqueue(int32_t ordinal, void *const *arguments, void *const *results, void *workspace,
                      void *stream);

  /// Runs a call on the emulator, with tensors of the CPU. Ranks have an emulated device each, by XLA's
  /// number of their own. Returns the error, or nothing.
  std::string run(int32_t ordinal, Rank *rank, void *const *arguments, void *const *results);

private:
  /// The entry point on one device. Calls take turns.
  struct Prepared {
    std::mutex mutex;
    fp8rt_prepared *handle = nullptr;
  };

  Prepared &at(int32_t ordinal);
  std::string prepare(Prepared &prepared, const std::string &device, Rank *rank);

  const Runtime &runtime;
  const fp8rt_library *library;
  const std::string entry;
  const bool isEmulated;
  const uint32_t numArguments, numResults;
  std::mutex mutex;
  std::map<int32_t, Prepared> devices; // of the emulator without ranks, number 0
};

} // namespace fp8_jax

#endif // FP8_JAX_DEVICEENTRY_H
