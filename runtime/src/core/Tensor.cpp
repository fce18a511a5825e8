// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors in host or device memory.

#include "Tensor.h"
#include "Status.h"

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

static uint64_t checkedSize(const Shape &shape, const DType &type) {
  std::optional<uint64_t> bytes = byteSize(shape, type);
  if (!bytes)
    fail(FP8RT_INVALID_ARGUMENT, describe(shape, type) + " is no tensor shape");
  return *bytes;
}

Tensor::Tensor(const DType &type, Shape shape, void *data, DLDevice place)
    : dtype(&type), dims(std::move(shape)), size(checkedSize(dims, type)), pointer(data), where(place) {}

Tensor::Tensor(const DType &type, Shape shape, const std::shared_ptr<Memory> &from)
    : dtype(&type), dims(std::move(shape)), size(checkedSize(dims, type)), where(from->place()),
      memory(allocateBuffer(from, size)) {
  pointer = memory.get();
}

void fp8rt::copyElements(Memory &memory, const Tensor &target, const Tensor &source) {
  if (!source.bytes())
    return;
  if (source.isHost())
    memory.write(target.data(), source.data(), source.bytes());
  else
    memory.copy(target.data(), source.data(), source.bytes());
}

Tensor fp8rt::copyToHost(Memory &memory, const Tensor &source) {
  Tensor copy(source.type(), source.shape());
  if (source.bytes())
    memory.read(copy.data(), source.data(), source.bytes());
  return copy;
}

bool fp8rt::isSamePlace(DLDevice a, DLDevice b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

DLTensor Tensor::view() const {
  DLTensor tensor = {};
  tensor.data = pointer;
  tensor.device = where;
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

Tensor fp8rt::viewOf(const DLTensor &tensor, DLDevice place) {
  if (!isSamePlace(tensor.device, place))
    fail(FP8RT_INVALID_ARGUMENT, place.device_type == kDLCPU
                                     ? "the tensor is not in host memory"
                                     : "the tensor is not in the memory of the session's device");
  const DType *type = findDLPackType(tensor.dtype);
  if (!type)
    fail(FP8RT_UNSUPPORTED, "the runtime knows no " + typeName(tensor.dtype));
  if (tensor.ndim < 0 || (tensor.ndim > 0 && !tensor.shape))
    fail(FP8RT_INVALID_ARGUMENT, "the tensor has no shape");
  Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  char *data = static_cast<char *>(tensor.data);
  if (data)
    data += tensor.byte_offset;
  Tensor view(*type, std::move(shape), data, place);
  if (view.bytes() == 0)
    return view;
  if (!tensor.data)
    fail(FP8RT_INVALID_ARGUMENT, "the tensor's data is null");
  if (tensor.strides && !isContiguous(tensor))
    fail(FP8RT_INVALID_ARGUMENT, "the tensor is not row-major without gaps; make it contiguous");
  return view;
}
