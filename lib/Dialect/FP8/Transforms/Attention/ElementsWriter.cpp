// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes scalar code in f32.

#include "ElementsWriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;
using Kind = CodeNode::Kind;

static bool isFloatOf16Bits(Type type) { return isa<BFloat16Type, Float16Type>(type); }

/// Returns whether an operation only changes the type of a float.
static bool isFloatCast(Operation *op) {
  return isa_and_nonnull<CastOpInterface>(op) && !isa<arith::BitcastOp>(op) && op->getNumOperands() == 1 &&
         isa<FloatType>(getElementTypeOrSelf(op->getOperand(0))) &&
         isa<FloatType>(getElementTypeOrSelf(op->getResult(0)));
}

Value fp8::detail::widen(OpBuilder &builder, Location loc, Value value) {
  if (!isFloatOf16Bits(value.getType()))
    return value;
  return arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
}

Value fp8::detail::narrow(OpBuilder &builder, Location loc, Value value, Type type) {
  return value.getType() == type ? value : Value(arith::TruncFOp::create(builder, loc, type, value));
}

//===----------------------------------------------------------------------===//
// Obstacles
//===----------------------------------------------------------------------===//

/// Returns whether a node is one of several constants, or of casts to its type, and nothing is computed:
/// PyTorch makes masks of f64.
static bool isChoice(const CodeNode *node) {
  Operation *op = node->getOperation();
  return node->kind == Kind::constant || node->kind == Kind::selection ||
         isa_and_nonnull<arith::SelectOp>(op) || (op && isFloatCast(op));
}

static std::string explainNode(const CodeNode *node, bool isGiven,
                               llvm::function_ref<bool(const CodeNode *)> isKnown,
                               llvm::SmallPtrSetImpl<const CodeNode *> &seen) {
  if (!seen.insert(node).second)
    return "";
  Type type = getElementTypeOrSelf(node->type);
  if (isa<FloatType>(type) && !type.isF32() && !isFloatOf16Bits(type) && !(type.isF64() && isChoice(node))) {
    std::string reason = "its code on rows computes in ";
    llvm::raw_string_ostream(reason) << type << ", and that of a kernel in f32";
    return reason;
  }
  if (isGiven)
    return "";
  if (node->kind == Kind::element || node->kind == Kind::reduction || node->kind == Kind::accumulator)
    return "a statistic of its rows is more than code on their maximum and sum";
  if (isa_and_nonnull<arith::BitcastOp>(node->getOperation()) &&
      (isFloatOf16Bits(node->type) || isFloatOf16Bits(node->operands[0]->type)))
    return "its code on rows reads the bits of a float of 16 bits, and a kernel has it as f32";
  for (const CodeNode *operand : node->operands)
    if (std::string reason = explainNode(operand, isKnown(operand), isKnown, seen); !reason.empty())
      return reason;
  return "";
}

std::string fp8::detail::explainElements(ArrayRef<const CodeNode *> outputs,
                                         llvm::function_ref<bool(const CodeNode *)> isGiven) {
  llvm::SmallPtrSet<const CodeNode *, 32> seen;
  for (const CodeNode *output : outputs)
    if (std::string reason = explainNode(output, isGiven(output), isGiven, seen); !reason.empty())
      return reason;
  return "";
}

//===----------------------------------------------------------------------===//
// Writer
//===----------------------------------------------------------------------===//

ElementsWriter::ElementsWriter(OpBuilder &builder, Block *block, ArrayRef<unsigned> dims)
    : builder(builder), block(block) {
  for (auto [argument, dim] : llvm::enumerate(dims))
    indices[dim] = block->getArgument(argument);
}

void ElementsWriter::setInputs(const RowsPlan &plan, unsigned first) {
  SmallVector<Value> inputs;
  for (unsigned number : llvm::seq<unsigned>(plan.inputs.size())) {
    Value argument = block->getArgument(first + number);
    inputs.push_back(widen(builder, argument.getLoc(), argument));
  }
  for (auto [node, number] : plan.getInputNumbers())
    values[node] = inputs[number];
}

Value ElementsWriter::write(const CodeNode *node) {
  if (Value known = values.lookup(node))
    return known;
  return values[node] = compute(node);
}

Value ElementsWriter::compute(const CodeNode *node) {
  Location loc = node->value ? node->value.getLoc() : block->getParentOp()->getLoc();
  Type type = isa<FloatType>(node->type) ? Type(builder.getF32Type()) : node->type;
  if (node->kind == Kind::index)
    return writeIndex(builder, node, loc, [&](unsigned dim) { return indices.lookup(dim); });
  if (node->kind == Kind::constant) {
    auto constant = cast<TypedAttr>(node->constant);
    if (type != node->type) {
      APFloat number = cast<FloatAttr>(constant).getValue();
      bool losesInfo = false;
      number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &losesInfo);
      constant = builder.getFloatAttr(type, number);
    }
    return arith::ConstantOp::create(builder, loc, constant);
  }
  SmallVector<Value> operands;
  for (const CodeNode *operand : node->operands)
    operands.push_back(write(operand));
  if (node->kind == Kind::selection)
    return arith::SelectOp::create(builder, loc, operands[0], operands[1], operands[2]);
  Operation *op = node->getOperation();
  if (isFloatCast(op))
    return operands[0];
  OperationState state(loc, op->getName(), operands, type, op->getAttrs());
  return builder.create(state)->getResult(0);
}
