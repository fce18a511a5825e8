// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a safetensors file, and as a state of the fixture: refused with a message, or whole.

#include "FuzzSupport.h"

#include "fp8rt/owned.h"

using namespace fp8rt_fuzz;
using namespace fp8rt::owned;

/// Reads every byte of every tensor, so that the sanitizer sees a wrong extent.
static void readAll(const fp8rt_tensors *tensors) {
  volatile uint8_t last = 0;
  for (uint64_t i = 0; i < fp8rt_tensors_count(tensors); ++i) {
    const DLTensor *tensor = fp8rt_tensors_find(tensors, fp8rt_tensors_name(tensors, i));
    uint64_t bytes = tensor->dtype.bits / 8;
    for (int32_t d = 0; d < tensor->ndim; ++d)
      bytes *= static_cast<uint64_t>(tensor->shape[d]);
    for (uint64_t b = 0; b < bytes; ++b)
      last = static_cast<const uint8_t *>(tensor->data)[b];
  }
  (void)last;
}

static Library loadFixture() {
  fp8rt_library *library = nullptr;
  require(fp8rt_library_load(FIXTURE, &library) == FP8RT_OK, "the fixture loads");
  return Library(library);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Library library = loadFixture();
  MemoryFile file(data, size);
  fp8rt_tensors *read = nullptr;
  fp8rt_status status = fp8rt_tensors_read(file.path(), &read);
  checkError(status);
  if (status != FP8RT_OK)
    return 0;
  Tensors tensors(read);
  readAll(read);
  const char *from = "fc", *to = "h0/fc";
  if (size % 3 == 0)
    checkError(fp8rt_tensors_rename_sites(read, &from, &to, 1));
  fp8rt_state *created = nullptr;
  require(fp8rt_state_create(library.get(), &created) == FP8RT_OK, "a state is created");
  State state(created);
  for (fp8rt_history history : {FP8RT_HISTORY_EXACT, FP8RT_HISTORY_NEWEST, FP8RT_HISTORY_OLDEST}) {
    fp8rt_import_options options = {};
    options.history = history;
    checkError(fp8rt_state_import_matching(created, read, &options));
  }
  return 0;
}
