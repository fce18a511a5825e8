// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects what kernels depend on. Types and attributes are unique in a context: their addresses stand for
// them.

#include "KernelFacts.h"
#include "OperandAlignment.h"
#include "TileOperands.h"

using namespace mlir;
using namespace fp8;

namespace {
class FactWriter {
public:
  void write(Operation *op);
  std::string take() { return std::move(bytes); }

private:
  void add(const void *pointer) { add(reinterpret_cast<intptr_t>(pointer)); }
  void add(int64_t number) { bytes.append(reinterpret_cast<const char *>(&number), sizeof(number)); }
  void addAttributes(Operation *op);
  void addValue(Value value);
  void addBuffer(Value buffer);

  std::string bytes;
  llvm::DenseMap<Value, int64_t> numbers; ///< in the order of their first appearance
};
} // namespace

void FactWriter::addAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getAttrDictionary()) {
    if (attribute.getName() == "site") // which kernels are named after, no more
      continue;
    add(attribute.getName().getAsOpaquePointer());
    add(attribute.getValue().getAsOpaquePointer());
  }
}

void FactWriter::addBuffer(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  auto [strides, offset] = type.getStridesAndOffset();
  add(type.getElementType().getAsOpaquePointer());
  add(type.getRank());
  for (int64_t number : type.getShape())
    add(number);
  for (int64_t number : strides)
    add(number);
  add(ShapedType::isDynamic(offset));
  add(findBaseAlignment(buffer));
  add(isOperandAligned(buffer));
  add(isUnread(buffer));
  add(static_cast<bool>(findPaddedPitch(buffer)));
}

void FactWriter::addValue(Value value) {
  auto [place, isNew] = numbers.insert({value, numbers.size()});
  add(place->second);
  if (!isNew)
    return;
  if (isa<MemRefType>(value.getType()) && cast<MemRefType>(value.getType()).isStrided()) {
    addBuffer(value);
    return;
  }
  add(value.getType().getAsOpaquePointer());
  Operation *op = value.getDefiningOp();
  add(op != nullptr);
  if (op && op->hasTrait<OpTrait::ConstantLike>())
    addAttributes(op);
}

void FactWriter::write(Operation *op) {
  add(op->getName().getAsOpaquePointer());
  addAttributes(op);
  add(op->getNumOperands());
  for (Value operand : op->getOperands())
    addValue(operand);
  add(op->getNumResults());
  for (Value result : op->getResults())
    addValue(result);
  for (Region &region : op->getRegions()) {
    add(region.getBlocks().size());
    for (Block &block : region) {
      for (BlockArgument argument : block.getArguments())
        addValue(argument);
      for (Operation &inner : block)
        write(&inner);
    }
  }
}

std::string fp8::findKernelFacts(Operation *op) {
  FactWriter writer;
  writer.write(op);
  return writer.take();
}
