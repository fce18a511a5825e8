// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Many compilations in one context, contexts after each other, and threads with a context
// each: memory stays where it is, and the same program gives the same bytes.

#include "support.h"

#include <malloc.h>
#include <pthread.h>

/// One product: what is compiled matters less here than how often.
static const char *const kMatmul =
    "func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %z: tensor<4x16xf32>) -> tensor<4x16xf32> {\n"
    "  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%z : tensor<4x16xf32>) -> "
    "tensor<4x16xf32>\n"
    "  return %y : tensor<4x16xf32>\n"
    "}\n";

static const char *const kObject[][2] = {{"sites", "all"}, {"emit", "obj"}, {NULL, NULL}};
/// Linked too: at the same time in several threads.
static const char *const kLibrary[][2] = {{"sites", "all"}, {NULL, NULL}};

/// Bytes that malloc has given out and not got back; the test runs without malloc's caches per
/// thread, which would count as given out.
static size_t countBytes(void) { return mallinfo2().uordblks; }

static void compileAndCompare(MlirContext context, const char *const (*options)[2], Text expected) {
  Text artifact = compile(context, kMatmul, options);
  CHECK(artifact.size == expected.size && memcmp(artifact.data, expected.data, expected.size) == 0);
  clearText(&artifact);
}

/// A compilation that fails leaves nothing behind either.
static void failToCompile(MlirContext context) {
  const char *const values[][2] = {{"recipe", "mxfp8"}, {"target", "sm_89"}, {"sites", "all"}, {NULL, NULL}};
  FP8CompilerOptions options = createOptions(values);
  MlirModule program = fp8ReadProgram(context, ref(kStep), ref("step.mlir"));
  CHECK(fp8CompiledIsNull(fp8Compile(program, options)));
  mlirModuleDestroy(program);
  CHECK(mlirModuleIsNull(fp8ReadProgram(context, ref("func.func @f("), ref("step.mlir"))));
  fp8CompilerOptionsDestroy(options);
}

/// A leak of the smallest piece that malloc gives out would be 16 bytes per compilation, and
/// hash tables that are rebuilt differ by a few of those.
static void checkSteady(const char *what, size_t before, size_t allowed) {
  size_t after = countBytes();
  printf("%s: %zu bytes, then %zu\n", what, before, after);
  CHECK(after <= before + 256 + allowed);
}

/// `growth`: what a compilation may leave behind.
static void testOneContext(const char *const (*options)[2], int count, size_t growth) {
  enum { kWarmUp = 10 };
  Text errors = {NULL, 0};
  MlirContext context = createContext(&errors);
  // Every thread has caches of its own, which fill as the threads take turns.
  mlirContextEnableMultithreading(context, false);
  Text expected = compile(context, kMatmul, options);
  size_t before = 0;
  for (int i = 0; i < count; ++i) {
    if (i == kWarmUp)
      before = countBytes();
    compileAndCompare(context, options, expected);
    failToCompile(context);
    clearText(&errors);
  }
  checkSteady("one context", before, growth * (size_t)(count - kWarmUp));
  mlirContextDestroy(context);
  clearText(&expected);
}

static void testManyContexts(void) {
  enum { kWarmUp = 4, kCount = 12 };
  size_t before = 0;
  for (int i = 0; i < kCount; ++i) {
    if (i == kWarmUp)
      before = countBytes();
    Text errors = {NULL, 0};
    MlirContext context = createContext(&errors);
    Text artifact = compile(context, kMatmul, kObject);
    failToCompile(context);
    clearText(&artifact);
    clearText(&errors);
    mlirContextDestroy(context);
  }
  checkSteady("many contexts", before, 0);
}

void testMemory(void) {
  // LLVM keeps a note of every file that a signal would have to remove, and lld writes three.
  testOneContext(kLibrary, 50, 128);
  testManyContexts();
}

static void *compileInThread(void *userData) {
  Text errors = {NULL, 0};
  MlirContext context = createContext(&errors);
  for (int i = 0; i < 3; ++i)
    compileAndCompare(context, kLibrary, *(Text *)userData);
  CHECK(errors.size == 0);
  mlirContextDestroy(context);
  return NULL;
}

/// The first compilations of the process run at the same time.
static void *compileFirst(void *userData) {
  Text errors = {NULL, 0};
  MlirContext context = createContext(&errors);
  *(Text *)userData = compile(context, kMatmul, kLibrary);
  mlirContextDestroy(context);
  return NULL;
}

void testThreads(void) {
  enum { kThreads = 3 };
  pthread_t threads[kThreads];
  Text first[kThreads] = {{NULL, 0}};
  for (int i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, compileFirst, &first[i]) == 0);
  for (int i = 0; i < kThreads; ++i)
    CHECK(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, compileInThread, &first[(i + 1) % kThreads]) == 0);
  for (int i = 0; i < kThreads; ++i)
    CHECK(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < kThreads; ++i)
    clearText(&first[i]);
}
