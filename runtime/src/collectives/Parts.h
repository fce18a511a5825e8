// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors that are divided among the ranks: cutting out a rank's part, and putting the parts together.

#ifndef FP8RT_COLLECTIVES_PARTS_H
#define FP8RT_COLLECTIVES_PARTS_H

#include "../program/Library.h"
#include "Ranks.h"

namespace fp8rt::collectives {

/// Returns the part of a tensor in host memory that rank `rank` of `size` has. Throws FP8RT_MISMATCH if the
/// ranks cannot divide it equally.
Tensor cutPart(const Library &library, const Value &value, const Tensor &whole, uint32_t rank, uint32_t size);

/// Returns the whole of the parts in host memory that all ranks have. All ranks call it.
Tensor gatherParts(const Library &library, const Value &value, const Tensor &part, Ranks &ranks);

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_PARTS_H
