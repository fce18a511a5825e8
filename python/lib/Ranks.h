// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ranks of a compiled program that several devices run: each device of this process has a communicator.

#ifndef FP8_JAX_RANKS_H
#define FP8_JAX_RANKS_H

#include "fp8rt/ranks.h"

#include <map>
#include <mutex>
#include <string>

namespace fp8_jax {

/// The rank of one device. Its calls take turns.
class Rank {
public:
  Rank(decltype(&fp8rt_communicator_gather) gather, decltype(&fp8rt_communicator_fail) tell,
       decltype(&fp8rt_last_error) lastError, fp8rt_communicator *communicator)
      : gather(gather), tell(tell), lastError(lastError), own(communicator) {}

  const fp8rt_communicator *communicator() const { return own; }
  std::mutex &mutex() { return turn; }

  /// Compares with the other ranks which of its custom calls each one runs. XLA may run calls in another
  /// order on another device, where neither needs the other's results. Returns the error, or nothing.
  std::string compare(uint64_t number);

  /// Tells the other ranks that this one goes no further.
  void fail(const std::string &reason) { tell(own, reason.c_str()); }

private:
  decltype(&fp8rt_communicator_gather) gather;
  decltype(&fp8rt_communicator_fail) tell;
  decltype(&fp8rt_last_error) lastError;
  fp8rt_communicator *own;
  std::mutex turn;
};

/// By XLA's number of the device.
using Ranks = std::map<int32_t, Rank>;

} // namespace fp8_jax

#endif // FP8_JAX_RANKS_H
