// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes that one call or launch of a kernel moves, its operations and the clocks of its matmul, for
// profiles and for predictions of its time (KernelTime.h); the attribute that carries them to the list of
// kernels.

#ifndef FP8_DIALECT_FP8_IR_KERNELCOST_H
#define FP8_DIALECT_FP8_IR_KERNELCOST_H

#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/IR/Builders.h"
#include <algorithm>
#include <optional>

namespace fp8 {

/// Clocks of a matmul's kernel on its busiest multiprocessor, as fp8/Dialect/FP8/IR/KernelTime.h counts them.
struct MatmulClocks {
  int64_t tensor = 0;  ///< of the tensor cores
  int64_t l2 = 0;      ///< in which the L2 cache delivers the operands
  int64_t issue = 0;   ///< of other instructions in the loop
  int64_t latency = 0; ///< of the epilogues
  /// Its multiply-adds at the chip's rate, on all multiprocessors alike.
  int64_t floor = 0;

  /// Returns the clocks of the whole kernel, where its memory is fast enough.
  double getTotal() const { return static_cast<double>(std::max(l2, tensor + issue) + latency); }
};

/// Unset where it depends on dynamic sizes, or is not counted.
struct KernelCost {
  /// Bytes of the buffers from outside, each distinct byte once.
  std::optional<int64_t> read, written;
  /// Floating-point operations: two for a fused multiply-add, one for any other operation or
  /// function; none for constants, casts, comparisons and selections.
  std::optional<int64_t> operations;
  /// The clocks of a GPU kernel of a matmul or of attention, if its sizes are static.
  std::optional<MatmulClocks> matmul = {};

  /// Returns the cost of both, of code without matmuls; a count that is unknown of one is unknown of the sum.
  KernelCost operator+(const KernelCost &other) const {
    auto add = [](std::optional<int64_t> a, std::optional<int64_t> b) {
      return a && b ? std::optional(*a + *b) : std::nullopt;
    };
    return {add(read, other.read), add(written, other.written), add(operations, other.operations)};
  }

  /// Returns the fields of a dictionary, and the cost from such fields.
  llvm::SmallVector<mlir::NamedAttribute> getFields(mlir::MLIRContext *context) const {
    mlir::Builder builder(context);
    llvm::SmallVector<mlir::NamedAttribute> fields;
    for (auto [name, value] : {std::pair("read", read), {"written", written}, {"operations", operations}})
      if (value)
        fields.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(*value)));
    if (matmul)
      fields.push_back(builder.getNamedAttr(
          "clocks", builder.getDenseI64ArrayAttr(
                        {matmul->tensor, matmul->l2, matmul->issue, matmul->latency, matmul->floor})));
    return fields;
  }
  static KernelCost fromFields(mlir::DictionaryAttr fields) {
    auto get = [&](llvm::StringRef name) -> std::optional<int64_t> {
      auto value = fields.getAs<mlir::IntegerAttr>(name);
      return value ? std::optional(value.getInt()) : std::nullopt;
    };
    KernelCost cost{get("read"), get("written"), get("operations")};
    if (auto clocks = fields.getAs<mlir::DenseI64ArrayAttr>("clocks"); clocks && clocks.size() == 5)
      cost.matmul = {clocks[0], clocks[1], clocks[2], clocks[3], clocks[4]};
    return cost;
  }
};

/// Sets the cost of a call or launch.
inline void setKernelCost(mlir::Operation *call, const KernelCost &cost) {
  call->setAttr(kKernelCostAttrName,
                mlir::DictionaryAttr::get(call->getContext(), cost.getFields(call->getContext())));
}

/// Returns the cost that setKernelCost() has set; unknown without one.
inline KernelCost getKernelCost(mlir::Operation *call) {
  auto fields = call->getAttrOfType<mlir::DictionaryAttr>(kKernelCostAttrName);
  return fields ? KernelCost::fromFields(fields) : KernelCost();
}

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_KERNELCOST_H
