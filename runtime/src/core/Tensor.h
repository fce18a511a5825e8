// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors in host or device memory, and the checks of tensors that callers pass.

#ifndef FP8RT_CORE_TENSOR_H
#define FP8RT_CORE_TENSOR_H

#include "DType.h"
#include "Memory.h"

#include <optional>
#include <string>
#include <vector>

namespace fp8rt {

using Shape = std::vector<int64_t>;

/// The size of a dynamic dimension.
constexpr int64_t kDynamicDim = -1;

bool isStatic(const Shape &shape);

/// Returns the bytes of a tensor of static shape; unset if they overflow 63 bits.
std::optional<uint64_t> byteSize(const Shape &shape, const DType &type);

/// Returns "f32[2,3]", with "?" for dynamic dimensions, for messages.
std::string describe(const Shape &shape, const DType &type);

/// A tensor in memory that it owns, or a view of other memory.
class Tensor {
public:
  Tensor() = default;
  /// A view of the memory at `data`.
  Tensor(const DType &type, Shape shape, void *data, DLDevice place = {kDLCPU, 0});
  /// A tensor with memory of its own, uninitialised.
  explicit Tensor(const DType &type, Shape shape, const std::shared_ptr<Memory> &memory = hostMemory());

  const DType &type() const { return *dtype; }
  const Shape &shape() const { return dims; }
  uint64_t bytes() const { return size; }
  void *data() const { return pointer; }
  bool isHost() const { return where.device_type == kDLCPU; }
  /// A view of the same memory.
  Tensor sameMemory() const { return Tensor(*dtype, dims, pointer, where); }

  /// Returns the C form. It points to this tensor's shape, so it is invalid after
  /// a move.
  DLTensor view() const;

private:
  const DType *dtype = nullptr;
  Shape dims;
  uint64_t size = 0;
  void *pointer = nullptr;
  DLDevice where = {kDLCPU, 0};
  Buffer memory;
};

/// Returns whether a tensor with strides is row-major without gaps. The strides of
/// dimensions with at most one element are ignored.
bool isContiguous(const DLTensor &tensor);

/// Copies the elements of `source`, which is the host's or lies in `memory`, to `target` in `memory`.
void copyElements(Memory &memory, const Tensor &target, const Tensor &source);

/// Returns a copy in host memory of a tensor in `memory`.
Tensor copyToHost(Memory &memory, const Tensor &source);

/// Returns whether both are the same device.
bool isSamePlace(DLDevice a, DLDevice b);

/// Returns a view of `tensor`; throws unless the runtime can read it: memory of `place`, a supported
/// type, no gaps. Its data may be unaligned.
Tensor viewOf(const DLTensor &tensor, DLDevice place = {kDLCPU, 0});

} // namespace fp8rt

#endif // FP8RT_CORE_TENSOR_H
