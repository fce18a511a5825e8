// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of the ranks' elements in host memory, in the order of ranks.

#ifndef FP8RT_COLLECTIVES_REDUCE_H
#define FP8RT_COLLECTIVES_REDUCE_H

#include <cstdint>
#include <vector>

namespace fp8rt::collectives {

/// Combines `count` elements of each source, the first with the second, the result with the third, and so on,
/// as communicator.h says for a type and a reduction. `target` may be one of the sources.
void reduce(uint32_t type, uint32_t reduction, const std::vector<const void *> &sources, void *target,
            uint64_t count);

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_REDUCE_H
