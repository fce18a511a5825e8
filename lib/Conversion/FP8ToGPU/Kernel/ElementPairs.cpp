// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs of elements, and copies of regions that compute them.

#include "ElementPairs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;

static VectorType getPairType(Type type) { return VectorType::get(2, type); }

bool fp8::worksOnPairs(const ElementRegion &region) {
  // Casts from and to FP8 are expanded as scalars.
  auto isFP8 = [](Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8; };
  return region.isEmpty() || llvm::all_of(region.body().without_terminator(), [&](Operation &op) {
           return (matchPattern(&op, m_Constant()) || OpTrait::hasElementwiseMappableTraits(&op)) &&
                  llvm::none_of(op.getOperandTypes(), isFP8) && llvm::none_of(op.getResultTypes(), isFP8);
         });
}

Value fp8::joinPair(KernelBuilder &b, Value low, Value high) {
  return vector::FromElementsOp::create(b, getPairType(low.getType()), ValueRange{low, high});
}

SmallVector<Value> fp8::joinPairs(KernelBuilder &b, ArrayRef<Value> elements) {
  SmallVector<Value> pairs;
  for (; !elements.empty(); elements = elements.drop_front(2))
    pairs.push_back(joinPair(b, elements[0], elements[1]));
  return pairs;
}

SmallVector<Value> fp8::splitPairs(KernelBuilder &b, ArrayRef<Value> pairs) {
  SmallVector<Value> elements;
  for (Value pair : pairs)
    for (int64_t i : {0, 1})
      elements.push_back(vector::ExtractOp::create(b, pair, i));
  return elements;
}

void fp8::cloneCodeOnPairs(KernelBuilder &b, const ElementRegion &region, IRMapping &mapping) {
  auto getPair = [&](Value value) -> Value {
    Value mapped = mapping.lookupOrDefault(value);
    if (isa<VectorType>(mapped.getType()))
      return mapped;
    return vector::BroadcastOp::create(b, getPairType(mapped.getType()), mapped);
  };
  for (Operation &op : region.body().without_terminator()) {
    Attribute constant;
    if (matchPattern(&op, m_Constant(&constant))) {
      auto splat = DenseElementsAttr::get(getPairType(op.getResult(0).getType()), constant);
      mapping.map(op.getResult(0), arith::ConstantOp::create(b, splat));
      continue;
    }
    auto types =
        llvm::map_to_vector(op.getResultTypes(), [](Type type) -> Type { return getPairType(type); });
    OperationState state(op.getLoc(), op.getName(), llvm::map_to_vector(op.getOperands(), getPair), types,
                         op.getAttrs());
    mapping.map(op.getResults(), b.create(state)->getResults());
  }
  for (Value yielded : region.body().getTerminator()->getOperands())
    mapping.map(yielded, getPair(yielded));
}
