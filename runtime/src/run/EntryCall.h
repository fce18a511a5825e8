// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One entry point of a library with its workspace and state, and the call of it: the base of sessions and of
// prepared calls, which differ in whose memory the arguments and results have.

#ifndef FP8RT_RUN_ENTRYCALL_H
#define FP8RT_RUN_ENTRYCALL_H

#include "../collectives/StagedRanks.h"
#include "../core/Status.h"
#include "../program/Profiler.h"
#include "../program/State.h"

namespace fp8rt {

/// Names an argument or result in messages: "argument 3 'weight'".
std::string describeValue(const char *what, size_t index, const Value &value);

/// Whether a tensor of shape `given` may be passed where `wanted` is declared.
bool fits(const Shape &wanted, const Shape &given);

/// Throws, in a message about `subject`, unless a tensor of this type and shape may be passed as `value`.
void checkFits(const std::string &subject, const Value &value, DLDataType type, const Shape &shape);

class EntryCall {
public:
  EntryCall(const EntryCall &) = delete;
  EntryCall &operator=(const EntryCall &) = delete;

protected:
  /// In host memory. Throws if this machine cannot run the library, or the state is not for it.
  EntryCall(std::shared_ptr<const Library> library, size_t index, std::shared_ptr<State> state);
  /// On a device.
  EntryCall(std::shared_ptr<const cuda::DeviceProgram> program, size_t index, std::shared_ptr<State> state);
  virtual ~EntryCall() = default;

  /// Returns the description of a result of the entry whose shape the compiled code has found, with its
  /// memory. Throws if there can be none.
  virtual const DLTensor &provideResult(uint32_t index, Shape shape) = 0;

  /// Sets the descriptions that calls pass, which must not move afterwards.
  void setTensors(std::vector<DLTensor *> argumentViews, std::vector<DLTensor *> resultViews);
  /// The workspace of all following calls: the caller's, or for null one that the entry point keeps,
  /// allocated now unless it has been.
  void setWorkspace(void *given);
  /// Performs the collectives of all following calls; null if there is one rank.
  void setCommunicator(const fp8rt_communicator *with);
  /// Measures the kernels of all following calls; null measures none. Throws for a profiler of another
  /// library.
  void setProfiler(std::shared_ptr<Profiler> with);
  /// Calls the compiled code; throws its reason if it fails.
  void callFunction();
  /// Runs `work`; where it fails, tells the other ranks, and throws a reason that names the entry point.
  template <typename Work>
  void orFail(Work work) {
    try {
      work();
    } catch (Error &error) {
      failEntry(error);
    }
  }

  const std::shared_ptr<const Library> library;
  const std::shared_ptr<Memory> memory;
  const std::shared_ptr<State> state;                       // may be null
  const std::shared_ptr<const cuda::DeviceProgram> program; // null in host memory
  const Entry &entry;
  const fp8rt_communicator *communicator = nullptr;
  std::unique_ptr<cuda::StagedRanks> staged; // of a communicator in host memory, for a device
  std::shared_ptr<Profiler> profiler;        // may be null
  /// The values that a call passes. Its device, stream and profile are the derived class's to set.
  fp8rt_call call = {};

private:
  EntryCall(std::shared_ptr<const Library> library, std::shared_ptr<Memory> memory, size_t index,
            std::shared_ptr<State> state, std::shared_ptr<const cuda::DeviceProgram> program);
  [[noreturn]] void failEntry(const Error &error);
  static int allocate(void *context, uint32_t result, const int64_t *shape, int32_t ndim,
                      DLTensor *out_tensor);

  fp8rt_call_fn function;
  Buffer workspace;
  std::vector<DLTensor *> arguments, results;
  std::string refusal; ///< why the allocation of a result was refused in a call
  char error[1024] = "";
};

} // namespace fp8rt

#endif // FP8RT_RUN_ENTRYCALL_H
