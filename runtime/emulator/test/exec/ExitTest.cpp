// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs load modules and launch kernels until their process has ended: from exit
// handlers and from destructors of static objects.

#include "Harness.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// Whether a kernel computes 2 + 3, its profile has its store, and sm_90a has a chip.
bool addsTwoNumbers() {
  TestMachine machine(kernelText("mov.u32 %r0, 2;\nadd.u32 %r0, %r0, 3;\nst.global.u32 [%out], %r0;\n", 0));
  const uint64_t out = machine.allocate(4);
  if (machine.launch("k", LaunchConfig(), out) || machine.download<uint32_t>(out, 1)[0] != 5)
    return false;
  return machine.profile.json().find("st.global.u32") != std::string::npos && findChip("sm_90a");
}

} // namespace

TEST(ExitDeathTest, KernelsAreLoadedAndRunByExitHandlers) {
  // The test begins in a process of its own, so that its handler is the first: it runs after
  // the destructors of all static objects that the first kernel made.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::atexit([] { std::_Exit(addsTwoNumbers() ? 0 : 1); });
        std::exit(addsTwoNumbers() ? 2 : 3);
      },
      testing::ExitedWithCode(0), "");
}
