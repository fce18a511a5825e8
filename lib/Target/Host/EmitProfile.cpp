// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lets entry points record the ends of kernels in the caller's profile. A kernel's time is that
// since the record before it, so one record after each kernel is enough where kernels follow each
// other; other code ends with a record of its own.

#include "EntryPointHelpers.h"
#include "fp8/Dialect/FP8/IR/KernelMarks.h"
#include "fp8/Target/Host/CallingConvention.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/JSON.h"

namespace fp8 {
#define GEN_PASS_DEF_EMITPROFILE
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// The number that is recorded for code outside kernels.
static constexpr int32_t kOutside = -1;

/// Returns the list of kernels as JSON, the names of sites once: {"sites": [name, …], "kernels":
/// [{name, kind, sites: [number, …], read, written, operations}, …]}; null where a count is unknown.
static std::string printKernels(ArrayAttr kernels) {
  llvm::MapVector<StringRef, int64_t> sites;
  llvm::json::Array list;
  for (auto kernel : kernels.getAsRange<DictionaryAttr>()) {
    llvm::json::Array numbers;
    for (auto site : kernel.getAs<ArrayAttr>("sites").getAsValueRange<StringAttr>())
      numbers.push_back(sites.try_emplace(site, sites.size()).first->second);
    llvm::json::Object fields{{"name", kernel.getAs<StringAttr>("name").getValue()},
                              {"kind", kernel.getAs<StringAttr>("kind").getValue()},
                              {"sites", std::move(numbers)}};
    for (StringRef count : {"read", "written", "operations"}) {
      auto value = kernel.getAs<IntegerAttr>(count);
      fields[count] = value ? llvm::json::Value(value.getInt()) : nullptr;
    }
    list.push_back(std::move(fields));
  }
  llvm::json::Array names;
  for (auto &[site, number] : sites)
    names.push_back(llvm::json::fixUTF8(site));
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(
      llvm::json::Object{{"sites", std::move(names)}, {"kernels", std::move(list)}});
  return text;
}

/// Adds the function `const char *fp8_kernels(void)`.
static void addKernelList(ModuleOp module, StringRef text) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = module.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size() + 1);
  auto global =
      LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                             "fp8_kernels_text", builder.getStringAttr(text.str() + std::string(1, '\0')));
  auto function =
      LLVM::LLVMFuncOp::create(builder, loc, "fp8_kernels", LLVM::LLVMFunctionType::get(pointer, {}));
  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  Value address = LLVM::AddressOfOp::create(builder, loc, global);
  LLVM::ReturnOp::create(builder, loc, address);
}

/// Returns whether `op` takes no time worth mentioning.
static bool isFree(Operation &op) {
  return isa<ViewLikeOpInterface, memref::DimOp, UnrealizedConversionCastOp>(op) ||
         op.hasTrait<OpTrait::ConstantLike>() || op.hasTrait<OpTrait::IsTerminator>();
}

namespace {
/// Inserts the records into one entry point.
class Recorder {
public:
  Recorder(func::FuncOp entry, Value profile) : builder(entry.getContext()), profile(profile) {
    visit(entry.getBody());
  }

private:
  void visit(Region &region);
  void record(Location loc, int32_t kernel);

  OpBuilder builder;
  Value profile;
  /// Whether code outside kernels may have run since the last record.
  bool hasOtherCode = true;
};
} // namespace

void Recorder::record(Location loc, int32_t kernel) {
  Value number = arith::ConstantIntOp::create(builder, loc, kernel, 32);
  func::CallOp::create(builder, loc, kRecordHelper, TypeRange(), ValueRange{profile, number});
}

void Recorder::visit(Region &region) {
  hasOtherCode = true; // a loop's step or a condition
  for (Operation &op : llvm::make_early_inc_range(region.getOps())) {
    if (auto number = dyn_cast_or_null<IntegerAttr>(op.removeAttr(kKernelNumberAttrName))) {
      builder.setInsertionPoint(&op);
      if (hasOtherCode)
        record(op.getLoc(), kOutside);
      builder.setInsertionPointAfter(&op);
      record(op.getLoc(), number.getInt());
      hasOtherCode = false;
      continue;
    }
    if (!isa<scf::ParallelOp>(op)) // whose kernels run at the same time
      for (Region &inner : op.getRegions())
        visit(inner);
    hasOtherCode |= !isFree(op);
  }
}

/// Declares the functions that EntryPointHelpers.mlir defines, unless they are in the module.
static void declareHelpers(ModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  auto declare = [&](StringRef name, FunctionType type) {
    if (!module.lookupSymbol(name))
      func::FuncOp::create(builder, module.getLoc(), name, type).setPrivate();
  };
  declare(kProfileHelper, builder.getFunctionType(pointer, pointer));
  declare(kRecordHelper, builder.getFunctionType({pointer, builder.getI32Type()}, {}));
}

/// Passes the profile of the call, the first argument of the caller, to `entry`.
static void passProfile(func::CallOp callOfEntry, func::FuncOp entry) {
  OpBuilder builder(callOfEntry);
  Value call = callOfEntry->getParentOfType<func::FuncOp>().getArgument(0);
  Value profile =
      func::CallOp::create(builder, callOfEntry.getLoc(), kProfileHelper, call.getType(), call).getResult(0);
  callOfEntry->insertOperands(0, profile);
}

namespace {
struct EmitProfilePass : public fp8::impl::EmitProfileBase<EmitProfilePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto kernels = module->getAttrOfType<ArrayAttr>(kKernelsAttrName);
    if (!kernels)
      return;
    module->removeAttr(kKernelsAttrName);
    SymbolTableCollection symbols;
    SmallVector<std::pair<func::CallOp, func::FuncOp>> calls;
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPublic())
        function.walk([&](func::CallOp call) {
          auto entry = symbols.lookupNearestSymbolFrom<func::FuncOp>(module, call.getCalleeAttr());
          if (entry && entry.getName().starts_with(kEntryPrefix))
            calls.push_back({call, entry});
        });
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    for (auto [call, entry] : calls) {
      if (failed(entry.insertArgument(0, pointer, {}, entry.getLoc())))
        return signalPassFailure();
      Recorder(entry, entry.getArgument(0));
      passProfile(call, entry);
    }
    declareHelpers(module);
    addKernelList(module, printKernels(kernels));
  }
};
} // namespace
