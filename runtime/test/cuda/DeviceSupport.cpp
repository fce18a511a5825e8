// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handles on devices for tests.

#include "DeviceSupport.h"

#include <cstdlib>

using namespace fp8rt_test;

std::string fp8rt_test::testDevice() {
  const char *chosen = std::getenv("FP8RT_TEST_DEVICE");
  return chosen ? chosen : "emulator";
}

bool fp8rt_test::isEmulator() { return testDevice() == "emulator"; }

Library fp8rt_test::load(const char *file) {
  return make<Library>([&](auto *out) { return fp8rt_library_load(file, out); });
}

GPU fp8rt_test::openGPU(const char *name, const Library &library) {
  return make<GPU>([&](auto *out) { return fp8rt_gpu_open(name, library.get(), out); });
}

State fp8rt_test::newStateOn(const GPU &gpu) {
  return make<State>([&](auto *out) { return fp8rt_state_create_on(gpu.get(), out); });
}

Session fp8rt_test::newSessionOn(const GPU &gpu, const char *entry, const State &state) {
  return make<Session>(
      [&](auto *out) { return fp8rt_session_create_on(gpu.get(), entry, state.get(), out); });
}

void MainArguments::setIn(const Session &session) {
  ASSERT_FP8RT(fp8rt_session_set_argument(session.get(), 0, &w.view));
  ASSERT_FP8RT(fp8rt_session_set_argument(session.get(), 1, &m.view));
  ASSERT_FP8RT(fp8rt_session_set_argument(session.get(), 2, &x.view));
}
