// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors of programs and options: through callbacks, with file:line:col.

#include "support.h"

/// Reads `source` and compiles it; both may fail. `errors` then starts with `expected`.
static void expectError(MlirContext context, Text *errors, const char *source, FP8CompilerOptions options,
                        const char *expected) {
  clearText(errors);
  MlirModule program = fp8ReadProgram(context, ref(source), ref("step.mlir"));
  if (!mlirModuleIsNull(program)) {
    CHECK(fp8CompiledIsNull(fp8Compile(program, options)));
    mlirModuleDestroy(program);
  }
  if (!contains(*errors, expected) || strncmp(errors->data, expected, strlen(expected)) != 0) {
    fprintf(stderr, "expected: %s\ngot: %s\n", expected, errors->data ? errors->data : "(nothing)");
    exit(1);
  }
}

static void testProgramErrors(MlirContext context, Text *errors) {
  FP8CompilerOptions options = fp8CompilerOptionsCreate();
  expectError(context, errors, "func.func @main(", options, "step.mlir:1:16: ");
  expectError(context, errors, "func.func @f() {\n  \"some.op\"() : () -> ()\n  return\n}", options,
              "step.mlir:2:3: 'some.op' is not known here");
  expectError(context, errors, "", options, "step.mlir:1:1: there is no public function to compile");
  expectError(context, errors, "ML\xefR broken", options, "step.mlir:");
  expectError(context, errors, "func.func @f(%x: memref<4xf32> loc(\"x\")) {\n  return\n}", options,
              "step.mlir:1:14: ");
  fp8CompilerOptionsDestroy(options);

  const char *const unsupported[][2] = {
      {"recipe", "mxfp8"}, {"target", "sm_89"}, {"sites", "all"}, {NULL, NULL}};
  options = createOptions(unsupported);
  expectError(context, errors, kStep, options,
              "step.mlir:4:8: site 'w': mxfp8 scales have no kernel on sm_89");
  fp8CompilerOptionsDestroy(options);
}

static void testOptionErrors(MlirContext context, Text *errors) {
  const char *const wrong[][3] = {
      {"bogus", "1", "--bogus=1 is no option"},
      {"calibrate", "maybe", "--calibrate=maybe is neither true nor false"},
      {"first", "x", "--first=x is not a whole number"},
      {"keep", "(", "--keep=( is not a regular expression"},
      {"carry", "w", "--carry=w must be ARGUMENT:RESULT"},
      {"carry", "w:1,x", "--carry=x must be ARGUMENT:RESULT"},
  };
  FP8CompilerOptions options = fp8CompilerOptionsCreate();
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); ++i) {
    Text message = {NULL, 0};
    CHECK(mlirLogicalResultIsFailure(
        fp8CompilerOptionsSet(options, ref(wrong[i][0]), ref(wrong[i][1]), appendText, &message)));
    CHECK(contains(message, wrong[i][2]));
    clearText(&message);
  }
  CHECK(mlirLogicalResultIsFailure(fp8CompilerOptionsSet(options, ref("bogus"), ref(""), NULL, NULL)));

  // All that failed has changed nothing: the step compiles, and nothing is carried.
  MlirModule program = fp8ReadProgram(context, ref(kStep), ref("step.mlir"));
  CHECK(mlirLogicalResultIsSuccess(fp8CompilerOptionsSet(options, ref("emit"), ref("recipe"), NULL, NULL)));
  FP8Compiled compiled = fp8Compile(program, options);
  CHECK(!fp8CompiledIsNull(compiled));
  Text report = copyText(fp8CompiledGetReportText(compiled));
  CHECK(contains(report, "carry=[]"));
  clearText(&report);
  fp8CompiledDestroy(compiled);
  mlirModuleDestroy(program);
  fp8CompilerOptionsDestroy(options);

  // The files that the target can emit are known once it is.
  const char *const image[][2] = {{"emit", "gif"}, {NULL, NULL}};
  options = createOptions(image);
  expectError(context, errors, kStep, options, "step.mlir:1:1: --emit=gif is none of lib, obj, llvm, ingest");
  fp8CompilerOptionsDestroy(options);

  const char *const contradiction[][2] = {{"recipe", "current"}, {"margin", "1"}, {NULL, NULL}};
  options = createOptions(contradiction);
  expectError(context, errors, kStep, options, "step.mlir:1:1: --margin belongs to --recipe=delayed");
  fp8CompilerOptionsDestroy(options);
}

void testErrors(void) {
  Text errors = {NULL, 0};
  MlirContext context = createContext(&errors);
  testProgramErrors(context, &errors);
  testOptionErrors(context, &errors);
  // A context after errors is as good as before.
  const char *const good[][2] = {{"emit", "llvm"}, {NULL, NULL}};
  clearText(&errors);
  Text artifact = compile(context, kStep, good);
  CHECK(contains(artifact, "fp8_call_main") && errors.size == 0);
  clearText(&artifact);
  mlirContextDestroy(context);
  clearText(&errors);
}
