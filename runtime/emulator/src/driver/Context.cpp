// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: contexts. Kernels run when they are launched, so that there is never
// anything to wait for. The fault of a kernel is returned here and by all later calls, as by
// hardware.

#include "Driver.h"

#include <algorithm>

using namespace fp8emu::driver;

namespace {
Context &primaryOf(Driver &driver, CUdevice device) {
  driver.chip(device);
  return *driver.primary[size_t(device)];
}

/// A primary context as it was at the beginning, but for who holds it.
void restart(Driver &driver, Context &own) {
  driver.clear(own);
  Context fresh;
  fresh.device = own.device;
  fresh.isPrimary = true;
  fresh.references = own.references;
  own = fresh;
}

void makeCurrent(Context *context) {
  auto &stack = contextStack();
  if (!stack.empty())
    stack.pop_back();
  if (context)
    stack.push_back(context);
}
} // namespace

FP8EMU_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  return enter([=](Driver &driver) {
    require(context);
    Context &own = primaryOf(driver, device);
    ++own.references;
    *context = &own;
  });
}

FP8EMU_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return enter([=](Driver &driver) {
    Context &own = primaryOf(driver, device);
    require(own.references > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--own.references == 0)
      restart(driver, own);
  });
}

FP8EMU_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return enter([=](Driver &driver) { restart(driver, primaryOf(driver, device)); });
}

FP8EMU_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  return enter([=](Driver &driver) {
    require(flags && active);
    *flags = 0;
    *active = primaryOf(driver, device).references > 0;
  });
}

FP8EMU_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned) {
  return enter([=](Driver &driver) { primaryOf(driver, device); });
}

FP8EMU_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned, CUdevice device) {
  return enter([=](Driver &driver) {
    require(context);
    driver.chip(device);
    auto own = std::make_unique<Context>();
    own->device = device;
    *context = driver.track(std::move(own));
    contextStack().push_back(*context);
  });
}
FP8EMU_API CUresult cuCtxCreate_v3(CUcontext *context, void *, int, unsigned flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}
/// Since CUDA 13 with parameters, which name no more than the affinity of streams.
FP8EMU_API CUresult cuCtxCreate_v4(CUcontext *context, void *, unsigned flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}

FP8EMU_API CUresult cuCtxDestroy_v2(CUcontext context) {
  return enter([=](Driver &driver) {
    require(!driver.check(context, CUDA_ERROR_INVALID_CONTEXT).isPrimary, CUDA_ERROR_INVALID_CONTEXT);
    driver.clear(*context);
    auto &stack = contextStack();
    stack.erase(std::remove(stack.begin(), stack.end(), context), stack.end());
    driver.drop(context);
  });
}

FP8EMU_API CUresult cuCtxSetCurrent(CUcontext context) {
  return enter([=](Driver &driver) {
    if (context)
      driver.check(context, CUDA_ERROR_INVALID_CONTEXT);
    makeCurrent(context);
  });
}

FP8EMU_API CUresult cuCtxGetCurrent(CUcontext *context) {
  return enter([=](Driver &) {
    require(context);
    *context = contextStack().empty() ? nullptr : contextStack().back();
  });
}

FP8EMU_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return enter([=](Driver &driver) {
    driver.check(context, CUDA_ERROR_INVALID_CONTEXT);
    contextStack().push_back(context);
  });
}

FP8EMU_API CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  return enter([=](Driver &) {
    require(!contextStack().empty(), CUDA_ERROR_INVALID_CONTEXT);
    if (context)
      *context = contextStack().back();
    contextStack().pop_back();
  });
}

FP8EMU_API CUresult cuCtxGetDevice(CUdevice *device) {
  return enter([=](Driver &driver) {
    require(device);
    require(!contextStack().empty(), CUDA_ERROR_INVALID_CONTEXT);
    *device = driver.check(contextStack().back(), CUDA_ERROR_CONTEXT_IS_DESTROYED).device;
  });
}

FP8EMU_API CUresult cuCtxGetFlags(unsigned *flags) {
  return enter([=](Driver &) {
    require(flags);
    *flags = 0;
  });
}

FP8EMU_API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
  return enter([=](Driver &driver) {
    require(version);
    if (context)
      driver.check(context, CUDA_ERROR_INVALID_CONTEXT);
    *version = 3020;
  });
}

FP8EMU_API CUresult cuCtxSynchronize() {
  return enter([](Driver &driver) { driver.current(); });
}

namespace {
enum Limit { StackSize, PrintfSize, HeapSize, kLimits };

uint64_t limitOf(const Context &context, int which) {
  return which == StackSize    ? context.stackBytes
         : which == PrintfSize ? context.printfBytes
                               : context.heapBytes;
}
} // namespace

FP8EMU_API CUresult cuCtxSetLimit(int which, size_t value) {
  return enter([=](Driver &driver) {
    Context &context = driver.current();
    require(which >= 0 && which < kLimits, CUDA_ERROR_UNSUPPORTED_LIMIT);
    if (which == StackSize) {
      require(value <= 512 * 1024);
      context.stackBytes = uint32_t(value);
    } else if (which == PrintfSize) {
      context.printfBytes = value;
    } else {
      context.heapBytes = value;
    }
  });
}

FP8EMU_API CUresult cuCtxGetLimit(size_t *value, int which) {
  return enter([=](Driver &driver) {
    require(value);
    require(which >= 0 && which < kLimits, CUDA_ERROR_UNSUPPORTED_LIMIT);
    *value = limitOf(driver.current(), which);
  });
}

FP8EMU_API CUresult cuCtxSetCacheConfig(int) {
  return enter([](Driver &driver) { driver.current(); });
}

FP8EMU_API CUresult cuCtxSetFlags(unsigned) {
  return enter([](Driver &driver) { driver.current(); });
}
FP8EMU_API CUresult cuCtxResetPersistingL2Cache() { return cuCtxSynchronize(); }

/// Banks of shared memory are four bytes wide on every chip there is.
FP8EMU_API CUresult cuCtxGetSharedMemConfig(int *config) {
  return enter([=](Driver &driver) {
    driver.current();
    require(config);
    *config = 1;
  });
}
FP8EMU_API CUresult cuCtxSetSharedMemConfig(int) { return cuCtxSynchronize(); }

FP8EMU_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return enter([=](Driver &) {
    if (least)
      *least = kLeastPriority;
    if (greatest)
      *greatest = kGreatestPriority;
  });
}
