// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytecode carries the dialect's version: what this build writes it reads again, and
// what a newer build wrote is refused with a message instead of being misread.

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace {

/// Writes the version of whichever build this dialect stands for.
struct VersionWriter : public BytecodeDialectInterface {
  VersionWriter(Dialect *dialect, uint64_t version) : BytecodeDialectInterface(dialect), version(version) {}
  void writeVersion(DialectBytecodeWriter &writer) const final { writer.writeVarInt(version); }
  uint64_t version;
};

/// The dialect as another build has it: its name, its version, no operations.
struct OtherDialect : public Dialect {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OtherDialect)
  OtherDialect(MLIRContext *context, uint64_t version)
      : Dialect("fp8", context, TypeID::get<OtherDialect>()) {
    allowUnknownOperations();
    addInterface(std::make_unique<VersionWriter>(this, version));
  }
};

/// Bytecode of a module with one operation of a dialect fp8 of this version.
std::string writeWithVersion(uint64_t version) {
  MLIRContext context;
  DialectRegistry registry;
  registry.insert(TypeID::get<OtherDialect>(), "fp8", [version](MLIRContext *context) {
    return context->getOrLoadDialect("fp8", TypeID::get<OtherDialect>(),
                                     [=] { return std::make_unique<OtherDialect>(context, version); });
  });
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  builder.create(OperationState(builder.getUnknownLoc(), "fp8.operation"));
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  EXPECT_TRUE(succeeded(writeBytecodeToFile(*module, stream)));
  return bytes;
}

/// Reads bytecode as this build does; returns the errors, empty where it was read.
std::string readErrors(llvm::StringRef bytes) {
  MLIRContext context;
  context.loadDialect<fp8::FP8Dialect>();
  context.allowUnregisteredDialects();
  std::string errors;
  ScopedDiagnosticHandler handler(&context,
                                  [&](Diagnostic &diagnostic) { errors += diagnostic.str() + "\n"; });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(bytes, &context);
  EXPECT_EQ(static_cast<bool>(module), errors.empty());
  return errors;
}

TEST(BytecodeVersionTest, NewerVersionIsRefused) {
  std::string errors = readErrors(writeWithVersion(fp8::FP8Dialect::kBytecodeVersion + 1));
  EXPECT_NE(errors.find("fp8 dialect bytecode of version 2, this build reads up to 1"), std::string::npos)
      << errors;
}

TEST(BytecodeVersionTest, OwnVersionIsRead) {
  // The operation is not one of ours, so reading gets past the version and stops there.
  std::string errors = readErrors(writeWithVersion(fp8::FP8Dialect::kBytecodeVersion));
  EXPECT_EQ(errors.find("this build reads up to"), std::string::npos) << errors;
}

TEST(BytecodeVersionTest, AModuleOfThisBuildIsReadAgain) {
  MLIRContext context;
  context.loadDialect<fp8::FP8Dialect>();
  auto module = parseSourceString<ModuleOp>("module attributes {fp8.config = #fp8.mx_scaling} {}", &context);
  ASSERT_TRUE(module);
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  ASSERT_TRUE(succeeded(writeBytecodeToFile(*module, stream)));
  EXPECT_EQ(readErrors(bytes), "");
}

} // namespace
