// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between the host and a device around a call.

#include "HostCopies.h"
#include "../core/DType.h"

using namespace fp8rt;

HostCopies::HostCopies(std::shared_ptr<Memory> place, const Entry &entry,
                       const std::vector<DLTensor> &argumentViews, const std::vector<DLTensor> &resultViews)
    : memory(std::move(place)), entry(entry) {
  for (const DLTensor &argument : argumentViews)
    add(arguments, argument, /*hasMemory=*/true);
  for (size_t i = 0; i < resultViews.size(); ++i)
    add(results, resultViews[i], /*hasMemory=*/entry.results[i].alias < 0);
  call.arguments.resize(arguments.size());
  call.results.resize(results.size());
}

void HostCopies::add(std::vector<Copy> &copies, const DLTensor &tensor, bool hasMemory) {
  uint64_t bytes = *byteSize(Shape(tensor.shape, tensor.shape + tensor.ndim), *findDLPackType(tensor.dtype));
  copies.push_back({allocateBuffer(memory, hasMemory ? bytes : 0), bytes});
}

void HostCopies::write(Pointers host) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    call.arguments[i] = host.arguments[i] ? arguments[i].buffer.get() : nullptr;
    if (call.arguments[i])
      memory->write(call.arguments[i], host.arguments[i], arguments[i].bytes);
  }
  for (size_t i = 0; i < results.size(); ++i)
    call.results[i] = results[i].buffer.get();
}

void HostCopies::read(Pointers host, const std::vector<void *> &states) {
  for (size_t i = 0; i < results.size(); ++i) {
    int32_t alias = entry.results[i].alias;
    const void *source = call.results[i];
    void *target = host.results[i];
    if (alias >= 0) {
      auto argument = static_cast<size_t>(alias);
      source = call.arguments[argument] ? call.arguments[argument] : states[argument];
      target = target ? target : host.arguments[argument];
    }
    if (target && source && results[i].bytes)
      memory->read(target, source, results[i].bytes);
  }
}
