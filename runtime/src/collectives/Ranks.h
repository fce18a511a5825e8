// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work of the functions of fp8rt_communicator, behind the C ABI: collectives are started and waited for.

#ifndef FP8RT_COLLECTIVES_RANKS_H
#define FP8RT_COLLECTIVES_RANKS_H

#include "fp8rt/communicator.h"

#include <memory>
#include <string>

namespace fp8rt::cuda {
class DeviceProgram;
} // namespace fp8rt::cuda

namespace fp8rt::collectives {

class Ranks {
public:
  virtual ~Ranks() = default;
  Ranks() = default;
  Ranks(const Ranks &) = delete;
  Ranks &operator=(const Ranks &) = delete;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  virtual uint64_t start(const fp8rt_collective &collective, void *stream) = 0;
  virtual void wait(uint64_t ticket, void *stream) = 0;
  /// Gathers `bytes` of host memory of every rank, in order.
  virtual void gather(const void *send, uint64_t bytes, void *receive) = 0;
  /// Tells the other ranks that this one goes no further, and why.
  virtual void tellFailure(const std::string &reason) noexcept = 0;

  /// Whether collectives are of host memory, not of a device's.
  virtual bool usesHostMemory() const { return true; }
  /// The following collectives are of this device's memory; null for the host's. Of communicators that do not
  /// use host memory.
  virtual void useDevice(std::shared_ptr<const cuda::DeviceProgram>) {}
  /// Throws if a collective has failed whose work was enqueued: on a device, work ends then as if it were
  /// done.
  virtual void check() {}

  /// The functions for compiled code.
  const fp8rt_communicator *functions();
  /// Returns the object behind functions(); throws if they are another's.
  static Ranks &of(const fp8rt_communicator *functions);
  /// Returns the same, or null if the functions are another's.
  static Ranks *find(const fp8rt_communicator *functions) noexcept;

private:
  struct Functions; // as C calls them

  fp8rt_communicator table = {};
  std::string reason; // of the last function that failed
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_RANKS_H
