// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry point with descriptions of its tensors; each call fills in their data.

#ifndef FP8RT_RUN_PREPARED_H
#define FP8RT_RUN_PREPARED_H

#include "../collectives/StagedRanks.h"
#include "../cuda/Launcher.h"
#include "../program/State.h"

#include "fp8rt/prepared.h"

#include <optional>

namespace fp8rt {

class Prepared {
public:
  /// Descriptions of arguments or results; some or all may be null.
  struct Given {
    const DLTensor *const *tensors;
    uint32_t count;
  };

  Prepared(std::shared_ptr<const Library> library, size_t entry, std::shared_ptr<State> state,
           Given arguments, Given results);
  Prepared(std::shared_ptr<const cuda::DeviceProgram> program, size_t entry, std::shared_ptr<State> state,
           Given arguments, Given results);
  Prepared(const Prepared &) = delete;
  Prepared &operator=(const Prepared &) = delete;

  /// Returns when the work is done.
  void operator()(void *const *argumentData, void *const *resultData);
  /// On a device: enqueues the work on a stream.
  void enqueue(void *const *argumentData, void *const *resultData, void *stream);
  /// Performs the collectives of all following calls; null if there is one rank.
  void communicateThrough(const fp8rt_communicator *communicator);

private:
  /// Descriptions of tensors, in the form that a call takes.
  struct Views {
    std::vector<Shape> shapes;
    std::vector<DLTensor> tensors;
    std::vector<DLTensor *> pointers;

    void add(const Value &value, Shape shape, DLDevice place);
    void finish();
  };

  Prepared(std::shared_ptr<const Library> library, std::shared_ptr<Memory> memory, size_t entry,
           std::shared_ptr<State> state, Given arguments, Given results);
  void describeArguments(Given given);
  void describeResults(Given given);
  void bindState();
  void fillCall();
  void setData(void *const *argumentData, void *const *resultData);
  void checkAligned(const char *what, const Views &views, const std::vector<Value> &values) const;
  void callFunction();
  void runOnDevice(cuda::CUstream stream, bool waits);
  void checkAsked(uint32_t result, const Shape &shape) const;
  static int allocate(void *context, uint32_t result, const int64_t *shape, int32_t ndim,
                      DLTensor *out_tensor);

  std::shared_ptr<const Library> library;
  std::shared_ptr<Memory> memory;
  std::shared_ptr<State> state; // may be null
  const Entry &entry;
  fp8rt_call_fn function;
  Views arguments, results;
  /// The memory to use in place of a null pointer: that of the state.
  std::vector<void *> defaults;
  /// Why the allocation of a result was refused in a call.
  std::string refusal;
  Buffer workspace;
  std::shared_ptr<const cuda::DeviceProgram> program; // on a device
  std::optional<cuda::Launcher> launcher;
  std::unique_ptr<cuda::StagedRanks> staged; // of a communicator in host memory, for a device
  fp8rt_call call = {};
  char error[1024];
};

} // namespace fp8rt

/// The C ABI's handle.
struct fp8rt_prepared : fp8rt::Prepared {
  using Prepared::Prepared;
};

#endif // FP8RT_RUN_PREPARED_H
