// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Joins reductions of small tensors, such as the gradients of biases and norms, to one of a bucket.

#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_BUCKETREDUCTIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

RankedTensorType getType(AllReduceOp op) { return cast<RankedTensorType>(op.getInput().getType()); }

int64_t getWidth(RankedTensorType type) { return llvm::divideCeil(type.getElementTypeBitWidth(), 8); }

/// Returns whether a reduction may be one of several in a bucket of `limit` bytes.
bool isSmall(AllReduceOp op, int64_t limit) {
  bool isSum = op.getKind() == ReduceKind::sum || op.getKind() == ReduceKind::mean;
  auto type = dyn_cast<RankedTensorType>(op.getInput().getType());
  return isSum && type && type.hasStaticShape() && type.getNumElements() > 0 &&
         type.getNumElements() * getWidth(type) < limit;
}

/// Reductions that become one, and the operations behind the first of them that need their results.
struct Bucket {
  SmallVector<AllReduceOp> members;
  SmallVector<int64_t> offsets; ///< in elements
  int64_t size = 0;             ///< elements
  llvm::SetVector<Operation *> dependents;
};

/// Element type, kind, grid and axes, which all members of a bucket share.
using Key = std::tuple<Type, Attribute, Attribute, Attribute>;

Key getKey(AllReduceOp op) {
  return {getElementTypeOrSelf(op.getInput()), op.getKindAttr(), op.getGridAttr(), op.getAxesAttr()};
}

/// The part of the pass that works on the reductions of one kind in one block.
class Bucketer {
public:
  Bucketer(Block &block, const Key &key, int64_t limit, int64_t alignment)
      : block(block), key(key), limit(limit), alignment(alignment) {}

  void run();

private:
  void add(AllReduceOp op);
  bool dependsOnBucket(Operation &op) const;
  void noteDependent(Operation &op);
  void close();

  Block &block;
  Key key;
  int64_t limit, alignment; ///< in bytes
  Bucket bucket;
};

/// Returns whether `op`, or what is inside of it, reads a result of the bucket or what depends on one.
bool Bucketer::dependsOnBucket(Operation &op) const {
  auto depends = [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    return producer && (bucket.dependents.contains(producer) || llvm::is_contained(bucket.members, producer));
  };
  return op
      .walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(), depends) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Notes what depends on the bucket. An operation that cannot be moved behind a later member closes it.
void Bucketer::noteDependent(Operation &op) {
  if (bucket.members.empty() || !dependsOnBucket(op))
    return;
  bucket.dependents.insert(&op);
  if (!isMemoryEffectFree(&op) && !isa<CollectiveOpInterface>(op))
    close();
}

/// Adds a reduction to the bucket, or to a new one.
void Bucketer::add(AllReduceOp op) {
  RankedTensorType type = getType(op);
  int64_t width = getWidth(type);
  int64_t offset = llvm::alignTo(bucket.size * width, alignment) / width;
  // The input may depend on the mean of an earlier gradient.
  if (bucket.dependents.contains(op) || (offset + type.getNumElements()) * width > limit) {
    close();
    offset = 0;
  }
  bucket.members.push_back(op);
  bucket.offsets.push_back(offset);
  bucket.size = offset + type.getNumElements();
}

/// Gives a tensor another type of as many elements; one of both has one dimension.
Value reshape(OpBuilder &builder, Location loc, Value value, RankedTensorType to) {
  int64_t before = cast<RankedTensorType>(value.getType()).getRank(), after = to.getRank();
  if (before == after)
    return value;
  SmallVector<ReassociationIndices> groups;
  if (std::min(before, after) > 0)
    groups.emplace_back(llvm::to_vector(llvm::seq<int64_t>(0, std::max(before, after))));
  return before > after ? tensor::CollapseShapeOp::create(builder, loc, to, value, groups).getResult()
                        : tensor::ExpandShapeOp::create(builder, loc, to, value, groups).getResult();
}

/// Returns the range of `count` elements from `offset` on.
Range makeRange(OpBuilder &builder, int64_t offset, int64_t count) {
  return {builder.getIndexAttr(offset), builder.getIndexAttr(count), builder.getIndexAttr(1)};
}

/// Returns a tensor with all elements of the members.
Value fill(OpBuilder &builder, Bucket &bucket) {
  AllReduceOp last = bucket.members.back();
  Location loc = last.getLoc();
  Type element = getType(last).getElementType();
  Value all = tensor::EmptyOp::create(builder, loc, bucket.size, element);
  for (auto [member, offset] : llvm::zip_equal(bucket.members, bucket.offsets)) {
    int64_t count = getType(member).getNumElements();
    Value flat = reshape(builder, loc, member.getInput(), RankedTensorType::get(count, element));
    all = tensor::InsertSliceOp::create(builder, loc, flat, all, makeRange(builder, offset, count));
  }
  return all;
}

/// Returns the part of `all` that is the result of a member.
Value takePart(OpBuilder &builder, Value all, RankedTensorType type, int64_t offset) {
  Range range = makeRange(builder, offset, type.getNumElements());
  return reshape(builder, all.getLoc(), tensor::ExtractSliceOp::create(builder, all.getLoc(), all, range),
                 type);
}

/// Replaces the members by one reduction behind the last of them, and moves what needs the results of the
/// others behind it. The bucket is empty then.
void Bucketer::close() {
  Bucket closed = std::exchange(bucket, {});
  if (closed.members.size() < 2)
    return;
  AllReduceOp last = closed.members.back();
  OpBuilder builder(last);
  Value all = fill(builder, closed);
  std::string label =
      (last.getLabel().value_or("all_reduce") + " and " + Twine(closed.members.size() - 1) + " before").str();
  auto reduced =
      AllReduceOp::create(builder, last.getLoc(), TypeRange(all.getType()), all, all, last.getKindAttr(),
                          last.getGridAttr(), last.getAxesAttr(), builder.getStringAttr(label));
  reduced->setAttr(kJoinedAttrName, builder.getI64IntegerAttr(closed.members.size()));
  for (auto [member, offset] : llvm::zip_equal(closed.members, closed.offsets))
    member->replaceAllUsesWith(ValueRange(takePart(builder, reduced->getResult(0), getType(member), offset)));
  SmallVector<Operation *> early = llvm::filter_to_vector(
      closed.dependents, [&](Operation *dependent) { return dependent->isBeforeInBlock(last); });
  for (Operation *dependent : llvm::reverse(early))
    dependent->moveAfter(last);
  for (AllReduceOp member : closed.members)
    member.erase();
}

void Bucketer::run() {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    noteDependent(op);
    auto reduction = dyn_cast<AllReduceOp>(op);
    if (reduction && isSmall(reduction, limit) && getKey(reduction) == key)
      add(reduction);
  }
  close();
}

class BucketReductions : public impl::BucketReductionsBase<BucketReductions> {
public:
  using BucketReductionsBase::BucketReductionsBase;

  void runOnOperation() final {
    if (getOperation().isExternal())
      return;
    int64_t alignment = getTarget(getOperation()).getBufferAlignment();
    for (Block &block : getOperation().getBody()) {
      llvm::SetVector<Key> keys;
      for (auto op : block.getOps<AllReduceOp>())
        if (isSmall(op, bytes))
          keys.insert(getKey(op));
      for (const Key &key : keys)
        Bucketer(block, key, bytes, alignment).run();
    }
  }
};

} // namespace
} // namespace fp8
