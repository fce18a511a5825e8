// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The LLVM half of host code, without files: translates a module in the LLVM dialect to an
// optimized LLVM module, and generates object code for it.

#ifndef FP8_LIB_TARGET_HOST_HOSTMODULE_H
#define FP8_LIB_TARGET_HOST_HOSTMODULE_H

#include "fp8/Target/Host/HostCode.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

namespace fp8 {

/// An optimized LLVM module and the machine it is for.
struct HostModule {
  // Destroyed last: the module lives in it.
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
};

/// Translates and optimizes. Exports `fp8_manifest` and every `fp8_call_<entry>`, nothing
/// else. Errors are diagnostics at the module.
mlir::FailureOr<HostModule> buildHostModule(mlir::ModuleOp module, llvm::StringRef manifest,
                                            const HostCodeOptions &options);

/// Writes position-independent object code.
llvm::LogicalResult writeObject(mlir::ModuleOp module, HostModule &code, llvm::raw_pwrite_stream &stream);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_HOSTMODULE_H
