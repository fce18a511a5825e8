// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels with mistakes must be refused with a line, end, or stop with a fault, never
// crash the host, run forever or keep memory of the device. The test runs the same
// kernels each time. For longer runs, best of a build with sanitizers:
//   FP8EMU_FUZZ_RUNS=N    as many kernels (as of ParserFuzzTest)
//   FP8EMU_FUZZ_SEED=N    others; run i of seed N is run 0 of seed N + i
//   FP8EMU_FUZZ_PTX=PATH  kernels of the .ptx files in that folder, and below, too
//   FP8EMU_FUZZ_LAST=FILE the kernel that runs is kept there, to find one that crashes

#include "Harness.h"
#include "Mutation.h"
#include "ParserSupport.h"
#include "async/TensorMap.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

using namespace fp8emu;
using namespace fp8emu::test;
using fp8emu_test::Chance;

namespace {

/// Some of the parser's files need others to be linked with.
bool loads(const std::string &text) {
  try {
    TestMachine machine(text);
    return true;
  } catch (const PtxError &) {
    return false;
  }
}

std::vector<std::string> kernelTexts() {
  std::vector<std::string> texts;
  for (auto &[name, text] : fp8emu_test::fixtures())
    if (loads(text))
      texts.push_back(text);
  if (const char *path = std::getenv("FP8EMU_FUZZ_PTX"))
    for (const auto &entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.path().extension() == ".ptx") {
        std::ifstream file(entry.path(), std::ios::binary);
        texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      }
  return texts;
}

constexpr uint64_t kBufferBytes = 64 * 1024;

/// A tensor of `buffer` that a copy may be asked for.
TensorMap tensor(uint64_t buffer, Chance &chance) {
  TensorMap map;
  map.address = buffer;
  map.type = TensorType(chance.below(uint64_t(TensorType::Count)));
  map.rank = uint8_t(1 + chance.below(3));
  map.swizzle = Swizzle(chance.below(uint64_t(Swizzle::Count)));
  for (unsigned i = 0; i < map.rank; ++i) {
    map.size[i] = 16 << chance.below(2);
    map.box[i] = uint32_t(16 >> chance.below(2));
    map.step[i] = 1;
    if (i)
      map.stride[i - 1] = i == 1 ? 256 : 8192;
  }
  return map;
}

/// Parameters that a kernel might be given: mostly pointers and small numbers.
std::vector<uint8_t> parameters(const Kernel &kernel, uint64_t buffer, Chance &chance) {
  std::vector<uint8_t> bytes(kernel.parameterBytes);
  for (const Kernel::Parameter &place : kernel.parameters) {
    if (place.bytes == kTensorMapBytes) {
      tensor(buffer, chance).encode(bytes.data() + place.offset);
      continue;
    }
    for (uint32_t at = 0; at < place.bytes; at += 8) {
      const uint64_t value = place.bytes - at >= 8 && !chance.oneIn(8)
                                 ? buffer + 4096 * chance.below(4)
                                 : (uint64_t(1) << chance.below(10)) - 1;
      std::memcpy(bytes.data() + place.offset + at, &value, std::min(place.bytes - at, 8u));
    }
  }
  return bytes;
}

LaunchConfig sizes(Chance &chance) {
  static const std::vector<uint32_t> threads = {32, 128, 1, 64, 33, 256};
  LaunchConfig config;
  config.block = {chance.pick(threads), uint32_t(1 + chance.oneIn(16)), 1};
  config.grid = {uint32_t(2 * (1 + chance.below(2))), 1, 1};
  config.cluster = {uint32_t(1 + chance.oneIn(4)), 1, 1};
  config.dynamicShared = chance.oneIn(2) ? 0 : uint32_t(chance.below(64)) * 512;
  return config;
}

/// The outcome of a kernel.
enum class End { Refused, Ended, Faulted };

/// Launches the text's kernel by chances of its own.
void launch(const std::string &text, Chance &chance, End &end) {
  Settings settings;
  settings.checks = !chance.oneIn(3);
  settings.races = !chance.oneIn(3);
  settings.seed = chance.below(100);
  settings.threads = 1;
  settings.instructionLimit = 20000;
  settings.print = [](const std::string &) {};
  std::unique_ptr<TestMachine> machine;
  const auto lines = uint32_t(1 + std::count(text.begin(), text.end(), '\n'));
  end = End::Refused;
  try {
    machine = std::make_unique<TestMachine>(text, settings);
  } catch (const PtxError &error) {
    ASSERT_GE(error.where.line, 1u) << error.what();
    ASSERT_LE(error.where.line, lines) << error.what();
    return;
  }
  const uint64_t buffer = machine->allocate(kBufferBytes);
  for (uint64_t at = 0; at < kBufferBytes; at += 4) {
    const float value = float(at % 97);
    std::memcpy(reinterpret_cast<void *>(buffer + at), &value, 4);
  }
  machine->device.markWritten(buffer, kBufferBytes);
  for (const Kernel &kernel : machine->module->kernels()) {
    LaunchConfig config = sizes(chance);
    Allowance allowance;
    allowance.dynamicShared = UINT32_MAX;
    const Chip *chip = findChip(machine->module->target());
    if (!chip || refuse(*chip, kernel, allowance, config))
      continue;
    config.parameters = parameters(kernel, buffer, chance);
    const uint64_t before = machine->device.bytesInUse();
    auto fault = machine->run(kernel.name, config);
    end = fault ? End::Faulted : End::Ended;
    if (text.find("malloc") == std::string::npos)
      ASSERT_EQ(machine->device.bytesInUse(), before);
    if (!fault)
      continue;
    ASSERT_FALSE(fault->message.empty());
    ASSERT_EQ(fault->kernel, kernel.name) << fault->text();
    ASSERT_LE(fault->line, lines) << fault->text();
    if (fault->kind != FaultKind::Timeout)
      ASSERT_GE(fault->line, 1u) << fault->text();
  }
}

TEST(LaunchFuzzTest, KernelsWithMistakesEndOrAreReported) {
  const uint64_t seed = fp8emu_test::setting("FP8EMU_FUZZ_SEED", 1);
  const uint64_t runs = fp8emu_test::setting("FP8EMU_FUZZ_RUNS", 4000);
  const char *last = std::getenv("FP8EMU_FUZZ_LAST");
  std::printf("FP8EMU_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
  const fp8emu_test::Mutation mutate(kernelTexts());
  uint64_t counts[3] = {};
  for (uint64_t run = 0; run < runs; ++run) {
    Chance chance(seed + run);
    const std::string text = mutate(chance);
    if (last)
      std::ofstream(last) << "// FP8EMU_FUZZ_SEED=" << seed + run << "\n" << text;
    End end;
    launch(text, chance, end);
    ASSERT_FALSE(HasFatalFailure()) << "run " << run << ":\n" << text;
    ++counts[unsigned(end)];
  }
  std::printf("%llu refused, %llu ended, %llu with a fault\n", static_cast<unsigned long long>(counts[0]),
              static_cast<unsigned long long>(counts[1]), static_cast<unsigned long long>(counts[2]));
  if (runs < 100)
    return;
  // Each way is taken often.
  for (uint64_t count : counts)
    EXPECT_GT(count, runs / 20);
}

} // namespace
