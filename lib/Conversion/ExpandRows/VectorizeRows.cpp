// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts the code of casts and amaxes with rows on vectors, which bufferization leaves alone: kernels keep a
// row in registers and need no memory for its temporaries.

#include "fp8/Conversion/ExpandRows/RowVectors.h"
#include "fp8/Conversion/GenericCode.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_VECTORIZEROWS
#include "fp8/Conversion/Passes.h.inc"

int64_t countKeptValues(const ElementRegion &region) {
  Block &body = region.body();
  llvm::DenseMap<Operation *, int64_t> positions;
  SmallVector<int64_t> reductions;
  SmallVector<Value> values(body.getArguments());
  for (auto [position, op] : llvm::enumerate(body)) {
    positions[&op] = position;
    if (isa<vector::ReductionOp>(op))
      reductions.push_back(position);
    llvm::append_range(values, op.getResults());
  }
  SmallVector<int64_t> kept(reductions.size() + 1, 0);
  for (Value value : values) {
    if (!isa<VectorType>(value.getType()) || value.use_empty())
      continue;
    int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
    for (Operation *user : value.getUsers()) {
      first = std::min(first, positions.lookup(user));
      last = std::max(last, positions.lookup(user));
    }
    for (auto [count, reduction] : llvm::zip(kept, reductions))
      count += first <= reduction && reduction < last;
  }
  int64_t sums = llvm::count_if(region.extraMaps(), [&](AffineMap map) { return region.sums(map); });
  return *llvm::max_element(kept) + sums + 1; // and the value that is being computed
}

namespace {

/// Rewrites the region of one operation. Where it cannot, it says why and leaves the region as it was.
class RowVectorizer {
public:
  RowVectorizer(Operation *op)
      : op(op), region(*ElementRegion::of(op)), b(op->getContext()), context(op->getContext()) {}

  /// Returns why a kernel of rows cannot compute the operation; "" after the region has been rewritten.
  std::string run();

private:
  std::string checkShape();
  std::string checkCaptures();
  bool convert(Operation &inner);
  bool convertLinalg(linalg::LinalgOp linalgOp);
  bool mapArguments(linalg::LinalgOp linalgOp, IRMapping &payload, SmallVectorImpl<Value> &starts);
  Value convertElement(Operation &inner, IRMapping &payload);
  Value reduce(Operation *combiner, Value accumulator, Value start, IRMapping &payload);
  Value findStart(Value init);
  Value lookUp(Value tensor);
  Value widen(Location loc, Value value);
  VectorType typeOf(Type element) { return VectorType::get({length}, element); }

  Operation *op;
  ElementRegion region;
  OpBuilder b;
  MLIRContext *context;
  int64_t length = 0; ///< elements of a row
  IRMapping values;   ///< vectors of tensors of rank 1, scalars of those of rank 0
  std::string reason;
};

//===----------------------------------------------------------------------===//
// Regions that have a kernel
//===----------------------------------------------------------------------===//

std::string RowVectorizer::checkShape() {
  if (region.rows.size() != 1 || region.rows[0] + 1 != region.numDims)
    return "its rows are not the last dimension";
  auto hasKnownRow = [&](auto operand) {
    auto type = dyn_cast<ShapedType>(region.partOf(std::get<0>(operand), std::get<1>(operand)));
    return !type || type.hasStaticShape();
  };
  if (!llvm::all_of(llvm::zip(region.inputs, region.inputMaps()), hasKnownRow) ||
      !llvm::all_of(llvm::zip(region.extras(), region.extraMaps()), hasKnownRow))
    return "the rows of an operand are of dynamic size";
  length = region.getShape().back();
  return length < 2 ? "a row has fewer than two elements" : "";
}

/// A kernel can copy constants, and takes the indices of the host's loops as arguments. Operations that
/// define tensors of initial values are looked through.
std::string RowVectorizer::checkCaptures() {
  bool isKnown = true;
  region.region->walk([&](Operation *inner) {
    for (Value value : inner->getOperands()) {
      if (region.region->isAncestor(value.getParentRegion()) || isa<TensorType>(value.getType()))
        continue;
      Operation *source = value.getDefiningOp();
      isKnown &= source ? source->hasTrait<OpTrait::ConstantLike>() : value.getType().isIndex();
    }
  });
  return isKnown ? "" : "its producer uses a scalar from outside";
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Returns what became of `tensor`: null if it is not from the region, or filled outside with a constant.
Value RowVectorizer::lookUp(Value tensor) {
  if (Value known = values.lookupOrNull(tensor))
    return known;
  return findStart(tensor);
}

/// Returns the scalar that `init` is filled with, else null.
Value RowVectorizer::findStart(Value init) {
  if (Value known = values.lookupOrNull(init))
    return isa<VectorType>(known.getType()) ? Value() : known;
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (!fill)
    return {};
  Value scalar = fill.getInputs().front();
  Operation *source = scalar.getDefiningOp();
  return source && source->hasTrait<OpTrait::ConstantLike>() ? scalar : Value();
}

Value RowVectorizer::widen(Location loc, Value value) {
  if (isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(b, loc, typeOf(value.getType()), value);
}

//===----------------------------------------------------------------------===//
// Linalg
//===----------------------------------------------------------------------===//

/// Maps the arguments of the payload to vectors and scalars. `starts` receives the initial value of each
/// result, null where the payload does not use it.
bool RowVectorizer::mapArguments(linalg::LinalgOp linalgOp, IRMapping &payload,
                                 SmallVectorImpl<Value> &starts) {
  for (OpOperand *input : linalgOp.getDpsInputOperands()) {
    bool isScalar = !isa<ShapedType>(input->get().getType());
    AffineMap map = linalgOp.getMatchingIndexingMap(input);
    Value value = isScalar ? values.lookupOrDefault(input->get()) : lookUp(input->get());
    if (!value || (map.getNumResults() != 0 && !map.isIdentity()))
      return false;
    payload.map(linalgOp.getMatchingBlockArgument(input), value);
  }
  for (OpOperand &init : linalgOp.getDpsInitsMutable()) {
    BlockArgument argument = linalgOp.getMatchingBlockArgument(&init);
    AffineMap map = linalgOp.getMatchingIndexingMap(&init);
    Value start = argument.use_empty() ? Value() : findStart(init.get());
    if ((!argument.use_empty() && !start) || (map.getNumResults() != 0 && !map.isIdentity()))
      return false;
    starts.push_back(start);
    if (map.getNumResults() != 0 && start)
      payload.map(argument, start);
  }
  return true;
}

/// Converts an operation of the payload: on vectors if an operand is one. Returns null if it cannot.
Value RowVectorizer::convertElement(Operation &inner, IRMapping &payload) {
  Location loc = inner.getLoc();
  if (isa<linalg::IndexOp>(inner))
    return vector::StepOp::create(b, loc, typeOf(b.getIndexType()));
  if (inner.getNumResults() != 1 || inner.getNumRegions() != 0 || !isMemoryEffectFree(&inner) ||
      !isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) ||
      llvm::any_of(inner.getResultTypes(), llvm::IsaPred<ShapedType>) || inner.getResult(0).getType().isF64())
    return {};
  SmallVector<Value> operands = llvm::map_to_vector(
      inner.getOperands(), [&](Value operand) { return payload.lookupOrDefault(operand); });
  bool isWide = llvm::any_of(operands, [](Value value) { return isa<VectorType>(value.getType()); });
  if (!isWide)
    return b.clone(inner, payload)->getResult(0);
  for (Value &operand : operands)
    operand = widen(loc, operand);
  OperationState state(loc, inner.getName(), operands, typeOf(inner.getResult(0).getType()),
                       inner.getAttrs());
  return b.create(state)->getResult(0);
}

/// Reduces what the payload combines with `accumulator`. Returns null if lanes cannot combine their parts.
Value RowVectorizer::reduce(Operation *combiner, Value accumulator, Value start, IRMapping &payload) {
  Type type = accumulator.getType();
  if (!combiner || combiner->getNumOperands() != 2 || !accumulator.hasOneUse() || !combiner->hasOneUse() ||
      !arith::getNeutralElement(combiner) || (!type.isF32() && !type.isInteger(32)))
    return {};
  std::optional<vector::CombiningKind> kind = linalg::getCombinerOpKind(combiner);
  unsigned position = combiner->getOperand(0) == accumulator ? 0 : 1;
  if (!kind || combiner->getOperand(position) != accumulator)
    return {};
  Value part = widen(combiner->getLoc(), payload.lookupOrDefault(combiner->getOperand(1 - position)));
  return vector::ReductionOp::create(b, combiner->getLoc(), *kind, part, start);
}

bool RowVectorizer::convertLinalg(linalg::LinalgOp linalgOp) {
  IRMapping payload(values);
  SmallVector<Value> starts;
  if (linalgOp.getNumLoops() != 1 || !linalgOp.hasPureTensorSemantics() ||
      !mapArguments(linalgOp, payload, starts))
    return false;
  Block &body = *linalgOp.getBlock();
  llvm::SmallPtrSet<Operation *, 2> combiners;
  bool isReduction = linalgOp.getNumReductionLoops() != 0;
  if (isReduction)
    for (Value yielded : body.getTerminator()->getOperands())
      combiners.insert(yielded.getDefiningOp());
  for (Operation &inner : body.without_terminator()) {
    if (combiners.contains(&inner))
      continue;
    Value result = convertElement(inner, payload);
    if (!result)
      return false;
    payload.map(inner.getResult(0), result);
  }
  for (auto [result, yielded, argument, start] :
       llvm::zip_equal(linalgOp->getResults(), body.getTerminator()->getOperands(),
                       linalgOp.getRegionOutputArgs(), starts)) {
    Value value = isReduction ? reduce(yielded.getDefiningOp(), argument, start, payload)
                              : payload.lookupOrDefault(yielded);
    if (!value || (!isReduction && cast<ShapedType>(result.getType()).getRank() == 0))
      return false;
    values.map(result, isReduction ? value : widen(linalgOp.getLoc(), value));
  }
  return true;
}

/// Converts an operation of the region. Returns false if it is none of those that rows consist of.
bool RowVectorizer::convert(Operation &inner) {
  if (isa<tensor::EmptyOp>(inner))
    return true;
  if (auto fill = dyn_cast<linalg::FillOp>(inner)) {
    values.map(fill.getResult(0), values.lookupOrDefault(fill.getInputs().front()));
    return true;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(inner))
    return convertLinalg(linalgOp);
  if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
    Value scalar = extract.getIndices().empty() ? lookUp(extract.getTensor()) : Value();
    if (!scalar)
      return false;
    values.map(extract.getResult(), scalar);
    return true;
  }
  auto isShaped = llvm::IsaPred<ShapedType>;
  if (inner.getNumRegions() != 0 || !isMemoryEffectFree(&inner) ||
      llvm::any_of(inner.getOperandTypes(), isShaped) || llvm::any_of(inner.getResultTypes(), isShaped))
    return false;
  b.clone(inner, values);
  return true;
}

std::string RowVectorizer::run() {
  for (const std::string &found : {checkShape(), checkCaptures()})
    if (!found.empty())
      return found;
  Region converted;
  Block &body = converted.emplaceBlock();
  for (BlockArgument argument : region.body().getArguments()) {
    auto tensor = dyn_cast<TensorType>(argument.getType());
    Type type = tensor ? typeOf(tensor.getElementType()) : argument.getType();
    if (getElementTypeOrSelf(type).isF64())
      return "an input is f64";
    values.map(argument, body.addArgument(type, argument.getLoc()));
  }
  b.setInsertionPointToEnd(&body);
  for (Operation &inner : region.body().without_terminator())
    if (!convert(inner))
      return ("lanes cannot share '" + inner.getName().getStringRef() + "' of its producer").str();
  YieldOp yield = region.yield();
  SmallVector<Value> yielded;
  for (Value value : yield->getOperands()) {
    bool isRow = isa<TensorType>(value.getType());
    Value part = isRow ? lookUp(value) : values.lookupOrDefault(value);
    if (!part)
      return "its producer yields a tensor from outside";
    yielded.push_back(isRow ? widen(yield.getLoc(), part) : part);
  }
  YieldOp::create(b, yield.getLoc(), yielded.front(), ArrayRef(yielded).drop_front());
  Region before;
  before.takeBody(*region.region);
  region.region->takeBody(converted);
  // 32 registers of each of 1,024 threads for a row; a thread has multiples of 4 elements.
  int64_t perThread = llvm::alignTo(llvm::divideCeil(length, 1024), 4);
  int64_t registers = countKeptValues(region) * perThread;
  if (length <= 4096 || registers * 1024 * 4 <= getTarget(op).getMaxRowBytes() / 2)
    return "";
  region.region->takeBody(before);
  return "a row does not fit in registers";
}

class VectorizeRows : public impl::VectorizeRowsBase<VectorizeRows> {
public:
  void runOnOperation() final {
    func::FuncOp function = getOperation();
    if (!getTarget(function).hasManyThreads() || hasModuleAttr(function, kProgramOrderAttrName))
      return;
    function.walk([&](Operation *op) {
      if (!isa<AmaxOp, QuantizeOp>(op) || ElementRegion::of(op)->rows.empty())
        return;
      std::string reason = RowVectorizer(op).run();
      if (!reason.empty())
        remarkGeneric(op, "becomes a loop over its rows", reason);
    });
  }
};

} // namespace
} // namespace fp8
