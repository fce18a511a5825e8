// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry with its buffers, run step by step, on the host or on a device.

#ifndef FP8RT_RUN_SESSION_H
#define FP8RT_RUN_SESSION_H

#include "../cuda/Execution.h"
#include "../program/Profiler.h"
#include "EntryCall.h"

#include "fp8rt/session.h"

namespace fp8rt {

class Session : private EntryCall {
public:
  Session(std::shared_ptr<const Library> library, size_t entry, std::shared_ptr<State> state);
  Session(std::shared_ptr<const cuda::DeviceProgram> program, size_t entry, std::shared_ptr<State> state);

  uint32_t findArgument(const std::string &key) const;
  uint32_t findResult(const std::string &key) const;

  void setArgument(uint32_t index, const DLTensor &tensor);
  void bindArgument(uint32_t index, const DLTensor &tensor);
  void zeroMissing();
  void step();
  /// Measures all following steps; null measures none.
  void measureWith(std::shared_ptr<Profiler> with) { setProfiler(std::move(with)); }
  /// Performs the collectives of all following steps; null if there is one rank.
  void communicateThrough(const fp8rt_communicator *with);
  /// Tensors that are divided among the ranks, as a whole.
  void setWholeArgument(uint32_t index, const DLTensor &tensor);
  void addWholeResult(uint32_t index, const std::string &name, fp8rt_tensors &tensors) const;
  /// Throws if what all ranks must have in common differs.
  void compareRanks() const;

  /// The tensor of an argument or result in host memory; null if `index` is out of range or the tensor is
  /// not set. On a device it is a copy, valid until the next step or the next change of the argument.
  const DLTensor *argument(uint32_t index) const { return inHostMemory(arguments, index); }
  const DLTensor *result(uint32_t index) const { return inHostMemory(results, index); }
  /// The tensor where it lies.
  const DLTensor *argumentInPlace(uint32_t index) const { return inPlace(arguments, index); }
  const DLTensor *resultInPlace(uint32_t index) const { return inPlace(results, index); }

  void exportCarried(fp8rt_tensors &tensors) const;
  void importCarried(const fp8rt_tensors &tensors);

private:
  /// The tensor of an argument or result, and its description for calls.
  struct Slot {
    std::optional<Tensor> tensor;
    DLTensor view = {};
    bool owned = false;
    /// A copy in host memory of what lies on a device; made on request.
    mutable std::optional<Tensor> copy;
    mutable DLTensor copyView = {};

    void assign(Tensor value, bool isOwned);
  };

  const DLTensor &provideResult(uint32_t index, Shape shape) override;
  void bindTensors();
  void bindState(size_t argument);
  const DLTensor *inPlace(const std::vector<Slot> &slots, uint32_t index) const;
  const DLTensor *inHostMemory(const std::vector<Slot> &slots, uint32_t index) const;

  Tensor partOf(uint32_t index, const Tensor &whole) const;
  Tensor wholeOf(const Value &value, const Tensor &part) const;
  const Value &userArgument(uint32_t index) const;
  std::string carryKey(size_t index) const;
  void copyInto(uint32_t index, const Tensor &tensor);
  void prepareResults();
  void runStep();
  void runOnHost();
  void runOnDevice();
  State::Addresses findAddresses(const KeptCast &cast) const;
  void castParameters();
  void noteParameters();
  cuda::Execution::Key describeBuffers() const;
  void forgetCopies();
  void carryCopies();

  std::vector<Slot> arguments;
  std::vector<Slot> results;
  /// Computes the kept casts of this entry from its arguments; null if it has none.
  std::unique_ptr<Session> initializer;
  std::optional<cuda::Execution> execution; // on a device
  bool failed = false;
};

} // namespace fp8rt

/// The C ABI's handle.
struct fp8rt_session : fp8rt::Session {
  using Session::Session;
};

#endif // FP8RT_RUN_SESSION_H
