// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A C program that uses all of the C API: `fp8-capi-test NAME [LIBRARY]` runs one test.

#include "support.h"

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  if (strcmp(name, "pipelines") == 0)
    testPipelines();
  else if (strcmp(name, "errors") == 0)
    testErrors();
  else if (strcmp(name, "outputs") == 0)
    testOutputs();
  else if (strcmp(name, "run") == 0 && argc == 3)
    testRun(argv[2]);
  else if (strcmp(name, "memory") == 0)
    testMemory();
  else if (strcmp(name, "threads") == 0)
    testThreads();
  else
    return fprintf(stderr, "usage: fp8-capi-test pipelines|errors|outputs|run LIBRARY|memory|threads\n"), 2;
  return 0;
}
