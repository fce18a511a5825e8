// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes entry points known, by calls from Python.

#include "Entries.h"

using namespace fp8_jax;

Table &fp8_jax::table() {
  static Table *instance = new Table; // Never destroyed: threads of XLA may outlive main.
  return *instance;
}

// Names of C, which Python looks up.
// NOLINTBEGIN(readability-identifier-naming)

/// Makes an entry point known as `name`; a second time for the same name is no error. `function` is
/// `fp8_call_<entry>` of a library that stays loaded, `version` the one of fp8rt_call that it takes.
extern "C" void fp8_jax_register(const char *name, void *function, uint64_t workspaceBytes,
                                 uint32_t version) {
  std::unique_lock lock(table().mutex);
  Entry &known = table().entries[name];
  // Custom calls that there are already have what measures them.
  known = {reinterpret_cast<fp8rt_call_fn>(function),
           workspaceBytes,
           version,
           nullptr,
           nullptr,
           0,
           known.profiling};
}

/// Makes an entry point of a library for GPUs known as `name`; it runs on the emulator with XLA's buffers of
/// the CPU, or on the GPU that XLA calls it for. `library` and `runtime` stay as they are.
extern "C" void fp8_jax_register_on_device(const char *name, const fp8_jax::Runtime *runtime,
                                           const fp8rt_library *library, const char *entry, bool isEmulated,
                                           uint32_t numArguments, uint32_t numResults,
                                           uint64_t workspaceBytes) {
  std::unique_lock lock(table().mutex);
  Entry &known = table().entries[name];
  if (!known.onDevice)
    known = {nullptr, workspaceBytes, 0,
             std::make_shared<fp8_jax::DeviceEntry>(*runtime, library, entry, isEmulated, numArguments,
                                                    numResults),
             nullptr};
}

/// Measures all following calls of an entry point on the CPU, by functions of libfp8rt; a null profiler
/// measures none. Returns when no call uses the former one.
extern "C" void fp8_jax_profile(const char *name, fp8_jax::Profiling::Begin begin,
                                fp8_jax::Profiling::End end, fp8rt_profiler *profiler) {
  std::shared_ptr<fp8_jax::Profiling> profiling;
  {
    std::unique_lock lock(table().mutex);
    profiling = table().entries[name].profiling;
  }
  profiling->set(begin, end, profiler);
}

/// Makes the devices of this process ranks of the program of an entry point that is known: `communicators`
/// and XLA's numbers of their devices, which stay as they are. To be called before the entry point's calls.
extern "C" void fp8_jax_set_ranks(const char *name, const fp8_jax::Runtime *runtime, const int32_t *ordinals,
                                  fp8rt_communicator *const *communicators, uint32_t count) {
  std::unique_lock lock(table().mutex);
  auto ranks = std::make_shared<fp8_jax::Ranks>();
  for (uint32_t i = 0; i < count; ++i)
    ranks->try_emplace(ordinals[i], runtime->gather, runtime->fail, runtime->lastError, communicators[i]);
  table().entries[name].ranks = std::move(ranks);
}

// NOLINTEND(readability-identifier-naming)
