// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nanoseconds per call of an entry that does next to nothing, in the ways in which it can
// be called. fp8rt-call-overhead LIBRARY ENTRY; all its shapes must be static.

#include "fp8rt/owned.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <vector>

using namespace fp8rt::owned;

static void check(fp8rt_status status) {
  if (status == FP8RT_OK)
    return;
  std::fprintf(stderr, "%s\n", fp8rt_last_error());
  std::exit(1);
}

/// The least of several averages, so that other programs disturb less.
template <typename Fn>
static void measure(const char *what, Fn call) {
  constexpr int repetitions = 15, calls = 200000;
  double best = 1e30;
  for (int i = 0; i < repetitions; ++i) {
    auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < calls; ++j)
      call();
    std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / calls);
  }
  std::printf("%-36s %7.1f ns\n", what, best);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: fp8rt-call-overhead LIBRARY ENTRY\n");
    return 2;
  }
  const char *entry = argv[2];
  fp8rt_library *loaded = nullptr;
  check(fp8rt_library_load(argv[1], &loaded));
  Library library(loaded);
  fp8rt_state *made = nullptr;
  check(fp8rt_state_create(loaded, &made));
  State state(made);
  fp8rt_session *created = nullptr;
  check(fp8rt_session_create(loaded, entry, made, &created));
  Session session(created);
  check(fp8rt_session_zero_missing(created));
  check(fp8rt_session_step(created));
  uint32_t numArguments, numResults;
  check(fp8rt_library_counts(loaded, entry, &numArguments, &numResults));
  fp8rt_prepared *ready = nullptr;
  check(fp8rt_prepare(loaded, entry, made, nullptr, numArguments, nullptr, numResults, &ready));
  Prepared prepared(ready);

  // All ways on the session's memory.
  std::vector<DLTensor *> arguments, results;
  std::vector<void *> argumentData, resultData;
  for (uint32_t i = 0; i < numArguments; ++i) {
    arguments.push_back(const_cast<DLTensor *>(fp8rt_session_argument(created, i)));
    argumentData.push_back(arguments.back()->data);
  }
  for (uint32_t i = 0; i < numResults; ++i) {
    results.push_back(const_cast<DLTensor *>(fp8rt_session_result(created, i)));
    resultData.push_back(results.back()->data);
  }
  void *handle = dlopen(argv[1], RTLD_NOW);
  auto function = reinterpret_cast<fp8rt_call_fn>(dlsym(handle, ("fp8_call_" + std::string(entry)).c_str()));
  alignas(64) static char workspace[4096];
  fp8rt_call call = {};
  call.version = 1;
  call.num_arguments = numArguments;
  call.num_results = numResults;
  call.arguments = arguments.data();
  call.results = results.data();
  call.workspace = workspace;
  call.workspace_bytes = sizeof(workspace);
  if (!function || function(&call)) {
    std::fprintf(stderr, "the entry cannot be called directly\n");
    return 1;
  }
  measure("the compiled code by itself", [&] { function(&call); });
  measure("fp8rt_prepared_call", [&] { fp8rt_prepared_call(ready, argumentData.data(), resultData.data()); });
  measure("fp8rt_session_step", [&] { fp8rt_session_step(created); });
  return 0;
}
