// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: devices, and which one a thread works on.

#include "Registry.h"

#include <cstring>
#include <map>
#include <mutex>

using namespace fp8emu::cudart;

namespace {

thread_local int chosenDevice = 0;

/// The primary context of a device, retained once for the whole process.
CUcontext primaryOf(int device) {
  static std::mutex mutex;
  static auto *all = new std::map<int, CUcontext>();
  std::lock_guard<std::mutex> lock(mutex);
  CUcontext &context = (*all)[device];
  if (!context)
    check(cuDevicePrimaryCtxRetain(&context, device));
  return context;
}

void checkDevice(int device) {
  check(cuInit(0));
  int count = 0;
  check(cuDeviceGetCount(&count));
  require(device >= 0 && device < count, cudaErrorInvalidDevice);
}

/// Runs the body of an entry point that needs the driver and no context.
template <class Body>
cudaError_t ask(const Body &body) {
  return enterWithoutContext([&] {
    check(cuInit(0));
    return body();
  });
}

int attributeOf(int device, int which) {
  int value = 0;
  check(cuDeviceGetAttribute(&value, which, device));
  return value;
}

/// The properties that CUDA 12 and 13 have both. Numbers are those of cudaDeviceAttr.
template <class Properties>
void fill(Properties &out, int device) {
  out = Properties();
  const auto get = [device](int which) { return attributeOf(device, which); };
  check(cuDeviceGetName(out.name, sizeof out.name, device));
  check(cuDeviceGetUuid_v2(out.uuid, device));
  check(cuDeviceTotalMem_v2(&out.totalGlobalMem, device));
  out.sharedMemPerBlock = size_t(get(8));
  out.regsPerBlock = get(12);
  out.warpSize = get(10);
  out.memPitch = size_t(get(11));
  out.maxThreadsPerBlock = get(1);
  for (int i = 0; i < 3; ++i) {
    out.maxThreadsDim[i] = get(2 + i);
    out.maxGridSize[i] = get(5 + i);
  }
  out.totalConstMem = size_t(get(9));
  out.major = get(75);
  out.minor = get(76);
  out.textureAlignment = size_t(get(14));
  out.multiProcessorCount = get(16);
  out.integrated = get(18);
  out.canMapHostMemory = get(19);
  out.concurrentKernels = get(31);
  out.pciBusID = get(33);
  out.asyncEngineCount = get(40);
  out.unifiedAddressing = get(41);
  out.memoryBusWidth = get(37);
  out.l2CacheSize = get(38);
  out.maxThreadsPerMultiProcessor = get(39);
  out.streamPrioritiesSupported = get(78);
  out.globalL1CacheSupported = get(79);
  out.localL1CacheSupported = get(80);
  out.sharedMemPerMultiprocessor = size_t(get(81));
  out.regsPerMultiprocessor = get(82);
  out.managedMemory = get(83);
  out.hostNativeAtomicSupported = get(86);
  out.pageableMemoryAccess = get(88);
  out.concurrentManagedAccess = get(89);
  out.computePreemptionSupported = get(90);
  out.canUseHostPointerForRegisteredMem = get(91);
  out.cooperativeLaunch = get(95);
  out.sharedMemPerBlockOptin = size_t(get(97));
  out.pageableMemoryAccessUsesHostPageTables = get(100);
  out.directManagedMemAccessFromHost = get(101);
  out.maxBlocksPerMultiProcessor = get(106);
  out.reservedSharedMemPerBlock = size_t(get(111));
  out.hostRegisterSupported = get(99);
  out.memoryPoolsSupported = get(115);
  out.clusterLaunch = get(120);
}

} // namespace

void fp8emu::cudart::needContext() {
  check(cuInit(0));
  CUcontext current = nullptr;
  check(cuCtxGetCurrent(&current));
  if (!current)
    check(cuCtxSetCurrent(primaryOf(chosenDevice)));
}

int fp8emu::cudart::currentDevice() {
  CUcontext current = nullptr;
  if (cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current)
    return chosenDevice;
  int device = 0;
  check(cuCtxGetDevice(&device));
  return device;
}

FP8CUDART_API cudaError_t cudaGetDeviceCount(int *count) {
  return enterWithoutContext([=] {
    require(count);
    *count = 0;
    check(cuInit(0));
    return cuDeviceGetCount(count);
  });
}

FP8CUDART_API cudaError_t cudaSetDevice(int device) {
  return enterWithoutContext([=] {
    checkDevice(device);
    chosenDevice = device;
    return cuCtxSetCurrent(primaryOf(device));
  });
}
FP8CUDART_API cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return enterWithoutContext([=] {
    checkDevice(device);
    primaryOf(device);
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaGetDevice(int *device) {
  return enterWithoutContext([=] {
    require(device);
    checkDevice(chosenDevice);
    *device = currentDevice();
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaSetValidDevices(int *devices, int count) {
  return enterWithoutContext([=] {
    require(count >= 0 && (count == 0 || devices));
    for (int i = 0; i < count; ++i)
      checkDevice(devices[i]);
    if (count)
      chosenDevice = devices[0];
    return cudaSuccess;
  });
}

/// How a thread waits makes no difference: there is nothing to wait for.
FP8CUDART_API cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return enterWithoutContext([=] {
    require(!(flags & ~0xFFU));
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaGetDeviceFlags(unsigned *flags) {
  return enterWithoutContext([=] {
    require(flags);
    *flags = 8; // cudaDeviceMapHost
    return cudaSuccess;
  });
}

FP8CUDART_API cudaError_t cudaDeviceReset() {
  return enterWithoutContext([=] {
    checkDevice(chosenDevice);
    const int device = currentDevice();
    CUcontext context = primaryOf(device);
    check(cuDevicePrimaryCtxReset_v2(device));
    forgetContext(context);
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaDeviceSynchronize() { return forward(cuCtxSynchronize); }

FP8CUDART_API cudaError_t cudaDeviceGetAttribute(int *value, int which, int device) {
  return ask([=] { return cuDeviceGetAttribute(value, which, device); });
}
FP8CUDART_API cudaError_t cudaDeviceGetP2PAttribute(int *value, int which, int device, int peer) {
  return ask([=] { return cuDeviceGetP2PAttribute(value, which, device, peer); });
}
FP8CUDART_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  return ask([=] { return cuDeviceCanAccessPeer(can, device, peer); });
}
FP8CUDART_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return enter([=] {
    checkDevice(peer);
    return cuCtxEnablePeerAccess(primaryOf(peer), flags);
  });
}
FP8CUDART_API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return enter([=] {
    checkDevice(peer);
    return cuCtxDisablePeerAccess(primaryOf(peer));
  });
}
FP8CUDART_API cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device) {
  return ask([=] { return cuDeviceGetPCIBusId(text, length, device); });
}
FP8CUDART_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text) {
  return ask([=] { return cuDeviceGetByPCIBusId(device, text); });
}
FP8CUDART_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  return ask([=] { return cuDeviceGetDefaultMemPool(pool, device); });
}
FP8CUDART_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
  return ask([=] { return cuDeviceGetMemPool(pool, device); });
}
FP8CUDART_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return ask([=] { return cuDeviceSetMemPool(device, pool); });
}
FP8CUDART_API cudaError_t cudaDeviceGetLimit(size_t *value, int which) {
  return forward(cuCtxGetLimit, value, which);
}
FP8CUDART_API cudaError_t cudaDeviceSetLimit(int which, size_t value) {
  return forward(cuCtxSetLimit, which, value);
}
FP8CUDART_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return forward(cuCtxGetStreamPriorityRange, least, greatest);
}

// The emulator has no caches, and banks of four bytes.
FP8CUDART_API cudaError_t cudaDeviceGetCacheConfig(int *config) {
  return enter([=] {
    require(config);
    *config = 0;
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaDeviceSetCacheConfig(int) { return forward(cuCtxSynchronize); }
FP8CUDART_API cudaError_t cudaDeviceGetSharedMemConfig(int *config) {
  return enter([=] {
    require(config);
    *config = 1;
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaDeviceSetSharedMemConfig(int) { return forward(cuCtxSynchronize); }
FP8CUDART_API cudaError_t cudaCtxResetPersistingL2Cache() { return forward(cuCtxSynchronize); }

cudaError_t fp8emu::cudart::getProperties(cudaDeviceProp12 *out, int device) {
  return enterWithoutContext([=] {
    require(out);
    checkDevice(device);
    fill(*out, device);
    out->clockRate = attributeOf(device, 13);
    out->memoryClockRate = attributeOf(device, 36);
    out->deviceOverlap = out->asyncEngineCount > 0;
    return cudaSuccess;
  });
}
cudaError_t fp8emu::cudart::getProperties(cudaDeviceProp13 *out, int device) {
  return enterWithoutContext([=] {
    require(out);
    checkDevice(device);
    fill(*out, device);
    return cudaSuccess;
  });
}
