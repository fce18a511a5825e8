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

/// Memory that was allocated for a tensor. Work that was not waited for may use it until the end.
class Block {
public:
  Block(std::shared_ptr<cuda::DeviceMemory> place, uint64_t bytes)
      : memory(std::move(place)), buffer(allocateBuffer(memory, bytes)) {}
  ~Block() { memory->expectUses(); }

  const std::shared_ptr<cuda::DeviceMemory> memory;
  const Buffer buffer;
};

/// A DLManagedTensor, its shape, and its share of the memory.
struct Owner {
  std::shared_ptr<const Block> block;
  Shape shape;
  DLManagedTensor tensor = {};
};

DLManagedTensor *own(std::shared_ptr<const Block> block, Shape shape, DLDataType dtype) {
  auto *owner = new Owner{std::move(block), std::move(shape)};
  owner->tensor.dl_tensor.data = owner->block->buffer.get();
  owner->tensor.dl_tensor.device = owner->block->memory->place();
  owner->tensor.dl_tensor.ndim = static_cast<int32_t>(owner->shape.size());
  owner->tensor.dl_tensor.dtype = dtype;
  owner->tensor.dl_tensor.shape = owner->shape.data();
  owner->tensor.manager_ctx = owner;
  owner->tensor.deleter = [](DLManagedTensor *self) { delete static_cast<Owner *>(self->manager_ctx); };
  return &owner->tensor;
}

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
    out = own(std::make_shared<const Block>(memory, *bytes), std::move(sizes), dtype);
  });
}

fp8rt_status fp8rt_gpu_tensor_share(const DLManagedTensor *tensor, DLManagedTensor **out_tensor) {
  return guarded([&] {
    DLManagedTensor *&out = required(out_tensor, "out_tensor");
    const auto &owner = *static_cast<const Owner *>(required(tensor, "tensor").manager_ctx);
    out = own(owner.block, owner.shape, owner.tensor.dl_tensor.dtype);
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
