// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies fp8.mixed_precision from functions, calls and regions to each operation inside, because inlining
// and the rewriting of control flow remove those that the user put it on.

#include "fp8/Dialect/FP8/IR/MixedPrecision.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_SCOPEMIXEDPRECISION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

StringAttr getPrecision(Operation *op) { return op->getAttrOfType<StringAttr>(kMixedPrecisionAttrName); }

class Scopes {
public:
  explicit Scopes(ModuleOp module) : symbols(module) {}

  /// Sets the attribute on all operations inside `op` that have none; `outer` may be null.
  void apply(Operation *op, StringAttr outer);

private:
  void redirect(func::CallOp call, StringAttr precision);

  SymbolTable symbols;
  /// The copies of functions that calls with the attribute need.
  DenseMap<std::pair<Operation *, StringAttr>, StringAttr> copies;
};

void Scopes::apply(Operation *op, StringAttr outer) {
  StringAttr precision = getPrecision(op);
  if (!precision && outer)
    op->setAttr(kMixedPrecisionAttrName, precision = outer);
  if (auto call = dyn_cast<func::CallOp>(op); call && precision)
    redirect(call, precision);
  if (isa<linalg::LinalgOp>(op))
    return; // one operation, whatever its body
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      apply(&inner, precision);
}

/// Makes `call` call a copy of its function in which `precision` holds.
void Scopes::redirect(func::CallOp call, StringAttr precision) {
  auto function = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!function || function.isExternal() || getPrecision(function))
    return;
  StringAttr &name = copies[{function, precision}];
  func::FuncOp copy;
  if (!name) {
    copy = function.clone();
    copy.setPrivate();
    name = symbols.insert(copy);
  }
  call.setCalleeAttr(FlatSymbolRefAttr::get(name));
  if (copy)
    apply(copy, precision);
}

struct ScopeMixedPrecision : impl::ScopeMixedPrecisionBase<ScopeMixedPrecision> {
  void runOnOperation() final {
    bool isUsed = getOperation()
                      ->walk([](Operation *op) {
                        return getPrecision(op) ? WalkResult::interrupt() : WalkResult::advance();
                      })
                      .wasInterrupted();
    if (!isUsed)
      return markAllAnalysesPreserved();
    Scopes scopes(getOperation());
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      scopes.apply(function, getPrecision(getOperation()));
  }
};

} // namespace
} // namespace fp8
