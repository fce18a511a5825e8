// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared memory of kernels: only the variables that a kernel uses count. ptxas 13.0 reports the same sizes,
// rounded up to 128 bytes, for kernels whose variables no other kernel shares.

#include "Harness.h"

#include "isa/SharedLayout.h"
#include "ptx/Parser.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

const char *const kModule = R"(.version 8.7
.target sm_90a
.address_size 64
.shared .align 16 .b8 a[16384];
.shared .align 4 .b8 b[100];
.shared .align 16 .b8 c[48];
.extern .shared .align 128 .b8 added[];
.func helper() { .reg .b64 %rd<2>; mov.u64 %rd0, c; st.shared.b32 [%rd0], 1; ret; }
.visible .entry useA() { .reg .b64 %rd<2>; mov.u64 %rd0, a; st.shared.b32 [%rd0], 1; ret; }
.visible .entry useAB() { st.shared.b32 [a], 1; st.shared.b32 [b], 1; ret; }
.visible .entry own() { .shared .align 8 .b8 mine[24]; st.shared.b32 [mine], 1; ret; }
.visible .entry calls() { call helper; st.shared.b32 [b+4], 1; ret; }
.visible .entry dynamic() { st.shared.b32 [added], 1; st.shared.b32 [b], 1; ret; }
.visible .entry none() { ret; }
)";

TEST(SharedLayout, CountsWhatAKernelUses) {
  ptx::Module module = ptx::parse(kModule);
  SharedLayout layout = layOutShared(module, 1 << 20);
  auto bytes = [&](const std::string &name) {
    for (size_t i = 0; i < module.functions.size(); ++i)
      if (module.functions[i].name == name)
        return layout.bytes[i];
    return ~0u;
  };
  EXPECT_EQ(bytes("own"), 24u);
  EXPECT_EQ(bytes("none"), 0u);
  EXPECT_EQ(bytes("calls"), 148u);
  // a lies behind b, with which it shares a kernel, and b behind c.
  EXPECT_EQ(bytes("useAB"), 160u + 16384);
  EXPECT_EQ(bytes("useA"), 160u + 16384);
  // The dynamic shared memory of the launch begins behind b, at a multiple of its alignment.
  EXPECT_EQ(layout.ofModule[3] % 128, 0u);
  EXPECT_GE(layout.ofModule[3], layout.ofModule[1] + 100);
  EXPECT_EQ(bytes("dynamic"), layout.ofModule[3]);
}

TEST(SharedLayout, VariablesOfOneKernelDoNotOverlap) {
  ptx::Module module = ptx::parse(kModule);
  SharedLayout layout = layOutShared(module, 1 << 20);
  auto overlap = [&](size_t x, size_t y) {
    return layout.ofModule[x] < layout.ofModule[y] + module.variables[y].bytes() &&
           layout.ofModule[y] < layout.ofModule[x] + module.variables[x].bytes();
  };
  EXPECT_FALSE(overlap(0, 1)); // useAB
  EXPECT_FALSE(overlap(1, 2)); // calls, by helper
  EXPECT_EQ(layout.ofModule[2] % 16, 0u);
}

TEST(SharedLayout, AKernelWithTooMuchIsRefused) {
  ptx::Module module = ptx::parse(kModule);
  EXPECT_THROW(layOutShared(module, 16384 + 99), PtxError);
  EXPECT_NO_THROW(layOutShared(module, 1 << 20));
}

/// An indirect call may reach any function.
TEST(SharedLayout, IndirectCallsCount) {
  ptx::Module module = ptx::parse(R"(.version 8.7
.target sm_90a
.address_size 64
.func f() { .shared .align 4 .b8 y[32]; st.shared.b32 [y], 1; ret; }
.visible .entry k() { .reg .b64 %rd<2>; mov.u64 %rd0, f; p: .callprototype _ (); call %rd0, (), p; ret; }
)");
  EXPECT_EQ(layOutShared(module, 1 << 20).bytes[1], 32u);
}

} // namespace
