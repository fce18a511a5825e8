// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Preparing entry points on devices, and calling them.

#include "DeviceEntry.h"

using namespace fp8_jax;

DeviceEntry::Prepared &DeviceEntry::at(int32_t ordinal) {
  std::lock_guard<std::mutex> lock(mutex);
  return devices[ordinal];
}

std::string DeviceEntry::prepare(Prepared &prepared, const std::string &device, Rank *rank) {
  if (prepared.handle)
    return {};
  fp8rt_gpu *gpu = nullptr;
  // Neither is given back: XLA may call as long as the process lives.
  if (runtime.openGPU(device.c_str(), library, &gpu) ||
      runtime.prepareOn(gpu, entry.c_str(), /*state=*/nullptr, nullptr, numArguments, nullptr, numResults,
                        &prepared.handle) ||
      (rank && runtime.setCommunicator(prepared.handle, rank->communicator())))
    return runtime.lastError();
  return {};
}

std::string DeviceEntry::open(int32_t ordinal, Rank *rank) {
  Prepared &prepared = at(ordinal);
  std::lock_guard<std::mutex> lock(prepared.mutex);
  return prepare(prepared, "cuda:" + std::to_string(ordinal), rank);
}

std::string DeviceEntry::enqueue(int32_t ordinal, void *const *arguments, void *const *results,
                                 void *workspace, void *stream) {
  Prepared &prepared = at(ordinal);
  std::lock_guard<std::mutex> lock(prepared.mutex);
  if (!prepared.handle)
    return "the GPU was not opened before";
  return runtime.enqueueIn(prepared.handle, arguments, results, workspace, stream) ? runtime.lastError() : "";
}

std::string DeviceEntry::run(int32_t ordinal, Rank *rank, void *const *arguments, void *const *results) {
  Prepared &prepared = at(rank ? ordinal : 0);
  std::lock_guard<std::mutex> lock(prepared.mutex);
  if (std::string error = prepare(prepared, "emulator", rank); !error.empty())
    return error;
  return runtime.callFromHost(prepared.handle, arguments, results) ? runtime.lastError() : "";
}
