// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the casts of weights and the code from the arguments of a function to each of them.

#include "ParameterCasts.h"
#include "fp8/Analysis/Dequantization.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp8;

static std::string printNumbers(ArrayRef<int64_t> numbers, StringRef separator) {
  return "(" + llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), separator) +
         ")";
}

static std::string printOrder(ArrayRef<int64_t> order) {
  return isIdentityPermutation(order) ? "" : printNumbers(order, ",");
}

std::string ParameterCast::getResultName(unsigned result) const {
  if (auto blocks = dyn_cast<QuantizeBlocksOp>(op)) {
    unsigned direction = result / 2;
    std::string order;
    if (blocks.getTranspositions())
      order = printOrder(cast<DenseI64ArrayAttr>((*blocks.getTranspositions())[direction]));
    return (result % 2 == 0 ? "data" : "scale_inv") +
           printNumbers(cast<DenseI64ArrayAttr>(blocks.getBlocks()[direction]), "x") + order;
  }
  auto quantize = cast<QuantizeOp>(op);
  if (int64_t(result) == quantize.getDataTIndex())
    return "data" + printOrder(*quantize.getTransposition());
  if (result == 0)
    return "data";
  return int64_t(result) == quantize.getScaleInvIndex() ? "scale_inv" : "amax";
}

int64_t ParameterCast::getCopyBytes() const {
  Value source = getViewSource(op->getOperand(0));
  return isa<BlockArgument>(source) ? 0 : *getStoredBytes(source.getType());
}

Operation *ParameterCast::clone(OpBuilder &builder, IRMapping &mapping) const {
  for (Operation *part : code)
    if (!mapping.contains(part->getResult(0)))
      builder.clone(*part, mapping);
  for (Value out : cast<DestinationStyleOpInterface>(op).getDpsInits()) {
    auto type = cast<RankedTensorType>(out.getType());
    mapping.map(out, tensor::EmptyOp::create(builder, op->getLoc(), type.getShape(), type.getElementType()));
  }
  Operation *copy = builder.clone(*op, mapping);
  copy->removeAttr(kWeightAttrName);
  return copy;
}

/// Returns why `code` cannot be repeated elsewhere; empty if it can.
static std::string findObstacle(ArrayRef<Operation *> code, Block *body) {
  for (Operation *op : code) {
    if (op->getBlock() != body)
      return "its cast is inside a loop or branch";
    bool hasMatmul = op->walk([](Operation *inner) {
                         bool found = isa<MatmulOp, ScaledMatmulOp, ScaledGroupedMatmulOp>(inner);
                         return found ? WalkResult::interrupt() : WalkResult::advance();
                       }).wasInterrupted();
    if (hasMatmul)
      return "it is computed with a matmul";
    if (!isMemoryEffectFree(op))
      return "it is computed with '" + op->getName().getStringRef().str() + "'";
  }
  return "";
}

/// Returns what `op` is computed from, without its destinations.
static SmallVector<Value> getInputs(Operation *op) {
  SmallVector<Value> inputs(cast<DestinationStyleOpInterface>(op).getDpsInputs());
  return inputs;
}

/// Returns the arguments of `function` that `op` and its `code` read, by number.
static SmallVector<BlockArgument> findArguments(func::FuncOp function, Operation *op,
                                                ArrayRef<Operation *> code) {
  SetVector<Value> read;
  read.insert_range(getInputs(op));
  for (Operation *op : code) {
    read.insert(op->operand_begin(), op->operand_end());
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    read.insert(captured.begin(), captured.end());
  }
  SmallVector<BlockArgument> arguments;
  for (BlockArgument argument : function.getArguments())
    if (read.contains(argument))
      arguments.push_back(argument);
  return arguments;
}

/// Prints what the cast computes, with the names of arguments beside their types. Left out is what names of
/// results tell: blocks and orders, and whether an amax is recorded, which evaluation does not.
static std::string printKey(const ParameterCast &parameter, ArrayRef<BlockArgument> arguments) {
  std::string text;
  llvm::raw_string_ostream os(text);
  SmallVector<Type> types;
  for (BlockArgument argument : arguments) {
    types.push_back(argument.getType());
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    Attribute state = function.getArgAttr(argument.getArgNumber(), kStateAttrName);
    state ? os << state << "\n" : os << getArgumentName(argument) << "\n";
  }
  if (auto quantize = dyn_cast<QuantizeOp>(parameter.op))
    os << quantize.getFormat() << " " << quantize.getColumnAttr() << "\n";
  else if (auto blocks = dyn_cast<QuantizeBlocksOp>(parameter.op))
    os << blocks.getFormat() << " " << blocks.getRecipe() << "\n";

  MLIRContext *context = parameter.op->getContext();
  OwningOpRef<func::FuncOp> function =
      func::FuncOp::create(UnknownLoc::get(context), "key", FunctionType::get(context, types, {}));
  OpBuilder builder = OpBuilder::atBlockBegin(function->addEntryBlock());
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(arguments, function->getArguments()))
    mapping.map(from, to);
  for (Operation *part : parameter.code)
    builder.clone(*part, mapping);
  SmallVector<Value> inputs;
  for (Value input : getInputs(parameter.op))
    inputs.push_back(mapping.lookup(input));
  func::ReturnOp::create(builder, function->getLoc(), inputs);
  function->print(os, OpPrintingFlags().printGenericOpForm().useLocalScope());
  return text;
}

static ParameterCast describeCast(func::FuncOp function, Operation *op) {
  ParameterCast cast(op, op->getAttrOfType<StringAttr>(kWeightAttrName).str());
  for (OpResult result : op->getResults())
    if (!result.use_empty())
      cast.results.push_back(result.getResultNumber());
  auto reject = [&](std::string reason) {
    cast.isKept = false;
    cast.reason = std::move(reason);
    return cast;
  };
  if (!isa<QuantizeOp, QuantizeBlocksOp>(op))
    return reject("a function of the recipe casts it");
  Block *body = &function.getBody().front();
  if (op->getBlock() != body)
    return reject("its cast is inside '" + op->getParentOp()->getName().getStringRef().str() + "'");
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitUsesFromAbove = false;
  options.omitBlockArguments = options.inclusive = true;
  for (Value input : getInputs(op))
    if (!isa<BlockArgument>(input) && failed(getBackwardSlice(input, &slice, options)))
      return reject("its code has several blocks");
  cast.code = llvm::to_vector(slice);
  if (std::string obstacle = findObstacle(cast.code, body); !obstacle.empty())
    return reject(std::move(obstacle));
  llvm::sort(cast.code, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Type type : op->getResultTypes())
    if (!getStoredBytes(type))
      return reject("its size is not known");

  SmallVector<BlockArgument> arguments = findArguments(function, op, cast.code);
  for (BlockArgument argument : arguments) {
    unsigned number = argument.getArgNumber();
    if (function.getArgAttr(number, kProgramStateAttrName) || function.getArgAttr(number, kResidualAttrName))
      return reject("it is computed from '" + getArgumentName(argument) + "'");
    if (function.getArgAttr(number, kStateAttrName))
      cast.readsScales = true;
    else
      cast.arguments.push_back(argument);
  }
  if (cast.arguments.empty())
    return reject("it is a constant");
  cast.key = printKey(cast, arguments);
  return cast;
}

std::vector<ParameterCast> fp8::findParameterCasts(func::FuncOp function) {
  std::vector<ParameterCast> casts;
  function.walk([&](Operation *op) {
    if (op->hasAttr(kWeightAttrName) && !op->use_empty())
      casts.push_back(describeCast(function, op));
  });
  return casts;
}
