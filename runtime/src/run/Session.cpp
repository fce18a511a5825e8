// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions: binding arguments, calling compiled code, carrying values to the
// next step.

#include "Session.h"
#include "../collectives/Program.h"
#include "../core/Status.h"
#include "../core/Tensors.h"

#include <algorithm>

using namespace fp8rt;

namespace {

bool isNumber(const std::string &text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// The index of the user's value that `key` numbers or names.
uint32_t findUserValue(const std::vector<Value> &values, const std::string &key, const char *what) {
  bool byNumber = isNumber(key);
  uint32_t number = 0, found = 0, matches = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].kind != FP8RT_KIND_USER)
      continue;
    if (byNumber ? std::to_string(number) == key : values[i].name == key) {
      found = static_cast<uint32_t>(i);
      ++matches;
    }
    ++number;
  }
  if (matches == 0)
    fail(FP8RT_NOT_FOUND,
         std::string("there is no ") + what + " " + inQuotes(key) + " among " + std::to_string(number));
  if (matches > 1)
    fail(FP8RT_NOT_FOUND,
         std::to_string(matches) + " " + what + "s have the name " + inQuotes(key) + "; use the number");
  return found;
}

} // namespace

void Session::Slot::assign(Tensor value, bool isOwned) {
  tensor = std::move(value);
  view = tensor->view();
  owned = isOwned;
  copy.reset();
}

Session::Session(std::shared_ptr<const Library> loaded, size_t entryIndex, std::shared_ptr<State> states)
    : EntryCall(std::move(loaded), entryIndex, std::move(states)) {
  bindTensors();
  if (!entry.initializer.empty())
    initializer = std::make_unique<Session>(library, library->findEntry(entry.initializer), state);
}

Session::Session(std::shared_ptr<const cuda::DeviceProgram> onDevice, size_t entryIndex,
                 std::shared_ptr<State> states)
    : EntryCall(std::move(onDevice), entryIndex, std::move(states)) {
  bindTensors();
  // A session waits for checks: after one that fails the next step may have other inputs.
  bool capturable = entry.capturable && (entry.checks == 0 || cuda::Launcher::isToCheckLater());
  // Memory of a result that only compiled code knows the size of is new in each step.
  for (const Value &result : entry.results)
    capturable &= result.alias >= 0 || isStatic(result.shape);
  if (!entry.initializer.empty())
    initializer = std::make_unique<Session>(program, library->findEntry(entry.initializer), state);
  execution.emplace(program, capturable);
}

void Session::bindTensors() {
  setWorkspace(nullptr);
  arguments.resize(entry.arguments.size());
  results.resize(entry.results.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (entry.arguments[i].kind == FP8RT_KIND_STATE)
      bindState(i);
  for (size_t i = 0; i < results.size(); ++i)
    if (entry.results[i].alias < 0 && isStatic(entry.results[i].shape))
      within(describeValue("result", i, entry.results[i]), [&] {
        results[i].assign(Tensor(*entry.results[i].type, entry.results[i].shape, memory), true);
      });
  std::vector<DLTensor *> argumentViews, resultViews;
  for (Slot &slot : arguments)
    argumentViews.push_back(&slot.view);
  for (Slot &slot : results)
    resultViews.push_back(&slot.view);
  setTensors(std::move(argumentViews), std::move(resultViews));
}

void Session::bindState(size_t argument) {
  if (!state)
    fail(FP8RT_INVALID_ARGUMENT, "entry " + inQuotes(entry.name) + " needs a state");
  arguments[argument].assign(state->find(entry.arguments[argument].name)->sameMemory(), false);
}

uint32_t Session::findArgument(const std::string &key) const {
  return findUserValue(entry.arguments, key, "argument");
}

uint32_t Session::findResult(const std::string &key) const {
  return findUserValue(entry.results, key, "result");
}

const Value &Session::userArgument(uint32_t index) const {
  if (index >= arguments.size())
    fail(FP8RT_INVALID_ARGUMENT, "argument " + std::to_string(index) + " is out of range");
  if (entry.arguments[index].kind == FP8RT_KIND_STATE)
    fail(FP8RT_INVALID_ARGUMENT,
         describeValue("argument", index, entry.arguments[index]) + " belongs to the state");
  return entry.arguments[index];
}

static void checkArgument(uint32_t index, const Value &value, const Tensor &tensor) {
  checkFits(describeValue("argument", index, value), value, tensor.type().dlpack, tensor.shape());
}

void Session::copyInto(uint32_t index, const Tensor &tensor) {
  Slot &slot = arguments[index];
  const Value &value = entry.arguments[index];
  if (!slot.owned || slot.tensor->shape() != tensor.shape())
    within(describeValue("argument", index, value),
           [&] { slot.assign(Tensor(*value.type, tensor.shape(), memory), true); });
  slot.copy.reset();
  copyElements(*memory, *slot.tensor, tensor);
  if (state)
    state->forget(slot.tensor->data());
}

void Session::setArgument(uint32_t index, const DLTensor &given) {
  const Value &value = userArgument(index);
  bool isOnDevice = isSamePlace(given.device, memory->place());
  Tensor tensor = isOnDevice ? viewOf(given, memory->place()) : viewOf(given);
  checkArgument(index, value, tensor);
  copyInto(index, tensor);
}

void Session::bindArgument(uint32_t index, const DLTensor &given) {
  const Value &value = userArgument(index);
  Tensor tensor = viewOf(given, memory->place());
  checkArgument(index, value, tensor);
  if (value.written || value.carry >= 0)
    fail(FP8RT_INVALID_ARGUMENT,
         describeValue("argument", index, value) + " is written by a step: set it, it cannot be bound");
  if (reinterpret_cast<uintptr_t>(tensor.data()) % value.type->bytes())
    fail(FP8RT_INVALID_ARGUMENT,
         describeValue("argument", index, value) + ": the tensor's data is not aligned");
  arguments[index].assign(Tensor(*value.type, tensor.shape(), tensor.data(), memory->place()), false);
  if (state)
    state->forget(tensor.data());
}

void Session::zeroMissing() {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value &value = entry.arguments[i];
    if (arguments[i].tensor || value.kind != FP8RT_KIND_USER)
      continue;
    if (!isStatic(value.shape))
      fail(FP8RT_MISMATCH, describeValue("argument", i, value) + " is " + describe(value.shape, *value.type) +
                               ": give it, its size is not known");
    within(describeValue("argument", i, value), [&] {
      Tensor zeros(*value.type, value.shape, memory);
      if (zeros.bytes())
        memory->zero(zeros.data(), zeros.bytes());
      arguments[i].assign(std::move(zeros), true);
      if (state)
        state->forget(arguments[i].tensor->data());
    });
  }
}

void Session::prepareResults() {
  for (size_t i = 0; i < results.size(); ++i) {
    const Value &value = entry.results[i];
    Slot &slot = results[i];
    if (value.alias >= 0) {
      slot.assign(arguments[static_cast<size_t>(value.alias)].tensor->sameMemory(), false);
    } else if (!isStatic(value.shape)) {
      slot.tensor.reset();
      slot.view = {};
      slot.view.dtype = value.type->dlpack;
      slot.view.device = memory->place();
      slot.copy.reset();
    }
  }
}

void Session::step() {
  if (profiler)
    profiler->begin();
  runStep();
  if (profiler)
    profiler->end();
}

void Session::runStep() {
  if (failed)
    fail(FP8RT_INVALID_ARGUMENT, "an earlier step of this session failed");
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].tensor)
      fail(FP8RT_NOT_FOUND, describeValue("argument", i, entry.arguments[i]) + " of entry " +
                                inQuotes(entry.name) + " has no value");
  collectives::checkRanks(*library, communicator);
  castParameters();
  prepareResults();
  failed = true;
  try {
    orFail([&] { execution ? runOnDevice() : runOnHost(); });
  } catch (Error &) {
    if (state)
      state->forgetAll();
    throw;
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].tensor)
      fail(FP8RT_CALL_FAILED,
           "entry " + inQuotes(entry.name) + " did not give " + describeValue("result", i, entry.results[i]));
  carryCopies();
  noteParameters();
  failed = false;
}

void Session::runOnDevice() {
  forgetCopies();
  collectives::checkCollectives(communicator); // a graph must not be replayed without them
  auto launch = [this] {                       // the execution measures kernels where they run
    call.device = &execution->functions();
    call.stream = execution->stream();
    callFunction();
  };
  execution->run(launch, describeBuffers(), profiler.get());
  collectives::checkCollectives(communicator);
}

void Session::forgetCopies() {
  for (std::vector<Slot> *slots : {&arguments, &results})
    for (Slot &slot : *slots)
      slot.copy.reset();
}

/// Lists everything but the values in memory on which the work of a step depends.
cuda::Execution::Key Session::describeBuffers() const {
  cuda::Execution::Key key;
  for (const std::vector<Slot> *slots : {&arguments, &results})
    for (const Slot &slot : *slots) {
      key.push_back(reinterpret_cast<uintptr_t>(slot.view.data));
      for (int32_t i = 0; i < slot.view.ndim; ++i)
        key.push_back(static_cast<uint64_t>(slot.view.shape[i]));
    }
  return key;
}

void Session::runOnHost() {
  call.profile = profiler.get();
  callFunction();
}

const DLTensor &Session::provideResult(uint32_t index, Shape shape) {
  if (!isStatic(shape))
    fail(FP8RT_CALL_FAILED,
         "no memory for result " + std::to_string(index) + ": one of its sizes is negative");
  if (entry.results[index].alias >= 0 || !fits(entry.results[index].shape, shape))
    fail(FP8RT_CALL_FAILED, "the compiled code asked for a wrong result");
  within(describeValue("result", index, entry.results[index]),
         [&] { results[index].assign(Tensor(*entry.results[index].type, std::move(shape), memory), true); });
  return results[index].view;
}

/// Copies the next values of arguments and state that the compiled code did not compute in
/// place.
void Session::carryCopies() {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value &value = entry.arguments[i];
    int32_t source = value.carry;
    for (size_t r = 0; value.kind == FP8RT_KIND_STATE && r < results.size(); ++r)
      if (entry.results[r].kind == FP8RT_KIND_STATE && entry.results[r].name == value.name)
        source = static_cast<int32_t>(r);
    if (source < 0 || value.written)
      continue;
    const Tensor &next = *results[static_cast<size_t>(source)].tensor;
    if (value.kind != FP8RT_KIND_STATE)
      copyInto(static_cast<uint32_t>(i), next);
    else
      copyElements(*memory, *arguments[i].tensor, next);
  }
}

const DLTensor *Session::inPlace(const std::vector<Slot> &slots, uint32_t index) const {
  bool known = index < slots.size() && slots[index].tensor;
  return known ? &slots[index].view : nullptr;
}

const DLTensor *Session::inHostMemory(const std::vector<Slot> &slots, uint32_t index) const {
  const DLTensor *found = inPlace(slots, index);
  if (!found || memory->isHost())
    return found;
  const Slot &slot = slots[index];
  if (!slot.copy) {
    slot.copy = copyToHost(*memory, *slot.tensor);
    slot.copyView = slot.copy->view();
  }
  return &slot.copyView;
}

/// The name under which carried argument `index` is saved.
std::string Session::carryKey(size_t index) const {
  const std::string &name = entry.arguments[index].name;
  size_t sameName = 0;
  for (const Value &value : entry.arguments)
    sameName += value.kind == FP8RT_KIND_USER && value.name == name;
  bool usable = !name.empty() && !isNumber(name) && sameName == 1;
  return kCarryPrefix + (usable ? name : std::to_string(index));
}

static bool isCarried(const Value &value) { return value.kind == FP8RT_KIND_USER && value.carry >= 0; }

void Session::exportCarried(fp8rt_tensors &tensors) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!isCarried(entry.arguments[i]))
      continue;
    if (!arguments[i].tensor)
      fail(FP8RT_NOT_FOUND, describeValue("argument", i, entry.arguments[i]) + " has no value");
    tensors.add(carryKey(i), wholeOf(entry.arguments[i], *arguments[i].tensor));
  }
}

void Session::importCarried(const fp8rt_tensors &tensors) {
  std::vector<std::pair<uint32_t, Tensor>> found;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!isCarried(entry.arguments[i]))
      continue;
    const Tensor *tensor = tensors.find(carryKey(i));
    if (!tensor)
      fail(FP8RT_NOT_FOUND, "there is no tensor " + inQuotes(carryKey(i)));
    uint32_t index = static_cast<uint32_t>(i);
    within("tensor " + inQuotes(carryKey(i)), [&] {
      found.emplace_back(index, partOf(index, *tensor));
      checkArgument(index, entry.arguments[i], found.back().second);
    });
  }
  for (const auto &[index, tensor] : found)
    copyInto(index, tensor);
}
