// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of the dialect, and its bytecode version.

#include "fp8/Dialect/FP8/IR/Chips.h"
#include "fp8/Dialect/FP8/IR/TargetNames.h"
#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;

#include "fp8/Dialect/FP8/IR/FP8Dialect.cpp.inc"

namespace {

/// The only version so far is 1: files of newer versions are refused, none needs an upgrade.
struct FP8Version : public DialectVersion {
  explicit FP8Version(int64_t value) : value(value) {}
  int64_t value;
};

struct FP8BytecodeInterface : public BytecodeDialectInterface {
  explicit FP8BytecodeInterface(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const final {
    writer.writeVarInt(fp8::FP8Dialect::kBytecodeVersion);
  }

  std::unique_ptr<DialectVersion> readVersion(DialectBytecodeReader &reader) const final {
    uint64_t version;
    if (failed(reader.readVarInt(version)))
      return nullptr;
    if (version > static_cast<uint64_t>(fp8::FP8Dialect::kBytecodeVersion)) {
      reader.emitError("fp8 dialect bytecode of version ")
          << version << ", this build reads up to " << fp8::FP8Dialect::kBytecodeVersion
          << "; use a newer fp8-mlir or write the file with an older one";
      return nullptr;
    }
    return std::make_unique<FP8Version>(static_cast<int64_t>(version));
  }
};

/// All operations may be inlined, because they define no symbols and have no hidden state.
struct FP8InlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
};

struct FP8TargetInterface : public fp8::TargetDialectInterface {
  using TargetDialectInterface::TargetDialectInterface;
  SmallVector<fp8::TargetAttrInterface> getTargets() const final {
    SmallVector<fp8::TargetAttrInterface> targets = {fp8::CPUAttr::get(getContext())};
    for (const fp8::Chip &chip : fp8::listChips())
      targets.push_back(fp8::ChipAttr::get(getContext(), chip.name));
    return targets;
  }
};

} // namespace

void fp8::FP8Dialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "fp8/Dialect/FP8/IR/FP8Ops.cpp.inc"
      >();
  registerBytecode();
  addInterfaces<FP8InlinerInterface, FP8TargetInterface>();
}

void fp8::FP8Dialect::registerBytecode() { addInterfaces<FP8BytecodeInterface>(); }
