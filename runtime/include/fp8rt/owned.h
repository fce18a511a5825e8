// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's handles for C++ programs, as owning pointers.

#ifndef FP8RT_OWNED_H
#define FP8RT_OWNED_H

#include "fp8rt/checkpoints.h"
#include "fp8rt/gpu.h"
#include "fp8rt/prepared.h"
#include "fp8rt/profiler.h"
#include "fp8rt/ranks.h"
#include "fp8rt/session.h"

#include <memory>

namespace fp8rt::owned {

/// A deleter that calls the C function which destroys a handle.
template <auto destroy>
struct Destroyer {
  template <typename T>
  void operator()(T *handle) const {
    destroy(handle);
  }
};

/// Gives a tensor of DLPack back.
struct Deleter {
  void operator()(DLManagedTensor *tensor) const { tensor->deleter(tensor); }
};

using Checkpoints = std::unique_ptr<fp8rt_checkpoints, Destroyer<fp8rt_checkpoints_destroy>>;
using Library = std::unique_ptr<fp8rt_library, Destroyer<fp8rt_library_destroy>>;
using GPU = std::unique_ptr<fp8rt_gpu, Destroyer<fp8rt_gpu_close>>;
using ManagedTensor = std::unique_ptr<DLManagedTensor, Deleter>;
using State = std::unique_ptr<fp8rt_state, Destroyer<fp8rt_state_destroy>>;
using Session = std::unique_ptr<fp8rt_session, Destroyer<fp8rt_session_destroy>>;
using Prepared = std::unique_ptr<fp8rt_prepared, Destroyer<fp8rt_prepared_destroy>>;
using Profiler = std::unique_ptr<fp8rt_profiler, Destroyer<fp8rt_profiler_destroy>>;
using Communicator = std::unique_ptr<fp8rt_communicator, Destroyer<fp8rt_communicator_destroy>>;
using Tensors = std::unique_ptr<fp8rt_tensors, Destroyer<fp8rt_tensors_destroy>>;

} // namespace fp8rt::owned

#endif // FP8RT_OWNED_H
