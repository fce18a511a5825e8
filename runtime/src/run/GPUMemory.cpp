// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of gpu.h for a device's memory: tensors there, and copies.

#include "../core/Status.h"
#include "../core/Tensor.h"
#include "../cuda/DeviceProgram.h"

#include "fp8rt/gpu.h"

using namespace fp8rt;

namespace {

/// A DLManagedTensor with its shape and memory.
struct Owner {
  Owner(std::shared_ptr<cuda::DeviceMemory> place, uint64_t bytes, Shape sizes, DLDataType dtype)
      : memory(std::move(place)), shape(std::move(sizes)), buffer(allocateBuffer(memory, bytes)) {
    tensor.dl_tensor.data = buffer.get();
    tensor.dl_tensor.device = memory->place();
    tensor.dl_tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dl_tensor.dtype = dtype;
    tensor.dl_tensor.shape = shape.data();
    tensor.manager_ctx = this;
    tensor.deleter = [](DLManagedTensor *self) { delete static_cast<Owner *>(self->manager_ctx); };
  }
  /// Work that was not waited for may use the memory still.
  ~Owner() { memory->expectUses(); }

  const std::shared_ptr<cuda::DeviceMemory> memory;
  Shape shape;
  const Buffer buffer;
  DLManagedTensor tensor = {};
};

const cuda::Device &deviceOf(const fp8rt_gpu *gpu) { return required(gpu, "gpu").shared->device(); }

cuda::CUstream toStream(void *stream) { return static_cast<cuda::CUstream>(stream); }

void wait(const cuda::Device &device, void *stream, const std::string &what) {
  device.driver().check(device.driver().streamSynchronize(toStream(stream)), what);
}

} // namespace

DLDevice fp8rt_gpu_place(const fp8rt_gpu *gpu) {
  return gpu ? gpu->shared->memory()->place() : DLDevice{kDLCPU, 0};
}

fp8rt_status fp8rt_gpu_capability(const char *name, int32_t *out_major, int32_t *out_minor) {
  return guarded([&] {
    cuda::Capability found = cuda::capabilityOfGPU(&required(name, "name"));
    required(out_major, "out_major") = found.major;
    required(out_minor, "out_minor") = found.minor;
  });
}

fp8rt_status fp8rt_gpu_tensor_create(const fp8rt_gpu *gpu, DLDataType dtype, const int64_t *shape,
                                     int32_t ndim, DLManagedTensor **out_tensor) {
  return guarded([&] {
    DLManagedTensor *&out = required(out_tensor, "out_tensor");
    const std::shared_ptr<cuda::DeviceMemory> &memory = required(gpu, "gpu").shared->memory();
    const DType *type = findDLPackType(dtype);
    if (!type)
      fail(FP8RT_INVALID_ARGUMENT, "no tensors are of type " + typeName(dtype));
    if (ndim < 0 || (ndim > 0 && !shape))
      fail(FP8RT_INVALID_ARGUMENT, "the tensor has no shape");
    Shape sizes(shape, shape + ndim);
    std::optional<uint64_t> bytes = byteSize(sizes, *type);
    if (!bytes)
      fail(FP8RT_INVALID_ARGUMENT, "the tensor is larger than memory, or a size is negative");
    out = &(new Owner(memory, *bytes, std::move(sizes), dtype))->tensor;
  });
}

fp8rt_status fp8rt_gpu_write(const fp8rt_gpu *gpu, void *target, const void *host, uint64_t bytes,
                             void *stream) {
  return guarded([&] {
    const cuda::Device &device = deviceOf(gpu);
    cuda::Current current(device);
    std::string what = "data cannot be copied to " + device.name();
    device.driver().check(
        device.driver().copyToDevice(cuda::toAddress(target), host, bytes, toStream(stream)), what);
    wait(device, stream, what);
  });
}

fp8rt_status fp8rt_gpu_read(const fp8rt_gpu *gpu, void *host, const void *source, uint64_t bytes,
                            void *stream) {
  return guarded([&] {
    const cuda::Device &device = deviceOf(gpu);
    cuda::Current current(device);
    std::string what = "data cannot be copied from " + device.name();
    device.driver().check(device.driver().copyToHost(host, cuda::toAddress(source), bytes, toStream(stream)),
                          what);
    wait(device, stream, what);
  });
}

fp8rt_status fp8rt_gpu_copy(const fp8rt_gpu *gpu, void *target, const void *source, uint64_t bytes,
                            void *stream) {
  return guarded([&] {
    const cuda::Device &device = deviceOf(gpu);
    cuda::Current current(device);
    device.driver().check(device.driver().copyOnDevice(cuda::toAddress(target), cuda::toAddress(source),
                                                       bytes, toStream(stream)),
                          "data cannot be copied on " + device.name());
  });
}

fp8rt_status fp8rt_gpu_wait(const fp8rt_gpu *gpu, void *stream) {
  return guarded([&] {
    const cuda::Device &device = deviceOf(gpu);
    cuda::Current current(device);
    wait(device, stream, "work on " + device.name() + " failed");
  });
}
