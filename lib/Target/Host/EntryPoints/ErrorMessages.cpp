// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The texts of a library's errors.

#include "ErrorMessages.h"

#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

/// Returns the error line of the assertion, without characters that would end or hide it.
static std::string describe(cf::AssertOp assertion) {
  std::string line = assertion.getMsg().str(), place = fp8::describeLocation(assertion.getLoc());
  if (!place.empty())
    line += " (" + place + ")";
  for (char &c : line)
    if (!llvm::isPrint(c) && static_cast<unsigned char>(c) < 0x80)
      c = ' ';
  return line;
}

Value fp8::addErrorMessage(OpBuilder &builder, func::FuncOp func, cf::AssertOp assertion, const Twine &name) {
  Location loc = assertion.getLoc();
  std::string text = describe(assertion) + std::string(1, '\0');
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(func);
    global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                    name.str(), builder.getStringAttr(text));
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}
