// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host memory for tensors, and the checks every tensor from outside goes
// through.

#ifndef FP8RT_CORE_TENSOR_H
#define FP8RT_CORE_TENSOR_H

#include "DType.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fp8rt {

using Shape = std::vector<int64_t>;

/// Stands for a dimension that is only known while a program runs.
constexpr int64_t kDynamicDim = -1;

bool isStatic(const Shape &shape);

/// The bytes of a tensor of a static shape; none where they overflow 63 bits.
std::optional<uint64_t> byteSize(const Shape &shape, const DType &type);

/// As in "f32[2,3]", "?" for dynamic dimensions: for messages.
std::string describe(const Shape &shape, const DType &type);

struct FreeDeleter {
  void operator()(void *memory) const;
};
using Buffer = std::unique_ptr<void, FreeDeleter>;

/// Uninitialised memory, at least 64-byte aligned; null for 0 bytes.
Buffer allocateBuffer(uint64_t bytes, uint64_t alignment = 64);

/// A tensor in host memory: its own, or a view of someone else's.
class Tensor {
public:
  Tensor() = default;
  /// A view of the memory at `data`.
  Tensor(const DType &type, Shape shape, void *data);
  /// A tensor with memory of its own, uninitialised.
  Tensor(const DType &type, Shape shape);

  const DType &type() const { return *dtype; }
  const Shape &shape() const { return dims; }
  uint64_t bytes() const { return size; }
  void *data() const { return pointer; }

  /// The C form. It points into this tensor's shape, so it is made anew after
  /// every move.
  DLTensor view() const;

private:
  const DType *dtype = nullptr;
  Shape dims;
  uint64_t size = 0;
  void *pointer = nullptr;
  Buffer memory;
};

/// Whether a tensor with strides is row-major without gaps. Strides of dimensions
/// with at most one element mean nothing.
bool isContiguous(const DLTensor &tensor);

/// A view of `tensor` after checking that it is one the runtime can read: host
/// memory, a known type, no gaps. Its data may be unaligned.
Tensor viewOf(const DLTensor &tensor);

} // namespace fp8rt

#endif // FP8RT_CORE_TENSOR_H
