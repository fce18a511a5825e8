// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Casts the shards of a tensor and gathers FP8 bytes and scales, in place of gathering the wide elements and
// casting the whole tensor on every rank.

#include "fp8/Analysis/Rearrangement.h"
#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_QUANTIZEBEFOREGATHER
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

int64_t countBytes(ShapedType type) {
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Returns the type of the shard of a gathered tensor.
RankedTensorType shardOf(RankedTensorType whole, AllGatherOp gather, int64_t ranks) {
  SmallVector<int64_t> shape(whole.getShape());
  shape[gather.getDim()] /= ranks;
  return whole.clone(shape);
}

/// Returns the recipe of the matmuls that read FP8 data, through views; null if there is none.
RecipeAttrInterface findRecipe(Value data) {
  for (Operation *user : data.getUsers()) {
    if (auto recipe = user->getAttrOfType<RecipeAttrInterface>("recipe"))
      return recipe;
    if (user->getNumResults() == 1 && getElementTypeOrSelf(user->getResult(0)) == getElementTypeOrSelf(data))
      if (RecipeAttrInterface recipe = findRecipe(user->getResult(0)))
        return recipe;
  }
  return {};
}

/// Returns the narrower type to which all readers of a gathered tensor round it, and do nothing else; null if
/// they do not.
Type findNarrowType(AllGatherOp gather) {
  Type narrow;
  for (Operation *user : gather->getResult(0).getUsers()) {
    std::optional<Rearrangement> view = matchRearrangement(user);
    if (!view || !isa_and_present<arith::TruncFOp>(view->cast) || !view->map.isIdentity())
      return {};
    Type type = getElementTypeOrSelf(user->getResult(0));
    if (narrow && narrow != type)
      return {};
    narrow = type;
  }
  return narrow;
}

/// Rounds the shard in place of the gathered tensor where all readers round it. Returns the gather that there
/// is then.
AllGatherOp roundShard(AllGatherOp gather) {
  auto whole = dyn_cast<RankedTensorType>(gather->getResult(0).getType());
  auto shard = dyn_cast<RankedTensorType>(gather.getInput().getType());
  Type narrow = findNarrowType(gather);
  if (!narrow || !whole || !shard || !whole.hasStaticShape() || !shard.hasStaticShape())
    return gather;
  OpBuilder builder(gather);
  auto narrowShard = cast<RankedTensorType>(shard.clone(narrow));
  Value rounded = arith::TruncFOp::create(builder, gather.getLoc(), narrowShard, gather.getInput());
  Value init = tensor::EmptyOp::create(builder, gather.getLoc(), whole.getShape(), narrow);
  auto all = AllGatherOp::create(builder, gather.getLoc(), TypeRange(init.getType()), rounded, init,
                                 gather.getDimAttr(), gather.getGridAttr(), gather.getAxesAttr(),
                                 gather.getLabelAttr());
  all->setAttr(kSavedBytesAttrName, builder.getI64IntegerAttr(countBytes(shard) - countBytes(narrowShard)));
  for (Operation *user : llvm::make_early_inc_range(gather->getResult(0).getUsers())) {
    user->getResult(0).replaceAllUsesWith(all->getResult(0));
    user->erase();
  }
  gather.erase();
  return all;
}

/// One gather, and what can be done with it.
class Gather {
public:
  explicit Gather(AllGatherOp op) : op(op), whole(op->getResult(0)), dim(op.getDim()) {
    for (Operation *user : whole.getUsers())
      if (!llvm::is_contained(users, user))
        users.push_back(user);
  }

  /// Returns why the casts have to come after the gather; empty if they need not.
  std::string findObstacle() {
    auto type = dyn_cast<RankedTensorType>(whole.getType());
    auto input = dyn_cast<RankedTensorType>(op.getInput().getType());
    if (!type || !type.hasStaticShape() || !input.hasStaticShape())
      return "its size is known only when the step runs";
    ranks = input.getDimSize(dim) == 0 ? 1 : type.getDimSize(dim) / input.getDimSize(dim);
    gathered = 0;
    for (Operation *user : users)
      if (std::string obstacle = findObstacle(user); !obstacle.empty())
        return obstacle;
    if (gathered == 0)
      return "no FP8 matmul reads it";
    if (gathered >= countBytes(input))
      return "its casts have no fewer bytes (" + std::to_string(gathered) + ")";
    return "";
  }

  /// Moves the casts before the gather. Call only if there is no obstacle.
  void quantizeShards() {
    llvm::sort(users, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    int64_t saved = countBytes(cast<ShapedType>(op.getInput().getType())) - gathered;
    if (auto before = op->getAttrOfType<IntegerAttr>(kSavedBytesAttrName))
      saved += before.getInt();
    for (Operation *user : users)
      if (auto amax = dyn_cast<AmaxOp>(user))
        reduceAmax(amax);
      else
        gatherResults(user, saved);
    op.erase();
  }

private:
  /// The same for one reader of the tensor; adds the bytes of its results of one rank to `gathered`.
  std::string findObstacle(Operation *user) {
    if (!isa<AmaxOp, QuantizeOp, QuantizeBlocksOp>(user))
      return "'" + user->getName().getStringRef().str() + "' reads it too";
    if (user->getBlock() != op->getBlock())
      return "it is cast in a loop or branch";
    if (auto amax = dyn_cast<AmaxOp>(user))
      return amax.getInputs().size() == 1 && amax.getProducer().empty() ? "" : "a fused operation reads it";
    if (auto quantize = dyn_cast<QuantizeOp>(user))
      return findObstacleOfCast(quantize);
    return findObstacleOfCast(cast<QuantizeBlocksOp>(user));
  }

  std::string findObstacleOfCast(QuantizeOp quantize) {
    if (quantize.getInputs().size() != 1 || !quantize.getProducer().empty() || quantize.getTransposition())
      return "a fused operation reads it";
    if (quantize.getRandom())
      return "it is rounded stochastically, with random numbers by place in the whole tensor";
    RecipeAttrInterface recipe = findRecipe(quantize->getResult(0));
    bool isOfState = quantize.getColumn().has_value();
    if (auto scale = quantize.getScale().getDefiningOp<ComputeScaleOp>(); scale && !isOfState) {
      auto amax = scale.getAmax().getDefiningOp<AmaxOp>();
      if (!amax || amax.getInputs().front() != whole)
        recipe = {};
    } else if (!isOfState) {
      recipe = {};
    }
    if (!recipe)
      return "its scale is not known to be equal on all ranks";
    if (!combinesAmaxes(recipe))
      return "amaxes are not combined over its ranks (--reduce-amax, --reduce-amax-axes)";
    gathered += countBytes(shardOf(cast<RankedTensorType>(quantize->getResult(0).getType()), op, ranks));
    return "";
  }

  std::string findObstacleOfCast(QuantizeBlocksOp quantize) {
    if (quantize.getInputs().size() != 1 || !quantize.getProducer().empty() || quantize.getTranspositions())
      return "a fused operation reads it";
    if (quantize.getRandom())
      return "it is rounded stochastically, with random numbers by place in the whole tensor";
    int64_t size = cast<RankedTensorType>(op.getInput().getType()).getDimSize(dim);
    for (unsigned i = 0; i < quantize.getNumDirections(); ++i) {
      int64_t extent = quantize.getBlock(i)[dim];
      if (extent == 0)
        return "a scale covers all of dimension " + std::to_string(dim) + ", along which it is gathered";
      if (size % extent != 0)
        return "blocks of " + std::to_string(extent) + " along dimension " + std::to_string(dim) +
               " do not divide a rank's " + std::to_string(size);
    }
    for (Value result : quantize->getResults())
      gathered += countBytes(shardOf(cast<RankedTensorType>(result.getType()), op, ranks));
    return "";
  }

  /// Returns whether `recipe` combines amaxes over the ranks of the group.
  bool combinesAmaxes(RecipeAttrInterface recipe) {
    if (!recipe.getReduceAmax())
      return false;
    auto axes = op->getParentOfType<ModuleOp>()->getAttrOfType<DenseI64ArrayAttr>(kReduceAxesAttrName);
    return !axes || llvm::all_of(op.getAxes(),
                                 [&](int64_t axis) { return llvm::is_contained(axes.asArrayRef(), axis); });
  }

  /// The amax of the shard, and its maximum over the ranks.
  void reduceAmax(AmaxOp amax) {
    OpBuilder builder(amax);
    Operation *ofShard = builder.clone(*amax);
    ofShard->setOperand(0, op.getInput());
    Location loc = amax.getLoc();
    Type type = amax->getResult(0).getType();
    Value init = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{}, builder.getF32Type());
    auto all =
        AllReduceOp::create(builder, loc, TypeRange(type), ofShard->getResult(0), init,
                            ReduceKindAttr::get(builder.getContext(), ReduceKind::max), op.getGridAttr(),
                            op.getAxesAttr(), builder.getStringAttr("amax of a shard"));
    amax->replaceAllUsesWith(all);
    amax.erase();
  }

  /// Casts the shard and gathers those results that have the tensor's dimensions. The first gather notes the
  /// bytes that are `saved`.
  void gatherResults(Operation *quantize, int64_t &saved) {
    OpBuilder builder(quantize);
    Operation *ofShard = builder.clone(*quantize);
    ofShard->setOperand(0, op.getInput());
    auto inits = cast<DestinationStyleOpInterface>(ofShard).getDpsInitsMutable();
    for (auto [i, result] : llvm::enumerate(quantize->getResults())) {
      auto type = cast<RankedTensorType>(result.getType());
      if (type.getRank() == 0) { // scale_inv and amax of all shards
        result.replaceAllUsesWith(ofShard->getResult(i));
        continue;
      }
      RankedTensorType part = shardOf(type, op, ranks);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(ofShard);
      Value empty = tensor::EmptyOp::create(builder, op.getLoc(), part.getShape(), part.getElementType());
      inits[i].set(empty);
      ofShard->getResult(i).setType(part);
      builder.setInsertionPoint(quantize);
      Value init = tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType());
      auto all = AllGatherOp::create(builder, op.getLoc(), TypeRange(type), ofShard->getResult(i), init,
                                     op.getDimAttr(), op.getGridAttr(), op.getAxesAttr(), op.getLabelAttr());
      if (saved)
        all->setAttr(kSavedBytesAttrName, builder.getI64IntegerAttr(std::exchange(saved, 0)));
      result.replaceAllUsesWith(all->getResult(0));
    }
    quantize->erase();
  }

  AllGatherOp op;
  Value whole;
  int64_t dim, ranks = 1;
  SmallVector<Operation *> users;
  int64_t gathered = 0; ///< bytes of the casts of a shard
};

class QuantizeBeforeGather : public impl::QuantizeBeforeGatherBase<QuantizeBeforeGather> {
public:
  void runOnOperation() final {
    SmallVector<AllGatherOp> ops;
    getOperation()->walk([&](AllGatherOp op) {
      if (isa<FloatType>(getElementTypeOrSelf(op.getInput())) &&
          getElementTypeOrSelf(op.getInput()).getIntOrFloatBitWidth() > 8)
        ops.push_back(op);
    });
    for (AllGatherOp wide : ops) {
      AllGatherOp op = roundShard(wide);
      Gather gather(op);
      std::string obstacle = gather.findObstacle();
      if (obstacle.empty())
        gather.quantizeShards();
      else
        op->setAttr(kGatheredWideAttrName, StringAttr::get(&getContext(), obstacle));
    }
  }
};

} // namespace
} // namespace fp8
