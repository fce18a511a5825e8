// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C API: registration in a host's own context, and pipelines on the host's own modules.
// The conventions are those of mlir-c: opaque structs by value, MlirStringRef for text,
// errors as diagnostics of the context.

#ifndef FP8_C_REGISTRATION_H
#define FP8_C_REGISTRATION_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/// mlirGetDialectHandle__fp8__(): the dialect alone, for mlirDialectHandleRegisterDialect.
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(FP8, fp8);

/// Adds the dialect with its implementations of upstream's interfaces (bufferization, tiling).
/// Upstream's own dialects are for the host to add.
MLIR_CAPI_EXPORTED void fp8RegisterAllDialects(MlirDialectRegistry registry);

/// Adds all that a context needs to compile: the above, upstream's dialects and extensions,
/// and the translations to LLVM IR.
MLIR_CAPI_EXPORTED void fp8RegisterCompiler(MlirDialectRegistry registry);

/// Registers every pass and pipeline under its flag, for textual pipelines. The registry is
/// the process's, as MLIR has it; calls after the first do nothing, from any thread.
MLIR_CAPI_EXPORTED void fp8RegisterAllPasses(void);

/// Runs a textual pipeline on `module`, "builtin.module(fp8-ingest-pipeline,canonicalize)";
/// registered passes and pipelines have names. Errors in the text are reported at the module,
/// errors in the program at their place in the program.
MLIR_CAPI_EXPORTED MlirLogicalResult fp8RunPipeline(MlirModule module, MlirStringRef pipeline);

/// The first place in a file that `location` has: inside names, calls or several places too.
/// False where it has none. `file` lives as long as the context; pointers for values that are
/// not wanted may be NULL.
MLIR_CAPI_EXPORTED bool fp8LocationGetFilePosition(MlirLocation location, MlirStringRef *file, unsigned *line,
                                                   unsigned *column);

#ifdef __cplusplus
}
#endif

#endif // FP8_C_REGISTRATION_H
