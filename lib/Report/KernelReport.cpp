// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts the launches of each kernel, and predicts their times.

#include "fp8/Report/KernelReport.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace fp8;

/// Returns how often `op` runs in a call of its function.
static int64_t countRuns(Operation *op) {
  int64_t runs = 1;
  for (auto loop = op->getParentOfType<LoopLikeOpInterface>(); loop;
       loop = loop->getParentOfType<LoopLikeOpInterface>())
    if (std::optional<APInt> trips = loop.getStaticTripCount())
      runs *= trips->getSExtValue();
  return runs;
}

/// Returns the bytes of all arguments, results among them; buffers of dynamic size count nothing.
static int64_t countArgumentBytes(func::FuncOp entry) {
  int64_t bytes = 0;
  for (Type argument : entry.getArgumentTypes()) {
    auto type = dyn_cast<MemRefType>(argument);
    if (type && type.hasStaticShape() && type.getElementType().isIntOrFloat())
      bytes += type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  return bytes;
}

static KernelRecord describe(const Chip &chip, DictionaryAttr fields, int64_t launches) {
  KernelRecord record;
  record.name = fields.getAs<StringAttr>("name").str();
  record.kind = fields.getAs<StringAttr>("kind").str();
  for (StringRef site : fields.getAs<ArrayAttr>("sites").getAsValueRange<StringAttr>())
    record.sites.push_back(site.str());
  record.launches = launches;
  record.cost = KernelCost::fromFields(fields);
  record.time = predictKernel(chip, record.kind, record.cost);
  return record;
}

static StepRecord describe(const Chip &chip, func::FuncOp entry, ArrayAttr kernels) {
  llvm::MapVector<int64_t, int64_t> launches; // by the kernel's number
  entry.walk([&](gpu::LaunchFuncOp launch) {
    if (auto number = launch->getAttrOfType<IntegerAttr>(kKernelNumberAttrName))
      launches[number.getInt()] += countRuns(launch);
  });
  StepRecord step;
  step.entry = entry.getName().str();
  double matmuls = 0;
  for (auto [number, count] : launches) {
    step.kernels.push_back(describe(chip, cast<DictionaryAttr>(kernels[number]), count));
    const KernelRecord &kernel = step.kernels.back();
    auto times = static_cast<double>(count);
    step.launches += count;
    step.gapSeconds += times * kLaunchGap;
    if (!kernel.time) {
      step.unknownLaunches += count;
      continue;
    }
    step.seconds += times * kernel.time->getTotal();
    matmuls += times * kernel.time->matmulFloor;
  }
  step.seconds += step.gapSeconds;
  double memory =
      static_cast<double>(countArgumentBytes(entry)) / (static_cast<double>(chip.memoryGBs) * 1e9);
  step.floorSeconds = std::max(matmuls, memory);
  return step;
}

std::vector<StepRecord> fp8::collectKernels(ModuleOp module) {
  std::vector<StepRecord> steps;
  auto chip = dyn_cast_or_null<ChipAttr>(getTarget(module));
  auto kernels = module->getAttrOfType<ArrayAttr>(kKernelsAttrName);
  if (!chip || !kernels)
    return steps;
  for (auto entry : module.getOps<func::FuncOp>())
    if (entry.isPublic() && !entry.isExternal())
      steps.push_back(describe(getChip(chip), entry, kernels));
  return steps;
}

/// Returns the terms of `time` in microseconds.
static llvm::json::Object termsToJSON(const KernelTime &time) {
  return llvm::json::Object{{"memory", time.memory * 1e6},
                            {"l2", time.l2 * 1e6},
                            {"tensor", time.tensor * 1e6},
                            {"issue", time.issue * 1e6},
                            {"latency", time.latency * 1e6}};
}

static llvm::json::Value timeToJSON(const std::optional<KernelTime> &time) {
  if (!time)
    return nullptr;
  return llvm::json::Object{{"total", time->getTotal() * 1e6},
                            {"floor", time->getFloor() * 1e6},
                            {"bound", time->getBound()},
                            {"terms", termsToJSON(*time)},
                            {"lost", termsToJSON(time->getLosses())}};
}

llvm::json::Array fp8::kernelsToJSON(const std::vector<StepRecord> &steps) {
  llvm::json::Array list;
  for (const StepRecord &step : steps) {
    llvm::json::Array kernels;
    for (const KernelRecord &kernel : step.kernels)
      kernels.push_back(llvm::json::Object{{"name", kernel.name},
                                           {"kind", kernel.kind},
                                           {"sites", llvm::json::Array(kernel.sites)},
                                           {"launches", kernel.launches},
                                           {"read", kernel.cost.read},
                                           {"written", kernel.cost.written},
                                           {"operations", kernel.cost.operations},
                                           {"microseconds", timeToJSON(kernel.time)}});
    list.push_back(llvm::json::Object{{"entry", step.entry},
                                      {"launches", step.launches},
                                      {"unknown_launches", step.unknownLaunches},
                                      {"microseconds", step.seconds * 1e6},
                                      {"gap_microseconds", step.gapSeconds * 1e6},
                                      {"floor_microseconds", step.floorSeconds * 1e6},
                                      {"kernels", std::move(kernels)}});
  }
  return list;
}
