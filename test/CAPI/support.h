// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by the tests of the C API: checks, text that grows, the program they compile.

#ifndef FP8_TEST_CAPI_SUPPORT_H
#define FP8_TEST_CAPI_SUPPORT_H

#include "fp8-c/Compiler.h"
#include "fp8-c/Registration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Ends the test with the place of a condition that does not hold.
#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                          \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

/// Text that a callback puts together; the end is always a NUL.
typedef struct {
  char *data;
  size_t size;
} Text;

static inline void appendText(MlirStringRef part, void *userData) {
  Text *text = (Text *)userData;
  text->data = (char *)realloc(text->data, text->size + part.length + 1);
  CHECK(text->data);
  if (part.length)
    memcpy(text->data + text->size, part.data, part.length);
  text->size += part.length;
  text->data[text->size] = 0;
}

static inline bool contains(Text text, const char *part) { return text.data && strstr(text.data, part); }

static inline Text copyText(MlirStringRef part) {
  Text text = {NULL, 0};
  appendText(part, &text);
  return text;
}

static inline void clearText(Text *text) {
  free(text->data);
  text->data = NULL;
  text->size = 0;
}

static inline MlirStringRef ref(const char *text) { return mlirStringRefCreate(text, strlen(text)); }

/// A context with what the compiler needs, registered in a registry of the host's; its errors
/// become lines "file:line:col: message" in `errors`.
MlirContext createContext(Text *errors);

/// The lines of `errors`, one per error, for any context.
void collectErrors(MlirContext context, Text *errors);

/// Options by pairs of name and value; the last name is NULL.
FP8CompilerOptions createOptions(const char *const (*values)[2]);

/// `source` compiled with options to what --emit said; every failure ends the test.
Text compile(MlirContext context, const char *source, const char *const (*values)[2]);

/// A step of training: (w: 8x16, x: 4x8, g: 4x16) -> (x·w: 4x16, w - xᵀ·g: 8x16), all f32.
/// The products are at 4:8 and 5:9.
extern const char *const kStep;

void testPipelines(void);
void testErrors(void);
void testOutputs(void);
void testRun(const char *libraryPath);
void testMemory(void);
void testThreads(void);

#endif // FP8_TEST_CAPI_SUPPORT_H
