// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes a failed assertion end the call instead of the process: the entry point writes the message
// into the call and returns the status at once. An assertion without a message follows a helper that has
// written the reason already.

#include "EntryPointHelpers.h"
#include "ErrorMessages.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace fp8 {
#define GEN_PASS_DEF_RETURNERRORS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Returns the address of the assertion's message; NULL for one without.
static Value getMessage(OpBuilder &builder, func::FuncOp func, cf::AssertOp assertion, unsigned number) {
  if (assertion.getMsg().empty())
    return LLVM::ZeroOp::create(builder, assertion.getLoc(), LLVM::LLVMPointerType::get(func.getContext()));
  return addErrorMessage(builder, func, assertion, "fp8_message_" + func.getName() + "_" + Twine(number));
}

/// Adds the block that stores the message in its argument and returns.
static Block *addFailure(OpBuilder &builder, func::FuncOp func) {
  Location loc = func.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(func.getContext());
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&func.getBody(), func.getBody().end(), pointer, loc);
  Value call = LLVM::LoadOp::create(builder, loc, pointer, func.getArguments().back());
  auto status = func::CallOp::create(builder, loc, kFailHelper, builder.getI32Type(),
                                     ValueRange{call, block->getArgument(0)});
  func::ReturnOp::create(builder, loc, status.getResults());
  return block;
}

static void returnErrors(func::FuncOp func, ArrayRef<cf::AssertOp> assertions) {
  OpBuilder builder(func.getContext());
  Block *failure = addFailure(builder, func);
  SmallVector<Value> messages;
  for (cf::AssertOp assertion : assertions) {
    builder.setInsertionPoint(assertion);
    messages.push_back(getMessage(builder, func, assertion, messages.size()));
  }
  // From the last to the first: the end of a block that moves into a new one stays short.
  for (size_t i = assertions.size(); i-- > 0;) {
    cf::AssertOp assertion = assertions[i];
    Block *rest = assertion->getBlock()->splitBlock(assertion);
    builder.setInsertionPointToEnd(rest->getPrevNode());
    cf::CondBranchOp::create(builder, assertion.getLoc(), assertion.getArg(), rest, ValueRange(), failure,
                             messages[i]);
    assertion.erase();
  }
}

namespace {
struct ReturnErrorsPass : public fp8::impl::ReturnErrorsBase<ReturnErrorsPass> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      SmallVector<cf::AssertOp> assertions;
      func.walk([&](cf::AssertOp op) { assertions.push_back(op); });
      for (cf::AssertOp assertion : assertions)
        if (assertion->getParentOp() != func || func.getNumResults() != 1) {
          assertion.emitError(
              "cf.assert in code that runs in parallel, which is not supported: move it out of the loop");
          return signalPassFailure();
        }
      if (!assertions.empty())
        returnErrors(func, assertions);
    }
  }
};
} // namespace
