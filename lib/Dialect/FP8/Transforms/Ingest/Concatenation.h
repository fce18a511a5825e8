// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Concatenations, in the forms that front ends write them. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_INGEST_CONCATENATION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_INGEST_CONCATENATION_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace fp8::detail {

/// A tensor that consists of two parts or more along one dimension, all of static sizes.
struct Concatenation {
  struct Part {
    /// A tensor with the part's size along `dim`; one of the whole size, which has the part at its place; or
    /// the scalar that all elements are.
    mlir::Value value;
    int64_t size;
  };
  unsigned dim;
  llvm::SmallVector<Part> parts;

  llvm::SmallVector<int64_t> getSizes() const {
    return llvm::map_to_vector(parts, [](const Part &part) { return part.size; });
  }
};

/// Returns the parts of the tensor that `value` is: the result of tensor.concat, of a tensor.pad by a
/// constant along one dimension, of a tensor.insert_slice of a part along one dimension, or of a
/// linalg.generic that reads, by comparisons of an index, one of several tensors. Returns nothing for other
/// tensors.
std::optional<Concatenation> matchConcatenation(mlir::Value value);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_INGEST_CONCATENATION_H
