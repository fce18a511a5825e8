// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Carrying out asynchronous operations.

#include "Operation.h"

using namespace fp8emu;

bool OperationQueue::step(uint64_t random) {
  const size_t count = flying.size();
  for (size_t i = 0; i < count; ++i) {
    size_t chosen = (random + i) % count;
    if (!flying[chosen]->ready())
      continue;
    // Out of the queue while it runs: it may start others.
    std::unique_ptr<Operation> operation = std::move(flying[chosen]);
    flying.erase(flying.begin() + int64_t(chosen));
    pc = operation->origin.pc;
    running = operation.get();
    try {
      bool over = operation->step();
      running = nullptr;
      if (!over)
        flying.push_back(std::move(operation));
    } catch (Fault &fault) {
      Fault full = operation->origin;
      full.kind = fault.kind;
      full.message = fault.message;
      throw full;
    }
    return true;
  }
  return false;
}
