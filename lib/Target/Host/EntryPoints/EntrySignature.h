// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The signature of an entry point for its caller, and the tables for checking a call.

#ifndef FP8_LIB_TARGET_HOST_ENTRYPOINTS_ENTRYSIGNATURE_H
#define FP8_LIB_TARGET_HOST_ENTRYPOINTS_ENTRYSIGNATURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>

namespace fp8 {

/// A result: its type, and the number of the argument that holds it, unset if the caller allocates
/// the result.
struct EntryResult {
  mlir::MemRefType type;
  std::optional<unsigned> position;
};

/// The arguments of an entry point's function, as arguments and results for the caller.
struct EntrySignature {
  unsigned numArguments = 0;
  llvm::SmallVector<EntryResult> results;
  bool hasWorkspace = false;
  int64_t workspaceBytes = 0;
  /// The last argument is the frame, and the function returns a status.
  bool canFail = false;
};

/// The needs that the code of an entry point has of its call.
struct CallNeeds {
  /// The version of fp8rt_call.
  int64_t version = 1;
  /// DLDeviceType of the memory of all tensors, and its name in errors.
  int64_t memoryType = 1;
  llvm::StringRef memory = "host memory";
  /// Of the workspace, in bytes.
  int64_t alignment = 0;
};

/// Returns the needs of code that works in memory of the host, or of a device.
CallNeeds getCallNeeds(mlir::func::FuncOp entry, bool onDevice);

/// The data to check a call with: the expected types and shapes as words (see EntryPointHelpers.h),
/// and the error lines, each ending in a NUL.
struct CheckTables {
  llvm::SmallVector<int64_t> specs;
  std::string lines;
};

/// Reads the attributes that fp8-plan-workspace and fp8-allocate-dynamic set. Emits an error if no
/// argument holds a result.
mlir::FailureOr<EntrySignature> readSignature(mlir::func::FuncOp entry);

/// Builds the tables. Emits an error for element types that DLPack does not have.
mlir::FailureOr<CheckTables> buildTables(mlir::func::FuncOp entry, const EntrySignature &signature,
                                         const CallNeeds &needs);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_ENTRYPOINTS_ENTRYSIGNATURE_H
