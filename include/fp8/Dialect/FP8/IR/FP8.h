// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The FP8 dialect: enumerations, recipes, targets, operations. Include this one.

#ifndef FP8_DIALECT_FP8_IR_FP8_H
#define FP8_DIALECT_FP8_IR_FP8_H

#include "fp8/Dialect/FP8/IR/ContractionDims.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/APFloat.h"

#include "fp8/Dialect/FP8/IR/FP8Dialect.h.inc"
#include "fp8/Dialect/FP8/IR/FP8Enums.h.inc"

namespace fp8 {
class RecipeAttrInterface;

/// Parses and prints an f32 parameter of an attribute.
mlir::FailureOr<llvm::APFloat> parseF32(mlir::AsmParser &parser);
void printF32(mlir::AsmPrinter &printer, const llvm::APFloat &value);

/// The largest finite magnitude of an FP8 format: 448 or 57344.
float getFP8Max(mlir::FloatType format);

/// "E4M3" or "E5M2" for FP8 formats, MLIR's name for other types: for reports.
std::string getFormatName(mlir::Type type);

/// What a recipe computes a scale from.
struct ScaleInputs {
  /// f32: the amax, the largest magnitude of the format, and the scale so far (1 where there is none).
  mlir::Value amax, fp8Max, old;
  /// The element type of the tensor before the cast; null where it is not known.
  mlir::FloatType inputType;
};
} // namespace fp8

#include "fp8/Dialect/FP8/IR/FP8AttrInterfaces.h.inc"

namespace fp8 {
/// On a module: the target that it is compiled for, a TargetAttrInterface.
inline constexpr llvm::StringLiteral kTargetAttrName = "fp8.target";

/// The target of the module that `op` is in, `#fp8.cpu` where none is named.
TargetAttrInterface getTarget(mlir::Operation *op);
} // namespace fp8

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Attributes.h.inc"

#define GET_OP_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Ops.h.inc"

#endif // FP8_DIALECT_FP8_IR_FP8_H
