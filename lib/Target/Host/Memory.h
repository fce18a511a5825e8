// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the passes on memory share: sizes of elements, and buffers over memory that is not
// MLIR's own.

#ifndef FP8_LIB_TARGET_HOST_MEMORY_H
#define FP8_LIB_TARGET_HOST_MEMORY_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace fp8 {

/// Bytes of one element in memory: i1 and the 8-bit floats take one. 0 where they are not known.
uint64_t getElementBytes(mlir::Type type);

/// The elements at `pointer`, row-major without gaps, as a buffer of `type`, whose dynamic
/// sizes are `sizes` (i64).
mlir::Value buildMemRef(mlir::OpBuilder &builder, mlir::Location loc,
                        const mlir::LLVMTypeConverter &converter, mlir::MemRefType type, mlir::Value pointer,
                        mlir::ValueRange sizes);

/// The product of the sizes and of the bytes of an element, as i64;
/// the largest number where that overflows.
mlir::Value buildByteCount(mlir::OpBuilder &builder, mlir::Location loc, mlir::MemRefType type,
                           mlir::ValueRange sizes);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_MEMORY_H
