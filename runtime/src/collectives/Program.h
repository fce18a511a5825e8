// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of several ranks: which parts of tensors a rank has, and whether the number of ranks fits.

#ifndef FP8RT_COLLECTIVES_PROGRAM_H
#define FP8RT_COLLECTIVES_PROGRAM_H

#include "../program/Library.h"

#include "fp8rt/communicator.h"

namespace fp8rt::collectives {

/// Throws FP8RT_MISMATCH unless the program runs on the ranks of `communicator`; null stands for one rank.
void checkRanks(const Library &library, const fp8rt_communicator *communicator);

/// Tells the other ranks why this one goes no further. Does nothing for null, and for a communicator of
/// others.
void tellFailure(const fp8rt_communicator *communicator, const std::string &reason) noexcept;

/// Throws if a collective of work that was enqueued has failed. Does nothing for null, and for a communicator
/// of others.
void checkCollectives(const fp8rt_communicator *communicator);

/// Part `number` of `count` equal ones.
struct Part {
  uint32_t number = 0, count = 1;
};

/// Returns which part of dimension `dim` of a value rank `rank` of `size` has.
Part partOf(const Library &library, const Value &value, int32_t dim, uint32_t rank, uint32_t size);

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_PROGRAM_H
