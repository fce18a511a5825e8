// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Amaxes that are recorded inside loops and branches, and how they get out. Private to
// the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONAMAXES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONAMAXES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <map>

namespace fp8 {

/// An amax (`tensor<f32>`), and the block that must run for it to count: that of a product
/// which reads the quantized tensor. The cast itself may be outside.
struct RecordedAmax {
  mlir::Value value;
  mlir::Block *block;
};

/// By column of the state.
using ColumnAmaxes = std::map<int64_t, llvm::SmallVector<RecordedAmax>>;

/// Whether a value of a region of `op` can be carried out of it: loops and branches of scf.
bool canCarryOut(mlir::Operation *op);

/// Replaces every amax that is recorded inside a loop or branch by one in the block of the
/// function: the maximum over all iterations, `none` (0 or below) from a branch not taken or a
/// loop that does not run, which leaves the column as it is. Loops and branches get one more
/// result per column.
void carryOutAmaxes(ColumnAmaxes &amaxes, float none);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONAMAXES_H
