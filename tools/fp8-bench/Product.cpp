// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures how long a matrix product by wgmma takes in the emulator: Triton's kernel with tiles of
// 128 x 128 x 128 and two warp groups per block.

#include "Bench.h"

#include "ProductPtx.h"
#include "fp8emu/Machine.h"

#include "llvm/ADT/APFloat.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

using namespace fp8emu;
using llvm::APFloat;

namespace {

constexpr uint32_t kSize = 512, kTile = 128;
constexpr float kScale = 0.125f;

/// Returns random integers of at most 3, so that all sums are exact.
std::vector<int> smallNumbers(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int> out(kSize * kSize);
  for (int &value : out)
    value = int(random() % 7) - 3;
  return out;
}

/// Returns the bits of `value` in another format, rounded to nearest even.
uint64_t bitsOf(const llvm::fltSemantics &format, float value) {
  APFloat number(value);
  bool losesInfo = false;
  number.convert(format, APFloat::rmNearestTiesToEven, &losesInfo);
  return number.bitcastToAPInt().getZExtValue();
}

double bfloat16(uint16_t bits) { return APFloat(APFloat::BFloat(), llvm::APInt(16, bits)).convertToDouble(); }

/// Computes c = scale a b^T in bf16, from a and b in E4M3.
class Product {
public:
  Product() : module(machine.load(Source(kProductPtx))), a(smallNumbers(1)), b(smallNumbers(2)) {
    out = allocate(2 * kSize * kSize);
    append(upload(codes(a)));
    append(upload(codes(b)));
    append(out);
    append(upload(std::vector<float>{kScale}));
    // M, N, K and the strides of a, b and c.
    for (unsigned i = 0; i < 6; ++i)
      append(kSize);
    // Triton's own parameters: scratch memory and that of a profiler, both unused.
    append(uint64_t(0));
    append(uint64_t(0));
    config.grid = {kSize / kTile, kSize / kTile, 1};
    config.block = {256, 1, 1};
    config.dynamicShared = 98304;
  }

  bool launch(const Settings &settings) {
    auto fault = machine.launch(*module->find("matmul_fp8"), config, settings);
    if (fault)
      std::fprintf(stderr, "fp8-bench: %s\n", fault->text().c_str());
    return !fault;
  }

  bool isRight() const {
    const auto *found = reinterpret_cast<const uint16_t *>(out);
    for (uint32_t row = 0; row < kSize; ++row)
      for (uint32_t column = 0; column < kSize; ++column) {
        int sum = 0;
        for (uint32_t k = 0; k < kSize; ++k)
          sum += a[row * kSize + k] * b[column * kSize + k];
        const auto expected = uint16_t(bitsOf(APFloat::BFloat(), kScale * float(sum)));
        if (found[row * kSize + column] == expected)
          continue;
        std::fprintf(stderr, "fp8-bench: the product is wrong in row %u, column %u: %g instead of %g\n", row,
                     column, bfloat16(found[row * kSize + column]), bfloat16(expected));
        return false;
      }
    return true;
  }

private:
  static std::vector<uint8_t> codes(const std::vector<int> &values) {
    std::vector<uint8_t> out;
    for (int value : values)
      out.push_back(uint8_t(bitsOf(APFloat::Float8E4M3FN(), float(value))));
    return out;
  }

  uint64_t allocate(uint64_t bytes) { return machine.allocate(bytes, "a matrix").value(); }

  template <class T>
  uint64_t upload(const std::vector<T> &values) {
    const uint64_t bytes = values.size() * sizeof(T), address = allocate(bytes);
    std::memcpy(reinterpret_cast<void *>(address), values.data(), bytes);
    machine.markWritten(address, bytes);
    return address;
  }

  template <class T>
  void append(T value) {
    const size_t place = (config.parameters.size() + sizeof value - 1) / sizeof value * sizeof value;
    config.parameters.resize(place + sizeof value);
    std::memcpy(config.parameters.data() + place, &value, sizeof value);
  }

  Machine machine;
  std::unique_ptr<Module> module;
  std::vector<int> a, b;
  uint64_t out;
  LaunchConfig config;
};

struct Seconds {
  double wall = 0, processor = 0;
};

Seconds measure(Product &product, const Settings &settings, double seconds) {
  using Clock = std::chrono::steady_clock;
  Seconds best, total;
  do {
    const auto begin = Clock::now();
    const double processor = fp8bench::processorSeconds();
    product.launch(settings);
    const Seconds one{std::chrono::duration<double>(Clock::now() - begin).count(),
                      fp8bench::processorSeconds() - processor};
    if (!total.wall || one.wall < best.wall)
      best = one;
    total.wall += one.wall;
  } while (total.wall < seconds);
  return best;
}

} // namespace

bool fp8bench::benchMatmul(unsigned threads, double seconds) {
  std::printf("\nSeconds for %u x %u x %u in E4M3 by wgmma\n%-28s%12s%12s\n", kSize, kSize, kSize, "",
              "wall clock", "processor");
  struct Level {
    const char *name;
    bool checks, races;
  };
  for (const Level &level :
       {Level{"no checks", false, false}, {"all but memory order", true, false}, {"checks", true, true}}) {
    Settings settings;
    settings.checks = level.checks;
    settings.races = level.races;
    settings.threads = threads;
    Product product;
    if (!product.launch(settings) || !product.isRight())
      return false;
    const Seconds best = measure(product, settings, seconds);
    std::printf("%-28s%12.2f%12.2f\n", level.name, best.wall, best.processor);
  }
  return true;
}
