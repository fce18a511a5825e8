// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms and softmaxes move into the cast or the amax that reads them, whose region works on
// rows from then on. RowCluster.h says what can move; here a region is built of it, and
// bytes read and written decide whether it stays.

#include "RowCluster.h"
#include "fp8/Analysis/MemoryTraffic.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_FUSEROWS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Builds a cast or an amax on rows, next to the one without.
class RowBuilder {
public:
  RowBuilder(RewriterBase &rewriter, Operation *op, ArrayRef<int64_t> rows, const detail::RowCluster &cluster)
      : rewriter(rewriter), op(op), old(*ElementRegion::of(op)), rows(rows), cluster(cluster),
        loc(op->getLoc()) {}

  /// The operation on rows before `op`, which it does not replace yet.
  Operation *build();
  /// Results of members that become extra results, in their order after those of `op`.
  llvm::SetVector<Value> stored;

private:
  Value partOf(Value value, AffineMap map);
  AffineMap dropOuterLoops(AffineMap map, AffineMap loops);
  Value indexOf(AffineExpr place);
  Value elementIndex(OpBuilder &b, int64_t dim);
  IRMapping cloneBody(OpBuilder &b, linalg::GenericOp generic, AffineMap loops, IRMapping mapping);
  void inlineMember(linalg::GenericOp generic, AffineMap loops);
  void addScalar(linalg::GenericOp generic, AffineMap loops);
  void addRow(linalg::GenericOp generic, AffineMap loops);
  SmallVector<Value> addElements();
  void store(SmallVectorImpl<Value> &yielded, SmallVectorImpl<Value> &outs,
             SmallVectorImpl<AffineMap> &extraMaps);

  RewriterBase &rewriter;
  Operation *op;
  ElementRegion old;
  SmallVector<int64_t> rows;
  const detail::RowCluster &cluster;
  Location loc;
  Block *body = nullptr;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> inputMaps;
  DenseMap<Value, Value> parts; ///< of results of members
};

Type getPartType(Value value, AffineMap map, ArrayRef<int64_t> rows) {
  auto type = cast<ShapedType>(value.getType());
  SmallVector<int64_t> sizes;
  for (auto [position, expr] : llvm::enumerate(map.getResults()))
    if (isRowDim(expr, rows))
      sizes.push_back(type.getDimSize(position));
  return sizes.empty() ? type.getElementType() : RankedTensorType::get(sizes, type.getElementType());
}

/// What the region has of `value`: computed there, or an argument.
Value RowBuilder::partOf(Value value, AffineMap map) {
  if (!isa<ShapedType>(value.getType()))
    return value;
  if (Value part = parts.lookup(value))
    return part;
  unsigned first = body->getNumArguments() - inputs.size();
  for (auto [i, input, inputMap] : llvm::enumerate(inputs, inputMaps))
    if (input == value && inputMap == map)
      return body->getArgument(first + i);
  inputs.push_back(value);
  inputMaps.push_back(map);
  return body->addArgument(getPartType(value, map, rows), loc);
}

/// `map`, which reads an operand of a member, on its loops over the row alone.
AffineMap RowBuilder::dropOuterLoops(AffineMap map, AffineMap loops) {
  SmallVector<AffineExpr> renumbered;
  unsigned numLoops = 0;
  for (AffineExpr place : loops.getResults())
    renumbered.push_back(isRowDim(place, rows) ? rewriter.getAffineDimExpr(numLoops++) : AffineExpr());
  SmallVector<AffineExpr> exprs;
  for (auto [expr, place] : llvm::zip_equal(map.getResults(), map.compose(loops).getResults()))
    if (isRowDim(place, rows))
      exprs.push_back(renumbered[cast<AffineDimExpr>(expr).getPosition()]);
  return AffineMap::get(numLoops, 0, exprs, op->getContext());
}

/// The index of the row in the dimension `place`.
Value RowBuilder::indexOf(AffineExpr place) {
  auto dim = dyn_cast<AffineDimExpr>(place);
  if (!dim)
    return arith::ConstantIndexOp::create(rewriter, loc, 0);
  unsigned inRow = llvm::count_if(rows, [&](int64_t row) { return row < dim.getPosition(); });
  return body->getArgument(dim.getPosition() - inRow);
}

/// The index in dimension `dim` of the tensor, in a loop nest over the row.
Value RowBuilder::elementIndex(OpBuilder &b, int64_t dim) {
  if (!llvm::is_contained(rows, dim))
    return indexOf(rewriter.getAffineDimExpr(dim));
  int64_t loop = llvm::count_if(rows, [&](int64_t row) { return row < dim; });
  return linalg::IndexOp::create(b, loc, loop);
}

/// Copies the body of a member into `b`; its loops over the row are those of the operation there.
IRMapping RowBuilder::cloneBody(OpBuilder &b, linalg::GenericOp generic, AffineMap loops, IRMapping mapping) {
  for (Operation &inner : generic.getBody()->without_terminator()) {
    auto index = dyn_cast<linalg::IndexOp>(inner);
    if (!index) {
      b.clone(inner, mapping);
      continue;
    }
    AffineExpr place = loops.getResult(index.getDim());
    if (isRowDim(place, rows)) {
      unsigned loop = llvm::count_if(loops.getResults().take_front(index.getDim()),
                                     [&](AffineExpr before) { return isRowDim(before, rows); });
      mapping.map(index.getResult(), linalg::IndexOp::create(b, loc, loop).getResult());
    } else {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(b.getInsertionBlock(), b.getInsertionPoint());
      mapping.map(index.getResult(), indexOf(place));
    }
  }
  return mapping;
}

/// Code that runs once per row.
void RowBuilder::addScalar(linalg::GenericOp generic, AffineMap loops) {
  IRMapping mapping;
  for (OpOperand *input : generic.getDpsInputOperands())
    mapping.map(generic.getMatchingBlockArgument(input),
                partOf(input->get(), generic.getMatchingIndexingMap(input).compose(loops)));
  for (OpOperand &init : generic.getDpsInitsMutable())
    if (generic.payloadUsesValueFromOperand(&init))
      mapping.map(generic.getMatchingBlockArgument(&init), detail::getFillValue(init.get()));
  mapping = cloneBody(rewriter, generic, loops, mapping);
  for (auto [result, value] :
       llvm::zip(generic->getResults(), generic.getBody()->getTerminator()->getOperands()))
    parts[result] = mapping.lookupOrDefault(value);
}

/// Code that runs once per element of a row.
void RowBuilder::addRow(linalg::GenericOp generic, AffineMap loops) {
  SmallVector<Value> ins, outs;
  SmallVector<AffineMap> maps;
  SmallVector<utils::IteratorType> iterators;
  IRMapping scalars;
  SmallVector<OpOperand *> rowInputs;
  for (OpOperand *input : generic.getDpsInputOperands()) {
    AffineMap map = generic.getMatchingIndexingMap(input);
    Value part = partOf(input->get(), map.compose(loops));
    if (!isa<TensorType>(part.getType())) {
      scalars.map(generic.getMatchingBlockArgument(input), part);
      continue;
    }
    ins.push_back(part);
    maps.push_back(dropOuterLoops(map, loops));
    rowInputs.push_back(input);
  }
  for (OpOperand &init : generic.getDpsInitsMutable()) {
    AffineMap map = generic.getMatchingIndexingMap(&init);
    Type part = getPartType(init.get(), map.compose(loops), rows);
    ArrayRef<int64_t> sizes = isa<TensorType>(part) ? cast<TensorType>(part).getShape() : ArrayRef<int64_t>();
    Value out = tensor::EmptyOp::create(rewriter, loc, sizes, getElementTypeOrSelf(part));
    if (generic.payloadUsesValueFromOperand(&init))
      out = linalg::FillOp::create(rewriter, loc, detail::getFillValue(init.get()), out).getResult(0);
    outs.push_back(out);
    maps.push_back(dropOuterLoops(map, loops));
  }
  for (auto [place, kind] : llvm::zip_equal(loops.getResults(), generic.getIteratorTypesArray()))
    if (isRowDim(place, rows))
      iterators.push_back(kind);
  auto row = linalg::GenericOp::create(
      rewriter, generic.getLoc(), TypeRange(ValueRange(outs)), ins, outs, maps, iterators,
      [&](OpBuilder &b, Location, ValueRange values) {
        IRMapping mapping(scalars);
        for (auto [input, value] : llvm::zip_equal(rowInputs, values.take_front(ins.size())))
          mapping.map(generic.getMatchingBlockArgument(input), value);
        mapping.map(generic.getRegionOutputArgs(), values.drop_front(ins.size()));
        mapping = cloneBody(b, generic, loops, mapping);
        SmallVector<Value> yielded =
            llvm::map_to_vector(generic.getBody()->getTerminator()->getOperands(),
                                [&](Value value) { return mapping.lookupOrDefault(value); });
        linalg::YieldOp::create(b, loc, yielded);
      });
  for (auto [result, part] : llvm::zip_equal(generic->getResults(), row->getResults()))
    parts[result] = cast<TensorType>(part.getType()).getRank() != 0
                        ? part
                        : tensor::ExtractOp::create(rewriter, loc, part, ValueRange()).getResult();
}

void RowBuilder::inlineMember(linalg::GenericOp generic, AffineMap loops) {
  bool overRow = llvm::any_of(loops.getResults(), [&](AffineExpr place) { return isRowDim(place, rows); });
  if (overRow)
    addRow(generic, loops);
  else
    addScalar(generic, loops);
}

/// The elementwise region of `op`, on a row. Returns what it yields.
SmallVector<Value> RowBuilder::addElements() {
  if (old.isEmpty())
    return {partOf(old.inputs[0], old.maps[0])};
  Block &elements = old.body();
  AffineMap loops = rewriter.getMultiDimIdentityMap(old.numDims);
  IRMapping scalars;
  SmallVector<Value> ins, outs;
  SmallVector<AffineMap> maps;
  SmallVector<BlockArgument> rowArguments;
  for (auto [argument, input, map] : llvm::zip_equal(elements.getArguments(), old.inputs, old.inputMaps())) {
    Value part = partOf(input, map);
    if (!isa<TensorType>(part.getType())) {
      scalars.map(argument, part);
      continue;
    }
    ins.push_back(part);
    maps.push_back(dropOuterLoops(map, loops));
    rowArguments.push_back(argument);
  }
  SmallVector<AffineMap> outMaps{loops};
  llvm::append_range(outMaps, old.extraMaps());
  SmallVector<int64_t> sizes = cluster.rowSizes();
  for (auto [value, map] : llvm::zip_equal(old.yield()->getOperands(), outMaps)) {
    AffineMap inRow = dropOuterLoops(map, loops);
    SmallVector<int64_t> shape = llvm::map_to_vector(inRow.getResults(), [&](AffineExpr expr) -> int64_t {
      return sizes[cast<AffineDimExpr>(expr).getPosition()];
    });
    outs.push_back(tensor::EmptyOp::create(rewriter, loc, shape, value.getType()));
    maps.push_back(inRow);
  }
  SmallVector<utils::IteratorType> iterators(rows.size(), utils::IteratorType::parallel);
  auto row = linalg::GenericOp::create(
      rewriter, loc, TypeRange(ValueRange(outs)), ins, outs, maps, iterators,
      [&](OpBuilder &b, Location, ValueRange values) {
        IRMapping mapping(scalars);
        for (auto [argument, value] : llvm::zip_equal(rowArguments, values.take_front(ins.size())))
          mapping.map(argument, value);
        for (Operation &inner : elements.without_terminator()) {
          if (auto index = dyn_cast<IndexOp>(inner))
            mapping.map(index.getResult(), elementIndex(b, index.getDim()));
          else
            b.clone(inner, mapping);
        }
        linalg::YieldOp::create(b, loc, llvm::map_to_vector(old.yield()->getOperands(), [&](Value value) {
                                  return mapping.lookupOrDefault(value);
                                }));
      });
  return SmallVector<Value>(row->getResults());
}

/// Results of members that are read outside of the cluster become extra results.
void RowBuilder::store(SmallVectorImpl<Value> &yielded, SmallVectorImpl<Value> &outs,
                       SmallVectorImpl<AffineMap> &extraMaps) {
  for (Operation *member : cluster.members) {
    auto generic = dyn_cast<linalg::GenericOp>(member);
    if (!generic)
      continue;
    for (OpOperand &init : generic.getDpsInitsMutable()) {
      OpResult result = generic.getTiedOpResult(&init);
      if (!cluster.isReadOutside(result))
        continue;
      stored.insert(result);
      yielded.push_back(parts.lookup(result));
      outs.push_back(detail::getUnusedDestination(rewriter, init.get()));
      extraMaps.push_back(cluster.placements.lookup(result));
    }
  }
}

Operation *RowBuilder::build() {
  rewriter.setInsertionPoint(op);
  Region region;
  body = &region.emplaceBlock();
  for (unsigned i = 0; i < old.numDims - rows.size(); ++i)
    body->addArgument(rewriter.getIndexType(), loc);
  SmallVector<Value> outs(old.outs), yielded;
  SmallVector<AffineMap> maps, extraMaps(old.extraMaps());
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(body);
    for (Operation *member : cluster.members)
      if (auto generic = dyn_cast<linalg::GenericOp>(member))
        inlineMember(generic, cluster.loops.lookup(generic));
      else
        parts[member->getResult(0)] = partOf(member->getOperand(0), cluster.loops.lookup(member));
    yielded = addElements();
  }
  store(yielded, outs, extraMaps);
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(body);
    YieldOp::create(rewriter, loc, yielded.front(), ArrayRef(yielded).drop_front());
  }
  llvm::append_range(maps, inputMaps);
  llvm::append_range(maps, extraMaps);
  return buildOnRows(rewriter, op, inputs, outs, rewriter.getAffineMapArrayAttr(maps), rows, region);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// What reads the cluster's results, or depends on what does, before `op`: it has to come after.
/// Fails where something of it has effects.
FailureOr<SmallVector<Operation *>> findReadersBefore(Operation *op, const detail::RowCluster &cluster) {
  SmallVector<Operation *> readers;
  llvm::SmallPtrSet<Operation *, 16> late;
  for (Operation *next = cluster.members.front(); next != op; next = next->getNextNode()) {
    bool isGeneric = cluster.isMember(next) && isa<linalg::GenericOp>(next);
    bool reads = isGeneric || late.contains(next);
    if (!reads)
      continue;
    for (Operation *user : next->getUsers()) {
      Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
      bool outside = reader && reader != op && (!cluster.isMember(reader) || !isa<linalg::GenericOp>(reader));
      if (outside && reader->isBeforeInBlock(op))
        late.insert(reader);
    }
    if (!isGeneric) {
      if (!isMemoryEffectFree(next))
        return failure();
      readers.push_back(next);
    }
  }
  return readers;
}

/// Moves the cluster into `op`, if that saves traffic. Returns whether it did.
bool fuse(RewriterBase &rewriter, Operation *op, ArrayRef<int64_t> rows) {
  detail::RowCluster cluster(op, rows);
  if (failed(cluster.find()))
    return false;
  FailureOr<SmallVector<Operation *>> readers = findReadersBefore(op, cluster);
  if (failed(readers))
    return false;
  RowBuilder builder(rewriter, op, rows, cluster);
  Operation *built = builder.build();
  MemoryTraffic before = countTraffic(op);
  for (Operation *member : cluster.members)
    before += countTraffic(member);
  if (countTraffic(built).total() >= before.total()) {
    rewriter.eraseOp(built);
    return false;
  }
  for (Operation *reader : *readers)
    rewriter.moveOpBefore(reader, op);
  unsigned kept = op->getNumResults();
  rewriter.replaceAllUsesWith(op->getResults(), built->getResults().take_front(kept));
  rewriter.eraseOp(op);
  for (auto [value, extra] : llvm::zip_equal(builder.stored, built->getResults().drop_front(kept)))
    rewriter.replaceAllUsesWith(value, extra);
  for (Operation *member : llvm::reverse(cluster.members))
    if (member->use_empty())
      rewriter.eraseOp(member);
  return true;
}

/// The sets of dimensions that may be rows: those that a tensor lacks which the region reads, as
/// a statistic of the rows does, and the last one.
SmallVector<SmallVector<int64_t>> findCandidates(Operation *op) {
  ElementRegion region = *ElementRegion::of(op);
  SmallVector<SmallVector<int64_t>> candidates;
  auto add = [&](SmallVector<int64_t> dims) {
    if (!dims.empty() && dims.size() < region.numDims && !llvm::is_contained(candidates, dims))
      candidates.push_back(dims);
  };
  for (auto [input, map] : llvm::zip(region.inputs, region.inputMaps())) {
    SmallVector<int64_t> missing;
    for (unsigned dim = 0; dim < region.numDims; ++dim)
      if (!map.isFunctionOfDim(dim))
        missing.push_back(dim);
    if (input.getDefiningOp())
      add(missing);
  }
  add({static_cast<int64_t>(region.numDims) - 1});
  return candidates;
}

class FuseRows : public impl::FuseRowsBase<FuseRows> {
public:
  void runOnOperation() final {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<AmaxOp, QuantizeOp>(op) && op->getNumResults() != 0 && !op->getAttr("block") &&
          ElementRegion::of(op)->rows.empty())
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops)
      for (ArrayRef<int64_t> rows : findCandidates(op))
        if (fuse(rewriter, op, rows))
          break;
  }
};

} // namespace
} // namespace fp8
