// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights kept in FP8 (fp8-compile --fp8-parameters): a session casts its weights before a step if the state
// does not hold their casts, because none was made yet or because the weights are others. A step that
// computes new weights casts them itself.

#include "../core/Status.h"
#include "Session.h"

using namespace fp8rt;

State::Addresses Session::findAddresses(const KeptCast &cast) const {
  State::Addresses addresses;
  for (uint32_t argument : cast.arguments)
    addresses.push_back(arguments[argument].tensor->data());
  return addresses;
}

/// Makes the kept casts those of the arguments.
void Session::castParameters() {
  bool isCurrent = true;
  for (const KeptCast &cast : entry.casts)
    for (const std::string &tensor : cast.tensors)
      isCurrent &= state->isComputedFrom(tensor, findAddresses(cast));
  if (isCurrent)
    return;
  for (const KeptCast &cast : entry.casts) // until they are complete
    for (const std::string &tensor : cast.tensors)
      state->setComputedFrom(tensor, {});
  for (size_t i = 0; i < entry.initializerArguments.size(); ++i)
    initializer->arguments[i].assign(arguments[entry.initializerArguments[i]].tensor->sameMemory(), false);
  initializer->setCommunicator(communicator);
  within("casting the parameters", [&] { initializer->runStep(); });
  for (const KeptCast &cast : entry.casts)
    for (const std::string &tensor : cast.tensors)
      state->setComputedFrom(tensor, findAddresses(cast));
}

/// Notes after a step which kept casts are those of the arguments still: the step has cast what it has
/// changed, if this entry has such a cast; other entries may have read other tensors from it.
void Session::noteParameters() {
  if (!state)
    return;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value &value = entry.arguments[i];
    if (value.kind == FP8RT_KIND_USER && value.carry >= 0)
      state->forget(arguments[i].tensor->data());
    if (value.kind == FP8RT_KIND_STATE && value.written &&
        !library->manifest().findState(value.name)->derived)
      state->forgetAll(); // the scales may be others
  }
  for (const KeptCast &cast : entry.casts)
    for (const std::string &tensor : cast.tensors)
      state->setComputedFrom(tensor, findAddresses(cast));
}
