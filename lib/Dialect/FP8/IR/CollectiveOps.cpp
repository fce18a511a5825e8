// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers and interface methods of collectives.

#include "OpVerification.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace fp8;

#include "fp8/Dialect/FP8/IR/FP8OpInterfaces.cpp.inc"

static ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }

std::optional<int64_t> fp8::getGroupSize(ArrayRef<int64_t> grid, ArrayRef<int64_t> axes) {
  int64_t size = 1;
  for (int64_t axis : axes) {
    if (ShapedType::isDynamic(grid[axis]))
      return std::nullopt;
    size *= grid[axis];
  }
  return size;
}

LogicalResult fp8::verifyGroup(Operation *op, ArrayRef<int64_t> grid, ArrayRef<int64_t> axes) {
  if (grid.empty() || grid.size() > 32)
    return op->emitOpError() << "has a grid of " << grid.size() << " axes; there can be 1 to 32";
  if (llvm::count_if(grid, ShapedType::isDynamic) > 1)
    return op->emitOpError("has a grid with two unknown extents; the number of ranks gives only one");
  if (llvm::any_of(grid, [](int64_t size) { return !ShapedType::isDynamic(size) && size < 1; }))
    return op->emitOpError("has a grid with an extent below 1");
  if (axes.empty())
    return op->emitOpError("names no axis of the grid");
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(grid.size()))
      return op->emitOpError() << "names axis " << axis << " of a grid of " << grid.size();
    if (!seen.insert(axis).second)
      return op->emitOpError() << "names axis " << axis << " twice";
  }
  return success();
}

LogicalResult fp8::verifyCollective(Operation *op) {
  auto collective = cast<CollectiveOpInterface>(op);
  return verifyGroup(op, collective.getGridAttr(), collective.getAxesAttr());
}

/// Checks that elements of `type` can be combined as `kind` says.
static LogicalResult verifyReducible(Operation *op, Type type) {
  bool isNumber = isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type) || type.isInteger(8) ||
                  type.isInteger(32) || type.isInteger(64);
  if (!isNumber)
    return op->emitOpError() << "cannot combine elements of type " << type
                             << "; there are f16, bf16, f32, f64, i8, i32 and i64";
  return success();
}

static LogicalResult verifySameType(CollectiveOpInterface op) {
  if (failed(fp8::detail::verifyDestinationStyle(cast<DestinationStyleOpInterface>(op.getOperation()))))
    return failure();
  ShapedType input = shaped(op.getInput()), output = shaped(op.getOuts());
  if (!fp8::detail::shapesMatch(input, output))
    return op->emitOpError() << "input " << input << " and result " << output << " must have one shape";
  if (input.getElementType() != output.getElementType())
    return op->emitOpError() << "input " << input << " and result " << output
                             << " must have one element type";
  return success();
}

/// Checks that `whole` is `part` times the size of the group along `dim`. `names` are those of part and
/// whole.
static LogicalResult verifyParts(CollectiveOpInterface op, ShapedType part, ShapedType whole, int64_t dim,
                                 std::pair<StringRef, StringRef> names) {
  if (failed(fp8::detail::verifyDestinationStyle(cast<DestinationStyleOpInterface>(op.getOperation()))))
    return failure();
  if (part.getElementType() != whole.getElementType() || part.getRank() != whole.getRank())
    return op->emitOpError("input and result must have one element type and rank");
  if (dim < 0 || dim >= part.getRank())
    return op->emitOpError() << "dim " << dim << " is not a dimension of a tensor of rank " << part.getRank();
  std::optional<int64_t> ranks = getGroupSize(op.getGridAttr(), op.getAxesAttr());
  for (int64_t d = 0; d < part.getRank(); ++d) {
    int64_t one = part.getDimSize(d), all = whole.getDimSize(d);
    if (ShapedType::isDynamic(one) || ShapedType::isDynamic(all))
      continue;
    bool fits = d != dim ? one == all : ranks ? one * *ranks == all : one == 0 ? all == 0 : all % one == 0;
    if (!fits) {
      InFlightDiagnostic error = op->emitOpError()
                                 << "dimension " << d << " has size " << one << " in the " << names.first
                                 << " and " << all << " in the " << names.second;
      return d == dim && ranks ? error << ", for " << *ranks << " ranks" : error;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// AllReduceOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(AllReduceOp, false)

CollectiveStep AllReduceOp::getStep() { return {CollectiveKind::all_reduce, getKind()}; }

LogicalResult AllReduceOp::verify() {
  return failure(failed(verifySameType(*this)) ||
                 failed(verifyReducible(*this, shaped(getInput()).getElementType())));
}

namespace {

/// Folds a max all-reduce of the result of another one over the same group.
struct FoldRepeatedMax : OpRewritePattern<AllReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AllReduceOp op, PatternRewriter &rewriter) const final {
    auto inner = op.getInput().getDefiningOp<AllReduceOp>();
    if (!inner || op.getKind() != ReduceKind::max || inner.getKind() != ReduceKind::max ||
        inner.getGridAttr() != op.getGridAttr() || inner.getAxesAttr() != op.getAxesAttr())
      return rewriter.notifyMatchFailure(op, "does not repeat a maximum over the same group");
    rewriter.replaceOp(op, inner.getResults());
    return success();
  }
};

} // namespace

void AllReduceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldRepeatedMax>(context);
}

//===----------------------------------------------------------------------===//
// The other collectives
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(AllGatherOp, false)

CollectiveStep AllGatherOp::getStep() { return {CollectiveKind::all_gather}; }

LogicalResult AllGatherOp::verify() {
  return verifyParts(*this, shaped(getInput()), shaped(getOuts()), getDim(), {"input", "result"});
}

FP8_DEFINE_DPS_METHODS(ReduceScatterOp, false)

CollectiveStep ReduceScatterOp::getStep() { return {CollectiveKind::reduce_scatter, getKind()}; }

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyReducible(*this, shaped(getInput()).getElementType())))
    return failure();
  return verifyParts(*this, shaped(getOuts()), shaped(getInput()), getDim(), {"result", "input"});
}

FP8_DEFINE_DPS_METHODS(BroadcastOp, false)

CollectiveStep BroadcastOp::getStep() {
  return {CollectiveKind::broadcast, ReduceKind::sum, static_cast<int32_t>(getRoot())};
}

LogicalResult BroadcastOp::verify() {
  std::optional<int64_t> ranks = getGroupSize(getGrid(), getAxes());
  int64_t root = static_cast<int32_t>(getRoot());
  if (root < 0 || (ranks && root >= *ranks))
    return emitOpError() << "rank " << root << " is not in the group"
                         << (ranks ? " of " + std::to_string(*ranks) : "");
  return verifySameType(*this);
}

FP8_DEFINE_DPS_METHODS(ShiftOp, false)

CollectiveStep ShiftOp::getStep() {
  return {CollectiveKind::shift, ReduceKind::sum, static_cast<int32_t>(getOffset())};
}

LogicalResult ShiftOp::verify() { return verifySameType(*this); }

FP8_DEFINE_DPS_METHODS(AllToAllOp, false)

CollectiveStep AllToAllOp::getStep() { return {CollectiveKind::all_to_all}; }

LogicalResult AllToAllOp::verify() {
  if (failed(verifySameType(*this)))
    return failure();
  ShapedType type = shaped(getInput());
  if (type.getRank() == 0)
    return emitOpError("needs a dimension to divide");
  std::optional<int64_t> ranks = getGroupSize(getGrid(), getAxes());
  if (ranks && !type.isDynamicDim(0) && type.getDimSize(0) % *ranks != 0)
    return emitOpError() << "size " << type.getDimSize(0) << " of dimension 0 is no multiple of the "
                         << *ranks << " ranks of a group";
  return success();
}

//===----------------------------------------------------------------------===//
// The halves of a collective
//===----------------------------------------------------------------------===//

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

/// The first half reads the buffer to send and writes the other one; so does the second half, as far as the
/// order of other code is concerned.
template <typename Op>
static void addEffectsOfHalf(Op op, Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &op.getSendMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &op.getReceiveMutable());
}

void StartCollectiveOp::getEffects(Effects &effects) { addEffectsOfHalf(*this, effects); }
void WaitCollectiveOp::getEffects(Effects &effects) { addEffectsOfHalf(*this, effects); }

LogicalResult StartCollectiveOp::verify() { return verifyGroup(*this, getGrid(), getAxes()); }
