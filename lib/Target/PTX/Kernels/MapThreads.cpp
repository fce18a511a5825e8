// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes GPU kernels of outlined functions: a parallel loop becomes a thread per iteration, and calls become
// launches with as many blocks as the iterations need.

#include "ThreadLoop.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Conversion/FP8ToGPU/SharedMemory.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/KernelCost.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"

namespace fp8 {
#define GEN_PASS_DEF_MAPTHREADS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

static constexpr int64_t kWarp = 32;

static Value findRoot(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// Returns whether code in `loop` may write the memory that `load` reads.
static bool writes(scf::ParallelOp loop, memref::LoadOp load) {
  WalkResult result = loop->walk([&](memref::StoreOp store) {
    bool same = findRoot(store.getMemref()) == findRoot(load.getMemref());
    return same ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

scf::ParallelOp fp8::findParallelLoop(func::FuncOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *last = body.getTerminator()->getPrevNode();
  auto loop = dyn_cast_or_null<scf::ParallelOp>(last);
  if (!loop || loop.getNumResults() != 0 || kernel.getNumResults() != 0)
    return {};
  for (Operation &op : body) {
    if (&op == last)
      break;
    auto load = dyn_cast<memref::LoadOp>(op);
    bool isPrivate = isMemoryEffectFree(&op) || isa<memref::AllocaOp>(op);
    if (load ? writes(loop, load) : !isPrivate)
      return {};
  }
  return loop;
}

std::optional<int64_t> fp8::countIterations(scf::ParallelOp loop) {
  int64_t count = 1;
  for (auto [lower, upper, step] :
       llvm::zip_equal(loop.getLowerBound(), loop.getUpperBound(), loop.getStep())) {
    std::optional<int64_t> begin = getConstantIntValue(lower), end = getConstantIntValue(upper),
                           by = getConstantIntValue(step);
    if (!begin || !end || !by)
      return std::nullopt;
    count *= std::max<int64_t>(0, llvm::divideCeilSigned(*end - *begin, *by));
  }
  return count;
}

namespace {
/// The parallel loop of a kernel, and the code on bounds that threads and launches share.
class ThreadLoop {
public:
  /// `wanted` are the threads of a block, if fp8-map-reductions or fp8-vectorize-threads has chosen them.
  ThreadLoop(scf::ParallelOp loop, IntegerAttr wanted)
      : loop(loop), loc(loop.getLoc()), wanted(wanted), iterations(countIterations(loop)) {}

  int64_t getThreads() const;
  void mapToThreads();
  /// Builds the number of blocks; `mapping` has the operands of the launch for the kernel's arguments.
  Value buildBlocks(OpBuilder &b, IRMapping &mapping);

private:
  SmallVector<Value> buildTrips(OpBuilder &b, function_ref<Value(Value)> map);

  scf::ParallelOp loop;
  Location loc;
  IntegerAttr wanted;
  std::optional<int64_t> iterations;
};
} // namespace

static bool isHostComputable(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  if (isa<memref::DimOp>(op))
    return isa<BlockArgument>(op->getOperand(0)) && isHostComputable(op->getOperand(1));
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(), isHostComputable);
}

bool fp8::hasHostBounds(scf::ParallelOp loop) {
  auto all = [](ValueRange values) { return llvm::all_of(values, isHostComputable); };
  return all(loop.getLowerBound()) && all(loop.getUpperBound()) && all(loop.getStep());
}

int64_t ThreadLoop::getThreads() const {
  if (wanted)
    return wanted.getInt();
  int64_t most =
      iterations ? static_cast<int64_t>(llvm::alignTo(std::max<int64_t>(*iterations, 1), kWarp)) : kThreads;
  return std::min(kThreads, most);
}

/// Builds the numbers of iterations per dimension, of index type.
SmallVector<Value> ThreadLoop::buildTrips(OpBuilder &b, function_ref<Value(Value)> map) {
  SmallVector<Value> trips;
  for (auto [lower, upper, step] :
       llvm::zip_equal(loop.getLowerBound(), loop.getUpperBound(), loop.getStep())) {
    Value span = arith::SubIOp::create(b, loc, map(upper), map(lower));
    Value none = arith::ConstantIndexOp::create(b, loc, 0);
    span = arith::MaxSIOp::create(b, loc, span, none);
    trips.push_back(arith::CeilDivUIOp::create(b, loc, span, map(step)));
  }
  return trips;
}

/// Clones what `value` is computed from to the insertion point of `b`.
static Value cloneChain(OpBuilder &b, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    cloneChain(b, operand, mapping);
  b.clone(*op, mapping);
  return mapping.lookup(value);
}

Value ThreadLoop::buildBlocks(OpBuilder &b, IRMapping &mapping) {
  int64_t threads = getThreads();
  if (iterations)
    return arith::ConstantIndexOp::create(b, loc, llvm::divideCeilSigned(*iterations, threads));
  Value total = arith::ConstantIndexOp::create(b, loc, 1);
  for (Value trips : buildTrips(b, [&](Value value) { return cloneChain(b, value, mapping); }))
    total = arith::MulIOp::create(b, loc, total, trips);
  return arith::CeilDivUIOp::create(b, loc, total, arith::ConstantIndexOp::create(b, loc, threads));
}

/// Replaces the loop by its body for the iteration of this thread. Iterations are numbered with the last
/// dimension fastest, in 32 bits where there are so few: division is an order of magnitude faster.
void ThreadLoop::mapToThreads() {
  OpBuilder b(loop);
  bool isNarrow = iterations && *iterations <= std::numeric_limits<int32_t>::max();
  Type type = isNarrow ? b.getI32Type() : b.getI64Type();
  auto widen = [&](Value value) -> Value {
    return isNarrow ? value : arith::ExtUIOp::create(b, loc, type, value).getResult();
  };
  Value block = widen(NVVM::BlockIdXOp::create(b, loc, b.getI32Type()));
  Value thread = widen(NVVM::ThreadIdXOp::create(b, loc, b.getI32Type()));
  Value first =
      arith::MulIOp::create(b, loc, block, arith::ConstantIntOp::create(b, loc, type, getThreads()));
  Value number = arith::AddIOp::create(b, loc, first, thread);
  SmallVector<Value> trips;
  Value total = arith::ConstantIntOp::create(b, loc, type, 1);
  for (Value trip : buildTrips(b, [](Value value) { return value; })) {
    trips.push_back(arith::IndexCastOp::create(b, loc, type, trip));
    total = arith::MulIOp::create(b, loc, total, trips.back());
  }
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, number, total);
  auto guard = scf::IfOp::create(b, loc, isInside, /*withElseRegion=*/false);
  b.setInsertionPointToStart(guard.thenBlock());
  SmallVector<Value> indices(trips.size());
  for (unsigned dim : llvm::reverse(llvm::seq<unsigned>(trips.size()))) {
    Value position = number;
    if (dim != 0) {
      position = arith::RemUIOp::create(b, loc, number, trips[dim]);
      number = arith::DivUIOp::create(b, loc, number, trips[dim]);
    }
    Value index = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), position);
    index = arith::MulIOp::create(b, loc, index, loop.getStep()[dim]);
    indices[dim] = arith::AddIOp::create(b, loc, index, loop.getLowerBound()[dim]);
  }
  for (auto [old, index] : llvm::zip_equal(loop.getInductionVars(), indices))
    old.replaceAllUsesWith(index);
  loop.getBody()->getTerminator()->erase();
  Block *then = guard.thenBlock();
  then->getOperations().splice(then->getTerminator()->getIterator(), loop.getBody()->getOperations());
  loop.erase();
}

namespace {
class ThreadMapper {
public:
  explicit ThreadMapper(ModuleOp module) : module(module) {}
  LogicalResult map(func::FuncOp function, ArrayRef<func::CallOp> calls);

private:
  void moveToDevice(func::FuncOp function);
  ModuleOp module;
  std::optional<SymbolTable> kernels; ///< of the gpu.module
};
} // namespace

/// Moves `function` into the gpu.module of the kernels, which is made on demand; a kernel that another pass
/// has built there may have its name.
void ThreadMapper::moveToDevice(func::FuncOp function) {
  auto kernelModule = module.lookupSymbol<gpu::GPUModuleOp>(kKernelModuleName);
  if (!kernelModule) {
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), builder.getUnitAttr());
    kernelModule = gpu::GPUModuleOp::create(builder, module.getLoc(), kKernelModuleName);
  }
  if (!kernels)
    kernels.emplace(kernelModule);
  function->remove();
  kernels->insert(function);
}

/// Makes buffers of the kernel's module of those in shared memory.
static void placeShared(func::FuncOp kernel) {
  llvm::DenseMap<Type, unsigned> numbers;
  kernel.walk([&](memref::AllocaOp alloca) {
    MemRefType type = alloca.getType();
    if (type.getMemorySpaceAsInt() != kSharedSpace)
      return;
    OpBuilder builder(alloca);
    auto plain = MemRefType::get(type.getShape(), type.getElementType());
    alloca.replaceAllUsesWith(buildStaticShared(builder, kernel, plain, numbers[type]++));
    alloca.erase();
  });
}

static void replaceByLaunch(func::CallOp call, func::FuncOp kernel, Value blocks, int64_t threads) {
  OpBuilder builder(call);
  Location loc = call.getLoc();
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value size = arith::ConstantIndexOp::create(builder, loc, threads);
  auto name = SymbolRefAttr::get(builder.getStringAttr(kKernelModuleName),
                                 FlatSymbolRefAttr::get(kernel.getSymNameAttr()));
  auto launch = gpu::LaunchFuncOp::create(builder, loc, name, {blocks, one, one}, {size, one, one},
                                          /*dynamicSharedMemorySize=*/Value(), call.getOperands());
  for (StringRef mark : {kMatmulsAttrName, kKernelSiteAttrName, kKernelCostAttrName})
    if (Attribute value = call->getAttr(mark))
      launch->setAttr(mark, value);
  call.erase();
}

LogicalResult ThreadMapper::map(func::FuncOp function, ArrayRef<func::CallOp> calls) {
  if (function.getNumResults() != 0)
    return function.emitError("kernel '") << function.getName()
                                          << "' returns values: run fp8-outline-scalars "
                                             "before kernels are outlined";
  std::optional<ThreadLoop> loop;
  if (scf::ParallelOp parallel = findParallelLoop(function); parallel && hasHostBounds(parallel))
    loop.emplace(parallel, function->getAttrOfType<IntegerAttr>(kThreadsAttrName));
  int64_t threads = loop ? loop->getThreads() : 1;
  moveToDevice(function);
  placeShared(function);
  for (func::CallOp call : calls) {
    OpBuilder builder(call);
    IRMapping mapping;
    mapping.map(function.getArguments(), call.getOperands());
    Value blocks = loop ? loop->buildBlocks(builder, mapping)
                        : arith::ConstantIndexOp::create(builder, call.getLoc(), 1).getResult();
    replaceByLaunch(call, function, blocks, threads);
  }
  if (loop)
    loop->mapToThreads();
  Builder builder(module.getContext());
  for (unsigned index : llvm::seq(function.getNumArguments()))
    function.removeArgAttr(index, kOwnMemoryAttrName);
  function.setPublic();
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  function->setAttr(kThreadsAttrName, builder.getI32IntegerAttr(threads));
  return success();
}

namespace {
struct MapThreadsPass : public fp8::impl::MapThreadsBase<MapThreadsPass> {
  void runOnOperation() override {
    llvm::MapVector<StringRef, SmallVector<func::CallOp>> calls;
    getOperation().walk([&](func::CallOp call) { calls[call.getCallee()].push_back(call); });
    ThreadMapper mapper(getOperation());
    SymbolTable symbols(getOperation());
    for (auto &[name, callers] : calls)
      if (auto function = symbols.lookup<func::FuncOp>(name); function && !function.isExternal())
        if (failed(mapper.map(function, callers)))
          return signalPassFailure();
  }
};
} // namespace
