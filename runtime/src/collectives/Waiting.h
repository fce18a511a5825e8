// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long a rank has waited for others, for deadlines.

#ifndef FP8RT_COLLECTIVES_WAITING_H
#define FP8RT_COLLECTIVES_WAITING_H

#include <algorithm>
#include <chrono>

namespace fp8rt::collectives {

/// A clock for one wait, which looks whether it is over every 0.05 s at least. While its own process is
/// stopped, as by Ctrl-Z, a rank does not wait, and the others may be stopped too: so of the time between two
/// looks 0.25 s count at most.
class Waiting {
public:
  /// Returns the seconds up to now.
  double look() {
    Clock::time_point now = Clock::now();
    seconds += std::min(std::chrono::duration<double>(now - last).count(), 0.25);
    last = now;
    return seconds;
  }

private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point last = Clock::now();
  double seconds = 0;
};

/// So many seconds after its deadline a rank names ranks that wait themselves, if no reason has come from
/// them: all wait for each other.
constexpr double kBlameOfWaiting = 1;

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_WAITING_H
