// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Creates kernels, shares equal ones, and launches them.

#include "KernelBuilder.h"
#include "KernelFacts.h"
#include "fp8/Conversion/CallingConvention.h"
#include "fp8/Conversion/FP8ToGPU/SharedMemory.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp8;

/// The external array that stands for a kernel's dynamic shared memory.
static constexpr llvm::StringLiteral kDynamicSharedName = "dynamic_shared";
/// The alignment that the swizzles of TMA and of matrix descriptors need, in bytes.
static constexpr int64_t kSharedAlignment = 1024;

//===----------------------------------------------------------------------===//
// KernelBuilder
//===----------------------------------------------------------------------===//

KernelBuilder::KernelBuilder(func::FuncOp kernel)
    : ImplicitLocOpBuilder(kernel.getLoc(), kernel.getContext()), kernel(kernel) {
  setInsertionPointToEnd(kernel.addEntryBlock());
}

Value KernelBuilder::globalPointer(unsigned number) {
  return LLVM::AddrSpaceCastOp::create(*this, LLVM::LLVMPointerType::get(getContext(), kGlobalSpace),
                                       kernel.getArgument(number));
}

Expr KernelBuilder::number(int64_t value, unsigned bits) {
  return expr(arith::ConstantOp::create(*this, getIntegerAttr(getIntegerType(bits), value)));
}

Expr KernelBuilder::real(float value) {
  return expr(arith::ConstantOp::create(*this, getF32FloatAttr(value)));
}

Expr KernelBuilder::thread() { return expr(NVVM::ThreadIdXOp::create(*this, getI32Type())); }

Expr KernelBuilder::block(unsigned dimension) {
  switch (dimension) {
  case 0:
    return expr(NVVM::BlockIdXOp::create(*this, getI32Type()));
  case 1:
    return expr(NVVM::BlockIdYOp::create(*this, getI32Type()));
  default:
    return expr(NVVM::BlockIdZOp::create(*this, getI32Type()));
  }
}

Expr KernelBuilder::numBlocks(unsigned dimension) {
  switch (dimension) {
  case 0:
    return expr(NVVM::GridDimXOp::create(*this, getI32Type()));
  case 1:
    return expr(NVVM::GridDimYOp::create(*this, getI32Type()));
  default:
    return expr(NVVM::GridDimZOp::create(*this, getI32Type()));
  }
}

// Not nvvm.barrier: MLIR 22 takes the location that it prints behind one for a reduction when it reads it.
void KernelBuilder::barrier() { NVVM::Barrier0Op::create(*this); }

/// Returns the symbol `name` of the gpu.module of `kernel`, which `create` creates if it is missing.
template <typename Op>
static Op getOrCreateGlobal(func::FuncOp kernel, StringRef name, function_ref<Op(OpBuilder &)> create) {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  if (auto op = module.lookupSymbol<Op>(name))
    return op;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  return create(builder);
}

Value fp8::buildStaticShared(OpBuilder &builder, func::FuncOp kernel, MemRefType type, unsigned number) {
  type = MemRefType::Builder(type).setMemorySpace(builder.getI64IntegerAttr(kSharedSpace));
  std::string name = "shared_";
  llvm::raw_string_ostream stream(name);
  for (int64_t size : type.getShape())
    stream << size << "x";
  stream << type.getElementType() << "_" << number;
  getOrCreateGlobal<memref::GlobalOp>(kernel, name, [&](OpBuilder &b) {
    return memref::GlobalOp::create(b, kernel.getLoc(), name, b.getStringAttr("private"), type,
                                    /*initial_value=*/b.getUnitAttr(), /*constant=*/false,
                                    /*alignment=*/b.getI64IntegerAttr(16));
  });
  return memref::GetGlobalOp::create(builder, kernel.getLoc(), type, name);
}

Value KernelBuilder::staticShared(MemRefType type, unsigned number) {
  return buildStaticShared(*this, kernel, type, number);
}

Value KernelBuilder::dynamicShared() {
  auto global = getOrCreateGlobal<LLVM::GlobalOp>(kernel, kDynamicSharedName, [&](OpBuilder &builder) {
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
    return LLVM::GlobalOp::create(builder, kernel.getLoc(), type, /*isConstant=*/false,
                                  LLVM::Linkage::External, kDynamicSharedName, /*value=*/Attribute(),
                                  kSharedAlignment, kSharedSpace);
  });
  return LLVM::AddressOfOp::create(*this, global);
}

Value KernelBuilder::at(Value pointer, Expr bytes) {
  return LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(), pointer, bytes.getValue());
}

Expr KernelBuilder::load(Type type, Value pointer, unsigned alignment) {
  return expr(LLVM::LoadOp::create(*this, type, pointer, alignment));
}

void KernelBuilder::store(Expr value, Value pointer) {
  LLVM::StoreOp::create(*this, value.getValue(), pointer);
}

Expr KernelBuilder::encodeFP8(Expr value, Type format) {
  return expr(arith::TruncIOp::create(*this, getI8Type(), encodeFP8(value, real(0), format).getValue()));
}

Expr KernelBuilder::encodeFP8(Expr low, Expr high, Type format) {
  return expr(NVVM::ConvertF32x2ToF8x2Op::create(*this, getI16Type(), high.getValue(), low.getValue(),
                                                 NVVM::FPRoundingMode::RN, NVVM::SaturationMode::SATFINITE,
                                                 /*relu=*/false, format));
}

Expr KernelBuilder::magnitudeBits(Expr value) {
  Expr magnitude = toBits(value) & 0x7FFFFFFF;
  return select(magnitude > 0x7F800000, 0, magnitude);
}

Expr KernelBuilder::fromLane(Expr value, int64_t bits) {
  return expr(NVVM::ShflOp::create(*this, value.getType(), number(-1).getValue(), value.getValue(),
                                   number(bits).getValue(), number(31).getValue(), NVVM::ShflKind::bfly,
                                   UnitAttr()));
}

void KernelBuilder::atomicMaxOfWarp(Expr value, Value pointer) {
  Value largest = NVVM::ReduxOp::create(*this, getI32Type(), value.getValue(), NVVM::ReduxKind::UMAX,
                                        number(-1).getValue());
  when(lane() == 0, [&] {
    LLVM::AtomicRMWOp::create(*this, LLVM::AtomicBinOp::umax, pointer, largest,
                              LLVM::AtomicOrdering::monotonic, "device");
  });
}

SmallVector<Expr, 4> KernelBuilder::transposeBytes(ArrayRef<Expr> rows) {
  // Four of the eight bytes of two words, chosen by the four digits of the selector.
  auto permute = [&](const Expr &low, const Expr &high, uint32_t selector) {
    return expr(LLVM::CallIntrinsicOp::create(
                    *this, getI32Type(), getStringAttr("llvm.nvvm.prmt"),
                    ValueRange{low.getValue(), high.getValue(), number(selector).getValue()})
                    .getResult(0));
  };
  Expr top01 = permute(rows[0], rows[1], 0x5140), top23 = permute(rows[0], rows[1], 0x7362);
  Expr bottom01 = permute(rows[2], rows[3], 0x5140), bottom23 = permute(rows[2], rows[3], 0x7362);
  return {permute(top01, bottom01, 0x5410), permute(top01, bottom01, 0x7632),
          permute(top23, bottom23, 0x5410), permute(top23, bottom23, 0x7632)};
}

void KernelBuilder::when(Expr condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(*this, condition.getValue(), /*withElseRegion=*/false);
  InsertionGuard guard(*this);
  setInsertionPoint(branch.thenYield());
  body();
}

SmallVector<Value> KernelBuilder::whenElse(Expr condition, function_ref<SmallVector<Value>()> body,
                                           ValueRange others) {
  if (others.empty()) {
    when(condition, [&] { body(); });
    return {};
  }
  return either(condition, others.getTypes(), body, [&] { return SmallVector<Value>(others); });
}

SmallVector<Value> KernelBuilder::either(Expr condition, TypeRange types,
                                         function_ref<SmallVector<Value>()> ifTrue,
                                         function_ref<SmallVector<Value>()> ifFalse) {
  auto branch = scf::IfOp::create(*this, types, condition.getValue(), /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(*this, ifTrue());
  setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(*this, ifFalse());
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> KernelBuilder::loop(Expr lower, Expr upper, ValueRange inits,
                                       function_ref<SmallVector<Value>(Expr, ValueRange carried)> body) {
  auto loop = scf::ForOp::create(*this, lower.getValue(), upper.getValue(), number(1).getValue(), inits);
  InsertionGuard guard(*this);
  Block *block = loop.getBody();
  if (!block->empty()) // an scf.for without carried values has its terminator already
    block->getTerminator()->erase();
  setInsertionPointToEnd(block);
  SmallVector<Value> next = body(expr(loop.getInductionVar()), loop.getRegionIterArgs());
  scf::YieldOp::create(*this, next);
  return SmallVector<Value>(loop.getResults());
}

//===----------------------------------------------------------------------===//
// KernelTable
//===----------------------------------------------------------------------===//

/// Returns a hash of the code of `kernel` without names and locations.
static size_t hashKernel(func::FuncOp kernel) {
  llvm::hash_code hash = hash_value(kernel.getFunctionType());
  kernel.getBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(op, OperationEquivalence::ignoreHashValue,
                                                                   OperationEquivalence::ignoreHashValue,
                                                                   OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

/// Returns whether both kernels are the same but for names and locations.
static bool areEqual(func::FuncOp a, func::FuncOp b) {
  return a.getFunctionType() == b.getFunctionType() && a.getArgAttrsAttr() == b.getArgAttrsAttr() &&
         a->getDiscardableAttrDictionary() == b->getDiscardableAttrDictionary() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::IgnoreLocations);
}

/// Returns `name` in letters, digits and `_`, at most 54 of them.
static std::string toSymbol(StringRef name) {
  std::string symbol = "kernel_";
  for (char c : name)
    symbol += llvm::isAlnum(c) ? c : '_';
  symbol.resize(std::min<size_t>(symbol.size(), 54));
  return StringRef(symbol).rtrim('_').str();
}

KernelTable::KernelTable(ModuleOp module, bool checksSharing)
    : module(module), checksSharing(checksSharing),
      kernels(module.lookupSymbol<gpu::GPUModuleOp>(kKernelModuleName)) {
  if (kernels)
    for (auto kernel : kernels.getOps<func::FuncOp>())
      byHash[hashKernel(kernel)].push_back(kernel);
}

gpu::GPUModuleOp KernelTable::getModule() {
  if (!kernels) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    kernels = gpu::GPUModuleOp::create(builder, module.getLoc(), kKernelModuleName);
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), builder.getUnitAttr());
  }
  return kernels;
}

/// Sets the attributes that stage 7 reads.
static void setAttributes(func::FuncOp kernel, const KernelSpec &spec) {
  Builder builder(kernel.getContext());
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  if (canPassPointers(spec.arguments))
    kernel->setAttr(kBarePointersAttrName, builder.getUnitAttr());
  kernel->setAttr(kThreadsAttrName, builder.getI32IntegerAttr(spec.threads));
  if (spec.sharedBytes)
    kernel->setAttr(kSharedBytesAttrName, builder.getI32IntegerAttr(spec.sharedBytes));
  if (spec.cluster != 1)
    kernel->setAttr(kClusterAttrName, builder.getI32IntegerAttr(spec.cluster));
  if (spec.blocks)
    kernel->setAttr(kBlocksAttrName, builder.getI32IntegerAttr(spec.blocks));
  if (!spec.instruction.empty())
    kernel->setAttr(kInstructionAttrName, builder.getStringAttr(spec.instruction));
  if (!spec.kind.empty())
    kernel->setAttr(kKernelKindAttrName, builder.getStringAttr(spec.kind));
}

void KernelTable::start(Operation *op) {
  current = &byFacts[findKernelFacts(op)];
  next = 0;
}

func::FuncOp KernelTable::build(Location loc, const KernelSpec &spec,
                                function_ref<void(KernelBuilder &)> body) {
  bool isKnown = current && next < current->size();
  if (isKnown && !checksSharing)
    return (*current)[next++];
  func::FuncOp kernel = buildOrFind(loc, spec, body);
  if (isKnown && kernel != (*current)[next]) {
    failed = true;
    emitError(loc) << "kernel '" << (*current)[next].getName()
                   << "' would be shared, but differs: KernelFacts.cpp leaves out what it depends on";
  }
  if (current && !isKnown)
    current->push_back(kernel);
  ++next;
  return kernel;
}

func::FuncOp KernelTable::buildOrFind(Location loc, const KernelSpec &spec,
                                      function_ref<void(KernelBuilder &)> body) {
  OpBuilder builder = OpBuilder::atBlockEnd(getModule().getBody());
  auto kernel =
      func::FuncOp::create(builder, loc, "building", builder.getFunctionType(spec.arguments, TypeRange()));
  setAttributes(kernel, spec);
  KernelBuilder inside(kernel);
  body(inside);
  func::ReturnOp::create(inside);

  Kernels &candidates = byHash[hashKernel(kernel)];
  for (func::FuncOp other : candidates)
    if (areEqual(kernel, other)) {
      kernel.erase();
      return other;
    }
  candidates.push_back(kernel);
  std::string name = toSymbol(spec.name), unique = name;
  for (unsigned suffix = 2; kernels.lookupSymbol(unique); ++suffix)
    unique = (name + "_" + Twine(suffix)).str();
  kernel.setSymName(unique);
  return kernel;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Value fp8::constantIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

gpu::LaunchFuncOp fp8::launchKernel(OpBuilder &builder, Location loc, func::FuncOp kernel, ValueRange grid,
                                    ValueRange operands) {
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  auto size = [&](unsigned dimension) { return dimension < grid.size() ? grid[dimension] : index(1); };
  auto threads = cast<IntegerAttr>(kernel->getAttr(kThreadsAttrName)).getInt();
  auto symbol = SymbolRefAttr::get(kernel->getParentOfType<gpu::GPUModuleOp>().getNameAttr(),
                                   {FlatSymbolRefAttr::get(kernel)});
  auto launch = gpu::LaunchFuncOp::create(builder, loc, symbol, gpu::KernelDim3{size(0), size(1), size(2)},
                                          gpu::KernelDim3{index(threads), index(1), index(1)},
                                          /*dynamicSharedMemorySize=*/Value(), operands);
  countLaunch(launch, kernel);
  return launch;
}

void fp8::markLaunch(gpu::LaunchFuncOp launch, StringRef site, ArrayAttr matmuls) {
  if (!site.empty())
    launch->setAttr(kKernelSiteAttrName, StringAttr::get(launch.getContext(), site));
  if (matmuls)
    launch->setAttr(kMatmulsAttrName, matmuls);
}
