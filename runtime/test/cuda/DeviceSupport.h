// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Helpers for tests of sessions on devices.

#ifndef FP8RT_TEST_DEVICESUPPORT_H
#define FP8RT_TEST_DEVICESUPPORT_H

#include "TestSupport.h"

namespace fp8rt_test {

/// The device of the tests: the emulator, or the one that the environment's FP8RT_TEST_DEVICE names.
std::string testDevice();
bool isEmulator();

Library load(const char *file);
GPU openGPU(const char *name, const Library &library);
State newStateOn(const GPU &gpu);
Session newSessionOn(const GPU &gpu, const char *entry, const State &state);

/// Arguments of the device fixture's entry 'main'.
struct MainArguments {
  Literal<float> w{kF32, {6}, {1, -2, 3, -4, 5, -6}};
  Literal<int32_t> m{kI32, {4}, {10, 20, 30, 40}};
  Literal<float> x{kF32, {6}, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f}};

  void setIn(const Session &session);
};

} // namespace fp8rt_test

#endif // FP8RT_TEST_DEVICESUPPORT_H
