// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Profiles of launches, joined by kernel: as JSON and as a table.

#ifndef FP8EMU_EXEC_PROFILEREPORT_H
#define FP8EMU_EXEC_PROFILEREPORT_H

#include "Profile.h"
#include "Program.h"

#include <map>
#include <string>
#include <utility>

namespace fp8emu {

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

class ProfileReport {
public:
  /// Adds a launch of `kernel`.
  void add(const Program &program, const FunctionCode &kernel, const Profile &profile);
  const std::map<std::string, KernelProfile> &kernels() const { return byKernel; }

  /// {"version": 1, "kernels": [{"kernel", "launches", "total": {counts},
  /// "instructions": [{"line", "source", "instruction", counts}]}]}; counts are named as
  /// countNames() has them, those that are zero left out of instructions.
  std::string json() const;
  /// For people: totals and the lines of each kernel.
  std::string table() const;

private:
  std::map<std::string, KernelProfile> byKernel;
};

} // namespace fp8emu

#endif // FP8EMU_EXEC_PROFILEREPORT_H
