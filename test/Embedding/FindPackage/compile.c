// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles the program of the file argv[1] into the library argv[2], in C.

#include "fp8-c/Compiler.h"
#include "fp8-c/Registration.h"

#include <stdio.h>

int main(int argc, char **argv) {
  static char source[1 << 16];
  FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (!in)
    return 2;
  size_t size = fread(source, 1, sizeof(source), in);
  fclose(in);

  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  fp8RegisterCompiler(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, true);
  mlirDialectRegistryDestroy(registry);
  MlirModule program =
      fp8ReadProgram(context, mlirStringRefCreate(source, size), mlirStringRefCreateFromCString(argv[1]));
  if (mlirModuleIsNull(program))
    return 1;
  FP8CompilerOptions options = fp8CompilerOptionsCreate();
  FP8Compiled compiled = fp8Compile(program, options);
  if (fp8CompiledIsNull(compiled))
    return 1;
  MlirStringRef library = fp8CompiledGetArtifact(compiled);
  FILE *out = fopen(argv[2], "wb");
  if (!out || fwrite(library.data, 1, library.length, out) != library.length || fclose(out) != 0)
    return 1;
  fp8CompiledDestroy(compiled);
  fp8CompilerOptionsDestroy(options);
  mlirModuleDestroy(program);
  mlirContextDestroy(context);
  return 0;
}
