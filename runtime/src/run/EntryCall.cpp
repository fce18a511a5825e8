// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks the state of an entry point, and calls its compiled code.

#include "EntryCall.h"
#include "../collectives/Program.h"

#include <algorithm>

using namespace fp8rt;

std::string fp8rt::describeValue(const char *what, size_t index, const Value &value) {
  std::string text = std::string(what) + " " + std::to_string(index);
  return value.name.empty() ? text : text + " " + inQuotes(value.name);
}

bool fp8rt::fits(const Shape &wanted, const Shape &given) {
  return wanted.size() == given.size() &&
         std::equal(wanted.begin(), wanted.end(), given.begin(),
                    [](int64_t w, int64_t g) { return w == kDynamicDim ? g >= 0 : w == g; });
}

void fp8rt::checkFits(const std::string &subject, const Value &value, DLDataType type, const Shape &shape) {
  if (accepts(value.type->dlpack, type) && fits(value.shape, shape))
    return;
  const DType *known = findDLPackType(type);
  fail(FP8RT_MISMATCH, subject + " is " + describe(value.shape, *value.type) + ", the given tensor " +
                           (known ? describe(shape, *known) : "of type " + typeName(type)));
}

EntryCall::EntryCall(std::shared_ptr<const Library> library, size_t index, std::shared_ptr<State> state)
    : EntryCall(library, hostMemory(), index, std::move(state), nullptr) {}

EntryCall::EntryCall(std::shared_ptr<const cuda::DeviceProgram> program, size_t index,
                     std::shared_ptr<State> state)
    : EntryCall(program->library(), program->memory(), index, std::move(state), program) {}

EntryCall::EntryCall(std::shared_ptr<const Library> loaded, std::shared_ptr<Memory> place, size_t index,
                     std::shared_ptr<State> states, std::shared_ptr<const cuda::DeviceProgram> onDevice)
    : library(std::move(loaded)), memory(std::move(place)), state(std::move(states)),
      program(std::move(onDevice)), entry(library->entry(index)), function(library->function(index)) {
  if (memory->isHost())
    library->checkHost();
  if (state && &state->library() != library.get())
    fail(FP8RT_INVALID_ARGUMENT, "the state is of another library");
  if (state && state->memory() != memory)
    fail(FP8RT_INVALID_ARGUMENT, "the state is not where the calls run: create both on one device");
  call.version = library->manifest().callVersion;
  call.flags = FP8RT_CALL_HAS_PROFILE;
  call.workspace_bytes = entry.workspaceBytes;
  call.allocate = allocate;
  call.allocate_context = this;
  call.error = error;
  call.error_capacity = sizeof(error);
}

void EntryCall::setTensors(std::vector<DLTensor *> argumentViews, std::vector<DLTensor *> resultViews) {
  arguments = std::move(argumentViews);
  results = std::move(resultViews);
  call.num_arguments = static_cast<uint32_t>(arguments.size());
  call.num_results = static_cast<uint32_t>(results.size());
  call.arguments = arguments.data();
  call.results = results.data();
}

void EntryCall::setWorkspace(void *given) {
  if (!given && !workspace)
    within("the workspace of entry " + inQuotes(entry.name),
           [&] { workspace = allocateBuffer(memory, entry.workspaceBytes, entry.workspaceAlignment); });
  call.workspace = given ? given : workspace.get();
}

void EntryCall::setCommunicator(const fp8rt_communicator *with) {
  collectives::checkRanks(*library, with);
  collectives::Ranks *ranks = collectives::Ranks::find(with);
  if (ranks && !ranks->usesHostMemory())
    ranks->useDevice(program);
  communicator = with;
  staged.reset();
  if (program && ranks && ranks->usesHostMemory())
    staged = std::make_unique<cuda::StagedRanks>(*ranks, program);
  call.communicator = staged ? staged->functions() : with;
}

void EntryCall::setProfiler(std::shared_ptr<Profiler> with) {
  if (with && &with->library() != library.get())
    fail(FP8RT_INVALID_ARGUMENT, "the profiler is of another library");
  profiler = std::move(with);
}

void EntryCall::callFunction() {
  refusal.clear();
  *error = '\0';
  if (function(&call))
    fail(FP8RT_CALL_FAILED, !refusal.empty() ? refusal : *error ? error : "it gave no reason");
}

void EntryCall::failEntry(const Error &failure) {
  std::string reason = "entry " + inQuotes(entry.name) + " failed: " + failure.message;
  collectives::tellFailure(call.communicator, reason);
  fail(failure.status, reason);
}

int EntryCall::allocate(void *context, uint32_t result, const int64_t *shape, int32_t ndim,
                        DLTensor *out_tensor) {
  auto &self = *static_cast<EntryCall *>(context);
  fp8rt_status status = guarded([&] {
    if (result >= self.entry.results.size())
      fail(FP8RT_CALL_FAILED, "the compiled code asked for a wrong result");
    required(out_tensor, "out_tensor") = self.provideResult(result, Shape(shape, shape + ndim));
  });
  if (status != FP8RT_OK)
    self.refusal = fp8rt_last_error();
  return status != FP8RT_OK;
}
