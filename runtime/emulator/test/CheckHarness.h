// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the tests of memory order: a kernel is clean, or faulty, whatever the seed.

#ifndef FP8EMU_TEST_CHECKHARNESS_H
#define FP8EMU_TEST_CHECKHARNESS_H

#include "Harness.h"

#include <functional>

#include <gtest/gtest.h>

namespace fp8emu::test {

constexpr unsigned kSeeds = 20;

/// Runs a kernel with a seed.
using Run = std::function<std::optional<Fault>(uint64_t seed)>;

inline void expectClean(const Run &run, unsigned seeds = kSeeds) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    auto fault = run(seed);
    ASSERT_FALSE(fault) << "seed " << seed << ": " << fault->text();
  }
}

/// `words` are all in each report.
inline void expectFault(const Run &run, FaultKind kind, const std::vector<std::string> &words = {},
                        unsigned seeds = kSeeds) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    auto fault = run(seed);
    ASSERT_TRUE(fault) << "seed " << seed << " found nothing";
    ASSERT_EQ(fault->kind, kind) << "seed " << seed << ": " << fault->text();
    for (const std::string &word : words)
      ASSERT_NE(fault->text().find(word), std::string::npos) << word << " is not in: " << fault->text();
    auto again = run(seed);
    ASSERT_TRUE(again);
    ASSERT_EQ(again->text(), fault->text()) << "a seed repeats itself";
  }
}

inline LaunchConfig threads(uint32_t block, uint32_t grid = 1, uint32_t cluster = 1) {
  LaunchConfig config;
  config.block = {block, 1, 1};
  config.grid = {grid, 1, 1};
  config.cluster = {cluster, 1, 1};
  return config;
}

/// Runs k(out, in) with 64 KiB behind each, zeros.
inline std::optional<Fault> run(const std::string &body, const LaunchConfig &config, uint64_t seed,
                                unsigned workers = 1, const std::string &target = "sm_90a",
                                Settings settings = {}) {
  settings.seed = seed;
  settings.threads = workers;
  TestMachine machine(kernelText(body, 1, target), settings);
  std::vector<uint32_t> zeros(16384);
  uint64_t out = machine.upload(zeros), in = machine.upload(zeros);
  return machine.launch("k", config, out, in);
}

inline void expectClean(const std::string &body, const LaunchConfig &config) {
  expectClean([&](uint64_t seed) { return run(body, config, seed); });
}
inline void expectFault(const std::string &body, const LaunchConfig &config, FaultKind kind,
                        const std::vector<std::string> &words = {}) {
  expectFault([&](uint64_t seed) { return run(body, config, seed); }, kind, words);
}

/// Text with what stands for $1 put in.
inline std::string with(std::string text, const std::string &what, const std::string &place = "$1") {
  for (size_t at; (at = text.find(place)) != std::string::npos;)
    text.replace(at, place.size(), what);
  return text;
}

} // namespace fp8emu::test

#endif // FP8EMU_TEST_CHECKHARNESS_H
