// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns launches into calls of the device of a call (fp8rt/device.h): a record describes each launch, and
// host code stores the parameters that only the running program knows. The other requests of an entry point
// to the device are here too: the addresses of constants, and values on which its control flow depends.

#include "../../Host/EntryPoints/EntryPointHelpers.h"
#include "../../Host/EntryPoints/ErrorMessages.h"
#include "../../Host/Memory.h"
#include "DeviceCode.h"
#include "LaunchParameters.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Target/Host/HostCode.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

namespace fp8 {
#define GEN_PASS_DEF_LOWERLAUNCHES
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
/// The kernels and constants of a program, by their numbers.
struct DeviceSymbols {
  llvm::MapVector<StringAttr, FunctionOpInterface> kernels;
  llvm::MapVector<StringAttr, memref::GlobalOp> constants; // by their names in host code

  int64_t getNumber(StringAttr kernel) const { return std::distance(kernels.begin(), kernels.find(kernel)); }
};

/// Launches without host code between them: one call.
struct LaunchRun {
  gpu::LaunchFuncOp last; ///< null before the first
  size_t record = 0;      ///< of the first launch
  int64_t count = 0;
  SmallVector<Attribute> matmuls;
};

/// Lowers one entry point, whose last argument is the frame.
class EntryLowering {
public:
  EntryLowering(func::FuncOp entry, DeviceSymbols &symbols)
      : entry(entry), symbols(symbols), builder(entry.getContext()), frame(entry.getArguments().back()),
        pointer(LLVM::LLVMPointerType::get(entry.getContext())) {}

  LogicalResult run();

private:
  LogicalResult lowerLaunch(gpu::LaunchFuncOp launch, LaunchParameters &parameters);
  void endRun(LaunchParameters &parameters);
  void requireSizes(gpu::LaunchFuncOp launch);
  void lowerConstant(memref::GetGlobalOp get);
  void lowerRead(memref::LoadOp load, Value slot);
  void lowerCheck(memref::LoadOp load, unsigned number);
  Value getAddress(memref::LoadOp load);
  func::CallOp callHelper(Location loc, StringRef name, Type result, ValueRange operands);
  /// Ends the call unless `good`: a helper has written the reason.
  void require(Location loc, Value good) { cf::AssertOp::create(builder, loc, good, ""); }
  Value integer(Location loc, int64_t value, unsigned width) {
    return arith::ConstantIntOp::create(builder, loc, value, width);
  }

  func::FuncOp entry;
  DeviceSymbols &symbols;
  OpBuilder builder;
  Value frame;
  Type pointer;
  llvm::MapVector<StringAttr, Value> constants; // loaded at the start of the entry point
  LaunchRun open;
};
} // namespace

/// Creates a call of a function that fp8-emit-entry-points will define.
func::CallOp EntryLowering::callHelper(Location loc, StringRef name, Type result, ValueRange operands) {
  auto module = entry->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(name))
    func::createFnDecl(builder, module, name, builder.getFunctionType(operands.getTypes(), result),
                       /*setPrivate=*/true);
  return func::CallOp::create(builder, loc, name, result, operands);
}

/// Emits an error unless the launch has the kernel's block, and waits for nothing.
static LogicalResult verifyLaunch(gpu::LaunchFuncOp launch, FunctionOpInterface kernel) {
  if (launch.getAsyncToken() || !launch.getAsyncDependencies().empty())
    return launch.emitError("asynchronous launches are not supported: launches run in program order");
  auto threads = kernel->getAttrOfType<IntegerAttr>(kThreadsAttrName);
  gpu::KernelDim3 block = launch.getBlockSizeOperandValues();
  auto isEqual = [](Value value, int64_t wanted) {
    APInt constant;
    return matchPattern(value, m_ConstantInt(&constant)) && constant.getSExtValue() == wanted;
  };
  if (!threads || !isEqual(block.x, threads.getInt()) || !isEqual(block.y, 1) || !isEqual(block.z, 1))
    return launch.emitError() << "the block of a launch must be (" << kThreadsAttrName
                              << ", 1, 1) of kernel '" << kernel.getName() << "'";
  if (launch.getNumKernelOperands() != countOperands(kernel))
    return launch.emitError() << "kernel '" << kernel.getName() << "' takes " << countOperands(kernel)
                              << " operands, the launch has " << launch.getNumKernelOperands();
  return success();
}

/// Adds the marks of the matmuls that a launch computes to `matmuls`, with the kernel's instruction and the
/// launch's place.
static void addMatmuls(gpu::LaunchFuncOp launch, FunctionOpInterface kernel,
                       SmallVectorImpl<Attribute> &matmuls) {
  auto instruction = kernel->getAttrOfType<StringAttr>(kInstructionAttrName);
  auto list = launch->getAttrOfType<ArrayAttr>(kMatmulsAttrName);
  if (!list)
    return;
  Builder builder(kernel.getContext());
  for (auto matmul : list.getAsRange<DictionaryAttr>()) {
    NamedAttrList fields(matmul);
    fields.set("location", builder.getStringAttr(describeLocation(launch.getLoc())));
    auto code = matmul.getAs<StringAttr>("code");
    if (instruction && (!code || code.empty()))
      fields.set("code", instruction);
    else if (instruction && !code.getValue().contains(instruction.getValue()))
      fields.set("code", builder.getStringAttr(code.getValue() + ": " + instruction.getValue()));
    matmuls.push_back(fields.getDictionary(kernel.getContext()));
  }
}

/// Ends the call where a size that is known at run time alone is more than a kernel counts.
void EntryLowering::requireSizes(gpu::LaunchFuncOp launch) {
  Location loc = launch.getLoc();
  Value fits;
  for (Value operand : launch.getKernelOperands()) {
    auto narrowed = operand.getDefiningOp<arith::IndexCastOp>();
    if (!narrowed || !operand.getType().isInteger(32) || matchPattern(narrowed.getIn(), m_Constant()))
      continue;
    Value most = arith::ConstantIndexOp::create(builder, loc, kMostOfDimension);
    Value isCounted = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, narrowed.getIn(), most);
    fits = fits ? arith::AndIOp::create(builder, loc, fits, isCounted) : isCounted;
  }
  if (!fits)
    return;
  auto site = launch->getAttrOfType<StringAttr>(kKernelSiteAttrName);
  std::string text;
  llvm::raw_string_ostream(text) << "kernel '" << launch.getKernelName().getValue() << "'"
                                 << (site ? (" of " + site.getValue()).str() : "") << " counts to "
                                 << kMostOfDimension
                                 << ", and a size of this call is more: compile the program with this size "
                                    "in place of '?', for code that counts further";
  cf::AssertOp::create(builder, loc, fits, text);
}

/// Returns whether no code that does something is between both.
static bool canFollow(gpu::LaunchFuncOp before, gpu::LaunchFuncOp launch) {
  if (!before || before->getBlock() != launch->getBlock())
    return false;
  for (Operation *op = before->getNextNode(); op != launch; op = op->getNextNode())
    if (!isMemoryEffectFree(op))
      return false;
  return true;
}

LogicalResult EntryLowering::lowerLaunch(gpu::LaunchFuncOp launch, LaunchParameters &parameters) {
  auto *found = symbols.kernels.find(launch.getKernelName());
  if (found == symbols.kernels.end())
    return launch.emitError() << "'" << launch.getKernelName().getValue() << "' is no kernel of this module";
  FunctionOpInterface kernel = found->second;
  if (failed(verifyLaunch(launch, kernel)))
    return failure();
  builder.setInsertionPoint(launch);
  requireSizes(launch);
  FailureOr<LaunchParameters::Launch> added =
      parameters.add(builder, launch, kernel, symbols.getNumber(launch.getKernelName()));
  if (failed(added))
    return failure();
  Location loc = launch.getLoc();
  for (const TensorMapOperands &map : added->maps)
    require(loc, callHelper(loc, kTensorMapHelper, builder.getI1Type(),
                            {frame, map.place, map.type, map.rank, map.base, map.sizes, map.strides, map.box,
                             map.swizzle})
                     .getResult(0));
  if (added->isStored || !canFollow(open.last, launch)) {
    endRun(parameters);
    open.record = added->record;
  } else {
    open.last.erase();
  }
  open.last = launch;
  ++open.count;
  addMatmuls(launch, kernel, open.matmuls);
  return success();
}

/// Builds the call for the launches of the run, in the place of the last one.
void EntryLowering::endRun(LaunchParameters &parameters) {
  if (open.last) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(open.last);
    Location loc = open.last.getLoc();
    SmallVector<Value> operands = parameters.buildOperands(builder, loc, open.record, open.count);
    operands.insert(operands.begin(), frame);
    func::CallOp call = callHelper(loc, kLaunchHelper, builder.getI1Type(), operands);
    if (!open.matmuls.empty())
      call->setAttr(kMatmulsAttrName, builder.getArrayAttr(open.matmuls));
    require(loc, call.getResult(0));
    open.last.erase();
  }
  open = LaunchRun();
}

void EntryLowering::lowerConstant(memref::GetGlobalOp get) {
  StringAttr name = get.getNameAttr().getAttr();
  Value &memory = constants[name];
  if (!memory) {
    builder.setInsertionPointToStart(&entry.front());
    Location loc = entry.getLoc();
    auto number = std::distance(symbols.constants.begin(), symbols.constants.find(name));
    Value address = callHelper(loc, kSymbolHelper, pointer, {frame, integer(loc, number, 32)}).getResult(0);
    Value null = LLVM::ZeroOp::create(builder, loc, pointer);
    require(loc, LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, address, null));
    memory = buildMemRef(builder, loc, LLVMTypeConverter(entry.getContext()), get.getType(), address, {});
  }
  get.replaceAllUsesWith(memory);
  get.erase();
}

Value EntryLowering::getAddress(memref::LoadOp load) {
  Value address = buildAddress(builder, load.getLoc(), load.getMemref(), load.getIndices());
  return LLVM::IntToPtrOp::create(builder, load.getLoc(), pointer, address);
}

/// Returns the assertion whose condition a load is, if it has no other use: the host need not know it then.
static cf::AssertOp getOnlyCheck(memref::LoadOp load) {
  if (!load.getType().isInteger(1) || !load->hasOneUse())
    return nullptr;
  auto assertion = dyn_cast<cf::AssertOp>(*load->user_begin());
  return assertion && assertion->getBlock() == load->getBlock() ? assertion : nullptr;
}

/// Lets the device check the condition that `load` is, with the message of its assertion.
void EntryLowering::lowerCheck(memref::LoadOp load, unsigned number) {
  cf::AssertOp assertion = getOnlyCheck(load);
  builder.setInsertionPoint(load);
  Value message =
      addErrorMessage(builder, entry, assertion, "fp8_check_" + entry.getName() + "_" + Twine(number));
  auto check =
      callHelper(load.getLoc(), kCheckHelper, builder.getI1Type(), {frame, getAddress(load), message});
  require(load.getLoc(), check.getResult(0));
  assertion.erase();
  load.erase();
}

/// Reads one element of the device's memory to `slot`, eight bytes of the host.
void EntryLowering::lowerRead(memref::LoadOp load, Value slot) {
  builder.setInsertionPoint(load);
  Location loc = load.getLoc();
  Type type = load.getType();
  uint64_t bytes = getElementBytes(type);
  auto read = callHelper(loc, kReadHelper, builder.getI1Type(),
                         {frame, slot, getAddress(load), integer(loc, bytes, 64)});
  require(loc, read.getResult(0));
  Value value = LLVM::LoadOp::create(builder, loc, builder.getIntegerType(bytes * 8), slot);
  if (isa<IndexType>(type))
    value = arith::IndexCastOp::create(builder, loc, type, value);
  else if (type.getIntOrFloatBitWidth() != bytes * 8)
    value = arith::TruncIOp::create(builder, loc, type, value);
  else if (isa<FloatType>(type))
    value = arith::BitcastOp::create(builder, loc, type, value);
  load.replaceAllUsesWith(value);
  load.erase();
}

/// Emits an error at the first operation that would access memory of the device in host code.
static LogicalResult verifyHostCode(func::FuncOp entry) {
  WalkResult walked = entry.walk([](Operation *op) {
    auto load = dyn_cast<memref::LoadOp>(op);
    bool isRead = load && load.getType().isIntOrIndexOrFloat();
    if (isRead || !isa<memref::LoadOp, memref::StoreOp, memref::CopyOp>(op))
      return WalkResult::advance();
    op->emitError() << "'" << op->getName() << "' in host code, which cannot access memory of the device";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult EntryLowering::run() {
  SmallVector<gpu::LaunchFuncOp> launches;
  SmallVector<memref::LoadOp> reads, checks;
  bool allocates = false;
  entry.walk([&](Operation *op) {
    if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
      launches.push_back(launch);
    else if (auto load = dyn_cast<memref::LoadOp>(op))
      (getOnlyCheck(load) ? checks : reads).push_back(load);
    else if (auto call = dyn_cast<func::CallOp>(op))
      allocates |= call.getCallee() == kAllocateHelper || call.getCallee() == kAllocateResultHelper;
  });
  entry->setAttr(kCapturableAttrName, builder.getBoolAttr(reads.empty() && !allocates));
  if (!checks.empty())
    entry->setAttr(kChecksAttrName, builder.getI64IntegerAttr(checks.size()));
  if (failed(verifyHostCode(entry)))
    return failure();
  SmallVector<memref::GetGlobalOp> gets;
  entry.walk([&](memref::GetGlobalOp get) { gets.push_back(get); });
  for (memref::GetGlobalOp get : gets)
    lowerConstant(get);
  builder.setInsertionPointToStart(&entry.front());
  LaunchParameters parameters(builder, entry, launches, llvm::to_vector(llvm::make_second_range(constants)));
  Value slot = parameters.getFirstSlot();
  for (memref::LoadOp load : reads)
    lowerRead(load, slot);
  for (auto [i, load] : llvm::enumerate(checks))
    lowerCheck(load, i);
  for (gpu::LaunchFuncOp launch : launches)
    if (failed(lowerLaunch(launch, parameters)))
      return failure();
  endRun(parameters);
  parameters.finish();
  return success();
}

/// Returns whether the code of `entry` asks something of the device.
static bool mayFail(func::FuncOp entry) {
  return entry
      .walk([](Operation *op) {
        return isa<gpu::LaunchFuncOp, memref::LoadOp, memref::GetGlobalOp>(op) ? WalkResult::interrupt()
                                                                               : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Moves the constants that entry points use into `kernels`, under names of their own: those of the program
/// may be no names in PTX. Kernels that use one of them have a copy already.
static void moveConstants(ModuleOp module, gpu::GPUModuleOp kernels, DeviceSymbols &symbols) {
  SymbolTable inside(kernels), outside(module);
  SmallVector<Attribute> names;
  for (auto entry : module.getOps<func::FuncOp>())
    entry.walk([&](memref::GetGlobalOp get) {
      StringAttr name = get.getNameAttr().getAttr();
      auto global = outside.lookup<memref::GlobalOp>(name);
      if (!symbols.constants.insert({name, global}).second)
        return;
      auto moved = cast<memref::GlobalOp>(global->clone());
      moved.setSymName("constant_" + std::to_string(names.size()));
      moved.setSymVisibility("public");
      moved.setConstant(true);
      names.push_back(inside.insert(moved));
    });
  for (auto &[name, global] : symbols.constants)
    global.erase();
  kernels->setAttr(kSymbolsAttrName, ArrayAttr::get(module.getContext(), names));
}

namespace {
struct LowerLaunchesPass : public fp8::impl::LowerLaunchesBase<LowerLaunchesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    gpu::GPUModuleOp kernels = getKernelModule(module);
    if (!kernels) {
      OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
      kernels = gpu::GPUModuleOp::create(builder, module.getLoc(), kKernelModuleName);
    }
    DeviceSymbols symbols;
    for (FunctionOpInterface kernel : getKernels(kernels))
      symbols.kernels.insert({kernel.getNameAttr(), kernel});
    moveConstants(module, kernels, symbols);
    for (auto entry : module.getOps<func::FuncOp>()) {
      if (!entry.isPublic() || entry.isExternal())
        continue;
      bool hasFrame =
          entry.getNumArguments() != 0 && isa<LLVM::LLVMPointerType>(entry.getArgumentTypes().back());
      if (!hasFrame && !mayFail(entry)) {
        entry->setAttr(kCapturableAttrName, BoolAttr::get(&getContext(), true));
        continue;
      }
      if (!hasFrame) {
        entry.emitError() << "'" << entry.getName() << "' has no frame: run fp8-allocate-dynamic first";
        return signalPassFailure();
      }
      if (failed(EntryLowering(entry, symbols).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
