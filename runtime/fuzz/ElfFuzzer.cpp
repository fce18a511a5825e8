// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a shared library: the check before it is loaded ends. (Loading itself is the system's.)

#include "../src/core/ElfFile.h"
#include "../src/core/Status.h"
#include "FuzzSupport.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fp8rt_fuzz::MemoryFile file(data, size);
  fp8rt_fuzz::checkError(fp8rt::guarded([&] { fp8rt::checkElfFile(file.path()); }));
  return 0;
}
