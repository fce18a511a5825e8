// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code that the passes on memory share: sizes in bytes, and memrefs over memory that MLIR did not
// allocate.

#ifndef FP8_LIB_TARGET_HOST_MEMORY_H
#define FP8_LIB_TARGET_HOST_MEMORY_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace fp8 {

/// Returns the bytes of one element in memory (1 for i1 and 8-bit floats), or 0 if unknown.
uint64_t getElementBytes(mlir::Type type);

/// Builds a memref of `type` with dynamic sizes `sizes` (i64) over the elements at `pointer`, which
/// are row-major without gaps.
mlir::Value buildMemRef(mlir::OpBuilder &builder, mlir::Location loc,
                        const mlir::LLVMTypeConverter &converter, mlir::MemRefType type, mlir::Value pointer,
                        mlir::ValueRange sizes);

/// Builds the size of a buffer in bytes, as i64; the largest number if that overflows.
mlir::Value buildByteCount(mlir::OpBuilder &builder, mlir::Location loc, mlir::MemRefType type,
                           mlir::ValueRange sizes);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_MEMORY_H
