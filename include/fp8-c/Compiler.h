// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C API: the compiler. A program in; a library (or the IR after a stage), a report and a
// manifest out, in memory.
//
//   FP8CompilerOptions options = fp8CompilerOptionsCreate();
//   fp8CompilerOptionsSet(options, name, value, onError, userData);
//   MlirModule program = fp8ReadProgram(context, source, name);
//   FP8Compiled step = fp8Compile(program, options);
//   … fp8CompiledGetArtifact(step) …
//   fp8CompiledDestroy(step);
//   mlirModuleDestroy(program);
//   fp8CompilerOptionsDestroy(options);
//
// Everything that a function here creates has a function that destroys it; a null handle may
// be destroyed. Errors of a program are diagnostics of its context
// (mlirContextAttachDiagnosticHandler). One context compiles one program at a time; threads
// that compile at the same time have a context each.

#ifndef FP8_C_COMPILER_H
#define FP8_C_COMPILER_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DEFINE_C_API_STRUCT(name, storage)                                                                   \
  struct name {                                                                                              \
    storage *ptr;                                                                                            \
  };                                                                                                         \
  typedef struct name name

/// Options of a compilation: those of fp8-compile under the same names.
DEFINE_C_API_STRUCT(FP8CompilerOptions, void);
/// The result of a compilation: artifact, report and manifest.
DEFINE_C_API_STRUCT(FP8Compiled, const void);

#undef DEFINE_C_API_STRUCT

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// The defaults: --recipe=delayed, --target=cpu, --emit=lib, …
MLIR_CAPI_EXPORTED FP8CompilerOptions fp8CompilerOptionsCreate(void);
MLIR_CAPI_EXPORTED void fp8CompilerOptionsDestroy(FP8CompilerOptions options);

/// Sets an option by its name without dashes: "recipe" to "current", "calibrate" to "true".
/// "carry" and "site-recipe" add to what they held; any other option replaces it. On failure `onError` (may
/// be NULL) gets one sentence that names the option, and the options are as before.
MLIR_CAPI_EXPORTED MlirLogicalResult fp8CompilerOptionsSet(FP8CompilerOptions options, MlirStringRef name,
                                                           MlirStringRef value, MlirStringCallback onError,
                                                           void *userData);

/// Calls `callback` for every option with its name, its values ("linear|all|regex"; empty for
/// one that is true or false) and its help.
typedef void (*FP8OptionCallback)(MlirStringRef name, MlirStringRef values, MlirStringRef help,
                                  void *userData);
MLIR_CAPI_EXPORTED void fp8CompilerOptionsDescribe(FP8OptionCallback callback, void *userData);

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Reads a program, text or bytecode; `name` is the file that errors name. As
/// mlirModuleCreateParse, but every operation has a place in that file, and an operation that
/// nothing can compile is an error at its place. Null after an error. The caller owns the module.
MLIR_CAPI_EXPORTED MlirModule fp8ReadProgram(MlirContext context, MlirStringRef source, MlirStringRef name);

/// Compiles `program`, which then holds the IR after the last stage and can only be destroyed.
/// Null after an error, which is at the place in the program that is wrong, or at the program as
/// a whole if options contradict each other.
MLIR_CAPI_EXPORTED FP8Compiled fp8Compile(MlirModule program, FP8CompilerOptions options);

static inline bool fp8CompiledIsNull(FP8Compiled compiled) { return !compiled.ptr; }
MLIR_CAPI_EXPORTED void fp8CompiledDestroy(FP8Compiled compiled);

// The strings returned below live as long as `compiled`.

/// The bytes that --emit asked for: a shared library, an object, LLVM IR or IR as text.
MLIR_CAPI_EXPORTED MlirStringRef fp8CompiledGetArtifact(FP8Compiled compiled);

/// The report, the decision about every matmul, as JSON and as a table for people. Its lists
/// are empty after --emit=ingest, when nothing is decided yet.
MLIR_CAPI_EXPORTED MlirStringRef fp8CompiledGetReportJSON(FP8Compiled compiled);
MLIR_CAPI_EXPORTED MlirStringRef fp8CompiledGetReportText(FP8Compiled compiled);

/// The manifest, which describes arguments, results and state of the entry points, as JSON. A
/// library contains it, too.
MLIR_CAPI_EXPORTED MlirStringRef fp8CompiledGetManifestJSON(FP8Compiled compiled);

#ifdef __cplusplus
}
#endif

#endif // FP8_C_COMPILER_H
