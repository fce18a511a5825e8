// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finding a driver and its entry points, and what its error codes mean.

#include "Driver.h"

#include "../core/Status.h"

#include <cstdlib>
#include <dlfcn.h>
#include <vector>

using namespace fp8rt;
using namespace fp8rt::cuda;

/// The folder of this library, with a slash; empty if it is not known.
static std::string ownFolder() {
  static const int anchor = 0;
  Dl_info self;
  if (!dladdr(&anchor, &self) || !self.dli_fname)
    return "";
  std::string file = self.dli_fname;
  return file.substr(0, file.rfind('/') + 1);
}

/// The files to try, in this order.
static std::vector<std::string> candidates(Driver::Kind kind) {
  if (kind == Driver::Kind::Emulator)
    return {ownFolder() + "libfp8emu.so.0", ownFolder() + "libfp8emu.so", "libfp8emu.so.0"};
  const char *chosen = std::getenv("FP8RT_CUDA_DRIVER");
  return {chosen && *chosen ? chosen : "libcuda.so.1"};
}

static const char *adviceIfMissing(Driver::Kind kind) {
  return kind == Driver::Kind::Emulator
             ? "build it with -DFP8RT_BUILD_EMULATOR=ON"
             : "install NVIDIA's driver, name its library with FP8RT_CUDA_DRIVER, or use the emulator "
               "(--device=emulator)";
}

Driver::Driver(Kind kind) {
  try {
    load(kind);
    findFunctions();
    initialise();
  } catch (...) {
    if (handle)
      dlclose(handle);
    throw;
  }
}

Driver::~Driver() { dlclose(handle); }

void Driver::load(Kind kind) {
  std::string tried;
  for (const std::string &name : candidates(kind)) {
    // A driver has threads and exit handlers of its own: its code must stay.
    handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    file = name;
    if (handle)
      return;
    const char *reason = dlerror();
    tried += (tried.empty() ? "" : "; ") + std::string(reason ? reason : name);
  }
  const char *what = kind == Kind::Emulator ? "the emulator was not found" : "no CUDA driver was found";
  fail(FP8RT_DEVICE, std::string(what) + " (" + tried + "): " + adviceIfMissing(kind));
}

void Driver::findFunctions() {
  auto find = [&](const char *symbol) {
    void *found = dlsym(handle, symbol);
    if (!found)
      fail(FP8RT_DEVICE,
           file + " has no " + symbol + ": a CUDA driver of version 12.0 or newer is needed, update it");
    return found;
  };
#define FP8RT_CUDA_FIND(name, symbol, parameters) name = reinterpret_cast<decltype(name)>(find(#symbol));
  FP8RT_CUDA_FUNCTIONS(FP8RT_CUDA_FIND)
#undef FP8RT_CUDA_FIND
}

void Driver::initialise() {
  CUresult code = init(0);
  if (code == CUDA_ERROR_NO_DEVICE)
    fail(FP8RT_DEVICE, "the CUDA driver finds no GPU on this machine: use --device=cpu or --device=emulator");
  std::string what = "the CUDA driver " + file + " cannot be initialised";
  check(code, code == CUDA_ERROR_NOT_INITIALIZED ? what + " (" + kForkAdvice + ")" : what);
}

int Driver::version() const {
  int version = 0;
  check(driverGetVersion(&version), "the driver does not tell its version");
  return version;
}

bool fp8rt::cuda::isOfAKernel(CUresult code) {
  // ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT, HARDWARE_STACK_ERROR … LAUNCH_FAILED, TENSOR_MEMORY_LEAK
  return code == 700 || code == 702 || code == 710 || (code >= 714 && code <= 719) || code == 721;
}

void Driver::failForCheck(CUresult code) const {
  const std::atomic<const char *> *record = failedCheck;
  const char *message = record && isOfAKernel(code) ? record->load() : nullptr;
  if (message)
    fail(FP8RT_CALL_FAILED, std::string(message) +
                                "; as no call waited for this check, it has ended all work of "
                                "this process on the GPU");
}

void Driver::check(CUresult code, const std::string &what) const {
  failForCheck(code);
  if (code != CUDA_SUCCESS)
    fail(code == CUDA_ERROR_OUT_OF_MEMORY ? FP8RT_OUT_OF_MEMORY : FP8RT_DEVICE, what + ": " + describe(code));
}

std::string Driver::describe(CUresult code) const {
  const char *name = nullptr, *text = nullptr;
  getErrorName(code, &name);
  getErrorString(code, &text);
  std::string number = name ? name : "error " + std::to_string(code);
  return text ? std::string(text) + " (" + number + ")" : number;
}
