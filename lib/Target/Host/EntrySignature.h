// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a caller sees of an entry, and the tables that its arguments are checked with.

#ifndef FP8_LIB_TARGET_HOST_ENTRYSIGNATURE_H
#define FP8_LIB_TARGET_HOST_ENTRYSIGNATURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>

namespace fp8 {

/// A result: its type, and the position of the argument that holds it, which there is none of
/// where the caller allocates it.
struct EntryResult {
  mlir::MemRefType type;
  std::optional<unsigned> position;
};

/// An entry's arguments by what the caller sees: its arguments and results.
struct EntrySignature {
  unsigned numArguments = 0;
  llvm::SmallVector<EntryResult> results;
  bool hasWorkspace = false;
  int64_t workspaceBytes = 0;
  /// The last argument is the frame, and the result a status.
  bool canFail = false;
};

/// What is checked of an entry's call: the types and shapes that it must have, as words, and the
/// error lines, each ending in a NUL.
struct CheckTables {
  llvm::SmallVector<int64_t> specs;
  std::string lines;
};

/// Reads the attributes that fp8-plan-workspace and fp8-allocate-dynamic have left.
mlir::FailureOr<EntrySignature> readSignature(mlir::func::FuncOp entry);

/// Fails, with an error, for elements that DLPack has no type for.
mlir::FailureOr<CheckTables> buildTables(mlir::func::FuncOp entry, const EntrySignature &signature);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_ENTRYSIGNATURE_H
