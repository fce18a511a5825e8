// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts of what launches did, by kernel and by instruction, as JSON and as a table.

#ifndef FP8EMU_PROFILE_H
#define FP8EMU_PROFILE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace fp8emu {

class Profile;
struct FunctionCode;
struct Program;

/// The counts of an instruction, or of a kernel.
struct Counts {
  /// How often it was dispatched for a warp, and how many threads took part in all.
  uint64_t warpInstructions = 0, threadInstructions = 0;
  /// Bytes that threads asked for. Constants are .const memory and parameters.
  uint64_t globalRead = 0, globalWritten = 0;
  uint64_t sharedRead = 0, sharedWritten = 0;
  uint64_t localRead = 0, localWritten = 0;
  uint64_t constantRead = 0;
  /// 32-byte sectors of global memory that a warp's access touches, each once: what
  /// caches and memory carry.
  uint64_t globalSectors = 0;
  /// Passes that shared memory needs beyond those of an access without conflicts:
  /// two words of one of the 32 banks need two.
  uint64_t bankConflicts = 0;
  /// Multiplications and additions of tensor cores: 2 M N K each product.
  uint64_t tensorOperations = 0;
  /// How often a warp, or a part of it, had to wait: at barriers, for mbarriers, for
  /// operations of its own.
  uint64_t waits = 0;

  void add(const Counts &other);
};

/// A count's name in reports.
struct CountName {
  const char *name;
  uint64_t Counts::*member;
};
constexpr size_t kCountNames = 13;
/// All of them, in the order of Counts.
const std::array<CountName, kCountNames> &countNames();

/// One instruction of the text.
struct InstructionProfile {
  /// As in "ld.global.f32".
  std::string instruction;
  /// As in "gemm.cu:42", from .loc; empty where there is none.
  std::string source;
  Counts counts;
};

struct KernelProfile {
  uint64_t launches = 0;
  Counts total;
  /// By line and column of the PTX text, those that were executed.
  std::map<std::pair<uint32_t, uint32_t>, InstructionProfile> instructions;
};

/// Launches for which Machine::launch was given the report, joined by kernel.
class ProfileReport {
public:
  const std::map<std::string, KernelProfile> &kernels() const { return byKernel; }

  /// {"version": 1, "kernels": [{"kernel", "launches", "total": {counts},
  /// "instructions": [{"line", "source", "instruction", counts}]}]}; counts are named as
  /// countNames() has them, those that are zero left out of instructions.
  std::string json() const;
  /// For people: totals and the lines of each kernel.
  std::string table() const;

  /// Adds a launch of `kernel`: Machine::launch does.
  void add(const Program &program, const FunctionCode &kernel, const Profile &profile);

private:
  std::map<std::string, KernelProfile> byKernel;
};

} // namespace fp8emu

#endif // FP8EMU_PROFILE_H
