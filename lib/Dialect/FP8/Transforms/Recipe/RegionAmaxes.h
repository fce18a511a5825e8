// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Carries amaxes that are recorded inside loops and branches out of them. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONAMAXES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONAMAXES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <map>

namespace fp8 {

/// An amax (`tensor<f32>`) and the block of a matmul that reads the quantized tensor. The amax
/// counts only if this block runs; the cast itself may be outside of it.
struct RecordedAmax {
  mlir::Value value;
  mlir::Block *block;
};

/// The recorded amaxes by column of the state.
using ColumnAmaxes = std::map<int64_t, llvm::SmallVector<RecordedAmax>>;

/// Returns whether values can be carried out of the regions of `op`: loops and branches of scf.
bool canCarryOut(mlir::Operation *op);

/// Replaces every amax that is recorded inside a loop or branch by one in the block of the
/// function, the maximum over all iterations. A branch that is not taken and a loop that does not
/// run give `none` (0 or negative), which leaves the column unchanged. Loops and branches get one
/// more result per column.
void carryOutAmaxes(ColumnAmaxes &amaxes, float none);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONAMAXES_H
