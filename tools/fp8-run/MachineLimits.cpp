// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures the limits with two loops: multiply-adds whose operands stay in registers, and a copy from
// array to array. All threads run a loop at the same time.

#include "MachineLimits.h"

#include "llvm/Support/JSON.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <thread>
#include <vector>

using namespace fp8run;

namespace {

/// The number of repetitions, of which the fastest counts: other programs may disturb some.
constexpr int kRepetitions = 20;
constexpr uint64_t kRounds = 2'000'000;
/// Independent sums: more than latency times throughput of any processor's multiply-add.
constexpr int kSums = 12;
/// Of all threads together, half of it read and half written: larger than most caches.
constexpr size_t kCopiedFloats = (size_t(256) << 20) / sizeof(float);

using Clock = std::chrono::steady_clock;

/// Defines a function that keeps kSums sums in vectors of BYTES bytes and does kRounds multiply-adds
/// to each. A template would not do: vectors are lowered for the attribute of the function they are in.
#define FP8_DEFINE_SUMS(NAME, BYTES, ...)                                                                    \
  __VA_ARGS__ float NAME(float start) {                                                                      \
    typedef float Vector __attribute__((vector_size(BYTES)));                                                \
    Vector sums[kSums], factor = Vector{} + start, addend = Vector{} + 1.0f;                                 \
    for (Vector &sum : sums)                                                                                 \
      sum = addend;                                                                                          \
    for (uint64_t round = 0; round < kRounds; ++round)                                                       \
      for (Vector &sum : sums)                                                                               \
        sum = sum * factor + addend;                                                                         \
    float total = 0;                                                                                         \
    for (Vector &sum : sums)                                                                                 \
      total += sum[0];                                                                                       \
    return total;                                                                                            \
  }

FP8_DEFINE_SUMS(sum128, 16)
#if defined(__x86_64__)
FP8_DEFINE_SUMS(sum256, 32, __attribute__((target("avx2,fma"))))
FP8_DEFINE_SUMS(sum512, 64, __attribute__((target("avx512f"))))
#endif

/// Returns the seconds of the slowest thread.
double timeThreads(unsigned threads, const std::function<void(unsigned)> &work) {
  std::vector<double> seconds(threads);
  auto timed = [&](unsigned thread) {
    Clock::time_point start = Clock::now();
    work(thread);
    seconds[thread] = std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < threads; ++thread)
    others.emplace_back(timed, thread);
  timed(0);
  for (std::thread &other : others)
    other.join();
  return *std::max_element(seconds.begin(), seconds.end());
}

double fastest(unsigned threads, const std::function<void(unsigned)> &work) {
  double least = timeThreads(threads, work);
  for (int i = 1; i < kRepetitions; ++i)
    least = std::min(least, timeThreads(threads, work));
  return least;
}

/// Returns how many threads OpenMP gives compiled code, which has loaded it by now if it needs it.
unsigned countThreads() {
  void *openMP = dlopen("libomp.so.5", RTLD_LAZY | RTLD_NOLOAD);
  auto count = openMP ? reinterpret_cast<int (*)()>(dlsym(openMP, "omp_get_max_threads")) : nullptr;
  return count ? static_cast<unsigned>(std::max(1, count())) : 1;
}

/// Returns the width of the vectors that code with the features in the manifest can use.
unsigned findVectorBits(llvm::StringRef manifest) {
#if defined(__x86_64__)
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(manifest);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return 128;
  }
  std::vector<llvm::StringRef> features;
  if (const llvm::json::Object *cpu = parsed->getAsObject()->getObject("cpu"))
    if (const llvm::json::Array *list = cpu->getArray("features"))
      for (const llvm::json::Value &feature : *list)
        features.push_back(feature.getAsString().value_or(""));
  auto has = [&](llvm::StringRef feature) {
    return std::find(features.begin(), features.end(), feature) != features.end();
  };
  if (has("avx512f") && __builtin_cpu_supports("avx512f"))
    return 512;
  if (has("avx2") && has("fma") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return 256;
#endif
  return 128;
}

double measureOperations(unsigned threads, unsigned vectorBits) {
  float (*sum)(float) = sum128;
#if defined(__x86_64__)
  sum = vectorBits == 512 ? sum512 : vectorBits == 256 ? sum256 : sum128;
#endif
  std::vector<float> results(threads); // keeps the sums alive
  double seconds = fastest(threads, [&](unsigned thread) {
    volatile float half = 0.5f;
    results[thread] += sum(half);
  });
  return 2.0 * kSums * (vectorBits / 32) * double(kRounds) * threads / seconds;
}

double measureBytes(unsigned threads) {
  size_t each = kCopiedFloats / 2 / threads;
  std::vector<std::vector<float>> from(threads), to(threads);
  auto work = [&](unsigned thread) {
    // Pages belong to the thread that touches them first.
    from[thread].resize(each, 1.0f);
    to[thread].resize(each);
    const float *source = from[thread].data();
    float *target = to[thread].data();
    for (size_t i = 0; i < each; ++i)
      target[i] = 2.0f * source[i];
    asm volatile("" : : "r"(target) : "memory");
  };
  timeThreads(threads, work);
  return 2.0 * sizeof(float) * double(each) * threads / fastest(threads, work);
}

} // namespace

MachineLimits fp8run::measureLimits(llvm::StringRef manifest) {
  MachineLimits limits;
  limits.threads = countThreads();
  limits.vectorBits = findVectorBits(manifest);
  limits.operationsPerSecond = measureOperations(limits.threads, limits.vectorBits);
  limits.bytesPerSecond = measureBytes(limits.threads);
  return limits;
}
