// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's declarations of MPI beside those of Open MPI's mpi.h: compiling this file is the test.

#include "../../src/collectives/mpi/Mpi.h"
#include "Declarations.h"

#include <mpi.h>

namespace {

using fp8rt_test::AreAlike;
using namespace fp8rt::collectives::mpi;

#define EXPECT_ALIKE(name, symbol, parameters)                                                               \
  static_assert(AreAlike<int(*) parameters, decltype(&::symbol)>::kAre, #symbol);
FP8RT_MPI_FUNCTIONS(EXPECT_ALIKE)

static_assert(kAnySource == MPI_ANY_SOURCE && kThreadSerialized == MPI_THREAD_SERIALIZED);
static_assert(kMaxErrorString >= MPI_MAX_ERROR_STRING);
static_assert(std::is_pointer_v<MPI_Comm> && std::is_pointer_v<MPI_Request> &&
              std::is_pointer_v<MPI_Datatype>);

} // namespace
