// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the members backwards from the cast: an operation joins if it can be computed row by row
// and no operation outside of the cluster depends on it and leads to the cast.

#include "RowCluster.h"
#include "fp8/Analysis/MemoryTraffic.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

static constexpr Reason kTooLargeRows = "a row takes more memory than the target allows";

static ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }

Value fp8::detail::getFillValue(Value init) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  return fill ? fill.getInputs().front() : Value();
}

/// Returns the tensor.empty if `init` is one or a fill of one; null otherwise.
static Value getEmpty(Value init) {
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getOutputs().front();
  return init.getDefiningOp<tensor::EmptyOp>() ? init : Value();
}

Value fp8::detail::getUnusedDestination(OpBuilder &builder, Value init) {
  if (Value empty = getEmpty(init))
    return empty;
  auto type = cast<RankedTensorType>(init.getType());
  if (!type.hasStaticShape())
    return {};
  return tensor::EmptyOp::create(builder, init.getLoc(), type.getShape(), type.getElementType());
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

/// Returns whether `map` has each dimension of a row at most once, and nothing else of a row.
bool RowCluster::isSliceable(AffineMap map) const {
  llvm::DenseSet<int64_t> seen;
  for (AffineExpr expr : map.getResults()) {
    if (isRowDim(expr, rows)) {
      if (!seen.insert(cast<AffineDimExpr>(expr).getPosition()).second)
        return false;
    } else if (llvm::any_of(rows, [&](int64_t dim) { return expr.isFunctionOfDim(dim); })) {
      return false;
    }
  }
  return true;
}

bool RowCluster::differsByRow(AffineMap map) const {
  return llvm::all_of(llvm::enumerate(sizes), [&, context = map.getContext()](auto dim) {
    return llvm::is_contained(rows, dim.index()) ||
           llvm::is_contained(map.getResults(), getAffineDimExpr(dim.index(), context));
  });
}

SmallVector<int64_t> RowCluster::rowSizes() const {
  return llvm::map_to_vector(rows, [&](int64_t dim) { return sizes[dim]; });
}

bool RowCluster::isReadOutside(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
    if (isMember(reader) && !isa<linalg::GenericOp>(reader))
      return isReadOutside(reader->getResult(0));
    return reader != op && !isMember(reader);
  });
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

void RowCluster::addRead(Value value, AffineMap map) {
  if (!isa<ShapedType>(value.getType()))
    return;
  reads.insert(value);
  auto [known, isNew] = placements.try_emplace(value, map);
  if (!isNew && known->second != map)
    clashing.insert(value);
  Operation *source = value.getDefiningOp();
  if (isa_and_nonnull<linalg::GenericOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(source) &&
      source->getBlock() == op->getBlock())
    pending.insert(source);
}

/// Returns whether the body is arithmetic on scalars and indices, without gathers and branches.
static bool isScalarCode(linalg::GenericOp generic) {
  for (Operation &inner : generic.getBody()->without_terminator()) {
    bool scalar = isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) && isPure(&inner);
    if (!(scalar || isa<linalg::IndexOp>(inner)) ||
        llvm::any_of(inner.getOperandTypes(), llvm::IsaPred<ShapedType>) ||
        llvm::any_of(inner.getResultTypes(), llvm::IsaPred<ShapedType>))
      return false;
  }
  return generic.hasPureTensorSemantics();
}

/// Returns the map from dimensions to loops of `generic`. The loops of its results follow from the
/// maps at which the results are read; each other loop is a reduction over a dimension of the row of
/// the same size that no other loop has. Returns null if there is no such dimension.
AffineMap RowCluster::findLoops(linalg::GenericOp generic) {
  MLIRContext *context = generic.getContext();
  SmallVector<AffineExpr> exprs(generic.getNumLoops());
  for (OpResult result : generic->getResults()) {
    auto placement = placements.find(result);
    if (placement == placements.end())
      continue;
    AffineMap out = generic.getIndexingMapMatchingResult(result);
    for (auto [loop, place] : llvm::zip_equal(out.getResults(), placement->second.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(loop);
      if (!dim || (!isa<AffineDimExpr>(place) && place != getAffineConstantExpr(0, context)))
        return {};
      exprs[dim.getPosition()] = place;
    }
    break;
  }
  SmallVector<int64_t> ranges = generic.getStaticLoopRanges();
  for (auto [loop, expr] : llvm::enumerate(exprs)) {
    if (expr)
      continue;
    if (ranges[loop] == 1)
      expr = getAffineConstantExpr(0, context);
    for (int64_t dim : rows)
      if (AffineExpr place = getAffineDimExpr(dim, context);
          !expr && sizes[dim] == ranges[loop] && !llvm::is_contained(exprs, place))
        expr = place;
    if (!expr)
      return {};
  }
  return AffineMap::get(sizes.size(), 0, exprs, context);
}

/// Returns whether with these loops every operand can be read row by row, and every result with
/// other readers can be stored row by row.
bool RowCluster::fitsRows(linalg::GenericOp generic, AffineMap map) {
  for (OpOperand *input : generic.getDpsInputOperands())
    if (isa<ShapedType>(input->get().getType()) &&
        !isSliceable(generic.getMatchingIndexingMap(input).compose(map)))
      return decline(&why, "it reads more than one row of an operand for a row of the cast");
  for (OpOperand &init : generic.getDpsInitsMutable()) {
    OpResult result = generic.getTiedOpResult(&init);
    AffineMap place = generic.getMatchingIndexingMap(&init).compose(map);
    auto placement = placements.find(result);
    bool isElsewhere = placement != placements.end() && placement->second != place;
    if (isElsewhere || clashing.contains(result) || !isSliceable(place) || !differsByRow(place))
      return decline(&why, "its results are not the rows of the cast, one for each");
    if (generic.payloadUsesValueFromOperand(&init) && !getFillValue(init.get()))
      return decline(&why, "it adds to a tensor that is not filled with one value");
    if (!shaped(result).hasStaticShape() && !getEmpty(init.get()))
      return decline(&why, "it writes a result of dynamic shape to a tensor that exists before");
  }
  return true;
}

/// Returns the bytes of a temporary with these dimensions.
int64_t RowCluster::countRowBytes(Type element, ArrayRef<int64_t> dims) const {
  int64_t bytes = countBytes(RankedTensorType::get({}, element));
  for (int64_t dim : dims)
    bytes *= sizes[dim];
  return bytes;
}

/// Returns whether the temporaries of a row and the number of inputs stay within the target's limits.
bool RowCluster::hasRoomFor(linalg::GenericOp generic, AffineMap map) {
  int64_t bytes = 0;
  for (OpOperand &init : generic.getDpsInitsMutable()) {
    SmallVector<int64_t> dims;
    for (AffineExpr expr : generic.getMatchingIndexingMap(&init).compose(map).getResults())
      if (isRowDim(expr, rows))
        dims.push_back(cast<AffineDimExpr>(expr).getPosition());
    bytes += countRowBytes(getElementTypeOrSelf(init.get()), dims);
  }
  if (rowBytes + bytes > getTarget(op).getMaxRowBytes())
    return decline(&why, kTooLargeRows);
  llvm::DenseSet<Value> all(reads);
  for (Value result : generic->getResults())
    all.erase(result);
  for (Value input : generic.getDpsInputs())
    if (isa<ShapedType>(input.getType()))
      all.insert(input);
  if (all.size() > getTarget(op).getMaxFusedInputs())
    return decline(&why, kTooManyInputs);
  reads = all;
  rowBytes += bytes;
  return true;
}

bool RowCluster::addGeneric(linalg::GenericOp generic) {
  if (!isScalarCode(generic))
    return decline(&why, "the code that computes the tensor is more than arithmetic on single elements");
  AffineMap map = findLoops(generic);
  if (!map || !differsByRow(map))
    return decline(&why, "its loops are not those of the rows of the cast");
  if (!fitsRows(generic, map) || !hasRoomFor(generic, map))
    return false;
  loops[generic] = map;
  for (OpOperand &init : generic.getDpsInitsMutable())
    placements[generic.getTiedOpResult(&init)] = generic.getMatchingIndexingMap(&init).compose(map);
  for (OpOperand *input : generic.getDpsInputOperands())
    addRead(input->get(), generic.getMatchingIndexingMap(input).compose(map));
  for (auto [loop, kind] : llvm::enumerate(generic.getIteratorTypesArray()))
    reduces |= kind == utils::IteratorType::reduction && isRowDim(map.getResult(loop), rows);
  return true;
}

/// Adds a reshape that adds or drops dimensions of size 1, which changes nothing within a row.
bool RowCluster::addReshape(Operation *reshape) {
  Value source = reshape->getOperand(0), result = reshape->getResult(0);
  if (clashing.contains(result))
    return decline(&why, "it is read at different rows");
  bool expands = isa<tensor::ExpandShapeOp>(reshape);
  ArrayRef<int64_t> many = shaped(expands ? result : source).getShape();
  AffineMap place = placements.lookup(result);
  AffineExpr zero = getAffineConstantExpr(0, reshape->getContext());
  SmallVector<AffineExpr> exprs(shaped(source).getRank(), zero);
  auto groups = expands ? cast<tensor::ExpandShapeOp>(reshape).getReassociationIndices()
                        : cast<tensor::CollapseShapeOp>(reshape).getReassociationIndices();
  for (auto [one, group] : llvm::enumerate(groups)) {
    auto full = llvm::to_vector(llvm::make_filter_range(group, [&](int64_t d) { return many[d] != 1; }));
    if (full.size() > 1)
      return decline(&why, "it divides or joins dimensions of the cast");
    if (!full.empty())
      exprs[expands ? one : full[0]] = place.getResult(expands ? full[0] : one);
  }
  AffineMap map = AffineMap::get(sizes.size(), 0, exprs, reshape->getContext());
  if (!differsByRow(map))
    return decline(&why, "it is the same for several rows");
  loops[reshape] = map;
  reads.erase(result);
  addRead(source, map);
  return true;
}

bool RowCluster::add(Operation *candidate) {
  if (!pending.erase(candidate))
    return decline(&why, "it is no code on tensors");
  if (auto generic = dyn_cast<linalg::GenericOp>(candidate))
    return addGeneric(generic);
  return addReshape(candidate);
}

/// Reads the inputs of the cast. Returns whether they, its summed results and its own values can be computed
/// row by row.
bool RowCluster::canReadAndSum(const ElementRegion &region) {
  if (llvm::any_of(rows, [&](int64_t dim) { return ShapedType::isDynamic(sizes[dim]); }))
    return decline(&why, "the size of its rows is not known");
  for (auto [input, map] : llvm::zip(region.inputs, region.inputMaps())) {
    if (!isSliceable(map))
      return decline(&why, "the cast reads an input in another order than by rows");
    addRead(input, map);
  }
  for (AffineMap map : region.extraMaps())
    if (isSummed(map) && !llvm::equal(map.getResults(), rows, [](AffineExpr expr, int64_t dim) {
          return cast<AffineDimExpr>(expr).getPosition() == dim;
        }))
      return decline(&why, "the cast sums over other dimensions than its rows");
  if (!region.isEmpty())
    for (Value yielded : region.yield()->getOperands())
      rowBytes += countRowBytes(yielded.getType(), rows);
  return rowBytes <= getTarget(op).getMaxRowBytes() || decline(&why, kTooLargeRows);
}

LogicalResult RowCluster::find() {
  ElementRegion region = *ElementRegion::of(op);
  sizes = region.getShape();
  if (!canReadAndSum(region))
    return failure();

  // Operations outside of the cluster that lead to the cast: their operands must not be members.
  llvm::SmallPtrSet<Operation *, 16> others;
  for (Operation *candidate = op->getPrevNode(); candidate && !pending.empty();
       candidate = candidate->getPrevNode()) {
    bool leadsIn = false, leadsAround = false;
    for (Operation *user : candidate->getUsers()) {
      Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
      leadsIn |= reader == op || isMember(reader);
      leadsAround |= others.contains(reader);
    }
    if (leadsAround) {
      pending.erase(candidate);
      why = "an operation between it and the cast cannot be computed by rows";
    }
    if (leadsAround || (leadsIn && !add(candidate))) {
      others.insert(candidate);
      reasons[candidate] = why;
    } else if (leadsIn) {
      members.push_back(candidate);
    }
  }
  std::reverse(members.begin(), members.end());
  return success(reduces || decline(&why, "what leads to the cast reduces no row of it"));
}

Reason RowCluster::explain(Operation *writer) const {
  auto own = reasons.find(writer);
  return own == reasons.end() ? why : own->second;
}
