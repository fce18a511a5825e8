// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sets the same floating-point environment for every call and all of its threads, so that results
// do not depend on the caller. The instructions are in FloatEnvironment.mlir.

#include "fp8/Target/Host/HostCode.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace fp8 {
#define GEN_PASS_DEF_SETFLOATENVIRONMENT
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;

static constexpr llvm::StringLiteral kEnter = "fp8_float_enter", kLeave = "fp8_float_leave";

static constexpr llvm::StringLiteral kHelpers =
#include "FloatEnvironment.mlir.inc"
    ;

/// Sets the environment at the start of `region` and restores it at each of its ends.
static void surround(Region &region) {
  OpBuilder builder = OpBuilder::atBlockBegin(&region.front());
  Location loc = region.getLoc();
  Value found = func::CallOp::create(builder, loc, kEnter, builder.getI32Type()).getResult(0);
  for (Block &block : region) {
    Operation *end = block.getTerminator();
    if (!end->hasTrait<OpTrait::ReturnLike>() && !isa<omp::TerminatorOp>(end))
      continue;
    builder.setInsertionPoint(end);
    func::CallOp::create(builder, loc, kLeave, TypeRange(), found);
  }
}

/// Moves the helper functions for the processor of `module` into `module`.
static LogicalResult addHelpers(ModuleOp module) {
  OwningOpRef<ModuleOp> all = parseSourceString<ModuleOp>(kHelpers, ParserConfig(module.getContext()));
  if (!all)
    return module.emitError("the code that sets the floating-point environment does not parse");
  auto named = module->getAttrOfType<StringAttr>(LLVM::LLVMDialect::getTargetTripleAttrName());
  llvm::Triple triple(named ? named.str() : llvm::sys::getProcessTriple());
  auto chosen = all->lookupSymbol<ModuleOp>(triple.getArch() == llvm::Triple::x86_64 ? "x86_64" : "other");
  for (Operation &helper : llvm::make_early_inc_range(*chosen.getBody()))
    helper.moveBefore(module.getBody(), module.getBody()->end());
  return success();
}

namespace {
struct SetFloatEnvironmentPass : public fp8::impl::SetFloatEnvironmentBase<SetFloatEnvironmentPass> {
  void runOnOperation() override {
    SmallVector<Region *> regions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(fp8::kWorkspaceBytesAttrName) && function.isPublic() && !function.isExternal())
        regions.push_back(&function.getBody());
    getOperation().walk([&](omp::ParallelOp op) { regions.push_back(&op.getRegion()); });
    if (regions.empty())
      return;
    if (failed(addHelpers(getOperation())))
      return signalPassFailure();
    for (Region *region : regions)
      surround(*region);
  }
};
} // namespace
