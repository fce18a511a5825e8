// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Links objects to a shared library.

#ifndef FP8_LIB_TARGET_HOST_CODEGEN_LINKLIBRARY_H
#define FP8_LIB_TARGET_HOST_CODEGEN_LINKLIBRARY_H

#include "mlir/IR/BuiltinOps.h"

namespace fp8 {

/// Links objects for this machine's system to a shared library, and writes its bytes to `out`. It needs
/// libm.so.6, and libomp.so.5 if it calls OpenMP, when it is loaded; neither is looked for here. An error
/// is a diagnostic at the module. Safe in several threads: they take turns.
llvm::LogicalResult linkLibrary(mlir::ModuleOp module, llvm::ArrayRef<llvm::SmallString<0>> objects,
                                llvm::raw_ostream &out);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_CODEGEN_LINKLIBRARY_H
