// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two steps of training, compiled to a library's bytes, written, and run by the runtime.

#include "support.h"

#include "fp8rt/session.h"

enum { kM = 4, kK = 8, kN = 16 };

static void writeFile(const char *path, Text bytes) {
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(bytes.data, 1, bytes.size, file) == bytes.size && fclose(file) == 0);
}

static void setArgument(fp8rt_session *session, const char *name, float *data, int64_t rows,
                        int64_t columns) {
  uint32_t index;
  int64_t shape[] = {rows, columns};
  DLTensor tensor = {data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  CHECK(fp8rt_session_find_argument(session, name, &index) == FP8RT_OK);
  CHECK(fp8rt_session_set_argument(session, index, &tensor) == FP8RT_OK);
}

/// Small whole numbers, which E4M3 and E5M2 hold, times scales that are powers of two: every
/// product and sum is exact, and so is what is expected.
static float valueAt(int i, int modulus) { return (float)(i * 7 % modulus - modulus / 2); }

static void checkStep(fp8rt_session *session, float w[kK][kN], float x[kM][kK], float g[kM][kN]) {
  CHECK(fp8rt_session_step(session) == FP8RT_OK);
  const DLTensor *product = fp8rt_session_result(session, 0), *next = fp8rt_session_result(session, 1);
  CHECK(product && next && product->shape[0] == kM && product->shape[1] == kN);
  for (int m = 0; m < kM; ++m)
    for (int n = 0; n < kN; ++n) {
      float sum = 0;
      for (int k = 0; k < kK; ++k)
        sum += x[m][k] * w[k][n];
      CHECK(((float *)product->data)[m * kN + n] == sum);
    }
  for (int k = 0; k < kK; ++k)
    for (int n = 0; n < kN; ++n) {
      for (int m = 0; m < kM; ++m)
        w[k][n] -= x[m][k] * g[m][n];
      CHECK(((float *)next->data)[k * kN + n] == w[k][n]);
    }
}

static void runSteps(const char *path) {
  fp8rt_library *library;
  fp8rt_session *session;
  CHECK(fp8rt_library_load(path, &library) == FP8RT_OK);
  CHECK(strstr(fp8rt_library_manifest(library), "\"recipe\":\"current\""));
  CHECK(fp8rt_session_create(library, "main", NULL, &session) == FP8RT_OK);
  float w[kK][kN], x[kM][kK], g[kM][kN];
  for (int i = 0; i < kK * kN; ++i)
    w[i / kN][i % kN] = valueAt(i, 9);
  for (int i = 0; i < kM * kK; ++i)
    x[i / kK][i % kK] = valueAt(i, 3);
  for (int i = 0; i < kM * kN; ++i)
    g[i / kN][i % kN] = valueAt(i, 3);
  setArgument(session, "w", &w[0][0], kK, kN);
  setArgument(session, "x", &x[0][0], kM, kK);
  setArgument(session, "2", &g[0][0], kM, kN);
  checkStep(session, w, x, g);
  checkStep(session, w, x, g); // w is carried
  fp8rt_session_destroy(session);
  fp8rt_library_destroy(library);
}

void testRun(const char *libraryPath) {
  Text errors = {NULL, 0};
  MlirContext context = createContext(&errors);
  const char *const values[][2] = {{"recipe", "current"}, {"power-2-scale", "true"}, {"sites", "all"},
                                   {"require", "all"},    {"carry", "w:1"},          {NULL, NULL}};
  Text library = compile(context, kStep, values);
  mlirContextDestroy(context); // the bytes need no compiler
  CHECK(errors.size == 0);
  writeFile(libraryPath, library);
  clearText(&library);
  runSteps(libraryPath);
}
