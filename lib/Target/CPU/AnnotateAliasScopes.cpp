// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds alias scopes to loads and stores. They have the meaning of `llvm.noalias` on a kernel's
// arguments, but are kept when parallel loops are outlined.

#include "fp8/Target/CPU/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace fp8 {
#define GEN_PASS_DEF_ANNOTATEALIASSCOPES
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// Returns the pointer from which `address` is computed.
static Value findBase(Value address) {
  while (auto step = address.getDefiningOp<LLVM::GEPOp>())
    address = step.getBase();
  return address;
}

namespace {
struct AnnotateAliasScopesPass : public fp8::impl::AnnotateAliasScopesBase<AnnotateAliasScopesPass> {
  void runOnOperation() override {
    LLVM::LLVMFuncOp func = getOperation();
    SmallVector<Value> bases;
    if (func.isExternal())
      return;
    for (BlockArgument argument : func.getArguments())
      if (func.getArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getNoAliasAttrName()))
        bases.push_back(argument);
    if (bases.size() < 2)
      return;

    MLIRContext *context = &getContext();
    // Named, not distinct attributes: those would stay in a context that compiles many programs.
    auto name = [&](const Twine &suffix) { return StringAttr::get(context, func.getName() + suffix); };
    auto domain = LLVM::AliasScopeDomainAttr::get(context, name(""), /*description=*/StringAttr());
    SmallVector<Attribute> scopes;
    for (size_t i = 0; i < bases.size(); ++i)
      scopes.push_back(
          LLVM::AliasScopeAttr::get(context, name("." + Twine(i)), domain, /*description=*/StringAttr()));
    func.walk([&](LLVM::AliasAnalysisOpInterface access) {
      auto accessed = access.getAccessedOperands();
      if (accessed.size() != 1)
        return;
      auto *found = llvm::find(bases, findBase(accessed.front()));
      if (found == bases.end())
        return;
      size_t own = found - bases.begin();
      SmallVector<Attribute> others(scopes);
      others.erase(others.begin() + own);
      access.setAliasScopes(ArrayAttr::get(context, scopes[own]));
      access.setNoAliasScopes(ArrayAttr::get(context, others));
    });
  }
};
} // namespace
