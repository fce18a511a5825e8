// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The FP8 state: initial values, export and import, and the C ABI of state.h.

#include "State.h"
#include "Status.h"
#include "Tensors.h"

#include <algorithm>
#include <cstring>

using namespace fp8rt;

static Tensor initialTensor(const StateTensor &wanted) {
  Tensor tensor(*wanted.type, wanted.shape);
  char *data = static_cast<char *>(tensor.data());
  size_t step = wanted.type->bytes(), count = tensor.bytes() / step;
  for (size_t i = 0; i < count; ++i) {
    const Number &value = wanted.initial[wanted.initial.size() == 1 ? 0 : i];
    if (!encodeElement(*wanted.type, value, data + i * step))
      fail(FP8RT_UNSUPPORTED, "state " + inQuotes(wanted.name) + " cannot be initialised: " +
                                  std::to_string(value.real) + " as " + wanted.type->mlir);
  }
  return tensor;
}

State::State(std::shared_ptr<const Library> library, std::shared_ptr<Memory> memory)
    : program(std::move(library)), place(std::move(memory)) {
  for (const StateTensor &wanted : program->manifest().state) {
    Tensor initial = initialTensor(wanted);
    if (!place->isHost()) {
      Tensor moved =
          within("state " + inQuotes(wanted.name), [&] { return Tensor(*wanted.type, wanted.shape, place); });
      copyElements(*place, moved, initial);
      initial = std::move(moved);
    }
    values.push_back(std::move(initial));
  }
}

Tensor *State::find(const std::string &name) {
  const std::vector<StateTensor> &known = program->manifest().state;
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i].name == name)
      return &values[i];
  return nullptr;
}

void State::exportTo(fp8rt_tensors &tensors) {
  const Manifest &manifest = program->manifest();
  for (size_t i = 0; i < values.size(); ++i)
    tensors.add(manifest.state[i].name,
                place->isHost() ? values[i].sameMemory() : copyToHost(*place, values[i]));
  tensors.metadata["version"] = kStateFileVersion;
  tensors.metadata["layout_hash"] = manifest.layoutHash;
  tensors.metadata["columns"] = manifest.columns;
}

void State::checkMetadata(const fp8rt_tensors &tensors) const {
  auto text = [&](const char *key) -> const std::string & {
    auto found = tensors.metadata.find(key);
    if (found == tensors.metadata.end())
      fail(FP8RT_CORRUPT, std::string("not a state file: its metadata has no ") + key);
    return found->second;
  };
  if (text("version") != kStateFileVersion)
    fail(FP8RT_UNSUPPORTED, "state file of version " + inQuotes(text("version")) +
                                ", this runtime knows version " + kStateFileVersion);
  const std::string &expected = program->manifest().layoutHash;
  if (text("layout_hash") != expected)
    fail(FP8RT_MISMATCH, "its layout hash " + inQuotes(text("layout_hash")) + " is not the program's " +
                             inQuotes(expected) +
                             ": it was saved by a program with other FP8 sites or options");
}

const Tensor &fp8rt::findFitting(const fp8rt_tensors &tensors, const std::string &name, const DType &type,
                                 const Shape &shape) {
  const Tensor *tensor = tensors.find(name);
  if (!tensor)
    fail(FP8RT_NOT_FOUND, "there is no tensor " + inQuotes(name));
  if (!accepts(type.dlpack, tensor->type().dlpack) || tensor->shape() != shape)
    fail(FP8RT_MISMATCH, "tensor " + inQuotes(name) + " is " + describe(tensor->shape(), tensor->type()) +
                             ", the program has " + describe(shape, type));
  return *tensor;
}

/// Returns whether `tensor` is a history with as many columns as `wanted`, of any length.
static bool isHistoryOfColumns(const Tensor *tensor, const StateTensor &wanted) {
  return wanted.name == kHistoryName && tensor && tensor->shape().size() == 2 && wanted.shape.size() == 2 &&
         tensor->shape()[0] > 0 && tensor->shape()[1] == wanted.shape[1] &&
         accepts(wanted.type->dlpack, tensor->type().dlpack);
}

void State::checkTensors(const fp8rt_tensors &tensors, fp8rt_history history) const {
  const Manifest &manifest = program->manifest();
  for (const StateTensor &wanted : manifest.state) {
    const Tensor *tensor = tensors.find(wanted.name);
    if (!isHistoryOfColumns(tensor, wanted) || tensor->shape() == wanted.shape)
      findFitting(tensors, wanted.name, *wanted.type, wanted.shape);
    else if (history == FP8RT_HISTORY_EXACT)
      fail(FP8RT_MISMATCH, "its " + inQuotes(wanted.name) + " has " + std::to_string(tensor->shape()[0]) +
                               " rows, the program's " + std::to_string(wanted.shape[0]) +
                               ": take over its newest rows or its oldest (fp8-run --history)");
  }
  for (const auto &[name, item] : tensors.items)
    if (name.rfind(kCarryPrefix, 0) != 0 && !manifest.findState(name))
      fail(FP8RT_MISMATCH, "tensor " + inQuotes(name) + " is not part of the program's state");
}

/// Returns a history of that shape with row 0 of `from` and as many other rows as fit; the remaining
/// rows are 0.
static Tensor fitHistory(const Tensor &from, const Shape &shape, fp8rt_history history) {
  Tensor to(from.type(), shape);
  if (!to.bytes())
    return to;
  size_t rows = from.shape()[0], wanted = shape[0], rowBytes = to.bytes() / wanted;
  size_t kept = std::min(rows, wanted) - 1;
  bool newest = history == FP8RT_HISTORY_NEWEST;
  const char *source = static_cast<const char *>(from.data());
  char *target = static_cast<char *>(to.data());
  std::memset(target, 0, to.bytes());
  std::memcpy(target, source, rowBytes);
  std::memcpy(target + (newest ? wanted - kept : 1) * rowBytes,
              source + (newest ? rows - kept : 1) * rowBytes, kept * rowBytes);
  return to;
}

void State::importFrom(const fp8rt_tensors &tensors, fp8rt_history history) {
  checkMetadata(tensors);
  checkTensors(tensors, history);
  const std::vector<StateTensor> &known = program->manifest().state;
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor &source = *tensors.find(known[i].name);
    if (source.shape() == values[i].shape())
      copyElements(*place, values[i], source);
    else
      copyElements(*place, values[i], fitHistory(source, values[i].shape(), history));
  }
}

fp8rt_state::fp8rt_state(std::shared_ptr<fp8rt::State> state) : shared(std::move(state)) {
  for (const StateTensor &tensor : shared->library().manifest().state)
    views.push_back(shared->find(tensor.name)->view());
}

fp8rt_status fp8rt_state_create(const fp8rt_library *library, fp8rt_state **out_state) {
  return guarded([&] {
    fp8rt_state *&out = required(out_state, "out_state");
    out = new fp8rt_state(std::make_shared<State>(required(library, "library").shared, hostMemory()));
  });
}

void fp8rt_state_destroy(fp8rt_state *state) { delete state; }

const DLTensor *fp8rt_state_tensor(const fp8rt_state *state, const char *name) {
  if (!state || !name)
    return nullptr;
  const std::vector<StateTensor> &known = state->shared->library().manifest().state;
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i].name == name)
      return &state->views[i];
  return nullptr;
}

fp8rt_status fp8rt_state_export(const fp8rt_state *state, fp8rt_tensors *tensors) {
  return guarded([&] { required(state, "state").shared->exportTo(required(tensors, "tensors")); });
}

fp8rt_status fp8rt_state_import(fp8rt_state *state, const fp8rt_tensors *tensors) {
  return fp8rt_state_import_history(state, tensors, FP8RT_HISTORY_EXACT);
}

fp8rt_status fp8rt_state_import_history(fp8rt_state *state, const fp8rt_tensors *tensors,
                                        fp8rt_history history) {
  return guarded([&] {
    const fp8rt_tensors &source = required(tensors, "tensors");
    auto import = [&] { required(state, "state").shared->importFrom(source, history); };
    source.source.empty() ? import() : within(source.source, import);
  });
}
