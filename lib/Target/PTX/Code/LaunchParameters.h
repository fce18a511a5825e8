// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parameters of launches: values known when the program is compiled go into the record of a launch,
// the others are stored by host code, in slots on the stack that every launch of an entry point fills
// again, because the device copies them.

#ifndef FP8_LIB_TARGET_PTX_CODE_LAUNCHPARAMETERS_H
#define FP8_LIB_TARGET_PTX_CODE_LAUNCHPARAMETERS_H

#include "LaunchRecords.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace fp8 {

/// The operands of fp8_abi_tensor_map for one parameter.
struct TensorMapOperands {
  mlir::Value place, type, rank, base, sizes, strides, box, swizzle;
};

/// The launches of an entry point.
class LaunchParameters {
public:
  /// Allocates slots for all `launches` at the insertion point of `builder`, in the entry block. `constants`
  /// are memrefs of the same block that launches use beside the arguments of `entry`.
  LaunchParameters(mlir::OpBuilder &builder, mlir::func::FuncOp entry,
                   llvm::ArrayRef<mlir::gpu::LaunchFuncOp> launches, mlir::ValueRange constants);

  /// A launch as add() has described it.
  struct Launch {
    size_t record;         ///< its first word
    bool isStored = false; ///< whether host code stores some of its parameters, or its grid
    llvm::SmallVector<TensorMapOperands> maps; ///< which host code has still to write
  };
  /// Adds the record of `launch` with the parameters that `kernel`, number `number`, has in the LLVM dialect;
  /// host code is inserted at `builder`. Emits an error for an operand that does not fit.
  mlir::FailureOr<Launch> add(mlir::OpBuilder &builder, mlir::gpu::LaunchFuncOp launch,
                              mlir::FunctionOpInterface kernel, int64_t number);

  /// Returns the operands of fp8_abi_launch_all, behind the frame, for `count` records from `record` on.
  llvm::SmallVector<mlir::Value> buildOperands(mlir::OpBuilder &builder, mlir::Location loc, size_t record,
                                               int64_t count);
  /// Adds the records to the module, after the last launch.
  void finish() { records.finish(buffers); }

  /// At least eight bytes, whose contents are lost at the next launch.
  mlir::Value getFirstSlot() const { return slots; }

private:
  void addConstant(int64_t bits) { records.addConstant(bits), ++next; }
  void addValue(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
  void addIndex(mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult index);
  void addAddress(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer, int64_t bytesBefore);
  void addDescriptor(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer);
  mlir::LogicalResult addTensorMap(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                                   mlir::DictionaryAttr form);
  mlir::LogicalResult addBuffer(mlir::OpBuilder &builder, mlir::gpu::LaunchFuncOp launch, mlir::Value buffer,
                                mlir::FunctionOpInterface kernel, unsigned index);
  mlir::LogicalResult addOperand(mlir::OpBuilder &builder, mlir::gpu::LaunchFuncOp launch,
                                 mlir::FunctionOpInterface kernel, unsigned index);
  void addGrid(mlir::OpBuilder &builder, mlir::gpu::LaunchFuncOp launch);
  TensorMapOperands storeTensorMap(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                                   const TensorMapNumbers &numbers);
  mlir::Value takeSlot(mlir::OpBuilder &builder, mlir::Location loc);

  LaunchRecords records;
  mlir::Value slots, pointers, buffers, grid;
  mlir::Value mapNumbers; ///< sizes, strides and box of the tensor map in each slot
  int64_t bytesOfSlot = 8;
  // Of the launch that is being added.
  Launch current;
  unsigned next = 0; ///< parameter
  int64_t stride = 8;
};

/// Returns how many operands a launch of `kernel` has: its arguments, or the slots of its table.
unsigned countOperands(mlir::FunctionOpInterface kernel);

/// Builds the address, as i64, of an element of `buffer`; of its first one without `indices`.
mlir::Value buildAddress(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                         mlir::ValueRange indices = {});

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_CODE_LAUNCHPARAMETERS_H
