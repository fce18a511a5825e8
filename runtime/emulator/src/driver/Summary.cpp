// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The summary's text.

#include "Summary.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

using namespace fp8emu;
using namespace fp8emu::driver;

bool Summary::add(const Fault &fault) { return faults.insert({fault.kind, fault.kernel, fault.pc}).second; }

void Summary::addLaunch(const std::string &kernel, double seconds) {
  Launches &launches = kernels[kernel];
  ++launches.count;
  launches.seconds += seconds;
}

static std::string counted(uint64_t count, const char *one, const char *several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

std::string Summary::text() const {
  constexpr size_t kMost = 10;
  std::vector<std::pair<std::string, Launches>> slowest(kernels.begin(), kernels.end());
  std::sort(slowest.begin(), slowest.end(), [](const auto &a, const auto &b) {
    return std::pair(-a.second.seconds, a.first) < std::pair(-b.second.seconds, b.first);
  });
  uint64_t launches = 0;
  double seconds = 0;
  for (const auto &[name, of] : slowest) {
    launches += of.count;
    seconds += of.seconds;
  }
  char line[64];
  std::snprintf(line, sizeof line, ", %.2f s; ", seconds);
  std::string out = counted(slowest.size(), "kernel", "kernels") + ", " +
                    counted(launches, "launch", "launches") + line +
                    counted(findings(), "finding", "findings");
  for (size_t i = 0; i < std::min(kMost, slowest.size()); ++i) {
    std::snprintf(line, sizeof line, "\n%10.2f s %8llu x  ", slowest[i].second.seconds,
                  static_cast<unsigned long long>(slowest[i].second.count));
    out += line + slowest[i].first;
  }
  if (slowest.size() > kMost)
    out += "\n  and " + counted(slowest.size() - kMost, "kernel", "kernels") + " that took less";
  return out;
}
