// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Determines the memory of every result of an entry point: that of the argument that carries it
// to the next step, or that of an additional destination argument. A result of dynamic size stays a
// result. All other arguments are marked read-only, which one-shot bufferization does not assume
// by itself.

#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace fp8 {
#define GEN_PASS_DEF_BINDRESULTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Returns whether scalars of this type, and tensors of them, can be arguments and results.
static bool isStorable(Type type) {
  return isa<FloatType>(type) || (isa<IntegerType>(type) && type.getIntOrFloatBitWidth() <= 64);
}

/// Emits an error unless a value of this type can be passed as one dense tensor.
static LogicalResult verifyBoundaryType(func::FuncOp func, Location loc, StringRef kind, unsigned index,
                                        Type type) {
  auto report = [&](StringRef problem) {
    return emitError(loc) << kind << " " << index << " of '" << func.getName() << "' has type " << type
                          << ": " << problem;
  };
  if (isStorable(type))
    return success();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isStorable(tensor.getElementType()))
    return report("only tensors and scalars of floats and integers can be arguments and results");
  if (tensor.getEncoding())
    return report("only dense tensors can be arguments and results; this one has an encoding");
  return success();
}

/// Emits an error for calls that inlining left: recursion, or functions outside of the library.
static LogicalResult verifyCalls(func::FuncOp func) {
  WalkResult walked = func.walk([&](CallOpInterface call) {
    call->emitError() << "'" << func.getName() << "' calls a function that cannot be inlined: functions "
                      << "must not call themselves and need a body in this module";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

/// Emits an error for mutable globals: a step keeps state in arguments only.
static LogicalResult verifyEffects(func::FuncOp func) {
  WalkResult walked = func.walk([&](Operation *op) -> WalkResult {
    FlatSymbolRefAttr name;
    if (auto access = dyn_cast<memref::GetGlobalOp>(op))
      name = access.getNameAttr();
    else if (auto access = dyn_cast<LLVM::AddressOfOp>(op))
      name = access.getGlobalNameAttr();
    Operation *global = name ? SymbolTable::lookupNearestSymbolFrom(op, name) : nullptr;
    auto buffer = dyn_cast_or_null<memref::GlobalOp>(global);
    auto variable = dyn_cast_or_null<LLVM::GlobalOp>(global);
    if ((buffer && !buffer.getConstant()) || (variable && !variable.getConstant()))
      return op->emitError() << "global '" << name.getValue() << "' can be written: pass what '"
                             << func.getName() << "' keeps between calls as an argument and a result";
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

static LogicalResult verifyBoundary(func::FuncOp func) {
  if (!func.getBody().hasOneBlock())
    return func.emitError() << "'" << func.getName()
                            << "' branches between blocks: use structured control flow (scf)";
  if (failed(verifyCalls(func)) || failed(verifyEffects(func)))
    return failure();
  for (BlockArgument argument : func.getArguments())
    if (failed(verifyBoundaryType(func, argument.getLoc(), "argument", argument.getArgNumber(),
                                  argument.getType())))
      return failure();
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    if (failed(verifyBoundaryType(func, func.getLoc(), "result", index, type)))
      return failure();
  return success();
}

/// Turns scalars into tensors of rank 0, so that all values are passed in the same way.
static void wrapScalars(func::FuncOp func) {
  OpBuilder builder = OpBuilder::atBlockBegin(&func.front());
  for (BlockArgument argument : func.getArguments()) {
    Type scalar = argument.getType();
    if (isa<RankedTensorType>(scalar))
      continue;
    argument.setType(RankedTensorType::get({}, scalar));
    auto extract = tensor::ExtractOp::create(builder, argument.getLoc(), argument, ValueRange());
    argument.replaceAllUsesExcept(extract, extract);
  }
  Operation *terminator = func.front().getTerminator();
  builder.setInsertionPoint(terminator);
  for (OpOperand &operand : terminator->getOpOperands()) {
    Type scalar = operand.get().getType();
    if (isa<RankedTensorType>(scalar))
      continue;
    operand.set(tensor::FromElementsOp::create(builder, func.getLoc(), RankedTensorType::get({}, scalar),
                                               operand.get()));
  }
}

/// Returns for every result the argument that carries it, or null.
static FailureOr<SmallVector<BlockArgument>> findCarriers(func::FuncOp func) {
  SmallVector<BlockArgument> carriers(func.getNumResults());
  ValueRange results = func.front().getTerminator()->getOperands();
  for (BlockArgument argument : func.getArguments()) {
    auto carried = func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kCarriedAttrName);
    if (!carried)
      continue;
    auto report = [&] {
      return emitError(argument.getLoc()) << "argument " << argument.getArgNumber() << " of '"
                                          << func.getName() << "' carries result " << carried.getInt();
    };
    if (carried.getInt() < 0 || carried.getInt() >= int64_t(func.getNumResults()))
      return report() << ", but there are only " << func.getNumResults() << " results";
    BlockArgument &carrier = carriers[carried.getInt()];
    if (carrier)
      return report() << ", which argument " << carrier.getArgNumber() << " carries already";
    Type type = results[carried.getInt()].getType();
    if (type != argument.getType())
      return report() << " of type " << type << ", but its own type is " << argument.getType();
    carrier = argument;
  }
  return carriers;
}

/// Adds the arguments that are returned unchanged: residuals, which the caller passes on.
static LogicalResult addReturned(func::FuncOp func, SmallVectorImpl<BlockArgument> &carriers) {
  ValueRange results = func.front().getTerminator()->getOperands();
  for (BlockArgument argument : func.getArguments()) {
    auto returned = func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kReturnedAttrName);
    if (!returned)
      continue;
    int64_t result = returned.getInt();
    if (result < 0 || result >= int64_t(results.size()) || results[result] != argument || carriers[result])
      return emitError(argument.getLoc())
             << "argument " << argument.getArgNumber() << " of '" << func.getName() << "' is not result "
             << result << ", as '" << kReturnedAttrName << "' says";
    carriers[result] = argument;
  }
  return success();
}

/// Returns the value that `value` is a view of.
static Value findRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CastOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
             tensor::ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Returns whether `root` may share memory with an argument that this function overwrites, so that
/// it must be copied before.
static bool mayBeCarriedMemory(Value root) {
  if (Operation *op = root.getDefiningOp())
    return isa<scf::SCFDialect>(op->getDialect()) || isa<arith::SelectOp>(op);
  auto argument = cast<BlockArgument>(root);
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return !func || func.getArgAttr(argument.getArgNumber(), kCarriedAttrName);
}

/// Returns whether `root` is a carried argument with something inserted, which bufferization may do in that
/// argument's memory; not if that becomes `carrier`, where it belongs.
static bool isChangedArgument(Value root, Value carrier) {
  Value changed = root;
  while (Operation *insert = changed.getDefiningOp()) {
    if (!isa<tensor::InsertSliceOp, tensor::InsertOp>(insert))
      return false;
    changed = findRoot(cast<DestinationStyleOpInterface>(insert).getDpsInits()[0]);
  }
  return changed != root && changed != carrier && mayBeCarriedMemory(changed);
}

/// Copies returned values that writing another result would overwrite, before the first result is
/// written: values in carried memory, and views of a value that is itself written to a destination.
static void saveOverwritten(func::FuncOp func, ArrayRef<BlockArgument> carriers) {
  Operation *terminator = func.front().getTerminator();
  DenseMap<Value, Value> shown; // the first returned value of each root
  OpBuilder builder(terminator);
  for (auto [operand, carrier] : llvm::zip_equal(terminator->getOpOperands(), carriers)) {
    Value value = operand.get(), root = findRoot(value);
    Value first = shown.try_emplace(root, value).first->second;
    bool isOtherView = first != value && !isa<BlockArgument>(root);
    if (value == carrier || (!isOtherView && !mayBeCarriedMemory(root) && !isChangedArgument(root, carrier)))
      continue;
    operand.set(bufferization::AllocTensorOp::create(
        builder, value.getLoc(), cast<RankedTensorType>(value.getType()), ValueRange(), value));
  }
}

/// Returns whether something that may run after `branch` uses `value`, which is computed before it.
static bool isUsedAfter(Value value, Operation *branch) {
  if (branch->isAncestor(value.getParentRegion()->getParentOp()))
    return false;
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *beside = branch->getBlock()->findAncestorOpInBlock(*user);
    return !beside || (beside != branch && branch->isBeforeInBlock(beside));
  });
}

/// Copies what a branch yields if that is a constant or used after the branch: its result may share
/// memory with a result of the function or an argument, which is overwritten, and one-shot bufferization
/// copies no yielded value.
static void saveYielded(func::FuncOp func) {
  func.walk([](scf::YieldOp yield) {
    Operation *branch = yield->getParentOp();
    if (!isa<scf::IfOp>(branch))
      return;
    OpBuilder builder(yield);
    for (OpOperand &operand : yield->getOpOperands()) {
      Value value = operand.get();
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (type && (value.getDefiningOp<arith::ConstantOp>() || isUsedAfter(value, branch)))
        operand.set(bufferization::AllocTensorOp::create(builder, yield.getLoc(), type, ValueRange(), value));
    }
  });
}

/// Asserts that a result has the size of the argument that carries it.
static void assertSameSizes(OpBuilder &builder, Value value, BlockArgument argument, unsigned result) {
  auto type = cast<RankedTensorType>(value.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (!type.isDynamicDim(dim))
      continue;
    Location loc = value.getLoc();
    Value have = tensor::DimOp::create(builder, loc, value, dim);
    Value want = tensor::DimOp::create(builder, loc, argument, dim);
    Value same = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, have, want);
    cf::AssertOp::create(builder, loc, same,
                         ("result " + Twine(result) + " has another size than argument " +
                          Twine(argument.getArgNumber()) + " '" + getArgumentName(argument) +
                          "', which becomes it")
                             .str());
  }
}

namespace {
struct BindResultsPass : public fp8::impl::BindResultsBase<BindResultsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func.isPublic() || func.isExternal())
      return;
    if (failed(verifyBoundary(func)))
      return signalPassFailure();
    wrapScalars(func);
    FailureOr<SmallVector<BlockArgument>> carriers = findCarriers(func);
    if (failed(carriers) || failed(addReturned(func, *carriers)))
      return signalPassFailure();
    saveOverwritten(func, *carriers);
    saveYielded(func);
    bind(func, *carriers);
  }

  void bind(func::FuncOp func, ArrayRef<BlockArgument> carriers);
};
} // namespace

void BindResultsPass::bind(func::FuncOp func, ArrayRef<BlockArgument> carriers) {
  auto setWritable = [&](unsigned argument, bool value) {
    func.setArgAttr(argument, bufferization::BufferizationDialect::kWritableAttrName,
                    BoolAttr::get(&getContext(), value));
  };
  Block &body = func.front();
  SmallVector<Type> inputs(body.getArgumentTypes());
  func.setFunctionType(FunctionType::get(&getContext(), inputs, body.getTerminator()->getOperandTypes()));
  for (unsigned index : llvm::seq<unsigned>(inputs.size()))
    setWritable(index, bool(func.getArgAttr(index, kCarriedAttrName)));

  OpBuilder builder(body.getTerminator());
  DenseMap<Value, Value> bound;
  for (auto [index, operand] : llvm::enumerate(body.getTerminator()->getOpOperands())) {
    Value value = operand.get(), destination = carriers[index];
    bool isDynamic = !cast<RankedTensorType>(value.getType()).hasStaticShape();
    if (value == destination || (isDynamic && !destination)) // returned unchanged
      continue;
    if (isDynamic)
      assertSameSizes(builder, value, carriers[index], index);
    if (!destination) {
      unsigned position = body.getNumArguments();
      NamedAttrList marker(func.getResultAttrDict(index));
      marker.set(kResultAttrName, builder.getI32IntegerAttr(index));
      (void)func.insertArgument(position, value.getType(), marker.getDictionary(&getContext()),
                                value.getLoc());
      setWritable(position, true);
      destination = func.getArgument(position);
    }
    // A value that is returned twice is copied from its first destination: a second use of the
    // value itself would keep it from being computed in that destination.
    Value source = bound.lookup_or(value, value);
    auto written = bufferization::MaterializeInDestinationOp::create(
        builder, value.getLoc(), destination.getType(), source, destination);
    operand.set(written.getResult());
    bound.try_emplace(value, written.getResult());
  }
}
