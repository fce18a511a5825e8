// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts the op policy of mixed precision on a program in f32. Contractions read operands in the lower type
// and round their f32 sums to it once; other operations take the widest type of what they read; functions
// that need f32, sums, and all that control flow hands on stay in f32.

#include "fp8/Dialect/FP8/IR/MixedPrecision.h"
#include "OpPolicy.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_MIXEDPRECISION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Applies the policy to one function, in program order.
class Policy {
public:
  Policy(FunctionOpInterface function, StringRef dtype)
      : function(function), dtype(dtype), rewriter(function.getContext()), values(rewriter) {}

  void run() {
    visit(function.getFunctionBody());
    values.eraseUnused();
  }

private:
  void visit(Region &region);
  void visit(Operation *op);
  void visitRegions(Operation *op);
  void narrowMatmul(DestinationStyleOpInterface op, StringRef precision, std::optional<Role> role,
                    bool accumulates);
  void narrowArithmetic(Operation *op);
  bool narrowView(Operation *op);
  Type getMovedType(Operation *op) const;
  StringRef getPrecision(Operation *op) const;
  FloatType getType(StringRef precision);

  FunctionOpInterface function;
  StringRef dtype; ///< where no attribute holds; empty for none
  IRRewriter rewriter;
  NarrowValues values;
};

/// Returns the precision that the innermost attribute around `op` asks for; "off" for none.
StringRef Policy::getPrecision(Operation *op) const {
  for (; op; op = op->getParentOp())
    if (auto own = op->getAttrOfType<StringAttr>(kMixedPrecisionAttrName))
      return own;
  return dtype.empty() ? StringRef("off") : dtype;
}

/// Returns bf16 or f16; null for the other precisions.
FloatType Policy::getType(StringRef precision) {
  if (precision == "bf16")
    return BFloat16Type::get(function.getContext());
  return precision == "f16" ? FloatType(Float16Type::get(function.getContext())) : FloatType();
}

/// Rounds the operands of a matmul (or of grouped matmuls) that are f32, and a result that is not added to
/// anything.
void Policy::narrowMatmul(DestinationStyleOpInterface op, StringRef precision, std::optional<Role> role,
                          bool accumulates) {
  FloatType type = getType(precision);
  bool isNarrowed = false;
  for (unsigned i : {0, 1}) {
    Value operand = op->getOperand(i);
    if (!getElementTypeOrSelf(operand).isF32())
      continue;
    op->setOperand(i, type ? values.round(operand, type) : values.roundToTF32(operand));
    isNarrowed = true;
  }
  auto isF32 = [&](unsigned operand) { return getElementTypeOrSelf(op->getOperand(operand)).isF32(); };
  if (!type && isF32(0) && isF32(1))
    op->setAttr(kTF32AttrName, rewriter.getUnitAttr());
  Value result = op->getResult(0);
  if (!type || !isNarrowed || accumulates || !getElementTypeOrSelf(result).isF32())
    return;
  rewriter.setInsertionPoint(op);
  Value init = tensor::EmptyOp::create(
      rewriter, op.getLoc(), tensor::getMixedSizes(rewriter, op.getLoc(), op.getDpsInits().front()), type);
  auto narrow = cast<DestinationStyleOpInterface>(rewriter.clone(*op));
  narrow.setDpsInitOperand(0, init);
  narrow->getResult(0).setType(cast<RankedTensorType>(init.getType()));
  if (role == Role::wgrad)
    // The gradient of a parameter has the parameter's type: an optimizer computes with it in f32.
    rewriter.replaceAllUsesWith(
        result, arith::ExtFOp::create(rewriter, op.getLoc(), result.getType(), narrow->getResult(0)));
  else
    values.replace(result, narrow->getResult(0));
  rewriter.eraseOp(op);
}

/// Arithmetic on whole tensors or on scalars outside of linalg.
void Policy::narrowArithmetic(Operation *op) {
  SmallVector<Type> types;
  for (Value operand : op->getOperands())
    types.push_back(values.getType(operand));
  Value result = op->getResult(0);
  Type type = getResultType(op, types);
  if (!type)
    return values.addConstant(result);
  if (getElementTypeOrSelf(result) == type)
    return;
  rewriter.setInsertionPointAfter(op);
  Value narrow = arith::TruncFOp::create(rewriter, op->getLoc(), withElement(result.getType(), type), result);
  Value extension = values.extend(narrow, getElementTypeOrSelf(result));
  rewriter.replaceAllUsesExcept(result, extension, narrow.getDefiningOp());
}

/// Returns the value that `pad` fills with, if it is the same everywhere and known outside of the region.
static Value getPadding(Operation *pad) {
  auto own = dyn_cast<tensor::PadOp>(pad);
  return own ? own.getConstantPaddingValue() : Value();
}

static bool movesElements(Operation *op) {
  return getPadding(op) ||
         isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp, tensor::InsertSliceOp,
             tensor::ConcatOp, tensor::CastOp, tensor::ReshapeOp, tensor::ExtractOp, tensor::InsertOp,
             tensor::SplatOp, tensor::FromElementsOp, tensor::GatherOp>(op);
}

/// Returns the widest type of the floats that `op` moves; null for constants.
Type Policy::getMovedType(Operation *op) const {
  Value padding = getPadding(op);
  Type type = padding && !matchPattern(padding, m_Constant()) ? values.getType(padding) : Type();
  for (Value operand : op->getOperands())
    if (isa<FloatType>(getElementTypeOrSelf(operand)))
      type = getWiderType(type, values.getType(operand));
  return type;
}

/// Applies operations that move elements (slices, reshapes, concatenations, pads) to the narrow values of
/// what they read. Returns false for other operations.
bool Policy::narrowView(Operation *op) {
  if (!movesElements(op))
    return false;
  Value result = op->getResult(0);
  if (!getElementTypeOrSelf(result).isF32())
    return true;
  Type type = getMovedType(op);
  if (!type) {
    values.addConstant(result);
    return true;
  }
  if (type.isF32())
    return true;
  rewriter.setInsertionPoint(op);
  Operation *narrow = rewriter.clone(*op);
  for (OpOperand &operand : narrow->getOpOperands())
    if (isa<FloatType>(getElementTypeOrSelf(operand.get())))
      operand.set(values.round(operand.get(), cast<FloatType>(type)));
  if (auto pad = dyn_cast<tensor::PadOp>(narrow)) {
    Operation *yield = pad.getBody()->getTerminator();
    rewriter.setInsertionPoint(yield);
    yield->setOperand(0, arith::TruncFOp::create(rewriter, op->getLoc(), type, yield->getOperand(0)));
  }
  narrow->getResult(0).setType(withElement(result.getType(), type));
  values.replace(result, narrow->getResult(0));
  rewriter.eraseOp(op);
  return true;
}

void Policy::visit(Operation *op) {
  StringRef precision = getPrecision(op);
  if (isa<arith::ConstantOp, tensor::EmptyOp>(op)) {
    // Only equal elements adapt to the type of the others: a table of numbers has its own precision.
    auto elements = dyn_cast_or_null<ElementsAttr>(op->getAttr("value"));
    if (!elements || elements.isSplat())
      values.addConstant(op->getResult(0));
    return;
  }
  if (precision == "off")
    return visitRegions(op);
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return narrowMatmul(matmul, precision, matmul.getRole(), matmul.readsInit());
  if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
    return narrowMatmul(grouped, precision, grouped.getRole(), /*accumulates=*/false);
  if (precision == "tf32") // a precision of matmuls
    return visitRegions(op);
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return narrowLinalg(rewriter, structured, values);
  if (isArithmetic(op))
    return narrowArithmetic(op);
  if (!narrowView(op))
    visitRegions(op);
}

void Policy::visitRegions(Operation *op) {
  for (Region &region : op->getRegions())
    visit(region);
}

void Policy::visit(Region &region) {
  for (Block &block : region)
    for (Operation &op : llvm::make_early_inc_range(block))
      visit(&op);
}

struct MixedPrecision : impl::MixedPrecisionBase<MixedPrecision> {
  using MixedPrecisionBase::MixedPrecisionBase;

  void runOnOperation() final {
    if (!dtype.empty() && !isMixedPrecision(dtype)) {
      getOperation()->emitError() << "dtype=" << dtype << " is none of off, bf16, f16 and tf32";
      return signalPassFailure();
    }
    getOperation()->walk([&](FunctionOpInterface function) {
      if (!function.isExternal())
        Policy(function, dtype).run();
    });
    getOperation()->walk([](Operation *op) { op->removeDiscardableAttr(kMixedPrecisionAttrName); });
  }
};

} // namespace
} // namespace fp8
