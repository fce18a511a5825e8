// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the tests that damage PTX: how long they run, and random choices.

#ifndef FP8EMU_TEST_FUZZ_H
#define FP8EMU_TEST_FUZZ_H

#include <cstdint>
#include <cstdlib>
#include <random>

namespace fp8emu_test {

/// FP8EMU_FUZZ_SEED, FP8EMU_FUZZ_RUNS.
inline uint64_t setting(const char *variable, uint64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Chance {
public:
  explicit Chance(uint64_t seed) : random(seed) {}
  uint64_t below(uint64_t count) { return count == 0 ? 0 : random() % count; }
  /// Whether what happens once in `count` times does now.
  bool oneIn(uint64_t count) { return below(count) == 0; }
  template <class Container>
  const typename Container::value_type &pick(const Container &container) {
    return container[below(container.size())];
  }

private:
  std::mt19937_64 random;
};

} // namespace fp8emu_test

#endif // FP8EMU_TEST_FUZZ_H
