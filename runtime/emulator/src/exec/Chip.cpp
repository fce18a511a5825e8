// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chips, their limits, and the launches that they refuse.

#include "Chip.h"

#include <algorithm>

using namespace fp8emu;

namespace {

constexpr uint32_t kDefaultShared = 48 * 1024;
/// Of a multiprocessor, and the most that a block may have.
constexpr uint64_t kRegisters = 65536;
/// Warps get registers in units of 256; each of a multiprocessor's four parts has a quarter
/// of them, and launches are refused as if a block had equally many warps on all.
constexpr uint64_t kRegisterUnit = 256, kParts = 4;
/// Shared memory that each block takes beyond what it asks for.
constexpr uint64_t kReservedPerBlock = 1024;

using Dim3 = std::array<uint32_t, 3>;

uint64_t roundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

uint64_t registersOfWarp(const FunctionCode &kernel) {
  return roundUp(uint64_t(kernel.registers) * kLanes, kRegisterUnit);
}
/// The registers that must be free for a block of the kernel.
uint64_t registersOfBlock(const FunctionCode &kernel, uint64_t threads) {
  return registersOfWarp(kernel) * roundUp((threads + kLanes - 1) / kLanes, kParts);
}

uint64_t product(const Dim3 &size) { return uint64_t(size[0]) * size[1] * size[2]; }

/// A directive's dimensions, those not written as 1.
Dim3 filled(const ptx::Dim3 &size) { return {size[0], std::max(size[1], 1u), std::max(size[2], 1u)}; }

std::string text(uint64_t value) { return std::to_string(value); }
std::string text(const Dim3 &size) {
  return "(" + text(size[0]) + "," + text(size[1]) + "," + text(size[2]) + ")";
}

class Limits {
public:
  Limits(const Chip &chip, const FunctionCode &kernel, const Allowance &allowance, LaunchConfig &config)
      : chip(chip), kernel(kernel), tree(*kernel.tree), allowance(allowance), config(config) {}

  /// Throws a Refusal.
  void check() {
    sizes();
    directives();
    registers();
    shared();
    cluster();
    if (config.cooperative)
      cooperative();
  }

private:
  void require(bool holds, Refusal::Kind kind, const std::string &message) {
    if (!holds)
      throw Refusal{kind, message};
  }

  void sizes() {
    require(product(config.grid) && product(config.block), Refusal::Sizes,
            "the grid is " + text(config.grid) + ", the block " + text(config.block) +
                ": both need at least 1 in each dimension");
    require(product(config.block) <= 1024 && config.block[2] <= 64, Refusal::Sizes,
            "the block is " + text(config.block) + ": at most 1024 threads, and 64 in z, are possible");
    require(config.grid[0] <= 0x7FFFFFFF && config.grid[1] <= 65535 && config.grid[2] <= 65535,
            Refusal::Sizes,
            "the grid is " + text(config.grid) + ": at most (2147483647,65535,65535) is possible");
  }

  void directives() {
    uint64_t threads = product(config.block);
    if (tree.maxThreads[0])
      require(threads <= product(filled(tree.maxThreads)), Refusal::Sizes,
              "the block has " + text(threads) + " threads, .maxntid allows " +
                  text(product(filled(tree.maxThreads))));
    if (tree.requiredThreads[0])
      require(config.block == filled(tree.requiredThreads), Refusal::Sizes,
              "the block is " + text(config.block) + ", .reqntid wants " +
                  text(filled(tree.requiredThreads)));
  }

  void registers() {
    uint64_t threads = product(config.block), all = registersOfBlock(kernel, threads);
    require(all <= kRegisters, Refusal::Resources,
            "a block of " + text(threads) + " threads with " + text(kernel.registers) +
                " registers each takes " + text(all) + " (the numbers are rounded up), there are " +
                text(kRegisters));
  }

  void shared() {
    uint64_t all = uint64_t(kernel.staticSharedBytes) + config.dynamicShared;
    require(all <= uint64_t(chip.sharedPerBlock), Refusal::Sizes,
            text(all) + " bytes of shared memory, a block of " + chip.target + " has at most " +
                text(uint64_t(chip.sharedPerBlock)));
    uint32_t allowed = std::max(allowance.dynamicShared, kDefaultShared);
    require(config.dynamicShared <= allowed, Refusal::Sizes,
            text(config.dynamicShared) + " bytes of dynamic shared memory, the kernel was allowed " +
                text(allowed) + " (cuFuncSetAttribute)");
  }

  void cluster() {
    if (tree.requiredCluster[0])
      config.cluster = filled(tree.requiredCluster);
    uint64_t blocks = product(config.cluster), most = allowance.nonPortableClusters ? 16 : 8;
    require(blocks >= 1 && blocks <= most, Refusal::ClusterSize,
            "a cluster of " + text(blocks) + " blocks, at most " + text(most) + " are possible");
    require(blocks == 1 || chip.clusters, Refusal::NoClusters, chip.target + " has no clusters");
    for (unsigned i = 0; i < 3; ++i)
      require(config.grid[i] % config.cluster[i] == 0, Refusal::ClusterSize,
              "the grid " + text(config.grid) + " does not divide into clusters of " + text(config.cluster));
  }

  void cooperative() {
    int held = residentBlocks(chip, kernel, int(product(config.block)), config.dynamicShared);
    uint64_t most = uint64_t(held) * uint64_t(chip.multiprocessors);
    require(product(config.grid) <= most, Refusal::CooperativeTooLarge,
            "a cooperative grid of " + text(product(config.grid)) + " blocks, " + chip.target + " holds " +
                text(most) + " at a time");
  }

  const Chip &chip;
  const FunctionCode &kernel;
  const ptx::Function &tree;
  const Allowance &allowance;
  LaunchConfig &config;
};

} // namespace

const std::vector<Chip> &fp8emu::knownChips() {
  // Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute
  // Capability". Multiprocessors: those of an H100 SXM, L40S, B200 and RTX 5090.
  // Never destroyed: programs call the API from their own destructors.
  static const auto &chips = *new std::vector<Chip>{
      {"sm_90a", "fp8emu sm_90a", 9, 0, 132, 233472, 232448, 64, 32, true},
      {"sm_89", "fp8emu sm_89", 8, 9, 142, 102400, 101376, 48, 24, false},
      {"sm_100a", "fp8emu sm_100a", 10, 0, 148, 233472, 232448, 64, 32, true},
      {"sm_120a", "fp8emu sm_120a", 12, 0, 170, 102400, 101376, 48, 24, true},
  };
  return chips;
}

const Chip *fp8emu::findChip(const std::string &name) {
  for (const Chip &chip : knownChips())
    if (chip.target == name || chip.target == name + "a")
      return &chip;
  return nullptr;
}

bool fp8emu::runs(const Chip &chip, const std::string &target) {
  if (target.rfind("sm_", 0) != 0)
    return false;
  unsigned wanted = unsigned(std::strtoul(target.c_str() + 3, nullptr, 10));
  unsigned has = unsigned(chip.major * 10 + chip.minor);
  char suffix = target.back();
  if (suffix == 'a')
    return wanted == has;
  if (suffix == 'f')
    return wanted / 10 == has / 10 && wanted <= has;
  return wanted <= has;
}

int fp8emu::residentBlocks(const Chip &chip, const FunctionCode &kernel, int threads,
                           uint64_t dynamicShared) {
  if (threads <= 0 || threads > 1024 || registersOfBlock(kernel, uint64_t(threads)) > kRegisters)
    return 0;
  int warps = (threads + int(kLanes) - 1) / int(kLanes);
  int byThreads = chip.warpsPerMultiprocessor / warps;
  uint64_t shared = kernel.staticSharedBytes + dynamicShared + kReservedPerBlock;
  int byShared = int(uint64_t(chip.sharedPerMultiprocessor) / shared);
  int byRegisters = int(kRegisters / kParts / registersOfWarp(kernel) * kParts) / warps;
  return std::min({chip.blocksPerMultiprocessor, byThreads, byShared, byRegisters});
}

std::optional<Refusal> fp8emu::refuse(const Chip &chip, const FunctionCode &kernel,
                                      const Allowance &allowance, LaunchConfig &config) {
  try {
    Limits(chip, kernel, allowance, config).check();
    return std::nullopt;
  } catch (const Refusal &refusal) {
    return refusal;
  }
}
