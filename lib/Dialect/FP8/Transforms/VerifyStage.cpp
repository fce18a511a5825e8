// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exit contracts of the stages, checked between the pipelines.

#include "fp8/Analysis/FloatContraction.h"
#include "fp8/Analysis/Rearrangement.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_VERIFYSTAGE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

LogicalResult verifyIngest(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    if (matchFloatContraction(linalgOp))
      return op->emitError(
          "after ingest: this contraction is not an fp8.matmul; fp8-ingest-pipeline goes before "
          "fp8-recipe-pipeline");
  if (auto matmul = dyn_cast<MatmulOp>(op))
    if (!matmul.getSite() || !matmul.getRole() || !matmul.getLhsKind())
      return op->emitError("after ingest: this fp8.matmul has no site, role or kinds");
  return success();
}

/// Returns whether `data` is the result of a quantize, an argument, or a stack that a loop fills with
/// FP8 data, through views and slices.
bool isQuantized(Value data) {
  while (Operation *op = data.getDefiningOp()) {
    if (isa<QuantizeOp, QuantizeBlocksOp, LoopLikeOpInterface>(op))
      return true;
    std::optional<Rearrangement> moved = matchRearrangement(op);
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp, tensor::ExtractSliceOp>(op) &&
        (!moved || moved->cast))
      return false;
    data = op->getOperand(0);
  }
  return true;
}

/// Returns whether the recipe's own code casts tensors, as elementwise code.
bool castsItself(RecipeAttrInterface recipe) {
  return llvm::any_of(ArrayRef{TensorKind::input, TensorKind::weight, TensorKind::grad_output},
                      [&](TensorKind kind) { return recipe.hasOwnQuantize(kind); });
}

/// Checks that state arguments are the last two, scale before amax_history; casts of weights may follow.
LogicalResult verifyStatePosition(func::FuncOp function) {
  unsigned count = function.getNumArguments();
  while (count > 0 && function.getArgAttr(count - 1, kDerivedAttrName))
    --count;
  for (unsigned i = 0; i < count; ++i) {
    auto state = function.getArgAttrOfType<StringAttr>(i, kStateAttrName);
    StringRef wanted = i + 2 == count ? "scale" : i + 1 == count ? "amax_history" : "";
    if (state && state != wanted)
      return function.emitError() << "after recipe: argument " << i << " is the state tensor '"
                                  << state.getValue()
                                  << "'; state must be the last arguments, scale and amax_history";
  }
  return success();
}

LogicalResult verifyRecipe(Operation *op) {
  if (auto matmul = dyn_cast<MatmulOp>(op); matmul && !matmul.getKept())
    return op->emitError("after recipe: this fp8.matmul is not in FP8 and does not say why");
  if (auto matmul = dyn_cast<ScaledMatmulOp>(op);
      matmul && matmul.getRecipe() && !isQuantized(matmul.getLhs()) && !isQuantized(matmul.getRhs()) &&
      !castsItself(*matmul.getRecipe()))
    return op->emitError("after recipe: this fp8.scaled_matmul has a recipe, but no operand comes from an "
                         "fp8.quantize");
  if (isa<GroupRowsOp>(op))
    return op->emitError(
        "after recipe: these groups of rows are neither part of a grouped matmul nor expanded");
  if (auto function = dyn_cast<func::FuncOp>(op))
    return verifyStatePosition(function);
  return success();
}

/// Checks that elementwise code outside of regions is linalg.generic.
LogicalResult verifyIsGeneric(linalg::LinalgOp op) {
  if (isa<linalg::GenericOp, linalg::FillOp>(op.getOperation()) || op.getNumReductionLoops() != 0 ||
      !op.hasPureTensorSemantics())
    return success();
  return op->emitError("after fusion: this elementwise operation is not a linalg.generic, so nothing fuses "
                       "with it");
}

/// Checks that a matmul reads no transposed copy of an FP8 tensor.
LogicalResult verifyReadsInPlace(ScaledMatmulOp op) {
  for (auto [value, block] : {std::pair(op.getLhs(), op.getLhsBlock()), {op.getRhs(), op.getRhsBlock()}}) {
    Operation *producer = value.getDefiningOp();
    std::optional<Rearrangement> view = producer ? matchRearrangement(producer) : std::nullopt;
    if (view && !block && !view->cast && view->map.isPermutation())
      return op->emitError("after fusion: this matmul reads a transposed copy of FP8 bytes");
  }
  return success();
}

LogicalResult verifyFusion(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return verifyIsGeneric(linalgOp);
  if (auto matmul = dyn_cast<ScaledMatmulOp>(op))
    return verifyReadsInPlace(matmul);
  auto quantize = dyn_cast<QuantizeOp>(op);
  if (!quantize || quantize.getInputs().empty() || quantize->getNumResults() == 0)
    return success();
  for (Operation *user : quantize.getInputs().front().getUsers()) {
    auto other = dyn_cast<QuantizeOp>(user);
    if (other && other != quantize && other->getBlock() == quantize->getBlock() &&
        other->isBeforeInBlock(quantize) && other.getInputs() == quantize.getInputs() &&
        other.getScale() == quantize.getScale() && other.getFormat() == quantize.getFormat() &&
        other.getProducer().empty() && quantize.getProducer().empty())
      return op->emitError("after fusion: this tensor is quantized twice in one format with one scale");
  }
  return success();
}

/// Checks that at most one collective of the function reduces amaxes for an update of their history.
LogicalResult verifyOneReduction(func::FuncOp function) {
  AllReduceOp first;
  WalkResult walked = function.walk([&](UpdateAmaxHistoryOp op) {
    Value amaxes = op.getAmaxes();
    if (auto slice = amaxes.getDefiningOp<tensor::ExtractSliceOp>())
      amaxes = slice.getSource();
    auto reduction = amaxes.getDefiningOp<AllReduceOp>();
    if (first && reduction && reduction != first)
      return (void)reduction->emitError("after batching: the update point has another reduction of amaxes"),
             WalkResult::interrupt();
    first = reduction ? reduction : first;
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult verifyBatching(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    return success();
  llvm::SmallDenseSet<Attribute> recipes;
  WalkResult walked = function.walk([&](UpdateAmaxHistoryOp op) {
    if (recipes.insert(op.getRecipe()).second)
      return WalkResult::advance();
    op->emitError("after batching: the update point has another update of this recipe");
    return WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return failure();
  return verifyOneReduction(function);
}

LogicalResult verifyBufferize(Operation *op) {
  auto isTensor = llvm::IsaPred<TensorType>;
  if (llvm::any_of(op->getOperandTypes(), isTensor) || llvm::any_of(op->getResultTypes(), isTensor))
    return op->emitError(
        "after bufferize: this operation is still on tensors; fp8-bufferize-pipeline goes before");
  return success();
}

/// Returns whether host code does `op`, a part of a collective, by a call of the communicator.
bool isCommunication(Operation *op) {
  return isa<StartCollectiveOp, WaitCollectiveOp, RankOp, RankCountOp>(op);
}

LogicalResult verifyKernels(Operation *op) {
  if (isa_and_nonnull<FP8Dialect>(op->getDialect()) && !isCommunication(op))
    return op->emitError() << "after kernels: '" << op->getName() << "' has not been lowered";
  return success();
}

/// Checks that the host's code accesses memory by launches, and by loads alone, which are reads of the
/// device.
LogicalResult verifyGPUKernels(Operation *op) {
  if (failed(verifyKernels(op)))
    return failure();
  if (isa<linalg::LinalgOp>(op))
    return op->emitError("after gpu-kernels: this operation is not part of a kernel's loops");
  bool isOnHost = op->getParentOfType<func::FuncOp>() && !op->getParentOfType<gpu::GPUModuleOp>();
  bool isAllowed = isa<gpu::LaunchFuncOp, memref::LoadOp, memref::AllocOp, memref::DeallocOp>(op) ||
                   op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(op) ||
                   isa<cf::AssertOp, scf::ExecuteRegionOp, scf::WhileOp>(op) || isCommunication(op);
  if (isOnHost && !isAllowed)
    return op->emitError("after gpu-kernels: '")
           << op->getName() << "' runs on the host, which cannot access the memory of the device";
  return success();
}

/// Checks that `op` has no attribute that an earlier stage should have taken (Marks.def).
LogicalResult verifyMarks(Operation *op, MarkStage stage, StringRef stageName) {
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (getLastStage(attribute.getName()) < stage)
      return op->emitError() << "after " << stageName << ": attribute '" << attribute.getName().getValue()
                             << "' is of an earlier stage";
  return success();
}

class VerifyStage : public impl::VerifyStageBase<VerifyStage> {
public:
  using impl::VerifyStageBase<VerifyStage>::VerifyStageBase;

  void runOnOperation() final {
    struct Stage {
      StringRef name;
      LogicalResult (*check)(Operation *);
      MarkStage marks;
    };
    static constexpr Stage kStages[] = {{"ingest", verifyIngest, MarkStage::ingest},
                                        {"recipe", verifyRecipe, MarkStage::recipe},
                                        {"fusion", verifyFusion, MarkStage::fusion},
                                        {"batching", verifyBatching, MarkStage::batching},
                                        {"bufferize", verifyBufferize, MarkStage::bufferize},
                                        {"kernels", verifyKernels, MarkStage::kernels},
                                        {"gpu-kernels", verifyGPUKernels, MarkStage::kernels}};
    const Stage *found = llvm::find_if(kStages, [&](const Stage &known) { return known.name == stage; });
    if (found == std::end(kStages)) {
      getOperation().emitError() << "no stage '" << stage
                                 << "'; there are ingest, recipe, fusion, batching, bufferize, kernels "
                                    "and gpu-kernels";
      return signalPassFailure();
    }
    bool ok = true;
    getOperation()->walk([&](Operation *op) {
      ok &= succeeded(found->check(op)) && succeeded(verifyMarks(op, found->marks, found->name));
    });
    if (!ok)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace fp8
