// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry point with descriptions of its tensors; each call fills in their data.

#ifndef FP8RT_RUN_PREPARED_H
#define FP8RT_RUN_PREPARED_H

#include "../cuda/Launcher.h"
#include "EntryCall.h"
#include "HostCopies.h"

#include "fp8rt/prepared.h"

#include <mutex>
#include <optional>

namespace fp8rt {

class Prepared : private EntryCall {
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

  /// Returns when the work is done.
  void operator()(void *const *argumentData, void *const *resultData);
  /// On a device: enqueues the work on a stream; a null workspace is the handle's own.
  void enqueue(void *const *argumentData, void *const *resultData, void *workspace, void *stream);
  /// On a device: the same as a call, on tensors in host memory; threads take turns.
  void fromHost(void *const *argumentData, void *const *resultData);
  /// Performs the collectives of all following calls; null if there is one rank.
  void communicateThrough(const fp8rt_communicator *with) { setCommunicator(with); }
  /// In host memory: measures the kernels of all following calls; null measures none.
  void measureWith(std::shared_ptr<Profiler> with);

private:
  /// Descriptions of tensors, in the form that a call takes.
  struct Views {
    std::vector<Shape> shapes;
    std::vector<DLTensor> tensors;

    void add(const Value &value, Shape shape, DLDevice place);
    /// Returns the descriptions, complete; nothing may be added afterwards.
    std::vector<DLTensor *> pointers();
  };

  const DLTensor &provideResult(uint32_t index, Shape shape) override;
  void describeTensors(Given givenArguments, Given givenResults);
  void describeArguments(Given given);
  void describeResults(Given given);
  void bindState();
  void setData(void *const *argumentData, void *const *resultData);
  void checkAligned(const char *what, const Views &views, const std::vector<Value> &values) const;
  void requireDevice(const char *what) const;
  void runOnHost();
  void runOnDevice(void *workspace, cuda::CUstream stream, bool waits);

  Views arguments, results;
  /// The memory to use in place of a null pointer: that of the state.
  std::vector<void *> defaults;
  std::optional<cuda::Launcher> launcher; // on a device
  std::mutex turn;                        // of calls from the host
  std::optional<HostCopies> copies;       // for them
};

} // namespace fp8rt

/// The C ABI's handle.
struct fp8rt_prepared : fp8rt::Prepared {
  using Prepared::Prepared;
};

#endif // FP8RT_RUN_PREPARED_H
