// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A summary of what a process did, for its end: findings, each once, and launches by kernel.

#ifndef FP8EMU_DRIVER_SUMMARY_H
#define FP8EMU_DRIVER_SUMMARY_H

#include "fp8emu/Types.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace fp8emu::driver {

class Summary {
public:
  /// Notes a fault. True where it is the first of its kind at that instruction of the kernel.
  bool add(const Fault &fault);
  void addLaunch(const std::string &kernel, double seconds);
  /// How many faults `add` has found new.
  size_t findings() const { return faults.size(); }
  /// Several lines: the numbers of kernels, launches and findings, and the slowest kernels.
  std::string text() const;

private:
  struct Launches {
    uint64_t count = 0;
    double seconds = 0;
  };
  std::set<std::tuple<FaultKind, std::string, uint32_t>> faults;
  std::map<std::string, Launches> kernels;
};

} // namespace fp8emu::driver

#endif // FP8EMU_DRIVER_SUMMARY_H
