// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points that a driver library keeps for old programs: names from before their second
// version, and the undocumented table of functions, which is refused and not missing.

#include "Driver.h"

using namespace fp8emu::driver;

FP8EMU_API CUresult cuEventDestroy_v2(CUevent event);
FP8EMU_API CUresult cuStreamDestroy_v2(CUstream stream);
FP8EMU_API CUresult cuCtxDestroy_v2(CUcontext context);
FP8EMU_API CUresult cuCtxPushCurrent_v2(CUcontext context);

// The same ABI in both versions.

FP8EMU_API CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }
FP8EMU_API CUresult cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }
FP8EMU_API CUresult cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }
FP8EMU_API CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }

// Addresses had 32 bits in the first version: none of the emulator's fits.

FP8EMU_API CUresult cuMemAlloc(uint32_t *, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
FP8EMU_API CUresult cuMemFree(uint32_t) { return CUDA_ERROR_NOT_SUPPORTED; }
FP8EMU_API CUresult cuModuleGetGlobal(uint32_t *, unsigned *, CUmodule, const char *) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

/// No table is known, by whatever identifier. Programs with NVIDIA's runtime end here, and are told once.
FP8EMU_API CUresult cuGetExportTable(const void **table, const void *) {
  if (table)
    *table = nullptr;
  return enter(
      [](Driver &driver) {
        static bool isSaid = false;
        if (!isSaid)
          driver.report(
              "NVIDIA's CUDA runtime asks for a table of functions that is not documented, and that the "
              "emulator does not have: compile the program with nvcc -cudart shared, and run it with "
              "the emulator's libcudart.so (fp8emu run)");
        isSaid = true;
        fail(CUDA_ERROR_NOT_FOUND);
      },
      /*needsInit=*/false);
}
