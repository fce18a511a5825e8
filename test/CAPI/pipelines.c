// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Textual pipelines on programs as text and as bytecode, in a context of the host's.

#include "support.h"

static const char *const kRecipe =
    "builtin.module(fp8-ingest-pipeline,fp8-recipe-pipeline{recipe=current sites=all})";

static MlirLogicalResult runOn(MlirContext context, MlirStringRef source, const char *pipeline, Text *out) {
  MlirModule module = fp8ReadProgram(context, source, ref("step.mlir"));
  CHECK(!mlirModuleIsNull(module));
  MlirLogicalResult result = fp8RunPipeline(module, ref(pipeline));
  mlirOperationPrint(mlirModuleGetOperation(module), appendText, out);
  mlirModuleDestroy(module);
  return result;
}

static Text toBytecode(MlirContext context, const char *source) {
  MlirModule module = fp8ReadProgram(context, ref(source), ref("step.mlir"));
  CHECK(!mlirModuleIsNull(module));
  Text bytes = {NULL, 0};
  mlirOperationWriteBytecode(mlirModuleGetOperation(module), appendText, &bytes);
  mlirModuleDestroy(module);
  return bytes;
}

void testPipelines(void) {
  fp8RegisterAllPasses();
  fp8RegisterAllPasses(); // calls after the first do nothing
  Text errors = {NULL, 0}, fromText = {NULL, 0}, fromBytecode = {NULL, 0}, unchanged = {NULL, 0};
  MlirContext context = createContext(&errors);

  CHECK(mlirLogicalResultIsSuccess(runOn(context, ref(kStep), kRecipe, &fromText)));
  CHECK(contains(fromText, "fp8.scaled_matmul") && !contains(fromText, "linalg.matmul"));

  Text bytes = toBytecode(context, kStep);
  MlirStringRef bytecode = mlirStringRefCreate(bytes.data, bytes.size);
  CHECK(mlirLogicalResultIsSuccess(runOn(context, bytecode, kRecipe, &fromBytecode)));
  CHECK(strcmp(fromText.data, fromBytecode.data) == 0);
  CHECK(errors.size == 0);

  CHECK(mlirLogicalResultIsFailure(runOn(context, ref(kStep), "builtin.module(no-such-pass)", &unchanged)));
  CHECK(contains(errors, "step.mlir:1:1: pipeline 'builtin.module(no-such-pass)': "));
  CHECK(contains(errors, "no-such-pass") && contains(unchanged, "linalg.matmul"));
  CHECK(mlirLogicalResultIsFailure(runOn(context, ref(kStep), "func.func(fp8-fold-transposes)", &unchanged)));
  CHECK(contains(errors, "must be builtin.module("));
  CHECK(mlirLogicalResultIsFailure(runOn(context, ref(kStep), "func.func(fp8-ingest-pipeline)", &unchanged)));
  CHECK(contains(errors, "'fp8-ingest-pipeline' runs on 'builtin.module', not on 'func.func'"));
  CHECK(mlirLogicalResultIsFailure(
      runOn(context, ref(kStep), "builtin.module(fp8-recipe-pipeline{recipe=bogus})", &unchanged)));
  CHECK(contains(errors, "step.mlir:1:1: --recipe=bogus is none of delayed"));

  MlirLocation place = mlirLocationFileLineColGet(context, ref("step.mlir"), 3, 4);
  unsigned line = 0;
  CHECK(fp8LocationGetFilePosition(place, NULL, &line, NULL) && line == 3); // NULL is what nobody asked for

  mlirContextDestroy(context);
  clearText(&errors);
  clearText(&fromText);
  clearText(&fromBytecode);
  clearText(&unchanged);
  clearText(&bytes);
}
