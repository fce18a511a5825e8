// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: libraries and their kernels. A library is a module that belongs to no
// context, its kernels are functions of any.

#include "Work.h"

using namespace fp8emu;
using namespace fp8emu::driver;

// Entry points of Module.cpp and Launch.cpp that do the same for modules.
FP8EMU_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *);
FP8EMU_API CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
FP8EMU_API CUresult cuModuleUnload(CUmodule);
FP8EMU_API CUresult cuModuleEnumerateFunctions(CUfunction *, unsigned, CUmodule);
FP8EMU_API CUresult cuFuncGetAttribute(int *, int, CUfunction);
FP8EMU_API CUresult cuFuncGetName(const char **, CUfunction);
FP8EMU_API CUresult cuFuncGetParamCount(CUfunction, size_t *);
FP8EMU_API CUresult cuFuncGetParamInfo(CUfunction, size_t, size_t *, size_t *);

FP8EMU_API CUresult cuLibraryLoadData(CUlibrary *library, const void *image, int *options, void **values,
                                      unsigned count, int *, void **, unsigned) {
  return enter([=](Driver &driver) {
    require(library && (count == 0 || (options && values)));
    *library = loadModule(driver, image, readJitOptions(count, options, values), nullptr);
  });
}

FP8EMU_API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *options, void **values,
                                          unsigned count, int *, void **, unsigned) {
  return enter([=](Driver &driver) {
    require(library && path);
    *library = loadModule(driver, readFile(path).c_str(), readJitOptions(count, options, values), nullptr);
  });
}

FP8EMU_API CUresult cuLibraryUnload(CUlibrary library) { return cuModuleUnload(library); }
FP8EMU_API CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  return cuModuleGetFunction(kernel, library, name);
}
FP8EMU_API CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                                       const char *name) {
  return cuModuleGetGlobal_v2(address, bytes, library, name);
}
FP8EMU_API CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                                        const char *name) {
  return cuModuleGetGlobal_v2(address, bytes, library, name);
}

FP8EMU_API CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  return enter([=](Driver &driver) {
    require(module);
    driver.current();
    *module = &driver.check(library);
  });
}

FP8EMU_API CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
  return enter([=](Driver &driver) {
    require(count);
    *count = unsigned(driver.check(library).kernels.size());
  });
}

FP8EMU_API CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library) {
  return cuModuleEnumerateFunctions(kernels, count, library);
}

FP8EMU_API CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  return enter([=](Driver &driver) {
    require(function);
    driver.current();
    *function = &driver.check(kernel);
  });
}
FP8EMU_API CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel) {
  return enter([=](Driver &driver) {
    require(library);
    *library = driver.check(kernel).module;
  });
}
FP8EMU_API CUresult cuKernelGetName(const char **name, CUkernel kernel) {
  return cuFuncGetName(name, kernel);
}
FP8EMU_API CUresult cuKernelGetAttribute(int *value, int which, CUkernel kernel, CUdevice) {
  return cuFuncGetAttribute(value, which, kernel);
}
FP8EMU_API CUresult cuKernelSetAttribute(int which, int value, CUkernel kernel, CUdevice device) {
  return enter(
      [=](Driver &driver) { setAttribute(driver.chip(device), driver.check(kernel), which, value); });
}
FP8EMU_API CUresult cuKernelSetCacheConfig(CUkernel kernel, int, CUdevice) {
  return enter([=](Driver &driver) { driver.check(kernel); });
}
FP8EMU_API CUresult cuKernelGetParamCount(CUkernel kernel, size_t *count) {
  return cuFuncGetParamCount(kernel, count);
}
FP8EMU_API CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes) {
  return cuFuncGetParamInfo(kernel, index, offset, bytes);
}
