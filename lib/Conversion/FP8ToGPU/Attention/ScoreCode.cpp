// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies the code of one score into a kernel, each operation as often as its value differs.

#include "ScoreCode.h"

#include "../Kernel/ElementAccess.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;

ScoreCode::ScoreCode(KernelBuilder &b, const AttentionView &view, bool isTransposed)
    : b(b), view(view), ownDim(isTransposed ? view.keys : view.queries),
      streamedDim(isTransposed ? view.queries : view.keys), ownLevel(isTransposed ? onKey : onQuery),
      streamedLevel(isTransposed ? onQuery : onKey), block(view.code->front()),
      numScores(view.operands.size() == 3 ? 1 : 2) {
  findLevels();
  findComparisons();
}

//===----------------------------------------------------------------------===//
// Dependences of values
//===----------------------------------------------------------------------===//

void ScoreCode::findLevels() {
  unsigned numIndices = view.dims.outer.size() + 1;
  auto ofMap = [&](AffineMap map) {
    return (map.isFunctionOfDim(view.queries) ? unsigned(onQuery) : 0) |
           (map.isFunctionOfDim(view.keys) ? unsigned(onKey) : 0);
  };
  for (BlockArgument argument : block.getArguments()) {
    unsigned number = argument.getArgNumber();
    unsigned &level = levels[argument];
    if (number + 1 == numIndices)
      level = onKey;
    else if (number < numIndices)
      level = view.dims.outer[number] == view.queries ? unsigned(onQuery) : 0;
    else if (number < numIndices + numScores)
      level = onQuery | onKey | onScore;
    else
      level = ofMap(view.inputs[number - numIndices - numScores].map);
  }
  for (Operation &op : block.without_terminator()) {
    unsigned level = 0;
    for (Value operand : op.getOperands())
      level |= getLevel(operand);
    for (Value result : op.getResults())
      levels[result] = level;
    if (dividesByRow(&op))
      divisors.push_back(op.getOperand(1));
  }
}

/// Returns whether an operation divides by what is the same for several scores: one reciprocal serves all.
bool ScoreCode::dividesByRow(Operation *op) const {
  return isa<arith::DivFOp>(op) && op->getResult(0).getType().isF32() &&
         !(getLevel(op->getOperand(1)) & onScore) && !matchPattern(op->getOperand(1), m_Constant());
}

std::optional<ScoreCode::Linear> ScoreCode::findLinear(Value value) const {
  IntegerAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return Linear{0, 0, constant.getValue().getSExtValue()};
  unsigned numIndices = view.dims.outer.size() + 1;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned number = argument.getArgNumber();
    if (argument.getOwner() != &block || number >= numIndices)
      return std::nullopt;
    if (number + 1 == numIndices)
      return Linear{0, 1, 0};
    return view.dims.outer[number] == view.queries ? std::optional(Linear{1, 0, 0}) : std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    return findLinear(op->getOperand(0));
  if (!isa<arith::AddIOp, arith::SubIOp>(op))
    return std::nullopt;
  std::optional<Linear> lhs = findLinear(op->getOperand(0)), rhs = findLinear(op->getOperand(1));
  if (!lhs || !rhs)
    return std::nullopt;
  int64_t sign = isa<arith::AddIOp>(op) ? 1 : -1;
  return Linear{lhs->query + sign * rhs->query, lhs->key + sign * rhs->key,
                lhs->constant + sign * rhs->constant};
}

/// Finds the comparisons by order that depend on both indices and on nothing else. Inside is at a late query,
/// and at the key just before it: where causal masks and windows let keys pass.
void ScoreCode::findComparisons() {
  using Predicate = arith::CmpIPredicate;
  constexpr int64_t query = 1 << 20, key = query - 1;
  auto isCount = [](const Linear &linear) {
    return linear.query >= 0 && linear.key >= 0 && linear.constant >= 0;
  };
  for (auto op : block.getOps<arith::CmpIOp>()) {
    std::optional<Linear> lhs = findLinear(op.getLhs()), rhs = findLinear(op.getRhs());
    Predicate predicate = op.getPredicate();
    if (!lhs || !rhs || predicate == Predicate::eq || predicate == Predicate::ne)
      continue;
    if (predicate >= Predicate::ult && !(isCount(*lhs) && isCount(*rhs)))
      continue; // unsigned, of what may be negative
    Linear difference{lhs->query - rhs->query, lhs->key - rhs->key, lhs->constant - rhs->constant};
    if (difference.query == 0 || difference.key == 0)
      continue;
    auto isOneOf = [&](std::initializer_list<Predicate> list) { return llvm::is_contained(list, predicate); };
    bool isLess = isOneOf({Predicate::slt, Predicate::ult, Predicate::sle, Predicate::ule});
    bool isStrict = isOneOf({Predicate::slt, Predicate::ult, Predicate::sgt, Predicate::ugt});
    int64_t middle = difference.query * query + difference.key * key + difference.constant;
    bool inside = isLess ? middle<(isStrict ? 0 : 1) : middle>(isStrict ? 0 : -1);
    if (!inside) // the opposite comparison holds
      isLess = !isLess, isStrict = !isStrict;
    comparisons.push_back({op, difference, isLess, isStrict, inside});
  }
}

std::optional<Expr> ScoreCode::isInside(const IndexRange &own, const IndexRange &streamed) {
  const IndexRange &queries = ownDim == view.queries ? own : streamed;
  const IndexRange &keys = ownDim == view.queries ? streamed : own;
  std::optional<Expr> all;
  for (const Comparison &comparison : comparisons) {
    auto [query, key, constant] = comparison.difference;
    bool isLess = comparison.isLess; // what must hold of the largest difference, else of the least
    Expr ofQueries = (query > 0) == isLess ? queries.last : queries.first;
    Expr ofKeys = (key > 0) == isLess ? keys.last : keys.first;
    Expr difference = ofQueries * double(query) + ofKeys * double(key) + double(constant);
    double slack = comparison.isStrict ? 0 : 1;
    Expr holds = isLess ? difference < slack : difference > -slack;
    all = all ? *all & holds : holds;
  }
  return all;
}

bool ScoreCode::isOne(unsigned i) const {
  FloatAttr constant;
  return matchPattern(block.getTerminator()->getOperand(i), m_Constant(&constant)) &&
         constant.getValue().isExactlyValue(1.0);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Writes the values that depend on just `level`, and on `cell` of that.
void ScoreCode::precompute(unsigned level, const Cell &cell) {
  for (Operation &op : block.without_terminator())
    for (Value result : op.getResults())
      if (getLevel(result) == level)
        get(result, cell);
  for (BlockArgument argument : block.getArguments())
    if (getLevel(argument) == level && !argument.use_empty())
      get(argument, cell);
  for (Value divisor : divisors)
    if (getLevel(divisor) == level)
      getReciprocal(divisor, cell);
}

void ScoreCode::start(const Indices &indices, ArrayRef<Expr> own) {
  ofOwn = Written();
  outer = indices;
  ownRows.assign(own.begin(), own.end());
  precompute(0, {-1, -1, {}, false});
  for (int i = 0, e = own.size(); i < e; ++i)
    precompute(ownLevel, {i, -1, {}, false});
}

bool ScoreCode::isStreamed(unsigned number) const {
  Type type = view.inputs[number].getElementType();
  return getLevel(block.getArgument(view.dims.outer.size() + 1 + numScores + number)) == streamedLevel &&
         type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 32;
}

void ScoreCode::stream(ArrayRef<Expr> rows, LoadStreamed load) {
  loadStreamed = std::move(load);
  streamedRows.assign(rows.begin(), rows.end());
  ofStreamed = Written();
  pairs.clear();
  for (int i = 0, e = rows.size(); i < e; ++i)
    precompute(streamedLevel, {-1, i, {}, false});
}

SmallVector<Value, 2> ScoreCode::compute(unsigned own, unsigned streamed, ArrayRef<Value> scores, bool inside,
                                         ArrayRef<unsigned> numbers) {
  ofScore = Written();
  Cell cell{int(own), int(streamed), scores, inside};
  return llvm::map_to_vector<2>(
      numbers, [&](unsigned number) { return get(block.getTerminator()->getOperand(number), cell); });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

ScoreCode::Written &ScoreCode::getWritten(unsigned level) {
  if ((level & onScore) || level == (onQuery | onKey))
    return ofScore;
  return level & streamedLevel ? ofStreamed : ofOwn;
}

ScoreCode::Written::Key ScoreCode::getKey(Value value, const Cell &cell) const {
  unsigned level = getLevel(value);
  return {value, level & ownLevel ? cell.own : -1, level & streamedLevel ? cell.streamed : -1};
}

Value ScoreCode::get(Value value, const Cell &cell) {
  if (Operation *op = value.getDefiningOp(); op && op->hasTrait<OpTrait::ConstantLike>())
    return b.clone(*op)->getResult(0); // maybe from before the operation
  Written &written = getWritten(getLevel(value));
  Written::Key key = getKey(value, cell);
  if (Value known = written.values.lookup(key))
    return known;
  Value result = write(value, cell);
  return written.values[key] = result;
}

Value ScoreCode::write(Value value, const Cell &cell) {
  if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == &block)
    return writeArgument(argument, cell);
  return writeOperation(value.getDefiningOp(), cell);
}

Expr ScoreCode::getIndex(unsigned dim, const Cell &cell) {
  return dim == ownDim ? ownRows[cell.own] : dim == streamedDim ? streamedRows[cell.streamed] : *outer[dim];
}

Value ScoreCode::writeArgument(BlockArgument argument, const Cell &cell) {
  unsigned number = argument.getArgNumber(), numIndices = view.dims.outer.size() + 1;
  if (number < numIndices) {
    unsigned dim = number + 1 == numIndices ? view.keys : view.dims.outer[number];
    return arith::IndexCastUIOp::create(b, b.getIndexType(), getIndex(dim, cell).getValue());
  }
  if (number < numIndices + numScores)
    return cell.scores[number - numIndices];
  return loadInput(number - numIndices - numScores, cell);
}

/// Returns whether the elements of two adjacent streamed rows are adjacent, and loaded together.
bool ScoreCode::hasPairs(const AttentionTensor &input) const {
  const KernelNumber &size = view.sizes[streamedDim];
  return size.isKnown() && size.known % 2 == 0 &&
         input.getAlignmentAlong(streamedDim) >= 2 * countElementBytes(input.getElementType());
}

/// Loads the element of an input; of rows beyond the last one that of the last one.
Value ScoreCode::loadInput(unsigned number, const Cell &cell) {
  if (isStreamed(number))
    return loadStreamed(number, cell.streamed);
  const AttentionTensor &input = view.inputs[number];
  Type type = input.getElementType();
  auto getPlace = [&](const Cell &at, int64_t count) {
    Indices indices = outer;
    for (unsigned dim : {ownDim, streamedDim})
      if (input.map.isFunctionOfDim(dim))
        indices[dim] =
            atMost(getIndex(dim, at), view.sizes[dim].get(b, 32) - (dim == streamedDim ? count : 1));
    return getAddress(b, input, indices);
  };
  if (cell.own < 0 || cell.streamed < 0 || !hasPairs(input)) {
    Value stored = b.load(getStorageType(type), getPlace(cell, 1)).getValue();
    return fromStorage(b, b.getLoc(), stored, type);
  }
  Cell first = cell;
  first.streamed -= cell.streamed % 2;
  SmallVector<Value> &pair = pairs[{number, first.own, first.streamed, int(cell.inside)}];
  if (pair.empty())
    pair = loadAdjacent(b, getPlace(first, 2), type, 2, 2 * countElementBytes(type));
  return pair[cell.streamed % 2];
}

/// Returns 1 / `value`, one for all scores that it divides.
Value ScoreCode::getReciprocal(Value value, const Cell &cell) {
  Written &written = getWritten(getLevel(value));
  Written::Key key = getKey(value, cell);
  if (Value known = written.reciprocals.lookup(key))
    return known;
  Value result = reciprocal(b, b.expr(get(value, cell))).getValue();
  return written.reciprocals[key] = result;
}

Value ScoreCode::writeOperation(Operation *op, const Cell &cell) {
  if (cell.inside)
    for (const Comparison &comparison : comparisons)
      if (comparison.op == op)
        return arith::ConstantOp::create(b, b.getBoolAttr(comparison.inside));
  bool ofScores = getLevel(op->getResult(0)) & onScore;
  if (dividesByRow(op))
    return (b.expr(get(op->getOperand(0), cell)) * b.expr(getReciprocal(op->getOperand(1), cell))).getValue();
  if (ofScores && isa<math::ExpOp, math::Exp2Op>(op) && op->getResult(0).getType().isF32()) {
    Expr power = b.expr(get(op->getOperand(0), cell));
    return exponential(b, power, isa<math::Exp2Op>(op)).getValue();
  }
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, get(operand, cell));
  return b.clone(*op, mapping)->getResult(0);
}

/// Calls an intrinsic of f32.
static Expr call(KernelBuilder &b, StringRef name, ValueRange arguments) {
  return b.expr(
      LLVM::CallIntrinsicOp::create(b, b.getF32Type(), b.getStringAttr(name), arguments).getResult(0));
}

Expr fp8::exponential(KernelBuilder &b, Expr power, bool isBaseTwo) {
  constexpr float log2E = 1.44269504f;
  Expr ofTwo = isBaseTwo ? power : power * log2E;
  return call(b, "llvm.nvvm.ex2.approx.ftz.f32", ofTwo.getValue());
}

Expr fp8::reciprocal(KernelBuilder &b, Expr value) {
  return call(b, "llvm.nvvm.rcp.approx.ftz.f", value.getValue());
}

Expr fp8::maximum(KernelBuilder &b, Expr lhs, Expr rhs) {
  return call(b, "llvm.nvvm.fmax.nan.f", {lhs.getValue(), rhs.getValue()});
}
