// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chips that are stood for: which PTX they run, which launches they refuse.

#ifndef FP8EMU_EXEC_CHIP_H
#define FP8EMU_EXEC_CHIP_H

#include "Launch.h"

#include <optional>
#include <string>
#include <vector>

namespace fp8emu {

struct Chip {
  /// As PTX names it: "sm_90a".
  std::string target;
  std::string name;
  int major, minor;
  int multiprocessors;
  /// Of shared memory in bytes: a multiprocessor's, and what a block may have after
  /// opting in (it may have 48 KiB without).
  int sharedPerMultiprocessor, sharedPerBlock;
  int warpsPerMultiprocessor, blocksPerMultiprocessor;
  /// Whether a cluster may have more than one block.
  bool clusters;
};

/// The chips that FP8EMU_CHIP may name.
const std::vector<Chip> &knownChips();
/// By its name, with or without the suffix; null where it is not known.
const Chip *findChip(const std::string &name);

/// Whether a chip runs PTX of that target: the same architecture for those with a
/// suffix, at least as new for others (PTX ISA 11.1.2).
bool runs(const Chip &chip, const std::string &target);

/// How many blocks of a kernel a multiprocessor holds at a time, as cuda_occupancy.h of
/// the CUDA toolkit computes it.
int residentBlocks(const Chip &chip, const Program &program, const FunctionCode &kernel, int threads,
                   uint64_t dynamicShared);

/// What a kernel was allowed beyond the defaults (cuFuncSetAttribute).
struct Allowance {
  uint32_t dynamicShared = 48 * 1024;
  bool nonPortableClusters = false;
};

/// Why a launch is refused.
struct Refusal {
  enum Kind { Sizes, Resources, ClusterSize, NoClusters, CooperativeTooLarge } kind;
  std::string message;
};

/// What the hardware would not launch; none where it would. A cluster size that the
/// kernel declares is put into `config` before.
std::optional<Refusal> refuse(const Chip &chip, const Program &program, const FunctionCode &kernel,
                              const Allowance &allowance, LaunchConfig &config);

} // namespace fp8emu

#endif // FP8EMU_EXEC_CHIP_H
