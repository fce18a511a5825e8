// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's declarations of NCCL beside those of nccl.h: compiling this file is the test.

#include "../../src/collectives/nccl/Nccl.h"
#include "Declarations.h"

#include <nccl.h>

namespace {

namespace ours = fp8rt::collectives::nccl;
using fp8rt_test::AreAlike;

// Types of these names are ours in the list of functions, NCCL's elsewhere.
namespace list {
using ours::cudaStream_t;
using ours::ncclComm_t;
using ours::ncclConfig_t;
using ours::ncclDataType_t;
using ours::ncclResult_t;
using ours::ncclUniqueId;

#define EXPECT_ALIKE(name, symbol, result, parameters)                                                       \
  static_assert(AreAlike<result(*) parameters, decltype(&::symbol)>::kAre, #symbol);
FP8RT_NCCL_FUNCTIONS(EXPECT_ALIKE)
} // namespace list

static_assert(int(ours::ncclSuccess) == int(::ncclSuccess) &&
              int(ours::ncclInProgress) == int(::ncclInProgress));
static_assert(int(ours::ncclUint8) == int(::ncclUint8));
static_assert(sizeof(ours::ncclUniqueId) == sizeof(::ncclUniqueId));

// Our config is the beginning of theirs.
#define EXPECT_SAME_PLACE(field)                                                                             \
  static_assert(offsetof(ours::ncclConfig_t, field) == offsetof(::ncclConfig_t, field) &&                    \
                    sizeof(ours::ncclConfig_t::field) == sizeof(::ncclConfig_t::field),                      \
                #field);
EXPECT_SAME_PLACE(size)
EXPECT_SAME_PLACE(magic)
EXPECT_SAME_PLACE(version)
EXPECT_SAME_PLACE(blocking)
EXPECT_SAME_PLACE(cgaClusterSize)
EXPECT_SAME_PLACE(minCTAs)
EXPECT_SAME_PLACE(maxCTAs)
EXPECT_SAME_PLACE(netName)
EXPECT_SAME_PLACE(splitShare)
static_assert(sizeof(ours::ncclConfig_t) <= sizeof(::ncclConfig_t));
constexpr ::ncclConfig_t kInitial = NCCL_CONFIG_INITIALIZER;
static_assert(kInitial.magic == ours::kConfigMagic && kInitial.blocking == ours::kUndefined &&
              kInitial.netName == nullptr);

} // namespace
