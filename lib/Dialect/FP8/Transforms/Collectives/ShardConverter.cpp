// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns collectives of upstream's shard dialect into those of the fp8 dialect, and positions on the grid
// into arithmetic on the number of the rank.

#include "ShardConverter.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp8;

LogicalResult ShardConverter::setAxes(Operation *op, ArrayRef<shard::GridAxis> gridAxes, bool ordered) {
  SmallVector<int64_t> list(gridAxes.begin(), gridAxes.end());
  if (ordered && !llvm::is_sorted(list))
    return op->emitError("names axes of the grid out of their order: ranks of a group are in the order of "
                         "their numbers; name the axes from the first to the last");
  llvm::sort(list);
  axes = builder.getDenseI64ArrayAttr(list);
  return success();
}

LogicalResult ShardConverter::setGroupSize(Operation *op) {
  std::optional<int64_t> size = getGroupSize(grid, axes);
  if (!size)
    return op->emitError(
        "divides a tensor along an axis of the grid whose extent is unknown: give shard.grid the extent");
  ranks = *size;
  return success();
}

/// Returns the number in its group of the rank that is at `root` on the axes of the group.
FailureOr<int64_t> ShardConverter::getRoot(Operation *op, ArrayRef<int64_t> root, ValueRange dynamic) {
  if (!dynamic.empty() || static_cast<int64_t>(root.size()) != axes.size())
    return op->emitError("needs a root of constants, one for each axis");
  int64_t number = 0;
  for (auto [axis, place] : llvm::zip_equal(axes.asArrayRef(), root)) {
    if (ShapedType::isDynamic(grid[axis]) && axis != axes[0])
      return op->emitError("has a root on an axis whose extent is unknown: give shard.grid the extent");
    number = (axis == axes[0] ? 0 : number * grid[axis]) + place;
  }
  return number;
}

FailureOr<ReduceKind> ShardConverter::getReduction(Operation *op, shard::ReductionKind kind) {
  switch (kind) {
  case shard::ReductionKind::Sum:
    return ReduceKind::sum;
  case shard::ReductionKind::Max:
    return ReduceKind::max;
  case shard::ReductionKind::Min:
    return ReduceKind::min;
  case shard::ReductionKind::Average:
    return ReduceKind::mean;
  case shard::ReductionKind::Product:
    return ReduceKind::product;
  default:
    return op->emitError() << "reduction '" << shard::stringifyReductionKind(kind)
                           << "' is not supported; there are sum, max, min, product and average";
  }
}

FailureOr<Value> ShardConverter::convertElements(Operation *op, Value input, Type type) {
  Type from = getElementTypeOrSelf(input), to = getElementTypeOrSelf(type);
  if (from == to)
    return input;
  auto shape = cast<RankedTensorType>(input.getType()).clone(to);
  unsigned before = from.getIntOrFloatBitWidth(), after = to.getIntOrFloatBitWidth();
  if (isa<FloatType>(from) && isa<FloatType>(to) && before != after)
    return before < after ? arith::ExtFOp::create(builder, loc, shape, input).getResult()
                          : arith::TruncFOp::create(builder, loc, shape, input).getResult();
  if (isa<IntegerType>(from) && isa<IntegerType>(to) && before < after)
    return arith::ExtSIOp::create(builder, loc, shape, input).getResult();
  return op->emitError() << "reduces " << from << " to " << to << ", which is not supported: convert first";
}

/// Builds an empty tensor of the shape of `like`, whose size along `dim` is `times` / `parts` as large.
Value ShardConverter::empty(Value like, std::optional<unsigned> dim, int64_t times, int64_t parts) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, like);
  if (dim) {
    auto scale = [&](Value size) -> Value {
      Value product = arith::MulIOp::create(builder, loc, size, index(times));
      return arith::DivUIOp::create(builder, loc, product, index(parts));
    };
    if (std::optional<int64_t> size = getConstantIntValue(sizes[*dim]))
      sizes[*dim] = builder.getIndexAttr(*size * times / parts);
    else
      sizes[*dim] = scale(cast<Value>(sizes[*dim]));
  }
  return tensor::EmptyOp::create(builder, loc, sizes, getElementTypeOrSelf(like));
}

/// Builds the coordinate of this rank on `axis`.
Value ShardConverter::coordinate(int64_t axis) {
  Value rank = RankOp::create(builder, loc);
  std::optional<int64_t> later =
      getGroupSize(grid, llvm::to_vector(llvm::seq<int64_t>(axis + 1, grid.size())));
  if (!later) { // the extents before the axis are known: count from the other end
    std::optional<int64_t> earlier = getGroupSize(grid, llvm::to_vector(llvm::seq<int64_t>(0, axis + 1)));
    Value count = RankCountOp::create(builder, loc);
    Value rest = arith::DivUIOp::create(builder, loc, count, index(*earlier));
    rank = arith::DivUIOp::create(builder, loc, rank, rest);
  } else {
    rank = arith::DivUIOp::create(builder, loc, rank, index(*later));
  }
  return axis == 0 ? rank : arith::RemUIOp::create(builder, loc, rank, index(grid[axis])).getResult();
}

Value ShardConverter::positionInGroup() {
  Value position = index(0);
  for (int64_t axis : axes.asArrayRef()) {
    position = arith::MulIOp::create(builder, loc, position, index(grid[axis]));
    position = arith::AddIOp::create(builder, loc, position, coordinate(axis));
  }
  return position;
}

LogicalResult ShardConverter::replace(Operation *op, ValueRange values) {
  SmallVector<Value> fitting;
  for (auto [value, result] : llvm::zip_equal(values, op->getResults()))
    fitting.push_back(value.getType() == result.getType()
                          ? value
                          : tensor::CastOp::create(builder, loc, result.getType(), value).getResult());
  op->replaceAllUsesWith(fitting);
  op->erase();
  return success();
}

LogicalResult ShardConverter::reduce(Operation *op, Value input, shard::ReductionKind kind) {
  FailureOr<ReduceKind> reduction = getReduction(op, kind);
  if (failed(reduction))
    return failure();
  FailureOr<Value> converted = convertElements(op, input, op->getResult(0).getType());
  if (failed(converted))
    return failure();
  auto reduced = AllReduceOp::create(builder, loc, TypeRange((*converted).getType()), *converted,
                                     empty(*converted), *reduction, gridAttr, axes, StringAttr());
  return replace(op, reduced.getResults());
}

LogicalResult ShardConverter::gather(Operation *op, Value input, int64_t dim) {
  if (failed(setGroupSize(op)))
    return failure();
  Value init = empty(input, dim, ranks);
  auto gathered = AllGatherOp::create(builder, loc, TypeRange(init.getType()), input, init,
                                      builder.getI64IntegerAttr(dim), gridAttr, axes, StringAttr());
  return replace(op, gathered.getResults());
}

LogicalResult ShardConverter::reduceScatter(shard::ReduceScatterOp op) {
  FailureOr<ReduceKind> reduction = getReduction(op, op.getReduction());
  if (failed(reduction) || failed(setGroupSize(op)))
    return failure();
  FailureOr<Value> input = convertElements(op, op.getInput(), op.getResult().getType());
  if (failed(input))
    return failure();
  unsigned dim = op.getScatterAxis().getSExtValue();
  Value init = empty(*input, dim, 1, ranks);
  auto scattered = ReduceScatterOp::create(builder, loc, TypeRange(init.getType()), *input, init, *reduction,
                                           static_cast<uint64_t>(dim), gridAttr, axes, StringAttr());
  return replace(op, scattered.getResults());
}

LogicalResult ShardConverter::broadcast(Operation *op, Value input, ArrayRef<int64_t> root,
                                        ValueRange dynamic) {
  FailureOr<int64_t> number = getRoot(op, root, dynamic);
  if (failed(number))
    return failure();
  auto all = BroadcastOp::create(builder, loc, TypeRange(input.getType()), input, empty(input),
                                 builder.getI32IntegerAttr(*number), gridAttr, axes, StringAttr());
  return replace(op, all.getResults());
}

LogicalResult ShardConverter::scatter(shard::ScatterOp op) {
  FailureOr<int64_t> number = getRoot(op, op.getRoot(), op.getRootDynamic());
  if (failed(number))
    return failure();
  auto all = BroadcastOp::create(builder, loc, TypeRange(op.getInput().getType()), op.getInput(),
                                 empty(op.getInput()), builder.getI32IntegerAttr(*number), gridAttr, axes,
                                 StringAttr());
  FailureOr<Value> part = slice(op, all.getResult(0), op.getScatterAxis().getSExtValue());
  return failed(part) ? failure() : replace(op, *part);
}

/// Builds the part of `input` that belongs to this rank, along `dim`.
FailureOr<Value> ShardConverter::slice(Operation *op, Value input, int64_t dim) {
  if (failed(setGroupSize(op)))
    return failure();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, empty(input, dim, 1, ranks));
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  Value size = getValueOrCreateConstantIndexOp(builder, loc, sizes[dim]);
  offsets[dim] = arith::MulIOp::create(builder, loc, positionInGroup(), size).getResult();
  return tensor::ExtractSliceOp::create(builder, loc, input, offsets, sizes, strides).getResult();
}

LogicalResult ShardConverter::shift(shard::ShiftOp op) {
  // Only the axis of the shift tells ranks of the group apart.
  axes = builder.getDenseI64ArrayAttr(op.getShiftAxis().getSExtValue());
  Value input = op.getInput();
  auto shifted = ShiftOp::create(builder, loc, TypeRange(input.getType()), input, empty(input),
                                 builder.getI32IntegerAttr(op.getOffset()), gridAttr, axes, StringAttr());
  return replace(op, shifted.getResults());
}

/// Moves the parts along the split axis to the front, exchanges them, and joins them along the other axis.
LogicalResult ShardConverter::allToAll(shard::AllToAllOp op) {
  if (failed(setGroupSize(op)))
    return failure();
  auto type = cast<RankedTensorType>(op.getInput().getType());
  if (!type.hasStaticShape())
    return op.emitError("all_to_all of a tensor of dynamic shape is not supported");
  int64_t split = op.getSplitAxis().getSExtValue(), concat = op.getConcatAxis().getSExtValue();
  int64_t rank = type.getRank();
  if (type.getDimSize(split) % ranks != 0)
    return op.emitError() << "size " << type.getDimSize(split) << " of dimension " << split
                          << " is no multiple of the " << ranks << " ranks of a group";
  // [.., S, ..] -> [.., ranks, S / ranks, ..]
  auto divide = [&](int64_t dim) {
    SmallVector<ReassociationIndices> groups(rank);
    for (int64_t d = 0, next = 0; d < rank; ++d)
      for (int64_t i = 0; i < (d == dim ? 2 : 1); ++i)
        groups[d].push_back(next++);
    return groups;
  };
  auto transpose = [&](Value value, ArrayRef<int64_t> order) -> Value {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
    SmallVector<int64_t> sizes;
    for (int64_t d : order)
      sizes.push_back(shape[d]);
    Value init = tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
    return linalg::TransposeOp::create(builder, loc, value, init, order)->getResult(0);
  };
  SmallVector<int64_t> divided(type.getShape());
  divided[split] /= ranks;
  SmallVector<int64_t> parts = divided;
  divided.insert(divided.begin() + split, ranks);
  Value expanded =
      tensor::ExpandShapeOp::create(builder, loc, type.clone(divided), op.getInput(), divide(split));
  SmallVector<int64_t> toFront{split};
  for (int64_t d = 0; d <= rank; ++d)
    if (d != split)
      toFront.push_back(d);
  Value sent = transpose(expanded, toFront);
  auto received = AllToAllOp::create(builder, loc, TypeRange(sent.getType()), sent, empty(sent), gridAttr,
                                     axes, StringAttr());
  SmallVector<int64_t> back;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == concat)
      back.push_back(0);
    back.push_back(d + 1);
  }
  Value placed = transpose(received->getResult(0), back);
  parts[concat] *= ranks;
  Value joined = tensor::CollapseShapeOp::create(builder, loc, type.clone(parts), placed, divide(concat));
  return replace(op, joined);
}

LogicalResult ShardConverter::convert(Operation *op) {
  builder.setInsertionPoint(op);
  loc = op->getLoc();
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>))
    return op->emitError("is on memrefs: compile the program as it was before bufferization");
  if (auto axesAttr = op->getAttrOfType<DenseI16ArrayAttr>("grid_axes")) {
    bool ordered = !isa<shard::AllReduceOp, shard::ShiftOp>(op);
    if (failed(setAxes(op, axesAttr, ordered)))
      return failure();
    if (axesAttr.empty() && op->getNumOperands() == 1 &&
        op->getOperand(0).getType() == op->getResult(0).getType())
      return replace(op, op->getOperand(0)); // a group of one rank
    if (axesAttr.empty())
      return op->emitError("names no axis of the grid");
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](shard::AllReduceOp op) { return reduce(op, op.getInput(), op.getReduction()); })
      .Case([&](shard::ReduceOp op) { return reduce(op, op.getInput(), op.getReduction()); })
      .Case(
          [&](shard::AllGatherOp op) { return gather(op, op.getInput(), op.getGatherAxis().getSExtValue()); })
      .Case([&](shard::GatherOp op) { return gather(op, op.getInput(), op.getGatherAxis().getSExtValue()); })
      .Case([&](shard::ReduceScatterOp op) { return reduceScatter(op); })
      .Case([&](shard::BroadcastOp op) {
        return broadcast(op, op.getInput(), op.getRoot(), op.getRootDynamic());
      })
      .Case([&](shard::ScatterOp op) { return scatter(op); })
      .Case([&](shard::ShiftOp op) { return shift(op); })
      .Case([&](shard::AllToAllOp op) { return allToAll(op); })
      .Case([&](shard::AllSliceOp op) -> LogicalResult {
        FailureOr<Value> part = slice(op, op.getInput(), op.getSliceAxis().getSExtValue());
        return failed(part) ? failure() : replace(op, *part);
      })
      .Case([&](shard::ProcessLinearIndexOp op) {
        return replace(op, RankOp::create(builder, loc)->getResults());
      })
      .Case([&](shard::ProcessMultiIndexOp op) {
        SmallVector<int64_t> wanted(op.getAxes().begin(), op.getAxes().end());
        if (wanted.empty())
          wanted = llvm::to_vector(llvm::seq<int64_t>(0, grid.size()));
        return replace(op, llvm::map_to_vector(wanted, [&](int64_t axis) { return coordinate(axis); }));
      })
      .Case([&](shard::GridShapeOp op) -> LogicalResult {
        SmallVector<int64_t> wanted(op.getAxes().begin(), op.getAxes().end());
        if (wanted.empty())
          wanted = llvm::to_vector(llvm::seq<int64_t>(0, grid.size()));
        if (llvm::any_of(wanted, [&](int64_t axis) { return ShapedType::isDynamic(grid[axis]); }))
          return op.emitError("asks for an extent of the grid that is unknown: give shard.grid the extent");
        return replace(op, llvm::map_to_vector(wanted, [&](int64_t axis) { return index(grid[axis]); }));
      })
      .Default([](Operation *op) {
        return op->emitError()
               << "'" << op->getName()
               << "' is not supported; collectives of whole groups are (all_reduce, all_gather, "
                  "reduce_scatter, broadcast, scatter, shift, all_to_all, all_slice), after "
                  "shard-partition has distributed the program";
      });
}
