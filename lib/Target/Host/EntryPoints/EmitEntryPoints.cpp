// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the C ABI of a compiled library: one function per entry point that checks the call. The
// expected types and shapes are data (EntrySignature.cpp); the checks are in CallChecks.mlir.

#include "../Memory.h"
#include "EntryPointHelpers.h"
#include "EntrySignature.h"
#include "fp8/Conversion/CallingConvention.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Target/Host/HostCode.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"

namespace fp8 {
#define GEN_PASS_DEF_EMITENTRYPOINTS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
/// Emits `fp8_call_<entry>`.
class EntryPointBuilder {
public:
  EntryPointBuilder(func::FuncOp entry, const EntrySignature &signature, bool onDevice)
      : entry(entry), signature(signature), onDevice(onDevice), loc(entry.getLoc()), builder(entry),
        converter(entry.getContext()) {}

  void build(const CheckTables &tables, StringRef name);

private:
  Value addGlobal(const Twine &name, Type type, Attribute value);
  Value integer(int64_t value, unsigned width) {
    return arith::ConstantIntOp::create(builder, loc, value, width);
  }
  Value callHelper(StringRef helper, Type result, ValueRange operands) {
    return func::CallOp::create(builder, loc, helper, result, operands).getResult(0);
  }
  /// Returns the dynamic sizes of the entry point's argument `position`.
  SmallVector<Value> getDynamicSizes(Value call, unsigned position);
  /// Calls the entry point and returns its status.
  Value callEntry(Value call);
  /// Calls the entry point with a frame, and frees the temporaries that it left on the heap.
  Value callWithFrame(Value call, SmallVectorImpl<Value> &operands);
  Value copyCarried(Value call, Value status, ArrayRef<Value> data, ArrayRef<Value> results);

  func::FuncOp entry;
  const EntrySignature &signature;
  bool onDevice;
  Location loc;
  OpBuilder builder;
  LLVMTypeConverter converter;
};
} // namespace

Value EntryPointBuilder::addGlobal(const Twine &name, Type type, Attribute value) {
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(entry);
    global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                    name.str(), value);
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

SmallVector<Value> EntryPointBuilder::getDynamicSizes(Value call, unsigned position) {
  SmallVector<Value> sizes;
  auto type = cast<MemRefType>(entry.getArgumentTypes()[position]);
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(
          callHelper("fp8_abi_size", builder.getI64Type(), {call, integer(position, 64), integer(dim, 64)}));
  return sizes;
}

Value EntryPointBuilder::callEntry(Value call) {
  Type pointer = call.getType();
  SmallVector<Value> data(entry.getNumArguments() - signature.canFail);
  for (unsigned index : llvm::seq(signature.numArguments))
    data[index] = callHelper("fp8_abi_argument", pointer, {call, integer(index, 64)});
  SmallVector<Value> results;
  for (auto [index, result] : llvm::enumerate(signature.results)) {
    results.push_back({});
    if (!result.position)
      continue;
    results.back() = callHelper("fp8_abi_result", pointer, {call, integer(index, 64)});
    if (!data[*result.position])
      data[*result.position] = results.back();
  }
  if (signature.hasWorkspace)
    data.back() = callHelper("fp8_abi_workspace", pointer, call);

  SmallVector<Value> operands;
  for (auto [position, value] : llvm::enumerate(data)) {
    auto type = cast<MemRefType>(entry.getArgumentTypes()[position]);
    operands.push_back(buildMemRef(builder, loc, converter, type, value, getDynamicSizes(call, position)));
  }
  if (signature.canFail)
    return copyCarried(call, callWithFrame(call, operands), data, results);
  func::CallOp::create(builder, loc, entry, operands);
  return copyCarried(call, integer(0, 32), data, results);
}

Value EntryPointBuilder::callWithFrame(Value call, SmallVectorImpl<Value> &operands) {
  Type pointer = call.getType();
  Value frame = LLVM::AllocaOp::create(builder, loc, pointer, pointer, integer(2, 64));
  Value first = LLVM::GEPOp::create(builder, loc, pointer, pointer, frame, LLVM::GEPArg(1));
  LLVM::StoreOp::create(builder, loc, call, frame);
  LLVM::StoreOp::create(builder, loc, LLVM::ZeroOp::create(builder, loc, pointer), first);
  operands.push_back(frame);
  Value status = func::CallOp::create(builder, loc, entry, operands).getResult(0);
  func::CallOp::create(builder, loc, "fp8_abi_release", TypeRange(), frame);
  return status;
}

/// Copies every carried result whose tensor is not the memory of its argument, if `status` is that of a
/// call that succeeded. Returns the status of the call.
Value EntryPointBuilder::copyCarried(Value call, Value status, ArrayRef<Value> data,
                                     ArrayRef<Value> results) {
  OpBuilder::InsertionGuard guard(builder);
  if (signature.canFail && !onDevice) {
    Value good = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, status, integer(0, 32));
    auto then = scf::IfOp::create(builder, loc, good, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(then.thenBlock());
  }
  for (auto [memory, result] : llvm::zip_equal(results, signature.results)) {
    if (!memory || data[*result.position] == memory)
      continue;
    Value bytes = buildByteCount(builder, loc, result.type, getDynamicSizes(call, *result.position));
    Value from = data[*result.position];
    if (onDevice)
      status = callHelper("fp8_abi_copy_on_device", status.getType(), {call, status, memory, from, bytes});
    else
      func::CallOp::create(builder, loc, "fp8_abi_copy", TypeRange(), ValueRange{memory, from, bytes});
  }
  return status;
}

void EntryPointBuilder::build(const CheckTables &tables, StringRef name) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  auto function = func::FuncOp::create(builder, loc, ("fp8_call_" + name).str(),
                                       builder.getFunctionType({pointer}, {i32}));
  function->setAttr(kWorkspaceBytesAttrName, builder.getI64IntegerAttr(signature.workspaceBytes));
  for (StringRef told : {kCapturableAttrName, kChecksAttrName})
    if (Attribute value = entry->removeAttr(told))
      function->setAttr(told, value);
  builder.setInsertionPointToStart(function.addEntryBlock());
  Value call = function.getArgument(0);
  Value specs = addGlobal("fp8_specs_" + name, LLVM::LLVMArrayType::get(i64, tables.specs.size()),
                          builder.getI64TensorAttr(tables.specs));
  Value lines =
      addGlobal("fp8_lines_" + name, LLVM::LLVMArrayType::get(builder.getI8Type(), tables.lines.size()),
                builder.getStringAttr(tables.lines));
  Value status = callHelper("fp8_abi_check_call", i32,
                            {call, integer(signature.numArguments, 32), integer(signature.results.size(), 32),
                             integer(signature.workspaceBytes, 64), specs, lines});
  Value good = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, status, integer(0, 32));
  auto result = scf::IfOp::create(
      builder, loc, good,
      [&](OpBuilder &inner, Location) {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
        Value called = callEntry(call);
        scf::YieldOp::create(builder, loc, called);
      },
      [&](OpBuilder &inner, Location) { scf::YieldOp::create(inner, loc, status); });
  func::ReturnOp::create(builder, loc, result.getResults());
}

/// Moves the helper functions into `module`; without their bodies if only declared.
static LogicalResult addHelpers(ModuleOp module, bool onDevice, bool declareOnly) {
  bool communicates = module->hasAttr(kGridAttrName);
  OwningOpRef<ModuleOp> helpers =
      parseSourceString<ModuleOp>(getEntryPointHelpers(onDevice, communicates),
                                  ParserConfig(module.getContext()), "EntryPointHelpers.mlir");
  if (!helpers)
    return module.emitError("the entry point helpers do not parse");
  for (Operation &op : llvm::make_early_inc_range(*helpers->getBody())) {
    auto helper = dyn_cast<func::FuncOp>(op);
    if (declareOnly && helper)
      helper.eraseBody();
    bool isUsed =
        !declareOnly || (helper && !SymbolTable::symbolKnownUseEmpty(helper.getSymNameAttr(), module));
    // fp8-allocate-dynamic has declared the functions that it calls.
    if (Operation *declared = isUsed && helper ? module.lookupSymbol(helper.getName()) : nullptr)
      declared->erase();
    if (isUsed)
      op.moveBefore(module.getBody(), module.getBody()->end());
  }
  return success();
}

/// Returns whether `argument` is the frame, the last argument of an entry point that can fail.
static bool isFrame(func::FuncOp entry, BlockArgument argument) {
  return entry.getNumResults() == 1 && entry.getResultTypes().front().isInteger(32) &&
         isa<LLVM::LLVMPointerType>(argument.getType()) &&
         argument.getArgNumber() + 1 == entry.getNumArguments();
}

static LogicalResult verifyEntry(func::FuncOp entry) {
  bool hasFrame = entry.getNumArguments() != 0 && isFrame(entry, entry.getArguments().back());
  if (entry.getNumResults() != 0 && !hasFrame)
    return entry.emitError() << "'" << entry.getName() << "' returns values: run fp8-allocate-dynamic first";
  for (BlockArgument argument : entry.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!isFrame(entry, argument) && (!type || !type.getLayout().isIdentity()))
      return emitError(argument.getLoc())
             << "argument " << argument.getArgNumber() << " of '" << entry.getName() << "' has type "
             << argument.getType() << ": only row-major buffers can be passed to compiled code";
  }
  return success();
}

/// Replaces arguments without elements by ones of type memref<0xT>: MLIR cannot pass a memref with a
/// stride of 0, such as 8x0xf32, as a bare pointer, and nothing is read from or written to it.
static void flattenEmptyArguments(func::FuncOp entry) {
  OpBuilder builder = OpBuilder::atBlockBegin(&entry.getBody().front());
  for (BlockArgument argument : entry.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type || !type.hasStaticShape() || type.getRank() < 2 || type.getNumElements() != 0)
      continue;
    argument.replaceAllUsesWith(memref::AllocaOp::create(builder, argument.getLoc(), type));
    argument.setType(MemRefType::get({0}, type.getElementType()));
  }
  entry.setFunctionType(builder.getFunctionType(entry.getBody().getArgumentTypes(), entry.getResultTypes()));
}

namespace {
struct EmitEntryPointsPass : public fp8::impl::EmitEntryPointsBase<EmitEntryPointsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<func::FuncOp> entries;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func.isPublic() && !func.isExternal())
        entries.push_back(func);
    for (func::FuncOp entry : entries)
      if (failed(emit(entry)))
        return signalPassFailure();
    if (!entries.empty() && failed(addHelpers(getOperation(), onDevice, declareHelpers)))
      signalPassFailure();
  }

  LogicalResult emit(func::FuncOp entry) {
    if (failed(verifyEntry(entry)))
      return failure();
    FailureOr<EntrySignature> signature = readSignature(entry);
    if (failed(signature))
      return failure();
    FailureOr<CheckTables> tables = buildTables(entry, *signature, getCallNeeds(entry, onDevice));
    if (failed(tables))
      return failure();
    std::string name = entry.getName().str();
    entry.setPrivate();
    if (canPassPointers(entry.getArgumentTypes()))
      entry->setAttr(kBarePointersAttrName, UnitAttr::get(&getContext()));
    // Rename it: the user's name could be that of a library function.
    SymbolTable symbols(getOperation());
    if (failed(symbols.rename(entry, (kEntryPrefix + name).str())))
      return failure();
    flattenEmptyArguments(entry);
    EntryPointBuilder(entry, *signature, onDevice).build(*tables, name);
    // The attributes on the arguments are no longer needed, and LLVM rejects unknown ones.
    for (unsigned index : llvm::seq(entry.getNumArguments()))
      entry.setArgAttrs(index, ArrayRef<NamedAttribute>());
    return success();
  }
};
} // namespace
