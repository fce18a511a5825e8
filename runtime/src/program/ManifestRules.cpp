// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules between the fields of a manifest, one function each.

#include "ManifestRules.h"
#include "../core/Status.h"

#include <algorithm>
#include <set>

using namespace fp8rt;

namespace {

[[noreturn]] void reject(const std::string &what) {
  fail(FP8RT_CORRUPT, "the manifest contradicts itself: " + what);
}

bool sameType(const Value &a, const Value &b) { return a.type == b.type && a.shape == b.shape; }

std::string numbered(const char *what, size_t index) { return what + (" " + std::to_string(index)); }

void checkCarries(const Entry &entry) {
  for (size_t i = 0; i < entry.arguments.size(); ++i) {
    const Value &argument = entry.arguments[i];
    if (argument.carry < 0)
      continue;
    size_t result = static_cast<size_t>(argument.carry);
    if (result >= entry.results.size())
      reject(numbered("argument", i) + " is carried from a result beyond the last");
    if (!sameType(argument, entry.results[result]))
      reject(numbered("argument", i) + " is carried from " + numbered("result", result) + " of another type");
  }
}

/// Returns whether `result` may be `argument` unchanged, as a residual for the other function of a pair.
bool isReturned(const Value &argument, const Value &result) {
  return result.kind == FP8RT_KIND_RESIDUAL && argument.kind == FP8RT_KIND_USER && argument.carry < 0;
}

/// Returns whether result `index` may alias `argument`.
bool mayAlias(const Value &argument, const Value &result, size_t index) {
  if (argument.kind == FP8RT_KIND_STATE)
    return result.kind == FP8RT_KIND_STATE && result.name == argument.name;
  return argument.carry == static_cast<int32_t>(index);
}

void checkAliases(const Entry &entry) {
  std::set<size_t> written;
  for (size_t i = 0; i < entry.results.size(); ++i) {
    const Value &result = entry.results[i];
    if (result.alias < 0)
      continue;
    size_t index = static_cast<size_t>(result.alias);
    if (index >= entry.arguments.size())
      reject(numbered("result", i) + " aliases an argument beyond the last");
    const Value &argument = entry.arguments[index];
    if (sameType(argument, result) && isReturned(argument, result))
      continue;
    if (!sameType(argument, result) || !mayAlias(argument, result, i))
      reject(numbered("result", i) + " aliases " + numbered("argument", index) +
             ", which is neither its state nor carried from it");
    if (!written.insert(index).second)
      reject("two results alias " + numbered("argument", index));
  }
  for (size_t i = 0; i < entry.arguments.size(); ++i)
    if (entry.arguments[i].written != (written.count(i) != 0))
      reject(numbered("argument", i) +
             (written.count(i) ? " is aliased but not written" : " is written but not aliased"));
}

/// Checks the grid, and the axes and dimensions of sharded values.
void checkGrid(const Shape &grid) {
  size_t open = 0;
  for (int64_t extent : grid) {
    if (extent != kDynamicDim && extent < 1)
      reject("an extent of the grid is " + std::to_string(extent));
    open += extent == kDynamicDim;
  }
  if (grid.size() > 32 || open > 1)
    reject("the grid has more than 32 dimensions, or more than one of any size");
}

void checkShards(const Shape &grid, const std::vector<Value> &values, const char *what) {
  for (size_t i = 0; i < values.size(); ++i)
    for (const Shard &shard : values[i].shards)
      if (shard.axis >= grid.size() || shard.dim >= values[i].shape.size())
        reject(numbered(what, i) + " is divided along an axis or a dimension that does not exist");
}

/// Checks that the initializer of `entry` takes the arguments that it is said to take, and state.
void checkInitializer(const Manifest &manifest, const Entry &entry) {
  const Entry *initializer = manifest.findEntry(entry.initializer);
  if (!initializer || !initializer->initializer.empty())
    reject("no entry " + inQuotes(entry.initializer) + " computes its parameters");
  size_t count = entry.initializerArguments.size();
  for (size_t i = 0; i < std::max(count, initializer->arguments.size()); ++i) {
    bool isGiven = i < count, isTaken = i < initializer->arguments.size();
    if (!isGiven && initializer->arguments[i].kind == FP8RT_KIND_STATE)
      continue;
    uint32_t given = isGiven ? entry.initializerArguments[i] : 0;
    if (!isGiven || !isTaken || given >= entry.arguments.size() ||
        entry.arguments[given].kind != FP8RT_KIND_USER || initializer->arguments[i].kind != FP8RT_KIND_USER ||
        !sameType(entry.arguments[given], initializer->arguments[i]))
      reject(numbered("argument", i) + " of " + inQuotes(entry.initializer) + " is none of its arguments");
  }
}

void checkParameters(const Manifest &manifest, const Entry &entry) {
  if (!entry.initializer.empty())
    checkInitializer(manifest, entry);
  for (const KeptCast &cast : entry.casts) {
    for (uint32_t argument : cast.arguments)
      if (argument >= entry.arguments.size() || entry.arguments[argument].kind != FP8RT_KIND_USER)
        reject("a parameter is computed from " + numbered("argument", argument) +
               ", which is none of the user's");
    for (const std::string &name : cast.tensors) {
      const StateTensor *tensor = manifest.findState(name);
      if (!tensor || !tensor->derived)
        reject("parameter " + inQuotes(name) + " is no derived tensor of the state");
    }
  }
}

void checkStateValues(const Manifest &manifest, const std::vector<Value> &values, const char *what) {
  std::set<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) {
    const Value &value = values[i];
    if (value.kind != FP8RT_KIND_STATE)
      continue;
    const StateTensor *tensor = manifest.findState(value.name);
    if (!tensor || tensor->type != value.type || tensor->shape != value.shape)
      reject(numbered(what, i) + " is no tensor of the state");
    if (!names.insert(value.name).second)
      reject(numbered(what, i) + " is the second of state " + inQuotes(value.name));
  }
}

void checkState(const Manifest &manifest) {
  std::set<std::string> names;
  for (const StateTensor &tensor : manifest.state) {
    if (!isStatic(tensor.shape))
      reject("state " + inQuotes(tensor.name) + " has a dynamic shape");
    if (tensor.name.empty() || !names.insert(tensor.name).second)
      reject("state " + inQuotes(tensor.name) + " is there twice or has no name");
  }
}

} // namespace

void fp8rt::checkManifest(const Manifest &manifest) {
  checkState(manifest);
  checkGrid(manifest.grid);
  std::set<std::string> names;
  for (const Entry &entry : manifest.entries) {
    if (!names.insert(entry.name).second)
      reject("two entries " + inQuotes(entry.name));
    within("entry " + inQuotes(entry.name), [&] {
      checkCarries(entry);
      checkAliases(entry);
      checkShards(manifest.grid, entry.arguments, "argument");
      checkShards(manifest.grid, entry.results, "result");
      checkStateValues(manifest, entry.arguments, "argument");
      checkStateValues(manifest, entry.results, "result");
      checkParameters(manifest, entry);
    });
  }
  if (manifest.entries.empty())
    reject("there are no entries");
}
