// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks before the first stage that a program can be compiled, and marks it as --carry and
// --pair say.

#include "Request.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
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
    if (!op->hasAttr(kMatmulsAttrName))
      return WalkResult::advance();
    (void)report(op->getLoc(), kMatmulsAttrName);
    return WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return failure();
  for (auto function : module.getOps<func::FuncOp>())
    for (StringRef name :
         {StringRef(kStateAttrName), StringRef(kProgramStateAttrName), StringRef(kResultAttrName),
          StringRef(kBatchAttrName), StringRef(kShardAttrName)}) {
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

std::optional<unsigned> fp8::findArgument(func::FuncOp function, StringRef text) {
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
      auto other = function.getArgAttrOfType<IntegerAttr>(*argument, kCarriedAttrName);
      if (other && other.getInt() != request.result)
        return emitError(function.getArgument(*argument).getLoc())
               << "--carry=" << request.argument << ":" << request.result << ": the argument carries result "
               << other.getInt() << " already, as the program or another --carry says; drop one of the two";
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
