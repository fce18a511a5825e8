// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks before the first stage that a program can be compiled, and marks it as --carry, --pair
// and --data-parallel say.

#include "Request.h"
#include "fp8/Dialect/FP8/IR/ProductMarks.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace fp8;

/// Reports attributes that the compiler writes itself and relies on later: the program has been
/// through the recipe stage already, or pretends to have been.
static LogicalResult refuseOwnAttributes(ModuleOp module) {
  auto report = [](Location location, StringRef name) {
    return emitError(location) << "attribute '" << name
                               << "' is for the compiler to write: compile the program as it was before the "
                                  "recipe stage, or remove it";
  };
  for (StringRef name :
       {StringRef(kColumnsAttrName), StringRef(kHistoryAttrName), StringRef(kGridAttrName),
        StringRef(kGridAxesAttrName), StringRef(kBatchAxisAttrName), StringRef(kReduceAxesAttrName)})
    if (module->hasAttr(name))
      return report(module.getLoc(), name);
  WalkResult walked = module.walk([&](Operation *op) {
    if (!op->hasAttr(kProductsAttrName))
      return WalkResult::advance();
    (void)report(op->getLoc(), kProductsAttrName);
    return WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return failure();
  for (auto function : module.getOps<func::FuncOp>())
    for (StringRef name : {StringRef(kStateAttrName), StringRef(kProgramStateAttrName),
                           StringRef(kResultAttrName), StringRef(kBatchAttrName)}) {
      for (BlockArgument argument : function.getArguments())
        if (function.getArgAttr(argument.getArgNumber(), name))
          return report(argument.getLoc(), name);
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        if (function.getResultAttr(i, name))
          return report(function.getLoc(), name);
    }
  return success();
}

//===----------------------------------------------------------------------===//
// The request
//===----------------------------------------------------------------------===//

/// Finds the argument of `function` that `text`, an index or a name, stands for.
static std::optional<unsigned> findArgument(func::FuncOp function, StringRef text) {
  unsigned index;
  if (!text.getAsInteger(10, index))
    return index < function.getNumArguments() ? std::optional<unsigned>(index) : std::nullopt;
  for (BlockArgument argument : function.getArguments())
    if (getArgumentName(argument) == text)
      return argument.getArgNumber();
  return std::nullopt;
}

/// Whether the argument and the result of a request exist and have the same type.
static bool fits(func::FuncOp function, std::optional<unsigned> argument, unsigned result) {
  return argument && result < function.getNumResults() &&
         function.getArgument(*argument).getType() == function.getResultTypes()[result];
}

/// Marks the argument in every entry where the request fits: an evaluation beside the
/// training step may have an argument of that name and carry nothing.
static LogicalResult applyCarry(ModuleOp module, const CarryRequest &request) {
  bool found = false;
  func::FuncOp unfit;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    std::optional<unsigned> argument = findArgument(function, request.argument);
    if (fits(function, argument, request.result)) {
      function.setArgAttr(*argument, kCarriedAttrName,
                          Builder(module.getContext()).getI32IntegerAttr(request.result));
      found = true;
    } else if (argument && request.result < function.getNumResults() && !unfit) {
      unfit = function;
    }
  }
  if (found)
    return success();
  std::string option = "--carry=" + request.argument + ":" + std::to_string(request.result);
  if (!unfit)
    return module.emitError() << option << ": no public function has such an argument and result";
  return unfit.emitError() << option << ": argument "
                           << unfit.getArgument(*findArgument(unfit, request.argument)).getType()
                           << " and result " << unfit.getResultTypes()[request.result] << " differ in type";
}

//===----------------------------------------------------------------------===//
// Several ranks
//===----------------------------------------------------------------------===//

/// Returns the extents of the program's grid; none without one.
static SmallVector<int64_t> findGrid(ModuleOp module) {
  SmallVector<int64_t> found;
  module.walk([&](Operation *op) {
    if (auto grid = dyn_cast<shard::GridOp>(op))
      found.assign(grid.getShape().begin(), grid.getShape().end());
    else if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      found = llvm::to_vector(collective.getGridAttr().asArrayRef());
    return found.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return found;
}

/// Finds the axis that `name`, a name or number, stands for.
static std::optional<int64_t> findAxis(ModuleOp module, StringRef name) {
  if (auto names = module->getAttrOfType<ArrayAttr>(kGridAxesAttrName))
    for (auto [i, own] : llvm::enumerate(names.getAsValueRange<StringAttr>()))
      if (own == name)
        return i;
  auto grid = module->getAttrOfType<DenseI64ArrayAttr>(kGridAttrName);
  int64_t axis;
  if (!name.getAsInteger(10, axis) && grid && axis >= 0 && axis < grid.size())
    return axis;
  return std::nullopt;
}

/// Marks an argument in every entry that has it, as one of which each rank has a part.
static LogicalResult markBatch(ModuleOp module, const BatchArgument &batch) {
  bool found = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    std::optional<unsigned> argument = findArgument(function, batch.argument);
    if (!argument)
      continue;
    auto type = dyn_cast<RankedTensorType>(function.getArgument(*argument).getType());
    int64_t rank = type ? type.getRank() : 0;
    if (batch.dim >= std::max<int64_t>(rank, 1))
      return emitError(function.getArgument(*argument).getLoc())
             << "--data-parallel: argument '" << batch.argument << "' has " << rank << " dimensions, and "
             << batch.dim << " is none of them";
    if (function.getArgAttr(*argument, kCarriedAttrName))
      return emitError(function.getArgument(*argument).getLoc())
             << "--data-parallel: argument '" << batch.argument
             << "' is carried from step to step, so it is no part of a batch";
    function.setArgAttr(*argument, kBatchAttrName,
                        Builder(module.getContext()).getI64IntegerAttr(rank == 0 ? -1 : batch.dim));
    found = true;
  }
  return found ? success()
               : module.emitError() << "--data-parallel: no public function has an argument '"
                                    << batch.argument << "'";
}

/// Marks the program as --data-parallel says. Without a grid of its own it gets one of all ranks.
static LogicalResult applyDataParallel(ModuleOp module, const DataParallelRequest &request) {
  Builder builder(module.getContext());
  if (!module->hasAttr(kGridAttrName)) {
    module->setAttr(kGridAttrName, builder.getDenseI64ArrayAttr(ShapedType::kDynamic));
    module->setAttr(kGridAxesAttrName, builder.getStrArrayAttr(StringRef(request.axis)));
  }
  std::optional<int64_t> axis = findAxis(module, request.axis);
  if (!axis)
    return module.emitError() << "--data-parallel: '" << request.axis
                              << "' is no axis of the program's grid; its axes are numbers, from 0";
  module->setAttr(kBatchAxisAttrName, builder.getI64IntegerAttr(*axis));
  for (const BatchArgument &batch : request.arguments)
    if (failed(markBatch(module, batch)))
      return failure();
  return success();
}

/// Marks the axes over which amaxes are combined.
static LogicalResult applyReduceAxes(ModuleOp module, ArrayRef<std::string> names) {
  SmallVector<int64_t> axes;
  for (const std::string &name : names) {
    std::optional<int64_t> axis = findAxis(module, name);
    if (!axis)
      return module.emitError() << "--reduce-amax-axes: '" << name << "' is no axis of the program's grid"
                                << (module->hasAttr(kGridAttrName) ? ""
                                                                   : ", which has none: it is for one rank");
    if (!llvm::is_contained(axes, *axis))
      axes.push_back(*axis);
  }
  llvm::sort(axes);
  module->setAttr(kReduceAxesAttrName, Builder(module.getContext()).getDenseI64ArrayAttr(axes));
  return success();
}

static LogicalResult applyRanks(ModuleOp module, const CompilerOptions &options) {
  if (SmallVector<int64_t> grid = findGrid(module); !grid.empty())
    module->setAttr(kGridAttrName, Builder(module.getContext()).getDenseI64ArrayAttr(grid));
  if (options.dataParallel && failed(applyDataParallel(module, *options.dataParallel)))
    return failure();
  return options.reduceAmaxAxes.empty() ? success() : applyReduceAxes(module, options.reduceAmaxAxes);
}

LogicalResult fp8::applyRequest(ModuleOp module, const CompilerOptions &options) {
  for (auto inner : module.getOps<ModuleOp>())
    return inner.emitError() << "a module inside a module cannot be compiled; move its functions out";
  if (llvm::none_of(module.getOps<func::FuncOp>(),
                    [](func::FuncOp function) { return function.isPublic() && !function.isExternal(); }))
    return module.emitError() << "there is no public function to compile";
  if (failed(refuseOwnAttributes(module)))
    return failure();
  for (const CarryRequest &request : options.carry)
    if (failed(applyCarry(module, request)))
      return failure();
  if (failed(applyRanks(module, options)))
    return failure();
  return options.pair ? markPair(module, *options.pair) : success();
}

void fp8::keepRecipeFunctions(ModuleOp module, RecipeAttrInterface recipe) {
  for (FlatSymbolRefAttr name : recipe.getFunctions())
    if (auto function = module.lookupSymbol<func::FuncOp>(name.getAttr()))
      if (!function.isExternal())
        function.setPublic();
}
