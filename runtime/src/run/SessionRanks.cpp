// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions of programs for several ranks: tensors that are divided among them, and what they have in common.

#include "../collectives/Compare.h"
#include "../collectives/Parts.h"
#include "../collectives/Program.h"
#include "../core/Status.h"
#include "../core/Tensors.h"
#include "Session.h"

using namespace fp8rt;
using collectives::Ranks;

void Session::communicateThrough(const fp8rt_communicator *with) {
  setCommunicator(with);
  if (staged)
    execution->neverCapture();
}

/// Returns this rank's part of an argument's value for all ranks.
Tensor Session::partOf(uint32_t index, const Tensor &whole) const {
  const Value &value = entry.arguments[index];
  if (!communicator || value.shards.empty())
    return whole.sameMemory();
  return collectives::cutPart(*library, value, whole, communicator->rank, communicator->size);
}

/// Returns the value of all ranks in host memory: a view where that is all.
Tensor Session::wholeOf(const Value &value, const Tensor &part) const {
  Tensor host = part.isHost() ? part.sameMemory() : copyToHost(*memory, part);
  if (!communicator || value.shards.empty())
    return host;
  return collectives::gatherParts(*library, value, host, Ranks::of(communicator));
}

void Session::setWholeArgument(uint32_t index, const DLTensor &tensor) {
  const Value &value = userArgument(index);
  if (!communicator || value.shards.empty())
    return setArgument(index, tensor);
  Tensor part = partOf(index, viewOf(tensor));
  setArgument(index, part.view());
}

void Session::addWholeResult(uint32_t index, const std::string &name, fp8rt_tensors &tensors) const {
  if (index >= results.size() || !results[index].tensor)
    fail(FP8RT_NOT_FOUND, "result " + std::to_string(index) + " has no value");
  tensors.add(name, wholeOf(entry.results[index], *results[index].tensor));
}

void Session::compareRanks() const {
  if (!communicator || library->manifest().grid.empty())
    return;
  fp8rt_tensors common;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value &value = entry.arguments[i];
    if (value.kind == FP8RT_KIND_RESIDUAL || value.differs || !value.shards.empty() || !arguments[i].tensor)
      continue;
    // Casts of parameters: the casts of a divided parameter are divided.
    if (value.kind == FP8RT_KIND_STATE && library->manifest().findState(value.name)->derived)
      continue;
    const Tensor &tensor = *arguments[i].tensor;
    std::string name = value.kind == FP8RT_KIND_STATE ? "state " + value.name
                       : value.name.empty()           ? "argument " + std::to_string(i)
                                                      : value.name;
    if (common.find(name))
      name += " (argument " + std::to_string(i) + ")";
    common.add(name, tensor.isHost() ? tensor.sameMemory() : copyToHost(*memory, tensor));
  }
  collectives::compareLines(Ranks::of(communicator), "the ranks have different values",
                            collectives::describeTensors(common));
}
