// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that communicate through the stand-in for NCCL, each with a session on the emulator.

#ifndef FP8RT_TEST_NCCLSUPPORT_H
#define FP8RT_TEST_NCCLSUPPORT_H

#include "RankSupport.h"
#include "cuda/DeviceSupport.h"

namespace fp8rt_test {

/// Makes the communicator through NCCL on top of one in host memory.
extern const Wrap kThroughNccl;

/// A session of the device fixture's entry 'ranks', which sums x times a factor over the ranks, and memory of
/// its device.
class RankOnDevice {
public:
  /// Connects the communicator; `error` says if that failed.
  explicit RankOnDevice(fp8rt_communicator &communicator, const char *device = "emulator",
                        const std::function<void()> &beforeConnection = nullptr);
  RankOnDevice(const RankOnDevice &) = delete;
  RankOnDevice &operator=(const RankOnDevice &) = delete;
  ~RankOnDevice();

  /// One step with x = {1, 2, third}: returns the sums as a text such as "11 22 0 ", or the error.
  std::string step(float factor, float third = 0);
  /// Makes the device's context the thread's.
  void makeCurrent();
  /// Memory of the device, which the host reaches too.
  char *allocate(uint64_t bytes);

  std::string error;

private:
  Library library;
  GPU gpu;
  Session session;
  std::vector<char *> memory;
};

/// Calls a function of the stand-in that takes nothing.
int64_t standin(const char *function);
/// Returns a function of a library that is loaded.
void *findIn(const char *library, const char *name);

/// Calls a function of the emulated driver.
template <typename... Arguments>
void drive(const char *function, Arguments... arguments) {
  EXPECT_EQ(reinterpret_cast<int (*)(Arguments...)>(findIn(EMULATOR, function))(arguments...), 0) << function;
}

} // namespace fp8rt_test

#endif // FP8RT_TEST_NCCLSUPPORT_H
