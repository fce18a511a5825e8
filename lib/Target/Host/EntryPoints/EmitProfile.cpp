// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lets kernels record their ends in the caller's profile. A kernel's time is that since the record
// before it, so one record per kernel is enough where kernels follow each other; other code that takes
// time ends with a record of its own.

#include "EntryPointHelpers.h"
#include "fp8/Conversion/CallingConvention.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"
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

/// Returns whether `op` takes a few nanoseconds at most, which the kernel after it may bear.
static bool isFree(Operation &op) {
  return isa<ViewLikeOpInterface, memref::DimOp, memref::LoadOp, memref::StoreOp, UnrealizedConversionCastOp>(
             op) ||
         isa<arith::ArithDialect>(op.getDialect()) || op.hasTrait<OpTrait::IsTerminator>();
}

/// Inserts the record of `kernel`.
static void record(OpBuilder &builder, Location loc, Value profile, int32_t kernel) {
  Value number = arith::ConstantIntOp::create(builder, loc, kernel, 32);
  func::CallOp::create(builder, loc, kRecordHelper, TypeRange(), ValueRange{profile, number});
}

namespace {
/// Inserts the records of a module: those of other code, and then those of kernels.
class Recorder {
public:
  explicit Recorder(ModuleOp module) : module(module), builder(module.getContext()) {}

  /// Records code outside kernels in `entry`, whose first argument is the profile.
  void visitEntry(func::FuncOp entry) { visit(entry.getBody(), entry.getArgument(0)); }
  /// Records the kernels of all entry points.
  LogicalResult recordKernels();

private:
  /// The calls of one function.
  struct Calls {
    SmallVector<std::pair<func::CallOp, Value>> recorded; // with the profile
    llvm::SmallSet<int32_t, 2> numbers;
    bool hasOthers = false; // which are not recorded
  };

  void visit(Region &region, Value profile);
  LogicalResult recordInside(func::FuncOp kernel, Calls &calls);

  ModuleOp module;
  OpBuilder builder;
  llvm::MapVector<StringAttr, Calls> kernels;
  /// Whether code outside kernels may have run since the last record.
  bool hasOtherCode = true;
};
} // namespace

void Recorder::visit(Region &region, Value profile) {
  hasOtherCode = true; // a loop's step or a condition
  for (Operation &op : llvm::make_early_inc_range(region.getOps())) {
    if (auto number = op.getAttrOfType<IntegerAttr>(kKernelNumberAttrName)) {
      auto call = cast<func::CallOp>(op);
      Calls &calls = kernels[call.getCalleeAttr().getAttr()];
      calls.recorded.push_back({call, profile});
      calls.numbers.insert(number.getInt());
      builder.setInsertionPoint(&op);
      if (hasOtherCode)
        record(builder, op.getLoc(), profile, kOutside);
      hasOtherCode = false;
      continue;
    }
    if (isa<scf::ParallelOp>(op)) // whose kernels run at the same time
      op.walk([&](func::CallOp call) { kernels[call.getCalleeAttr().getAttr()].hasOthers = true; });
    else
      for (Region &inner : op.getRegions())
        visit(inner, profile);
    hasOtherCode |= !isFree(op);
  }
}

/// Lets `kernel` record its own end. Entry points have thousands of calls, which LLVM optimizes together:
/// one more operand each takes it less time than one more call.
LogicalResult Recorder::recordInside(func::FuncOp kernel, Calls &calls) {
  if (failed(kernel.insertArgument(0, LLVM::LLVMPointerType::get(module.getContext()), {}, kernel.getLoc())))
    return failure();
  builder.setInsertionPoint(kernel.getBody().back().getTerminator());
  record(builder, kernel.getLoc(), kernel.getArgument(0), *calls.numbers.begin());
  for (auto [call, profile] : calls.recorded)
    call->insertOperands(0, profile);
  return success();
}

LogicalResult Recorder::recordKernels() {
  SymbolTable symbols(module);
  for (auto &[name, calls] : kernels) {
    auto kernel = symbols.lookup<func::FuncOp>(name);
    if (calls.numbers.size() == 1 && !calls.hasOthers && kernel && !kernel.isExternal()) {
      if (failed(recordInside(kernel, calls)))
        return failure();
    } else {
      for (auto [call, profile] : calls.recorded) {
        builder.setInsertionPointAfter(call);
        record(builder, call.getLoc(), profile,
               call->getAttrOfType<IntegerAttr>(kKernelNumberAttrName).getInt());
      }
    }
    for (auto [call, profile] : calls.recorded)
      call->removeAttr(kKernelNumberAttrName);
  }
  return success();
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

/// Emits an error where a kernel is no call, but launched on a device.
static LogicalResult verifyCalls(ModuleOp module) {
  WalkResult walked = module.walk([](Operation *op) {
    if (!op->hasAttr(kKernelNumberAttrName) || isa<func::CallOp>(op))
      return WalkResult::advance();
    op->emitError() << "'" << op->getName()
                    << "' is of stage 6 for a GPU; stage 7 for it is fp8-gpu-code-pipeline";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
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
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto kernels = module->getAttrOfType<ArrayAttr>(kKernelsAttrName);
    if (!kernels)
      return;
    module->removeAttr(kKernelsAttrName);
    if (onDevice)
      return addKernelList(module, printKernels(kernels));
    if (failed(verifyCalls(module)))
      return signalPassFailure();
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
    Recorder recorder(module);
    for (auto [call, entry] : calls) {
      if (failed(entry.insertArgument(0, pointer, {}, entry.getLoc())))
        return signalPassFailure();
      recorder.visitEntry(entry);
      passProfile(call, entry);
    }
    if (failed(recorder.recordKernels()))
      return signalPassFailure();
    declareHelpers(module);
    addKernelList(module, printKernels(kernels));
  }
};
} // namespace
