// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parameters of launches in host code: slots on the stack that every launch of an entry point fills
// again, because the device copies them.

#ifndef FP8_LIB_TARGET_PTX_LAUNCHPARAMETERS_H
#define FP8_LIB_TARGET_PTX_LAUNCHPARAMETERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace fp8 {

/// The operands of fp8_abi_tensor_map for one parameter.
struct TensorMap {
  mlir::Value place, type, rank, base, sizes, strides, box, swizzle;
};

/// The slots of an entry point.
class LaunchParameters {
public:
  /// Allocates slots for all `launches` at the insertion point of `builder`, in the entry block.
  LaunchParameters(mlir::OpBuilder &builder, mlir::func::FuncOp entry,
                   llvm::ArrayRef<mlir::gpu::LaunchFuncOp> launches);

  /// Stores the operands of `launch` as the parameters that `kernel` has in the LLVM dialect. Returns the
  /// tensor maps that are still to be written. Emits an error for an operand that does not fit.
  mlir::FailureOr<llvm::SmallVector<TensorMap>>
  store(mlir::OpBuilder &builder, mlir::gpu::LaunchFuncOp launch, mlir::FunctionOpInterface kernel);

  /// The array of the slots' addresses.
  mlir::Value getPointers() const { return pointers; }
  /// At least eight bytes, whose contents are lost at the next launch.
  mlir::Value getFirstSlot() const { return slots; }

private:
  mlir::LogicalResult storeTable(mlir::OpBuilder &builder, mlir::gpu::LaunchFuncOp launch);
  void storeNext(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
  mlir::LogicalResult storeBuffer(mlir::OpBuilder &builder, mlir::gpu::LaunchFuncOp launch,
                                  mlir::Value buffer, mlir::FunctionOpInterface kernel, unsigned index,
                                  llvm::SmallVectorImpl<TensorMap> &maps);
  void storeDescriptor(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer);
  mlir::FailureOr<TensorMap> storeTensorMap(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                                            mlir::DictionaryAttr form);
  mlir::Value getSlot(mlir::OpBuilder &builder, mlir::Location loc, unsigned number);

  mlir::Value slots, pointers;
  /// Sizes, strides and box of the tensor map in each slot.
  mlir::Value mapNumbers;
  int64_t slotBytes = 8;
  unsigned next = 0; // slot
};

/// Returns how many operands a launch of `kernel` has: its arguments, or the slots of its table.
unsigned countOperands(mlir::FunctionOpInterface kernel);

/// Builds the address, as i64, of an element of `buffer`; of its first one without `indices`.
mlir::Value buildAddress(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                         mlir::ValueRange indices = {});

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_LAUNCHPARAMETERS_H
