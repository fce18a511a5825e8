// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any text as a manifest: refused with a message, or states of it can be created.

#include "../src/core/Status.h"
#include "../src/program/Manifest.h"
#include "../src/program/StateColumns.h"
#include "FuzzSupport.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  fp8rt_fuzz::checkError(fp8rt::guarded([&] {
    fp8rt::Manifest manifest = fp8rt::parseManifest(text);
    for (const fp8rt::StateTensor &tensor : manifest.state)
      fp8rt_fuzz::require(fp8rt::byteSize(tensor.shape, *tensor.type).has_value(), "a state has a size");
    fp8rt::parseColumns(manifest.columns);
  }));
  return 0;
}
