// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The comparison of what the ranks of a program are about to call.

#include "Ranks.h"

#include <vector>

using namespace fp8_jax;

std::string Rank::compare(uint64_t number) {
  std::vector<uint64_t> numbers(own->size);
  if (gather(own, &number, sizeof number, numbers.data()))
    return lastError();
  for (uint64_t other : numbers)
    if (other != number)
      return "the devices run two calls of one step at the same time, and not in the same order: let one "
             "depend on the other's result, as by jax.lax.optimization_barrier";
  return {};
}
