// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: memory that is taken and given back, pools, what an address belongs to.

#include "Registry.h"

using namespace fp8emu::cudart;

namespace {
/// Memory of no bytes is a null pointer.
template <class Take>
cudaError_t take(void **out, size_t bytes, const Take &body) {
  return enter([&] {
    require(out);
    *out = nullptr;
    CUdeviceptr address = 0;
    if (bytes)
      check(body(&address));
    *out = pointer(address);
    return cudaSuccess;
  });
}
} // namespace

FP8CUDART_API cudaError_t cudaMalloc(void **out, size_t bytes) {
  return take(out, bytes, [=](CUdeviceptr *address) { return cuMemAlloc_v2(address, bytes); });
}
FP8CUDART_API cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream) {
  return take(out, bytes, [=](CUdeviceptr *address) { return cuMemAllocAsync(address, bytes, stream); });
}
FP8CUDART_API cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool,
                                                  cudaStream_t stream) {
  return take(out, bytes,
              [=](CUdeviceptr *address) { return cuMemAllocFromPoolAsync(address, bytes, pool, stream); });
}
FP8CUDART_API cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
  if (pitch)
    *pitch = 0;
  return take(out, width && height,
              [=](CUdeviceptr *address) { return cuMemAllocPitch_v2(address, pitch, width, height, 4); });
}
FP8CUDART_API cudaError_t cudaMalloc3D(cudaPitchedPtr *out, cudaExtent extent) {
  if (!out)
    return record(cudaErrorInvalidValue);
  size_t rows = 0;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
    return record(cudaErrorMemoryAllocation);
  *out = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&out->ptr, &out->pitch, extent.width, rows);
}
FP8CUDART_API cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned flags) {
  return enter([=] {
    require(out && (flags == 1 || flags == 2)); // cudaMemAttachGlobal, …Host
    CUdeviceptr address = 0;
    check(cuMemAllocManaged(&address, bytes, flags));
    *out = pointer(address);
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaFree(void *address) { return forward(cuMemFree_v2, number(address)); }
FP8CUDART_API cudaError_t cudaFreeAsync(void *address, cudaStream_t stream) {
  return enter([=] { return address ? cuMemFreeAsync(number(address), stream) : CUDA_SUCCESS; });
}

FP8CUDART_API cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
  return enter([=] {
    require(out && !(flags & ~7U)); // portable, mapped, write-combined
    *out = nullptr;
    return bytes ? cuMemHostAlloc(out, bytes, flags) : CUDA_SUCCESS;
  });
}
FP8CUDART_API cudaError_t cudaMallocHost(void **out, size_t bytes) { return cudaHostAlloc(out, bytes, 0); }
FP8CUDART_API cudaError_t cudaFreeHost(void *address) {
  return enter([=] { return address ? cuMemFreeHost(address) : CUDA_SUCCESS; });
}
FP8CUDART_API cudaError_t cudaHostGetDevicePointer(void **out, void *address, unsigned flags) {
  return enter([=] {
    require(out);
    CUdeviceptr found = 0;
    check(cuMemHostGetDevicePointer_v2(&found, address, flags));
    *out = pointer(found);
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaHostGetFlags(unsigned *flags, void *address) {
  return forward(cuMemHostGetFlags, flags, address);
}
FP8CUDART_API cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags) {
  return forward(cuMemHostRegister_v2, address, bytes, flags);
}
FP8CUDART_API cudaError_t cudaHostUnregister(void *address) { return forward(cuMemHostUnregister, address); }

FP8CUDART_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  return forward(cuMemGetInfo_v2, free, total);
}

cudaError_t fp8emu::cudart::getAttributes(cudaPointerAttributes12 *out, const void *address) {
  return enter([=] {
    require(out);
    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE, _IS_MANAGED, _DEVICE_ORDINAL, _DEVICE_POINTER
    int which[] = {2, 8, 9, 3};
    unsigned type = 0, managed = 0;
    int device = 0;
    CUdeviceptr reached = 0;
    void *values[] = {&type, &managed, &device, &reached};
    check(cuPointerGetAttributes(4, which, values, number(address)));
    *out = {};
    out->type = managed || isManaged(number(address)) ? 3 : int(type);
    out->device = device;
    out->devicePointer = pointer(reached);
    out->hostPointer = out->type == 2 ? nullptr : const_cast<void *>(address);
    return cudaSuccess;
  });
}

FP8CUDART_API cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *address, size_t bytes,
                                                   unsigned) {
  // Managed memory is reached by all at any time.
  return forward(cuMemPrefetchAsync_v2, number(address), bytes, CUmemLocation{}, 0U, stream);
}

FP8CUDART_API cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const CUmemPoolProps *properties) {
  return forward(cuMemPoolCreate, pool, properties);
}
FP8CUDART_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return forward(cuMemPoolDestroy, pool); }
FP8CUDART_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  return forward(cuMemPoolTrimTo, pool, bytes);
}
FP8CUDART_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int which, void *value) {
  return forward(cuMemPoolSetAttribute, pool, which, value);
}
FP8CUDART_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int which, void *value) {
  return forward(cuMemPoolGetAttribute, pool, which, value);
}
FP8CUDART_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const CUmemAccessDesc *access,
                                               size_t count) {
  return forward(cuMemPoolSetAccess, pool, access, count);
}
FP8CUDART_API cudaError_t cudaMemPoolGetAccess(int *flags, cudaMemPool_t pool, CUmemLocation *location) {
  return forward(cuMemPoolGetAccess, flags, pool, location);
}
