// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handles for tests.

#include "TestSupport.h"

using namespace fp8rt_test;

Library fp8rt_test::loadFixture() {
  return make<Library>([](auto *out) { return fp8rt_library_load(FIXTURE, out); });
}

State fp8rt_test::newState(const Library &library) {
  return make<State>([&](auto *out) { return fp8rt_state_create(library.get(), out); });
}

Session fp8rt_test::newSession(const Library &library, const char *entry, const State &state) {
  return make<Session>(
      [&](auto *out) { return fp8rt_session_create(library.get(), entry, state.get(), out); });
}

Tensors fp8rt_test::newTensors() {
  return make<Tensors>([](auto *out) { return fp8rt_tensors_create(out); });
}

Tensors fp8rt_test::readTensors(const std::string &path) {
  return make<Tensors>([&](auto *out) { return fp8rt_tensors_read(path.c_str(), out); });
}
