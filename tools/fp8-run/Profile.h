// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The profile of a run: a table for people, or JSON.

#ifndef FP8_TOOLS_FP8RUN_PROFILE_H
#define FP8_TOOLS_FP8RUN_PROFILE_H

#include "MachineLimits.h"
#include "fp8rt/owned.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>
#include <string>
#include <vector>

namespace fp8run {

/// Times and counts of a kernel or a kind of kernels, per step.
struct ProfileLine {
  std::string name, kind;
  std::vector<std::string> sites;
  double calls = 0, milliseconds = 0;
  /// Unset where the compiler does not know them.
  std::optional<double> read, written, operations;

  /// Adds the counts and times of `other`; unknown counts make the sum unknown.
  void add(const ProfileLine &other);
  std::optional<double> getGFlops() const;
  std::optional<double> getGBytes() const;
  /// Returns the least time in which this machine could do the known work, divided by the time it took:
  /// 1 is the limit. More than 1 is possible for data that were in a cache.
  std::optional<double> getShareOfLimit(const MachineLimits &limits) const;
};

/// The measurements of several steps. The faster half of them counts: other programs on the machine
/// delay some steps by more than a kernel takes.
class Profile {
public:
  Profile(const fp8rt_profiler *profiler, bool skippedFirst)
      : profiler(profiler), skippedFirst(skippedFirst) {}

  /// Adds a step, which the profiler has measured since it was created or reset.
  void addStep();
  /// Computes the lines; to be called after the last step, before printing.
  /// `deviceName` is empty for the CPU, whose limits are known.
  void finish(const std::string &deviceName, std::optional<MachineLimits> measured);

  void print(llvm::raw_ostream &os) const;
  llvm::json::Object toJSON() const;

private:
  struct Step {
    std::vector<uint64_t> calls; // by kernel
    std::vector<double> seconds; // the same, and last those outside kernels
    double total = 0;
  };

  ProfileLine describeKernel(uint32_t index) const;
  std::vector<ProfileLine> sumUpKinds() const;
  void printLines(llvm::raw_ostream &os, llvm::ArrayRef<ProfileLine> shown, llvm::StringRef title) const;
  void printLine(llvm::raw_ostream &os, const ProfileLine &line) const;
  void printHead(llvm::raw_ostream &os) const;
  std::optional<double> getShareOfLimit(const ProfileLine &line) const;
  llvm::json::Object lineToJSON(const ProfileLine &line) const;

  const fp8rt_profiler *profiler;
  bool skippedFirst;
  uint64_t measuredSteps = 0;
  std::vector<Step> steps; // after finish(), those that count
  std::string device;
  std::optional<MachineLimits> limits;
  std::vector<ProfileLine> lines; // by time, the largest first
  ProfileLine whole;
};

} // namespace fp8run

#endif // FP8_TOOLS_FP8RUN_PROFILE_H
