// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls with checks in advance.

#include "Prepared.h"
#include "../collectives/Program.h"
#include "../core/Status.h"

using namespace fp8rt;

/// Checks that a description fits `value`, and returns its shape.
static Shape checkDescription(const Value &value, const DLTensor &given, const Memory &memory) {
  if (!isSamePlace(given.device, memory.place()))
    fail(FP8RT_INVALID_ARGUMENT, memory.isHost() ? "the tensor is not in host memory"
                                                 : "the tensor is not in the memory of the device");
  if (given.ndim < 0 || (given.ndim > 0 && !given.shape))
    fail(FP8RT_INVALID_ARGUMENT, "the tensor has no shape");
  Shape shape(given.shape, given.shape + given.ndim);
  checkFits("it", value, given.dtype, shape);
  if (!byteSize(shape, *value.type))
    fail(FP8RT_MISMATCH, "the given tensor is larger than memory");
  if (given.strides && !isContiguous(given))
    fail(FP8RT_INVALID_ARGUMENT, "the tensor is not row-major without gaps; make it contiguous");
  return shape;
}

static void checkCount(const Prepared::Given &given, size_t wanted, const char *what) {
  if (given.count != wanted)
    fail(FP8RT_INVALID_ARGUMENT,
         "there are " + std::to_string(wanted) + " " + what + ", not " + std::to_string(given.count));
}

void Prepared::Views::add(const Value &value, Shape shape, DLDevice place) {
  DLTensor tensor = {};
  tensor.device = place;
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = value.type->dlpack;
  shapes.push_back(std::move(shape));
  tensors.push_back(tensor);
}

std::vector<DLTensor *> Prepared::Views::pointers() {
  std::vector<DLTensor *> all;
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].shape = shapes[i].data();
    all.push_back(&tensors[i]);
  }
  return all;
}

void Prepared::describeArguments(Given given) {
  checkCount(given, entry.arguments.size(), "arguments");
  for (uint32_t i = 0; i < given.count; ++i) {
    const Value &value = entry.arguments[i];
    within(describeValue("argument", i, value), [&] {
      const DLTensor *tensor = given.tensors ? given.tensors[i] : nullptr;
      if (!tensor && !isStatic(value.shape))
        fail(FP8RT_INVALID_ARGUMENT, "it is " + describe(value.shape, *value.type) + ": describe it");
      arguments.add(value, tensor ? checkDescription(value, *tensor, *memory) : value.shape, memory->place());
    });
  }
}

void Prepared::describeResults(Given given) {
  checkCount(given, entry.results.size(), "results");
  for (uint32_t i = 0; i < given.count; ++i) {
    const Value &value = entry.results[i];
    within(describeValue("result", i, value), [&] {
      const DLTensor *tensor = given.tensors ? given.tensors[i] : nullptr;
      Shape shape = tensor             ? checkDescription(value, *tensor, *memory)
                    : value.alias >= 0 ? arguments.shapes[static_cast<size_t>(value.alias)]
                                       : value.shape;
      if (!isStatic(shape))
        fail(FP8RT_INVALID_ARGUMENT, "it is " + describe(value.shape, *value.type) + ": describe it");
      if (value.alias >= 0 && shape != arguments.shapes[static_cast<size_t>(value.alias)])
        fail(FP8RT_MISMATCH,
             "it has the memory of argument " + std::to_string(value.alias) + ", which has another shape");
      results.add(value, std::move(shape), memory->place());
    });
  }
}

/// Sets the memory of state arguments that a call may leave out. The call must write new values of the
/// state into the same memory.
void Prepared::bindState() {
  defaults.resize(entry.arguments.size());
  if (state && !entry.casts.empty())
    fail(FP8RT_UNSUPPORTED,
         "it keeps casts of its arguments in the state, which a session makes: use one, or "
         "pass the state's tensors yourself after a call of entry " +
             inQuotes(entry.initializer));
  for (size_t i = 0; state && i < defaults.size(); ++i)
    if (entry.arguments[i].kind == FP8RT_KIND_STATE)
      defaults[i] = state->find(entry.arguments[i].name)->data();
  for (size_t i = 0; state && i < entry.results.size(); ++i)
    if (entry.results[i].kind == FP8RT_KIND_STATE && entry.results[i].alias < 0)
      fail(FP8RT_UNSUPPORTED, describeValue("result", i, entry.results[i]) +
                                  " is state that is not updated in place: use a session");
}

Prepared::Prepared(std::shared_ptr<const Library> loaded, size_t index, std::shared_ptr<State> states,
                   Given givenArguments, Given givenResults)
    : EntryCall(std::move(loaded), index, std::move(states)) {
  setWorkspace(nullptr);
  describeTensors(givenArguments, givenResults);
}

Prepared::Prepared(std::shared_ptr<const cuda::DeviceProgram> onDevice, size_t index,
                   std::shared_ptr<State> states, Given givenArguments, Given givenResults)
    : EntryCall(std::move(onDevice), index, std::move(states)) {
  describeTensors(givenArguments, givenResults);
  launcher.emplace(program);
  call.device = &launcher->functions();
}

void Prepared::describeTensors(Given givenArguments, Given givenResults) {
  within("entry " + inQuotes(entry.name), [&] {
    describeArguments(givenArguments);
    describeResults(givenResults);
    bindState();
  });
  setTensors(arguments.pointers(), results.pointers());
}

void Prepared::setData(void *const *argumentData, void *const *resultData) {
  for (size_t i = 0; i < arguments.tensors.size(); ++i)
    arguments.tensors[i].data = argumentData[i] ? argumentData[i] : defaults[i];
  for (size_t i = 0; i < results.tensors.size(); ++i) {
    int32_t alias = entry.results[i].alias;
    bool inPlace = !resultData[i] && alias >= 0;
    results.tensors[i].data = inPlace ? arguments.tensors[static_cast<size_t>(alias)].data : resultData[i];
  }
}

/// Kernels read 16 bytes at a time from the start of a tensor.
void Prepared::checkAligned(const char *what, const Views &views, const std::vector<Value> &values) const {
  constexpr uintptr_t kAlignment = 16;
  for (size_t i = 0; i < views.tensors.size(); ++i)
    if (reinterpret_cast<uintptr_t>(views.tensors[i].data) % kAlignment)
      fail(FP8RT_INVALID_ARGUMENT, describeValue(what, i, values[i]) +
                                       " is not aligned to 16 bytes, as memory that kernels use must be");
}

void Prepared::operator()(void *const *argumentData, void *const *resultData) {
  setData(argumentData, resultData);
  if (launcher)
    runOnDevice(nullptr, program->device().stream(), /*waits=*/true);
  else
    runOnHost();
}

void Prepared::measureWith(std::shared_ptr<Profiler> with) {
  if (launcher)
    fail(FP8RT_UNSUPPORTED,
         "entry " + inQuotes(entry.name) + " was prepared on a device, whose kernels a session measures");
  setProfiler(std::move(with));
}

void Prepared::runOnHost() {
  std::shared_ptr<Profiler> measuring = profiler; // lives as long as the call
  if (measuring)
    measuring->begin();
  call.profile = measuring.get();
  orFail([&] { callFunction(); });
  if (measuring)
    measuring->end();
}

void Prepared::requireDevice(const char *what) const {
  if (!launcher)
    fail(FP8RT_INVALID_ARGUMENT, "entry " + inQuotes(entry.name) + " was prepared for the CPU, which has " +
                                     what + ": use fp8rt_prepared_call");
}

void Prepared::enqueue(void *const *argumentData, void *const *resultData, void *workspace, void *stream) {
  requireDevice("no streams");
  setData(argumentData, resultData);
  runOnDevice(workspace, static_cast<cuda::CUstream>(stream), /*waits=*/false);
}

void Prepared::fromHost(void *const *argumentData, void *const *resultData) {
  requireDevice("no other memory");
  std::lock_guard<std::mutex> lock(turn);
  HostCopies::Pointers given{argumentData, resultData};
  HostCopies &there = copies ? *copies : copies.emplace(memory, entry, arguments.tensors, results.tensors);
  there.write(given);
  (*this)(there.pointers().arguments, there.pointers().results);
  there.read(given, defaults);
}

void Prepared::runOnDevice(void *workspace, cuda::CUstream stream, bool waits) {
  checkAligned("argument", arguments, entry.arguments);
  checkAligned("result", results, entry.results);
  if (workspace && reinterpret_cast<uintptr_t>(workspace) % cuda::DeviceMemory::kAlignment)
    fail(FP8RT_INVALID_ARGUMENT,
         "the workspace of entry " + inQuotes(entry.name) + " is not aligned to 256 bytes");
  setWorkspace(workspace);
  cuda::Current current(program->device());
  launcher->useStream(stream);
  call.stream = stream;
  try {
    orFail([&] { callFunction(); });
    waits ? launcher->wait() : launcher->leave();
    if (waits)
      collectives::checkCollectives(call.communicator);
  } catch (...) {
    launcher->abandon(); // the caller may release its tensors next
    throw;
  }
}

/// Checks the shape of a result; its memory is in its description already.
const DLTensor &Prepared::provideResult(uint32_t result, Shape shape) {
  const Value &value = entry.results[result];
  const Shape &wanted = results.shapes[result];
  if (shape != wanted)
    fail(FP8RT_MISMATCH, describeValue("result", result, value) + " is " + describe(shape, *value.type) +
                             ", prepared for " + describe(wanted, *value.type));
  return results.tensors[result];
}
