// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors in host memory.

#include "Tensor.h"
#include "Status.h"

#include <cstdlib>
#include <new>

using namespace fp8rt;

bool fp8rt::isStatic(const Shape &shape) {
  for (int64_t dim : shape)
    if (dim < 0)
      return false;
  return true;
}

std::optional<uint64_t> fp8rt::byteSize(const Shape &shape, const DType &type) {
  // A zero dimension makes the product zero, even if the others overflow.
  for (int64_t dim : shape)
    if (dim == 0)
      return 0;
  int64_t bytes = static_cast<int64_t>(type.bytes());
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes))
      return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::string fp8rt::describe(const Shape &shape, const DType &type) {
  std::string text = std::string(type.mlir) + "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + (shape[i] < 0 ? "?" : std::to_string(shape[i]));
  return text + "]";
}

void FreeDeleter::operator()(void *memory) const { std::free(memory); }

Buffer fp8rt::allocateBuffer(uint64_t bytes, uint64_t alignment) {
  if (bytes == 0)
    return nullptr;
  alignment = alignment < 64 ? 64 : alignment;
  void *memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes))
    throw std::bad_alloc();
  return Buffer(memory);
}

static uint64_t checkedSize(const Shape &shape, const DType &type) {
  std::optional<uint64_t> bytes = byteSize(shape, type);
  if (!bytes)
    fail(FP8RT_INVALID_ARGUMENT, describe(shape, type) + " is no tensor shape");
  return *bytes;
}

Tensor::Tensor(const DType &type, Shape shape, void *data)
    : dtype(&type), dims(std::move(shape)), size(checkedSize(dims, type)), pointer(data) {}

Tensor::Tensor(const DType &type, Shape shape) : Tensor(type, std::move(shape), nullptr) {
  memory = allocateBuffer(size);
  pointer = memory.get();
}

DLTensor Tensor::view() const {
  DLTensor tensor = {};
  tensor.data = pointer;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(dims.size());
  tensor.dtype = dtype->dlpack;
  tensor.shape = const_cast<int64_t *>(dims.data());
  return tensor;
}

bool fp8rt::isContiguous(const DLTensor &tensor) {
  int64_t expected = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] > 1 && tensor.strides[i] != expected)
      return false;
    expected *= tensor.shape[i];
  }
  return true;
}

Tensor fp8rt::viewOf(const DLTensor &tensor) {
  if (tensor.device.device_type != kDLCPU)
    fail(FP8RT_INVALID_ARGUMENT, "the tensor is not in host memory");
  const DType *type = findDLPackType(tensor.dtype);
  if (!type)
    fail(FP8RT_UNSUPPORTED, "the runtime knows no " + typeName(tensor.dtype));
  if (tensor.ndim < 0 || (tensor.ndim > 0 && !tensor.shape))
    fail(FP8RT_INVALID_ARGUMENT, "the tensor has no shape");
  Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  char *data = static_cast<char *>(tensor.data);
  if (data)
    data += tensor.byte_offset;
  Tensor view(*type, std::move(shape), data);
  if (view.bytes() == 0)
    return view;
  if (!tensor.data)
    fail(FP8RT_INVALID_ARGUMENT, "the tensor's data is null");
  if (tensor.strides && !isContiguous(tensor))
    fail(FP8RT_INVALID_ARGUMENT, "the tensor is not row-major without gaps; make it contiguous");
  return view;
}
