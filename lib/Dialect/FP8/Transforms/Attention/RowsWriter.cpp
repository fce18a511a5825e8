// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes rows as linalg.generic operations: one for each reduction, one for each row that is yielded or that
// several of them read. Everything else is part of those that read it.

#include "RowsRegion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;
using Kind = CodeNode::Kind;

static Location getLoc(const CodeNode *node, Block *block) {
  return node->value ? node->value.getLoc() : block->getParentOp()->getLoc();
}

RowsWriter::RowsWriter(OpBuilder &builder, RowsPlan &plan, ArrayRef<unsigned> outer, Block *block)
    : builder(builder), plan(plan), block(block) {
  for (auto [i, dim] : llvm::enumerate(outer))
    indices[dim] = block->getArgument(i);
  for (auto [i, matmul] : llvm::enumerate(plan.matmuls))
    arguments[matmul] = block->getArgument(outer.size() + i);
  for (auto [node, number] : plan.inputNumbers)
    arguments[node] = block->getArgument(outer.size() + plan.matmuls.size() + number);
}

//===----------------------------------------------------------------------===//
// Choice of stored rows
//===----------------------------------------------------------------------===//

void RowsWriter::order(const CodeNode *node, llvm::SmallPtrSetImpl<const CodeNode *> &seen) {
  if (!seen.insert(node).second)
    return;
  if (!arguments.contains(node))
    for (const CodeNode *operand : node->operands)
      order(operand, seen);
  nodes.push_back(node);
}

void RowsWriter::chooseStored() {
  llvm::SmallPtrSet<const CodeNode *, 32> seen;
  for (const CodeNode *output : plan.outputs) {
    order(output, seen);
    if (plan.isRow(output) && !arguments.contains(output))
      stored.insert(output);
  }
  DenseMap<const CodeNode *, Readers> readers;
  for (const CodeNode *node : llvm::reverse(nodes)) {
    if (arguments.contains(node))
      continue;
    const Readers own = readers.lookup(node);
    bool isCode = node->kind == Kind::operation || node->kind == Kind::selection;
    if (own.size() > 1 && isCode && plan.isRow(node) && !node->accumulates && plan.dependsOnMatmuls(node))
      stored.insert(node);
    bool isRoot = node->kind == Kind::reduction || stored.contains(node);
    for (const CodeNode *operand : node->operands) {
      if (isRoot)
        readers[operand].insert(node);
      else
        readers[operand].insert(own.begin(), own.end());
    }
  }
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

static Value writeExpr(OpBuilder &builder, AffineExpr expr, Location loc,
                       llvm::function_ref<Value(unsigned)> getDim) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return getDim(dim.getPosition());
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return arith::ConstantIndexOp::create(builder, loc, constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = writeExpr(builder, binary.getLHS(), loc, getDim),
        rhs = writeExpr(builder, binary.getRHS(), loc, getDim);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  case AffineExprKind::Mul:
    return arith::MulIOp::create(builder, loc, lhs, rhs);
  case AffineExprKind::FloorDiv:
    return arith::FloorDivSIOp::create(builder, loc, lhs, rhs);
  default: // ElementCode makes no other remainders than those of indices, which are not negative.
    return arith::RemUIOp::create(builder, loc, lhs, rhs);
  }
}

Value fp8::detail::writeIndex(OpBuilder &builder, const CodeNode *node, Location loc,
                              llvm::function_ref<Value(unsigned)> getDim) {
  Value index = writeExpr(builder, node->at[0], loc, getDim);
  return node->type.isIndex() ? index
                              : arith::IndexCastOp::create(builder, loc, node->type, index).getResult();
}

/// Writes one operation on scalars.
Value RowsWriter::writeOperation(OpBuilder &at, const CodeNode *node, ArrayRef<Value> operands) {
  Location loc = getLoc(node, block);
  switch (node->kind) {
  case Kind::index:
    return writeIndex(at, node, loc, [&](unsigned dim) -> Value {
      auto *key = llvm::find(plan.keys, dim);
      if (key == plan.keys.end())
        return indices.lookup(dim);
      return linalg::IndexOp::create(at, loc, key - plan.keys.begin());
    });
  case Kind::constant:
    return arith::ConstantOp::create(at, loc, cast<TypedAttr>(node->constant));
  case Kind::selection:
    return arith::SelectOp::create(at, loc, operands[0], operands[1], operands[2]);
  default: {
    Operation *op = node->getOperation();
    OperationState state(loc, op->getName(), operands, node->type, op->getAttrs());
    return at.create(state)->getResult(0);
  }
  }
}

/// Writes a scalar that is the same for the whole row.
Value RowsWriter::writeScalar(const CodeNode *node) {
  if (Value argument = arguments.lookup(node))
    return argument;
  if (Value known = scalars.lookup(node))
    return known;
  if (node->kind == Kind::reduction)
    return scalars[node] = writeReduction(node);
  SmallVector<Value> operands;
  for (const CodeNode *operand : node->operands)
    operands.push_back(writeScalar(operand));
  return scalars[node] = writeOperation(builder, node, operands);
}

Value RowsWriter::writeReduction(const CodeNode *node) {
  Location loc = getLoc(node, block);
  Value start = writeScalar(node->operands[0]);
  Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>(), node->type);
  Value init = linalg::FillOp::create(builder, loc, start, empty).getResult(0);
  Value reduced = writeGeneric(node->operands[1], init, /*reduces=*/true, loc);
  return tensor::ExtractOp::create(builder, loc, reduced, ValueRange());
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Returns which part of a row's indices the elements of an argument or stored row have.
AffineMap RowsWriter::getRowMap(const CodeNode *node) const {
  MLIRContext *context = node->type.getContext();
  auto number = plan.inputNumbers.find(node);
  if (number == plan.inputNumbers.end())
    return AffineMap::getMultiDimIdentityMap(plan.keys.size(), context);
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : plan.inputs[number->second].at)
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      if (auto *key = llvm::find(plan.keys, dim.getPosition()); key != plan.keys.end())
        exprs.push_back(getAffineDimExpr(key - plan.keys.begin(), context));
  return AffineMap::get(plan.keys.size(), 0, exprs, context);
}

/// Finds what code on elements reads: rows, and scalars of the row, which are written first.
void RowsWriter::gather(const CodeNode *node, const CodeNode *root, Body &body) {
  if (body.values.contains(node) || llvm::is_contained(body.reads, node))
    return;
  if (node->kind == Kind::accumulator) {
    body.accumulator = node;
  } else if (!plan.isRow(node) && !node->accumulates) {
    body.values[node] = writeScalar(node);
  } else if (Value row = arguments.lookup(node)) {
    body.reads.push_back(node);
    body.rows.push_back(row);
  } else if (node != root && stored.contains(node)) {
    Value written = writeRow(node);
    body.reads.push_back(node);
    body.rows.push_back(written);
  } else {
    for (const CodeNode *operand : node->operands)
      gather(operand, root, body);
  }
}

Value RowsWriter::writeElement(OpBuilder &inside, const CodeNode *node, Body &body) {
  if (Value known = body.values.lookup(node))
    return known;
  SmallVector<Value> operands;
  for (const CodeNode *operand : node->operands)
    operands.push_back(writeElement(inside, operand, body));
  return body.values[node] = writeOperation(inside, node, operands);
}

Value RowsWriter::writeGeneric(const CodeNode *root, Value init, bool reduces, Location loc) {
  Body body;
  gather(root, root, body);
  MLIRContext *context = builder.getContext();
  SmallVector<AffineMap> maps =
      llvm::map_to_vector(body.reads, [&](const CodeNode *node) { return getRowMap(node); });
  unsigned rank = plan.keys.size();
  maps.push_back(reduces ? AffineMap::get(rank, 0, context)
                         : AffineMap::getMultiDimIdentityMap(rank, context));
  SmallVector<utils::IteratorType> iterators(rank, reduces ? utils::IteratorType::reduction
                                                           : utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, init.getType(), body.rows, init, maps, iterators,
                                   [&](OpBuilder &inside, Location, ValueRange arguments) {
                                     for (auto [node, value] : llvm::zip(body.reads, arguments))
                                       body.values[node] = value;
                                     if (body.accumulator)
                                       body.values[body.accumulator] = arguments.back();
                                     Value element = writeElement(inside, root, body);
                                     linalg::YieldOp::create(inside, loc, element);
                                   })
      .getResult(0);
}

/// Writes a row that is stored.
Value RowsWriter::writeRow(const CodeNode *node) {
  if (Value argument = arguments.lookup(node))
    return argument;
  if (Value known = rows.lookup(node))
    return known;
  Location loc = getLoc(node, block);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, loc, arguments.lookup(plan.matmuls.front()));
  Value init = tensor::EmptyOp::create(builder, loc, sizes, node->type);
  return rows[node] = writeGeneric(node, init, /*reduces=*/false, loc);
}

SmallVector<Value> RowsWriter::write() {
  chooseStored();
  return llvm::map_to_vector(plan.outputs, [&](const CodeNode *output) {
    return plan.isRow(output) ? writeRow(output) : writeScalar(output);
  });
}
