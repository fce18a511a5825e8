// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled library whose manifest is the test's own text: for manifests that
// are wrong in some way.

#include "fp8rt/call.h"

#include <stdlib.h>

__attribute__((visibility("default"))) const char *fp8_manifest(void) {
  return getenv("FP8RT_TEST_MANIFEST");
}

__attribute__((visibility("default"))) const char *fp8_kernels(void) { return getenv("FP8RT_TEST_KERNELS"); }

__attribute__((visibility("default"))) int fp8_call_main(fp8rt_call *call) {
  (void)call;
  return 0;
}
