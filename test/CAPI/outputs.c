// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything that a compilation gives, for every --emit; a host that registers nothing.

#include "support.h"

static void addOption(MlirStringRef name, MlirStringRef values, MlirStringRef help, void *userData) {
  (void)values;
  CHECK(help.length > 0);
  appendText(ref("--"), userData);
  appendText(name, userData);
  appendText(ref("\n"), userData);
}

static void testArtifact(MlirContext context, const char *emit, const char *start, const char *part) {
  const char *const values[][2] = {{"emit", emit}, {"sites", "all"}, {NULL, NULL}};
  Text artifact = compile(context, kStep, values);
  CHECK(artifact.size >= strlen(start) && memcmp(artifact.data, start, strlen(start)) == 0);
  CHECK(contains(artifact, part));
  clearText(&artifact);
}

static void testReport(MlirContext context) {
  const char *const values[][2] = {{"sites", "all"}, {"recipe", "current"}, {"carry", "w:1"}, {NULL, NULL}};
  FP8CompilerOptions options = createOptions(values);
  // An option that is given again replaces the first value.
  CHECK(
      mlirLogicalResultIsSuccess(fp8CompilerOptionsSet(options, ref("recipe"), ref("delayed"), NULL, NULL)));
  MlirModule program = fp8ReadProgram(context, ref(kStep), ref("step.mlir"));
  FP8Compiled compiled = fp8Compile(program, options);
  CHECK(!fp8CompiledIsNull(compiled));
  Text json = copyText(fp8CompiledGetReportJSON(compiled)),
       table = copyText(fp8CompiledGetReportText(compiled)),
       manifest = copyText(fp8CompiledGetManifestJSON(compiled));
  CHECK(contains(json, "\"role\": \"fprop\"") && contains(json, "\"decision\": \"fp8\""));
  CHECK(contains(json, "\"code\": \"packed f32 products of decoded FP8 (CPU)\""));
  CHECK(contains(table, "2 contractions: 2 in FP8, 0 in high precision"));
  CHECK(contains(manifest, "\"recipe\": \"delayed\"") && contains(manifest, "\"amax_history\""));
  clearText(&json);
  clearText(&table);
  clearText(&manifest);
  fp8CompiledDestroy(compiled);
  mlirModuleDestroy(program);
  fp8CompilerOptionsDestroy(options);
}

void testOutputs(void) {
  Text errors = {NULL, 0}, options = {NULL, 0};
  fp8CompilerOptionsDescribe(addOption, &options);
  CHECK(contains(options, "--recipe\n") && contains(options, "--margin\n") && contains(options, "--emit\n"));

  // A host that has registered nothing: reading a program does.
  MlirContext context = mlirContextCreate();
  collectErrors(context, &errors);
  testArtifact(context, "ingest", "#", "fp8.matmul");
  testArtifact(context, "fusion", "#", "fp8.scaled_matmul");
  testArtifact(context, "kernels", "#", "fp8_cpu_gemm_f32");
  testArtifact(context, "llvm", "; ModuleID", " @fp8_call_main(ptr");
  testArtifact(context, "obj",
               "\x7f"
               "ELF",
               "\x7f"
               "ELF");
  testArtifact(context, "lib",
               "\x7f"
               "ELF",
               "\x7f"
               "ELF");
  testReport(context);
  CHECK(errors.size == 0);
  mlirContextDestroy(context);
  clearText(&options);

  // Null handles may be destroyed.
  fp8CompiledDestroy((FP8Compiled){NULL});
  fp8CompilerOptionsDestroy((FP8CompilerOptions){NULL});
}
