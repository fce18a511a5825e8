// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The FP8 dialect: enumerations, recipes, targets, operations. Include this header to use it.

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

/// Parse and print an f32 parameter of an attribute.
mlir::FailureOr<llvm::APFloat> parseF32(mlir::AsmParser &parser);
void printF32(mlir::AsmPrinter &printer, const llvm::APFloat &value);

/// Returns the largest finite magnitude of an FP8 format: 448 (E4M3) or 57344 (E5M2).
float getFP8Max(mlir::FloatType format);

/// Returns the name of a type in reports: "E4M3" or "E5M2" for FP8, MLIR's name for others.
std::string getFormatName(mlir::Type type);

/// The values that a recipe computes a scale from.
struct ScaleInputs {
  /// f32: the amax, the largest magnitude of the format, and the previous scale (1 if there is none).
  mlir::Value amax, fp8Max, old;
  /// The element type of the tensor before the cast; null if unknown.
  mlir::FloatType inputType;
};

/// The code that a target has for matmuls with a recipe.
struct MatmulSupport {
  /// The beginning of `code` in the report of such matmuls. Empty if nothing does, or if the
  /// target does not say.
  std::string code;
  /// Why nothing does, and what to use instead; empty if something does.
  std::string reason;
};
} // namespace fp8

#include "fp8/Dialect/FP8/IR/FP8AttrInterfaces.h.inc"

namespace fp8 {

/// Returns the target of the module that contains `op`, `#fp8.cpu` if the module has none.
TargetAttrInterface getTarget(mlir::Operation *op);

/// Returns which tensors of a site a matmul of this role multiplies, in the order of the forward pass.
std::pair<TensorKind, TensorKind> getOperandKinds(Role role);
} // namespace fp8

namespace fp8 {
/// Returns the number of blocks, with extents `block`, in each dimension of a tensor of these sizes: the
/// shape of its scale_inv. An extent of 0 spans the dimension.
llvm::SmallVector<mlir::OpFoldResult> getBlockCounts(mlir::OpBuilder &builder, mlir::Location loc,
                                                     llvm::ArrayRef<mlir::OpFoldResult> sizes,
                                                     llvm::ArrayRef<int64_t> block);
} // namespace fp8

namespace fp8 {
/// The work of a collective on contiguous elements. `root` is the rank of a broadcast, or the offset of a
/// shift.
struct CollectiveStep {
  CollectiveKind kind;
  ReduceKind reduction = ReduceKind::sum;
  int32_t root = 0;
};

/// Returns the number of ranks that differ along `axes` only; unset if an extent is dynamic.
std::optional<int64_t> getGroupSize(llvm::ArrayRef<int64_t> grid, llvm::ArrayRef<int64_t> axes);

/// Checks the grid and the axes of a collective.
mlir::LogicalResult verifyCollective(mlir::Operation *op);

/// Checks that `axes` are different axes of `grid`, at least one, and that at most one extent is dynamic.
mlir::LogicalResult verifyGroup(mlir::Operation *op, llvm::ArrayRef<int64_t> grid,
                                llvm::ArrayRef<int64_t> axes);
} // namespace fp8

#include "fp8/Dialect/FP8/IR/FP8OpInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Attributes.h.inc"

#define GET_OP_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Ops.h.inc"

#endif // FP8_DIALECT_FP8_IR_FP8_H
