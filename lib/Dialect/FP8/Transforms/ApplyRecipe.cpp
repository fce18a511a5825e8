// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the chosen matrix products into FP8: quantized operands, scaled products,
// and, for recipes with state, the state's way through the function.

#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/StateColumns.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_APPLYRECIPE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// The tensor that a product's operand is a reshaped view of.
Value getViewSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// One operand of a product that becomes FP8.
struct QuantizedOperand {
  mutable MatmulOp product; ///< operations are handles: reading one is not const upstream
  unsigned index;           ///< 0 or 1
  RecipeAttrInterface recipe;
  /// Number of its cast in the function: operands that share a cast share it.
  unsigned castId = 0;

  Value value() const { return index == 0 ? product.getLhs() : product.getRhs(); }
  TensorKind kind() const { return index == 0 ? *product.getLhsKind() : *product.getRhsKind(); }
  FloatType format() const { return recipe.getFormat(kind()); }
  AffineMap map() const { return product.getIndexingMapsArray()[index]; }

  /// Extents of the blocks that share a scale; empty for one scale per tensor.
  SmallVector<int64_t> block() const {
    ContractionDims dims = product.getContractionDims();
    SmallVector<bool> contracted;
    for (AffineExpr result : map().getResults())
      contracted.push_back(llvm::is_contained(dims.k, cast<AffineDimExpr>(result).getPosition()));
    return recipe.getBlockShape(kind(), contracted);
  }
  /// What is quantized: blocks lie in the operand as it is, a single scale is the
  /// same before and after a reshape, so that all views share one cast.
  Value source() const { return block().empty() ? getViewSource(value()) : value(); }

  StateLayout::Key columnKey() const {
    bool twoInputs = *product.getRole() == Role::other && kind() == TensorKind::input;
    return {product.getSite()->str(), kind(), format(), twoInputs ? index : 0};
  }
};

/// What one cast is told apart by, before any rewriting.
using CastKey = std::tuple<const void *, const void *, std::vector<int64_t>>;
CastKey castKey(const QuantizedOperand &operand) {
  SmallVector<int64_t> block = operand.block();
  return {operand.source().getAsOpaquePointer(), operand.format().getAsOpaquePointer(),
          std::vector<int64_t>(block.begin(), block.end())};
}

/// State columns of the casts of one function, by number of the cast.
using CastColumns = std::map<unsigned, int64_t>;

/// Rewrites one function; the state's layout is complete.
class FunctionRewriter {
public:
  FunctionRewriter(func::FuncOp function, const StateLayout &layout, const CastColumns &columns, bool updates)
      : function(function), layout(layout), columns(columns), updates(updates),
        builder(function.getContext()) {}

  void addStateArguments();
  void rewrite(ArrayRef<QuantizedOperand> operands);
  void updateState(RecipeAttrInterface recipe);

private:
  /// The FP8 bytes of a tensor and their scale_inv.
  struct Cast {
    Value data, scaleInv;
  };
  Cast getOrCreateCast(const QuantizedOperand &operand);
  Value emptyLike(Location loc, Value like, Type elementType);
  Value emptyScale(Location loc, Value source, ArrayRef<int64_t> block, Type elementType);
  Value scaleFromState(Location loc, int64_t column);
  Value scaleFromTensor(Location loc, const QuantizedOperand &operand, Value source);
  Value replayViews(Value operand, Value source, Value data);
  void replaceProduct(const QuantizedOperand &lhs, const QuantizedOperand &rhs);

  func::FuncOp function;
  const StateLayout &layout;
  const CastColumns &columns;
  bool updates;
  OpBuilder builder;
  Value scale, history;
  std::map<unsigned, Cast> casts;
  /// Recorded amaxes by column, for the update.
  std::map<int64_t, SmallVector<Value>> amaxes;
};

Value FunctionRewriter::emptyLike(Location loc, Value like, Type elementType) {
  return tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, like), elementType);
}

Value FunctionRewriter::emptyScale(Location loc, Value source, ArrayRef<int64_t> block, Type elementType) {
  SmallVector<OpFoldResult> sizes;
  auto type = cast<RankedTensorType>(source.getType());
  for (auto [d, extent] : llvm::enumerate(block)) {
    int64_t size = type.getDimSize(d);
    if (extent == 0)
      sizes.push_back(builder.getIndexAttr(1));
    else if (!ShapedType::isDynamic(size))
      sizes.push_back(builder.getIndexAttr(llvm::divideCeil(size, extent)));
    else
      sizes.push_back(affine::makeComposedFoldedAffineApply(builder, loc,
                                                            builder.getAffineDimExpr(0).ceilDiv(extent),
                                                            {tensor::getMixedSize(builder, loc, source, d)}));
  }
  return tensor::EmptyOp::create(builder, loc, sizes, elementType);
}

/// The scale that an earlier step computed for this column.
Value FunctionRewriter::scaleFromState(Location loc, int64_t column) {
  auto type = RankedTensorType::get({}, builder.getF32Type());
  SmallVector<OpFoldResult> offsets{builder.getIndexAttr(column)}, ones{builder.getIndexAttr(1)};
  return tensor::ExtractSliceOp::create(builder, loc, type, scale, offsets, ones, ones);
}

/// The scale that this step computes from the tensor itself.
Value FunctionRewriter::scaleFromTensor(Location loc, const QuantizedOperand &operand, Value source) {
  SmallVector<int64_t> block = operand.block();
  DenseI64ArrayAttr blockAttr = block.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(block);
  Value init = emptyScale(loc, source, block, builder.getF32Type());
  Value amax = AmaxOp::create(builder, loc, init.getType(), source, init, blockAttr).getResult(0);
  Value scaleInit = emptyScale(loc, source, block, builder.getF32Type());
  return ComputeScaleOp::create(builder, loc, scaleInit.getType(), amax, scaleInit, operand.recipe,
                                TypeAttr::get(operand.format()), TypeAttr::get(getElementTypeOrSelf(source)))
      .getResult(0);
}

FunctionRewriter::Cast FunctionRewriter::getOrCreateCast(const QuantizedOperand &operand) {
  auto [entry, isNew] = casts.try_emplace(operand.castId);
  if (!isNew)
    return entry->second;

  Value source = operand.source();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(source);
  Location loc = operand.product->getLoc();
  auto column = columns.find(operand.castId);
  bool stateful = column != columns.end();
  SmallVector<int64_t> block = operand.block();

  Value scaleValue = stateful ? scaleFromState(loc, column->second) : scaleFromTensor(loc, operand, source);
  SmallVector<Value> outs{emptyLike(loc, source, operand.format()),
                          emptyScale(loc, source, block, operand.recipe.getScaleType())};
  bool record = stateful && updates;
  if (record)
    outs.push_back(tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{}, builder.getF32Type()));
  auto quantize = QuantizeOp::create(
      builder, loc, TypeRange(ValueRange(outs)), source, scaleValue, outs, record,
      /*transposition=*/DenseI64ArrayAttr(),
      block.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(block),
      stateful ? builder.getI64IntegerAttr(column->second) : IntegerAttr(), /*indexing_maps=*/ArrayAttr());
  if (record)
    amaxes[column->second].push_back(quantize.getResult(2));
  return entry->second = {quantize.getResult(0), quantize.getResult(1)};
}

/// The views between `source` and `operand`, on the FP8 bytes of `source`.
Value FunctionRewriter::replayViews(Value operand, Value source, Value data) {
  if (operand == source)
    return data;
  Operation *view = operand.getDefiningOp();
  Value inner = replayViews(view->getOperand(0), source, data);
  Operation *copy = builder.clone(*view);
  copy->setOperand(0, inner);
  auto type = cast<RankedTensorType>(operand.getType());
  copy->getResult(0).setType(type.clone(getElementTypeOrSelf(data)));
  return copy->getResult(0);
}

void FunctionRewriter::replaceProduct(const QuantizedOperand &lhs, const QuantizedOperand &rhs) {
  MatmulOp op = lhs.product;
  Cast lhsCast = getOrCreateCast(lhs), rhsCast = getOrCreateCast(rhs);
  builder.setInsertionPoint(op);
  Value lhsData = replayViews(lhs.value(), lhs.source(), lhsCast.data);
  Value rhsData = replayViews(rhs.value(), rhs.source(), rhsCast.data);
  auto blockAttr = [&](const QuantizedOperand &operand) {
    SmallVector<int64_t> block = operand.block();
    return block.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(block);
  };
  auto scaled = ScaledMatmulOp::create(
      builder, op.getLoc(), op->getResultTypes(), lhsData, rhsData, lhsCast.scaleInv, rhsCast.scaleInv,
      /*epilogue_inputs=*/ValueRange(), /*out_scale=*/Value(), op.getOuts(), op.getIndexingMapsAttr(),
      AccumulationAttr::get(op.getContext(), lhs.recipe.getAccumulation(*op.getRole())), op.getSiteAttr(),
      op.getRoleAttr(), lhs.recipe, op.getAccumulateAttr(), blockAttr(lhs), blockAttr(rhs),
      /*epilogue_maps=*/ArrayAttr());
  op.replaceAllUsesWith(scaled.getResults());
  op.erase();
}

void FunctionRewriter::rewrite(ArrayRef<QuantizedOperand> operands) {
  for (size_t i = 0; i < operands.size(); i += 2)
    replaceProduct(operands[i], operands[i + 1]);
}

/// scale and amax_history become the last arguments.
void FunctionRewriter::addStateArguments() {
  int64_t columnCount = layout.getColumns().size();
  Type f32 = builder.getF32Type();
  for (auto [name, type] :
       {std::pair<StringRef, RankedTensorType>("scale", RankedTensorType::get({columnCount}, f32)),
        {"amax_history", RankedTensorType::get({layout.getHistoryLength(), columnCount}, f32)}}) {
    DictionaryAttr attrs =
        builder.getDictionaryAttr({builder.getNamedAttr(kStateAttrName, builder.getStringAttr(name))});
    Location loc = NameLoc::get(builder.getStringAttr(name));
    // Inserting cannot fail on a function whose type its arguments follow.
    (void)function.insertArgument(function.getNumArguments(), type, attrs, loc);
  }
  scale = function.getArguments().end()[-2];
  history = function.getArguments().end()[-1];
}

/// One update per column before the return; the new state becomes the last results.
void FunctionRewriter::updateState(RecipeAttrInterface recipe) {
  auto terminator = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  builder.setInsertionPoint(terminator);
  Location loc = function.getLoc();
  Value newScale = scale, newHistory = history;
  for (auto &[column, recorded] : amaxes) {
    int64_t count = recorded.size();
    auto type = RankedTensorType::get({count}, builder.getF32Type());
    Value vector;
    if (count == 1) {
      vector =
          tensor::ExpandShapeOp::create(builder, loc, type, recorded[0], ArrayRef<ReassociationIndices>{},
                                        SmallVector<OpFoldResult>{builder.getIndexAttr(1)});
    } else {
      vector = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
      for (auto [i, amax] : llvm::enumerate(recorded))
        vector = tensor::InsertSliceOp::create(builder, loc, amax, vector,
                                               SmallVector<OpFoldResult>{builder.getIndexAttr(i)},
                                               SmallVector<OpFoldResult>{builder.getIndexAttr(1)},
                                               SmallVector<OpFoldResult>{builder.getIndexAttr(1)});
    }
    if (recipe.getReduceAmax()) {
      Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
      vector = AllReduceOp::create(builder, loc, TypeRange(type), vector, init,
                                   ReduceKindAttr::get(builder.getContext(), ReduceKind::max),
                                   builder.getStringAttr("amax"))
                   .getResult(0);
    }
    SmallVector<Attribute> formats(count, TypeAttr::get(layout.getColumns()[column].format));
    auto update = UpdateAmaxHistoryOp::create(
        builder, loc, TypeRange{newScale.getType(), newHistory.getType()}, vector, newScale, newHistory,
        recipe, builder.getDenseI64ArrayAttr(SmallVector<int64_t>(count, column)),
        builder.getArrayAttr(formats));
    newScale = update.getResult(0);
    newHistory = update.getResult(1);
  }

  unsigned firstResult = function.getNumResults();
  SmallVector<Value> newState{newScale, newHistory};
  for (auto [i, value] : llvm::enumerate(newState)) {
    unsigned argument = function.getNumArguments() - 2 + i;
    DictionaryAttr attrs = builder.getDictionaryAttr(
        {builder.getNamedAttr(kStateAttrName, function.getArgAttr(argument, kStateAttrName))});
    (void)function.insertResult(firstResult + i, value.getType(), attrs);
    function.setArgAttr(argument, kCarriedAttrName, builder.getI32IntegerAttr(firstResult + i));
    terminator.getOperandsMutable().append(value);
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class ApplyRecipe : public impl::ApplyRecipeBase<ApplyRecipe> {
public:
  using impl::ApplyRecipeBase<ApplyRecipe>::ApplyRecipeBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto chosen = dyn_cast_or_null<RecipeAttrInterface>(parseAttribute(recipe, &getContext()));
    if (!chosen) {
      module.emitError() << "--recipe=" << recipe << " is not a recipe attribute";
      return signalPassFailure();
    }

    StateLayout layout;
    SmallVector<Program> programs;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      FailureOr<Program> program = plan(function, chosen, layout);
      if (failed(program))
        return signalPassFailure();
      programs.push_back(std::move(*program));
    }
    if (RecipeAttrInterface stateful = findStateful(programs)) {
      auto delayed = dyn_cast<DelayedScalingAttr>(stateful);
      layout.setHistoryLength(delayed ? delayed.getAmaxHistoryLen() : 1);
      layout.writeTo(module);
    }
    for (Program &program : programs)
      rewrite(program, layout);
  }

private:
  /// One function and what becomes of it.
  struct Program {
    func::FuncOp function;
    SmallVector<QuantizedOperand> operands; ///< two per product, in program order
    std::map<CastKey, unsigned> casts;
    CastColumns columns;
    RecipeAttrInterface stateful;
    bool hasGradients = false;
  };

  FailureOr<Program> plan(func::FuncOp function, RecipeAttrInterface chosen, StateLayout &layout) {
    Program program{function, {}, {}, {}, {}};
    WalkResult walked = function.walk([&](MatmulOp op) {
      if (op.getRole())
        program.hasGradients |= *op.getRole() == Role::dgrad || *op.getRole() == Role::wgrad;
      if (op.getKept())
        return WalkResult::advance();
      return failed(planProduct(op, chosen, layout, program)) ? WalkResult::interrupt()
                                                              : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    return program;
  }

  LogicalResult planProduct(MatmulOp op, RecipeAttrInterface chosen, StateLayout &layout, Program &program) {
    if (!op.getRole() || !op.getSite() || !op.getLhsKind())
      return op.emitError("has no site, role or kinds; run fp8-infer-sites before fp8-apply-recipe");
    RecipeAttrInterface recipeOfRole = chosen.getRecipeFor(*op.getRole());
    for (unsigned index : {0u, 1u}) {
      QuantizedOperand operand{op, index, recipeOfRole};
      if (operand.source().getParentBlock() != &program.function.getBody().front())
        return op.emitError()
               << "site '" << *op.getSite()
               << "' is inside control flow, where FP8 is not supported yet; keep it with --keep";
      operand.castId = program.casts.try_emplace(castKey(operand), program.casts.size()).first->second;
      program.operands.push_back(operand);
      if (recipeOfRole.isStateful())
        assignColumn(operand, layout, program);
    }
    return success();
  }

  static void assignColumn(const QuantizedOperand &operand, StateLayout &layout, Program &program) {
    program.stateful = operand.recipe;
    auto entry = program.columns.find(operand.castId);
    if (entry != program.columns.end())
      return layout.addReader(entry->second, operand.columnKey());
    program.columns.emplace(operand.castId, layout.getOrCreate(operand.columnKey()));
  }

  static RecipeAttrInterface findStateful(ArrayRef<Program> programs) {
    for (const Program &program : programs)
      if (program.stateful)
        return program.stateful;
    return {};
  }

  void rewrite(Program &program, const StateLayout &layout) {
    bool updates = program.stateful && (program.hasGradients || calibrate);
    FunctionRewriter rewriter(program.function, layout, program.columns, updates);
    if (program.stateful)
      rewriter.addStateArguments();
    rewriter.rewrite(program.operands);
    if (updates)
      rewriter.updateState(program.stateful);
  }
};

} // namespace
} // namespace fp8
