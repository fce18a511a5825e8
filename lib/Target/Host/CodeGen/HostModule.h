// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The LLVM half of host code, without files: translates a module in the LLVM dialect to an LLVM
// module, optimizes it, and generates object code for it.

#ifndef FP8_LIB_TARGET_HOST_CODEGEN_HOSTMODULE_H
#define FP8_LIB_TARGET_HOST_CODEGEN_HOSTMODULE_H

#include "fp8/Target/Host/HostCode.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

namespace fp8 {

/// The kind of the functions of an LLVM module.
enum class HostCodeKind {
  /// All code of a library: only the C ABI can be seen outside of the module.
  whole,
  /// Kernels, which other modules of the same library call.
  kernels,
  /// Entry points, which call the kernels of other modules. Fast to compile instead of fast.
  entry,
};

/// An LLVM module and the machine it is for.
struct HostModule {
  // Destroyed last: the module lives in it.
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
};

/// Makes the translations of `context` known that translate() uses. Not safe in several threads.
void registerTranslations(mlir::MLIRContext &context);

/// Translates, without optimization. Functions are exported as `kind` says. The function
/// `fp8_manifest` is added unless `kind` is kernels. Errors are diagnostics at the module.
mlir::FailureOr<HostModule> translate(mlir::ModuleOp module, llvm::StringRef manifest,
                                      const HostCodeOptions &options, HostCodeKind kind);

/// Runs LLVM's passes; level 0 to 3, as clang's -O.
void optimize(HostModule &code, HostCodeKind kind, unsigned level);

/// The key in the cache of the object that optimize() and writeObject() make of `code`.
std::string getObjectKey(const HostModule &code, HostCodeKind kind, unsigned level);

/// Writes position-independent object code. False where the machine has no object files.
bool writeObject(HostModule &code, llvm::raw_pwrite_stream &stream);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_CODEGEN_HOSTMODULE_H
