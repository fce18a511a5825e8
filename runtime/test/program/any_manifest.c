// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled library whose manifest is the test's own text: for manifests that
// are wrong in some way. With DEVICE_CODE it has device code of the version that
// the test says, which may be incomplete.

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

#ifdef DEVICE_CODE
__attribute__((visibility("default"))) const fp8rt_device_code *fp8_device_code(void) {
  static const fp8rt_device_image image = {"sm_89", 80, 0, "", 1, NULL, 0};
  static fp8rt_device_code code;
  code.version = (uint32_t)atoi(getenv("FP8RT_TEST_CODE_VERSION"));
  code.num_images = 1;
  code.images = getenv("FP8RT_TEST_NO_IMAGES") ? NULL : &image;
  return &code;
}
#endif
