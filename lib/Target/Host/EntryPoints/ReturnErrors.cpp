// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes a failed assertion end the call instead of the process: the entry point writes the message
// into the call and returns the status at once. An assertion without a message follows a helper that has
// written the reason already.

#include "EntryPointHelpers.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"

namespace fp8 {
#define GEN_PASS_DEF_RETURNERRORS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Returns the error line of the call: the message and the location in the user's program.
static std::string describe(cf::AssertOp assertion) {
  std::string line = assertion.getMsg().str(), place = describeLocation(assertion.getLoc());
  if (!place.empty())
    line += " (" + place + ")";
  for (char &c : line)
    if (!llvm::isPrint(c) && static_cast<unsigned char>(c) < 0x80)
      c = ' ';
  return line;
}

/// Creates a constant that holds the message, ending in a NUL, and returns its address; NULL for an
/// assertion without a message.
static Value addMessage(OpBuilder &builder, func::FuncOp func, cf::AssertOp assertion, unsigned number) {
  Location loc = assertion.getLoc();
  if (assertion.getMsg().empty())
    return LLVM::ZeroOp::create(builder, loc, LLVM::LLVMPointerType::get(func.getContext()));
  std::string text = describe(assertion) + std::string(1, '\0');
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(func);
    global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                    ("fp8_message_" + func.getName() + "_" + Twine(number)).str(),
                                    builder.getStringAttr(text));
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
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
    messages.push_back(addMessage(builder, func, assertion, messages.size()));
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
