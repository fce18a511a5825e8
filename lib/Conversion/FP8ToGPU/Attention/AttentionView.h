// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An fp8.online_attention or fp8.online_attention_grad on memrefs as kernels see it: its dimensions, and
// where the elements of its operands are in memory. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_ATTENTIONVIEW_H
#define FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_ATTENTIONVIEW_H

#include "../Kernel/KernelArguments.h"
#include "../Kernel/KernelBuilder.h"
#include "fp8/Conversion/FP8ToGPU/Alignment.h"
#include "fp8/Dialect/FP8/IR/ContractionDims.h"
#include "fp8/Dialect/FP8/IR/FP8.h"

namespace fp8 {

/// A size or stride: a number, or an argument of the kernel.
struct KernelNumber {
  int64_t known = mlir::ShapedType::kDynamic;
  unsigned argument = 0;

  bool isKnown() const { return !mlir::ShapedType::isDynamic(known); }
  /// Returns it, an integer of `bits` bits, which its argument has.
  Expr get(KernelBuilder &b, unsigned bits) const {
    return isKnown() ? b.number(known, bits) : b.argument(argument);
  }
};

/// The index in each dimension of the iteration space, i32; none where a kernel has none.
using Indices = llvm::SmallVector<std::optional<Expr>>;

/// An operand in memory: the element of results r of `map` is at the sum of r · stride.
struct AttentionTensor {
  mlir::Type getElementType() const {
    return llvm::cast<mlir::MemRefType>(memref.getType()).getElementType();
  }
  /// Returns the stride of dimension `dim` of the iteration space, which is at most one result of the map; 0
  /// if it is none.
  KernelNumber getStride(unsigned dim) const;
  /// Returns a power of two, at most 16, that divides the address in bytes of the first element and the
  /// distances along all dimensions but `dim`, along which elements must be adjacent; 0 if they are not.
  int64_t getAlignmentAlong(unsigned dim) const;

  mlir::Value memref;
  mlir::AffineMap map;
  unsigned pointer = 0;                    ///< the kernel's argument
  llvm::SmallVector<KernelNumber> strides; ///< in elements, i64
};

/// The operation, with the arguments of its kernels.
struct AttentionView {
  /// Adds the arguments for all operands.
  template <typename Op>
  AttentionView(mlir::OpBuilder &host, Op op, KernelArguments &arguments);

  mlir::Operation *op;
  AttentionDims dims;
  unsigned keys, depth, width; ///< the one dimension of each
  unsigned queries;            ///< the outer dimension whose rows are tiled
  /// The size of each dimension of the iteration space: i32, and as a value of the host, of type index.
  llvm::SmallVector<KernelNumber> sizes;
  llvm::SmallVector<mlir::Value> hostSizes;
  llvm::SmallVector<AttentionTensor> operands; ///< query, key, value and the gradient of the output
  llvm::SmallVector<AttentionTensor> inputs, outs;
  mlir::Region *code; ///< of one score
  /// Query i sees the keys from i + firstSeen on, and before i + endSeen, where they are set.
  std::optional<int64_t> firstSeen, endSeen;
  std::optional<uint64_t> visibleIf; ///< the input on which they depend
  mlir::ArrayAttr sites;

private:
  void addSizes(mlir::OpBuilder &host, llvm::ArrayRef<int64_t> ranges, KernelArguments &arguments);
  AttentionTensor addTensor(mlir::OpBuilder &host, mlir::Value memref, mlir::AffineMap map,
                            KernelArguments &arguments);
  unsigned chooseQueries(llvm::ArrayRef<mlir::AffineMap> ofKeys, llvm::ArrayRef<mlir::AffineMap> further,
                         llvm::ArrayRef<int64_t> ranges) const;
};

/// Returns the number that `expr` is at `indices`, an i64; dimensions without an index count as 0.
Expr computeIndex(KernelBuilder &b, mlir::AffineExpr expr, const Indices &indices);

/// Returns the address of the element of `tensor` at `indices`; dimensions without an index count as 0.
mlir::Value getAddress(KernelBuilder &b, const AttentionTensor &tensor, const Indices &indices);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_ATTENTIONVIEW_H
