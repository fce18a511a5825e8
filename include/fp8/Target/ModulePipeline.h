// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of pipelines that run on a module. MLIR checks passes that are nested in the wrong operation,
// as in func.func(fp8-ingest-pipeline), when their text is parsed; of pipelines it ends the process instead.

#ifndef FP8_TARGET_MODULEPIPELINE_H
#define FP8_TARGET_MODULEPIPELINE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include <functional>

namespace fp8 {

/// Registers a pipeline for textual pipelines. Anywhere but in a builtin.module it is an error.
template <typename Options>
void registerModulePipeline(llvm::StringRef name, llvm::StringRef description,
                            std::function<void(mlir::OpPassManager &, const Options &)> build) {
  mlir::registerPassPipeline(
      name, description,
      [name = name.str(), build](mlir::OpPassManager &manager, llvm::StringRef text,
                                 llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)> report) {
        llvm::StringRef anchor = manager.getOpAnchorName();
        if (anchor != mlir::ModuleOp::getOperationName())
          return report("'" + name + "' runs on 'builtin.module', not on '" + anchor + "'");
        Options options;
        if (failed(options.parseFromString(text)))
          return llvm::failure();
        build(manager, options);
        return llvm::success();
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)> describe) { describe(Options()); });
}

/// The same for a pipeline without options.
inline void registerModulePipeline(llvm::StringRef name, llvm::StringRef description,
                                   void (*build)(mlir::OpPassManager &)) {
  registerModulePipeline<mlir::EmptyPipelineOptions>(
      name, description,
      [build](mlir::OpPassManager &manager, const mlir::EmptyPipelineOptions &) { build(manager); });
}

} // namespace fp8

#endif // FP8_TARGET_MODULEPIPELINE_H
