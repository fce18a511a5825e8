// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The FP8 state: initial values, export, and the C ABI of state.h.

#include "State.h"
#include "../core/Status.h"
#include "../core/Tensors.h"
#include "StateImport.h"

#include <algorithm>

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

bool State::isComputedFrom(const std::string &tensor, const Addresses &arguments) const {
  auto found = sources.find(tensor);
  return found != sources.end() && found->second == arguments;
}

void State::setComputedFrom(const std::string &tensor, Addresses arguments) {
  sources[tensor] = std::move(arguments);
}

void State::forget(const void *argument) {
  for (auto source = sources.begin(); source != sources.end();) {
    const Addresses &read = source->second;
    bool isRead = std::find(read.begin(), read.end(), argument) != read.end();
    source = isRead ? sources.erase(source) : std::next(source);
  }
}

void State::exportTo(fp8rt_tensors &tensors) {
  const Manifest &manifest = program->manifest();
  for (size_t i = 0; i < values.size(); ++i)
    if (!manifest.state[i].derived)
      tensors.add(manifest.state[i].name,
                  place->isHost() ? values[i].sameMemory() : copyToHost(*place, values[i]));
  tensors.metadata["version"] = kStateFileVersion;
  tensors.metadata["layout_hash"] = manifest.layoutHash;
  tensors.metadata["columns"] = manifest.columns;
  tensors.metadata[kChecksumKey] = ""; // the writer's business
}

void State::importFrom(const fp8rt_tensors &tensors, const fp8rt_import_options &options) {
  std::vector<ImportedTensor> imported = prepareImport(program->manifest(), tensors, options);
  forgetAll(); // casts depend on the scales
  for (size_t i = 0; i < values.size(); ++i)
    if (const Tensor *source = imported[i].get())
      copyElements(*place, values[i], *source);
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
  fp8rt_import_options options = {};
  options.history = history;
  options.strict = 1;
  return fp8rt_state_import_matching(state, tensors, &options);
}

fp8rt_status fp8rt_state_import_matching(fp8rt_state *state, const fp8rt_tensors *tensors,
                                         const fp8rt_import_options *options) {
  return guarded([&] {
    const fp8rt_tensors &source = required(tensors, "tensors");
    auto import = [&] { required(state, "state").shared->importFrom(source, required(options, "options")); };
    source.source.empty() ? import() : within(source.source, import);
  });
}

fp8rt_status fp8rt_tensors_rename_sites(fp8rt_tensors *tensors, const char *const *from,
                                        const char *const *to, uint32_t count) {
  return guarded([&] {
    fp8rt_tensors &changed = required(tensors, "tensors");
    Renames renames;
    if (count) {
      required(from, "from");
      required(to, "to");
    }
    for (uint32_t i = 0; i < count; ++i)
      renames.emplace_back(&required(from[i], "from"), &required(to[i], "to"));
    auto rename = [&] { renameSites(changed, renames); };
    changed.source.empty() ? rename() : within(changed.source, rename);
  });
}
