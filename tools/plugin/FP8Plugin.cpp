// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FP8Plugin.so: loads the dialect, all passes and all pipelines into a stock mlir-opt:
//   mlir-opt-22 --load-dialect-plugin=FP8Plugin.so --load-pass-plugin=FP8Plugin.so

#include "fp8/InitAll.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "FP8", FP8_VERSION,
          [](mlir::DialectRegistry *registry) { fp8::registerAllDialects(*registry); }};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "FP8", FP8_VERSION, [] { fp8::registerAllPasses(); }};
}
