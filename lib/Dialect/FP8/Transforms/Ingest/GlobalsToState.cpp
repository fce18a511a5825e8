// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns globals in which a program keeps state from step to step into arguments and results of its
// entry points, so that callers can see, save and restore the state.

#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_GLOBALSTOSTATE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

using ml_program::GlobalLoadConstOp;
using ml_program::GlobalLoadOp;
using ml_program::GlobalOp;
using ml_program::GlobalStoreOp;

//===----------------------------------------------------------------------===//
// One global
//===----------------------------------------------------------------------===//

/// A global, the type of its state tensor (of rank 0 for a scalar) and its initial value.
struct Global {
  GlobalOp op;
  RankedTensorType type;
  DenseElementsAttr initial;
};

/// Returns the initial values of a global, whatever attribute holds them; null for other attributes.
DenseElementsAttr getInitialValues(Attribute value, RankedTensorType type) {
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(value))
    return dense;
  if (isa_and_nonnull<IntegerAttr, FloatAttr>(value))
    return DenseElementsAttr::get(type, value);
  auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(value);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  bool isSplat;
  if (!blob || !DenseElementsAttr::isValidRawBuffer(type, blob->getData(), isSplat))
    return {};
  return DenseElementsAttr::getFromRawBuffer(type, blob->getData());
}

FailureOr<Global> describe(GlobalOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type && op.getType().isIntOrFloat())
    type = RankedTensorType::get({}, op.getType());
  if (!type || !type.hasStaticShape())
    return op.emitError() << "global '" << op.getSymName() << "' is a " << op.getType()
                          << ": only a tensor of static shape can be kept from step to step";
  Attribute value = op.getValueAttr();
  DenseElementsAttr initial = getInitialValues(value, type);
  if (!initial || initial.getType() != type)
    return op.emitError() << "global '" << op.getSymName() << "' has no value to begin with: give it one, as "
                          << "dense<0> : " << type;
  return Global{op, type, initial};
}

/// Checks that the manifest can hold the initial value in JSON, and that the runtime does not use the
/// name itself.
LogicalResult verifyState(Global global) {
  GlobalOp op = global.op;
  Type element = global.type.getElementType();
  if (!element.isSignlessInteger(1) && !element.isSignlessInteger(8) && !element.isSignlessInteger(16) &&
      !element.isSignlessInteger(32) && !element.isSignlessInteger(64) &&
      !isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(element))
    return op.emitError() << "global '" << op.getSymName() << "' is written and holds " << element
                          << ": keep it as i1, i8, i16, i32, i64, f16, bf16, f32 or f64";
  auto isFinite = [](const APFloat &value) { return value.isFinite(); };
  if (isa<FloatType>(element) &&
      !(global.initial.isSplat() ? isFinite(global.initial.getSplatValue<APFloat>())
                                 : llvm::all_of(global.initial.getValues<APFloat>(), isFinite)))
    return op.emitError() << "global '" << op.getSymName() << "' is written and begins with a value that is "
                          << "not finite; begin with another";
  StringRef name = op.getSymName();
  if (name == "scale" || name == "amax_history" || name.starts_with("carry."))
    return op.emitError() << "global '" << name << "' is written and would be a tensor of the state, where "
                          << "this name has a meaning: rename it";
  return success();
}

//===----------------------------------------------------------------------===//
// Reads and writes as values
//===----------------------------------------------------------------------===//

bool accesses(Operation *op, StringRef name, bool onlyWrites) {
  return op
      ->walk([&](Operation *inner) {
        auto store = dyn_cast<GlobalStoreOp>(inner);
        auto load = dyn_cast<GlobalLoadOp>(inner);
        auto constant = dyn_cast<GlobalLoadConstOp>(inner);
        StringRef accessed = store      ? store.getGlobal().getLeafReference().getValue()
                             : load     ? load.getGlobal().getLeafReference().getValue()
                             : constant ? constant.getGlobal().getLeafReference().getValue()
                                        : StringRef();
        bool counts = !accessed.empty() && accessed == name && (store || !onlyWrites);
        return counts ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Follows the value of one global through the code of one function.
class Tracer {
public:
  explicit Tracer(Global global) : global(global), name(global.op.getName()) {}

  /// Replaces all accesses in `block`, where the global's value is `current` at first;
  /// returns its value at the end.
  FailureOr<Value> trace(Block &block, Value current);

private:
  FailureOr<Value> traceInto(Operation *op, Value current);
  FailureOr<Value> traceLoop(scf::ForOp loop, Value current);
  FailureOr<Value> traceBranch(scf::IfOp branch, Value current);

  Global global;
  StringRef name;
};

FailureOr<Value> Tracer::traceLoop(scf::ForOp loop, Value current) {
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  auto keep = [](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
    return SmallVector<Value>(added.begin(), added.end());
  };
  FailureOr<LoopLikeOpInterface> wider =
      loop.replaceWithAdditionalYields(rewriter, current, /*replaceInitOperandUsesInLoop=*/false, keep);
  if (failed(wider))
    return failure();
  auto newLoop = cast<scf::ForOp>(wider->getOperation());
  FailureOr<Value> last = trace(*newLoop.getBody(), newLoop.getRegionIterArgs().back());
  if (failed(last))
    return failure();
  Operation *end = newLoop.getBody()->getTerminator();
  end->setOperand(end->getNumOperands() - 1, *last);
  return newLoop.getResults().back();
}

FailureOr<Value> Tracer::traceBranch(scf::IfOp branch, Value current) {
  OpBuilder builder(branch);
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(current.getType());
  auto wider =
      scf::IfOp::create(builder, branch.getLoc(), types, branch.getCondition(), /*withElseRegion=*/true);
  for (auto [from, to] : llvm::zip(branch->getRegions(), wider->getRegions())) {
    if (from.empty()) {
      builder.setInsertionPointToEnd(&to.front());
      scf::YieldOp::create(builder, branch.getLoc());
    } else {
      to.takeBody(from);
    }
    FailureOr<Value> last = trace(to.front(), current);
    if (failed(last))
      return failure();
    Operation *end = to.front().getTerminator();
    end->insertOperands(end->getNumOperands(), *last);
  }
  branch->replaceAllUsesWith(wider->getResults().drop_back());
  branch.erase();
  return wider.getResults().back();
}

FailureOr<Value> Tracer::traceInto(Operation *op, Value current) {
  if (!accesses(op, name, /*onlyWrites=*/true)) {
    // There are only reads, so the value is the same everywhere inside.
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (failed(trace(block, current)))
          return failure();
    return current;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return traceLoop(loop, current);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return traceBranch(branch, current);
  return op->emitError() << "writes global '" << name << "' inside: only functions, scf.for and scf.if may; "
                         << "keep the value in a result of '" << op->getName() << "' instead";
}

FailureOr<Value> Tracer::trace(Block &block, Value current) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    OpBuilder builder(&op);
    bool isScalar = !isa<TensorType>(global.op.getType());
    if (isa<GlobalLoadOp, GlobalLoadConstOp>(op) && accesses(&op, name, /*onlyWrites=*/false)) {
      Value read =
          isScalar ? tensor::ExtractOp::create(builder, op.getLoc(), current, ValueRange()) : current;
      op.getResult(0).replaceAllUsesWith(read);
      op.erase();
    } else if (isa<GlobalStoreOp>(op) && accesses(&op, name, /*onlyWrites=*/true)) {
      Value written = op.getOperand(0);
      current =
          isScalar ? tensor::FromElementsOp::create(builder, op.getLoc(), global.type, written) : written;
      op.erase();
    } else if (op.getNumRegions() != 0 && accesses(&op, name, /*onlyWrites=*/false)) {
      FailureOr<Value> after = traceInto(&op, current);
      if (failed(after))
        return failure();
      current = *after;
    }
  }
  return current;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Returns the position of the new result: before residuals, whose number the compiler chooses.
unsigned findPlaceOfResult(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (function.getResultAttr(i, kResidualAttrName))
      return i;
  return function.getNumResults();
}

/// Adds an argument for the value before `function` runs and, if the function changes it, a result.
LogicalResult addState(func::FuncOp function, Global global) {
  Builder builder(function.getContext());
  GlobalOp op = global.op;
  NamedAttribute mark = builder.getNamedAttr(kProgramStateAttrName, op.getSymNameAttr());
  NamedAttribute initial = builder.getNamedAttr(kInitialAttrName, global.initial);
  unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(index, global.type, builder.getDictionaryAttr({mark, initial}),
                                     NameLoc::get(op.getSymNameAttr(), op.getLoc()))))
    return failure();
  bool isWritten = accesses(function, op.getName(), /*onlyWrites=*/true);
  FailureOr<Value> last = Tracer(global).trace(function.front(), function.getArgument(index));
  if (failed(last) || !isWritten)
    return LogicalResult(last);
  unsigned result = findPlaceOfResult(function);
  function.front().getTerminator()->insertOperands(result, *last);
  function.setArgAttr(index, kCarriedAttrName, builder.getI32IntegerAttr(result));
  return function.insertResult(result, global.type, builder.getDictionaryAttr(mark));
}

/// Replaces reads of a global that no function changes by a constant.
LogicalResult replaceReads(func::FuncOp function, Global global) {
  OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
  auto value = arith::ConstantOp::create(builder, global.op.getLoc(), global.type, global.initial);
  return LogicalResult(Tracer(global).trace(function.front(), value));
}

LogicalResult verifyFunction(func::FuncOp function, GlobalOp op) {
  if (!function.isPublic())
    return function.emitError() << "uses global '" << op.getSymName()
                                << "' and cannot be inlined: pass the value as an argument and a result";
  if (!function.getBody().hasOneBlock())
    return function.emitError() << "uses global '" << op.getSymName()
                                << "' and branches between blocks: use structured control flow (scf)";
  return success();
}

struct GlobalsToState : public impl::GlobalsToStateBase<GlobalsToState> {
  void runOnOperation() override {
    for (GlobalOp op : llvm::make_early_inc_range(getOperation().getOps<GlobalOp>())) {
      if (failed(convert(op)))
        return signalPassFailure();
      op.erase();
    }
  }

  LogicalResult convert(GlobalOp op) {
    SmallVector<func::FuncOp> users;
    bool isWritten = false;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (accesses(function, op.getName(), /*onlyWrites=*/false)) {
        users.push_back(function);
        isWritten |= accesses(function, op.getName(), /*onlyWrites=*/true);
        if (failed(verifyFunction(function, op)))
          return failure();
      }
    if (users.empty())
      return success();
    FailureOr<Global> global = describe(op);
    if (failed(global) || (isWritten && failed(verifyState(*global))))
      return failure();
    for (func::FuncOp function : users)
      if (failed(isWritten ? addState(function, *global) : replaceReads(function, *global)))
        return failure();
    return success();
  }
};

} // namespace
} // namespace fp8
