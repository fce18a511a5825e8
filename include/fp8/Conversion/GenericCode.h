// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Remarks on operations that have no kernel of their own.

#ifndef FP8_CONVERSION_GENERICCODE_H
#define FP8_CONVERSION_GENERICCODE_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Remarks.h"

namespace fp8 {

/// Tells why `op` becomes `code` and not a kernel of its own: an optimization remark of the category
/// `fp8-kernels` (`fp8-compile --remarks`, `mlir-opt --remarks-filter=fp8-kernels`).
inline void remarkGeneric(mlir::Operation *op, llvm::StringRef code, const llvm::Twine &reason) {
  auto opts = mlir::remark::RemarkOpts::name("GenericCode").category("fp8-kernels");
  mlir::remark::missed(op->getLoc(), opts)
      << ("'" + op->getName().getStringRef() + "' " + code + ": " + reason).str();
}

} // namespace fp8

#endif // FP8_CONVERSION_GENERICCODE_H
