// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code that tests of the C API share.

#include "support.h"

#include "mlir-c/Diagnostics.h"

const char *const kStep =
    "func.func @main(%w: tensor<8x16xf32> loc(\"w\"), %x: tensor<4x8xf32> loc(\"x\"), %g: tensor<4x16xf32>) "
    "-> "
    "(tensor<4x16xf32>, tensor<8x16xf32>) {\n"
    "  %zy = arith.constant dense<0.0> : tensor<4x16xf32>\n"
    "  %zw = arith.constant dense<0.0> : tensor<8x16xf32>\n"
    "  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%zy : tensor<4x16xf32>) -> "
    "tensor<4x16xf32>\n"
    "  %dw = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, "
    "n)>, "
    "affine_map<(m, n, k) -> (m, n)>] ins(%x, %g : tensor<4x8xf32>, tensor<4x16xf32>) outs(%zw : "
    "tensor<8x16xf32>) -> tensor<8x16xf32>\n"
    "  %new = arith.subf %w, %dw : tensor<8x16xf32>\n"
    "  return %y, %new : tensor<4x16xf32>, tensor<8x16xf32>\n"
    "}\n";

static MlirLogicalResult handleDiagnostic(MlirDiagnostic diagnostic, void *userData) {
  if (mlirDiagnosticGetSeverity(diagnostic) != MlirDiagnosticError)
    return mlirLogicalResultFailure();
  MlirStringRef file = ref("?");
  unsigned line = 0, column = 0;
  fp8LocationGetFilePosition(mlirDiagnosticGetLocation(diagnostic), &file, &line, &column);
  appendText(file, userData);
  char place[32];
  snprintf(place, sizeof(place), ":%u:%u: ", line, column);
  appendText(ref(place), userData);
  mlirDiagnosticPrint(diagnostic, appendText, userData);
  appendText(ref("\n"), userData);
  return mlirLogicalResultSuccess();
}

void collectErrors(MlirContext context, Text *errors) {
  mlirContextAttachDiagnosticHandler(context, handleDiagnostic, errors, NULL);
}

MlirContext createContext(Text *errors) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  fp8RegisterCompiler(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, /*threadingEnabled=*/true);
  mlirDialectRegistryDestroy(registry);
  collectErrors(context, errors);
  return context;
}

static void printError(MlirStringRef message, void *userData) {
  (void)userData;
  fprintf(stderr, "%.*s\n", (int)message.length, message.data);
}

FP8CompilerOptions createOptions(const char *const (*values)[2]) {
  FP8CompilerOptions options = fp8CompilerOptionsCreate();
  for (; (*values)[0]; ++values)
    CHECK(mlirLogicalResultIsSuccess(
        fp8CompilerOptionsSet(options, ref((*values)[0]), ref((*values)[1]), printError, NULL)));
  return options;
}

Text compile(MlirContext context, const char *source, const char *const (*values)[2]) {
  MlirModule program = fp8ReadProgram(context, ref(source), ref("step.mlir"));
  CHECK(!mlirModuleIsNull(program));
  FP8CompilerOptions options = createOptions(values);
  FP8Compiled compiled = fp8Compile(program, options);
  CHECK(!fp8CompiledIsNull(compiled));
  Text artifact = copyText(fp8CompiledGetArtifact(compiled));
  fp8CompiledDestroy(compiled);
  fp8CompilerOptionsDestroy(options);
  mlirModuleDestroy(program);
  return artifact;
}
