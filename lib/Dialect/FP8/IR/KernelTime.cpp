// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model of the time of a kernel.

#include "fp8/Dialect/FP8/IR/KernelTime.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace fp8;

/// Instructions of threads that a multiprocessor starts per clock: one of each of 4 warps.
static constexpr double kThreadsPerClock = 128;

StageClocks fp8::countStageClocks(const Chip &chip, int64_t rows, int64_t columns, int64_t bytes,
                                  int64_t loadedRows, int64_t loadedColumns, double multiplyAdds) {
  double multiply = static_cast<double>(rows * columns * bytes) / multiplyAdds;
  double load = static_cast<double>((std::min(loadedRows, rows) + std::min(loadedColumns, columns)) * bytes);
  return {multiply, chip.l2BytesPerClock == 0 ? 0 : load / chip.l2BytesPerClock};
}

/// Returns the multiply-adds per clock that `work` could have.
static double getRate(const Chip &chip, const MatmulWork &work) {
  if (!work.usesTensorCores)
    return kThreadsPerClock;
  switch (work.elementBytes) {
  case 1:
    return static_cast<double>(chip.fp8Rate);
  case 2:
    return static_cast<double>(chip.halfRate);
  default: // TF32
    return static_cast<double>(chip.halfRate) / 2;
  }
}

/// Returns the instructions of a thread per element and part of K.
static double countPartInstructions(const Chip &chip, const MatmulWork &work,
                                    const TimeCalibration &calibration) {
  if (!work.hasScaledParts)
    return 1;
  return chip.family == MatmulFamily::wgmma ? calibration.scaledPartInstructions : 2;
}

MatmulClocks fp8::countMatmulClocks(const Chip &chip, const MatmulWork &work,
                                    const TimeCalibration &calibration) {
  int64_t rows = work.isSwapped ? work.n : work.m, columns = work.isSwapped ? work.m : work.n;
  int64_t tiles = work.batch * llvm::divideCeil(rows, work.tileM) * llvm::divideCeil(columns, work.tileN);
  auto turns = static_cast<double>(llvm::divideCeil(tiles, chip.multiprocessors));
  auto stages = static_cast<double>(llvm::divideCeil(work.k * work.elementBytes, work.tileKBytes));
  double rate = getRate(chip, work);
  StageClocks stage = countStageClocks(chip, work.tileM, work.tileN, work.tileKBytes, rows, columns,
                                       rate * static_cast<double>(work.elementBytes));
  auto elements = static_cast<double>(work.tileM * work.tileN);
  double instructions = 0;
  if (work.part != 0)
    instructions = static_cast<double>(llvm::divideCeil(work.k, work.part)) *
                   countPartInstructions(chip, work, calibration);
  double epilogue = calibration.epilogueClocks + (work.hasRowScales ? calibration.rowScaleClocks : 0);
  double loop = turns * stages * stage.tensor;
  double share = work.usesTensorCores ? calibration.tensorShare : 1;
  auto round = [](double clocks) { return static_cast<int64_t>(std::llround(clocks)); };
  MatmulClocks clocks;
  clocks.floor = round(static_cast<double>(work.batch * work.m) * static_cast<double>(work.n * work.k) /
                       (rate * static_cast<double>(chip.multiprocessors)));
  clocks.tensor = work.usesTensorCores ? round(loop / share) : 0;
  clocks.l2 = round(turns * stages * stage.l2);
  clocks.issue =
      round(turns * elements * instructions / kThreadsPerClock + (work.usesTensorCores ? 0 : loop));
  clocks.latency = round(turns * elements * epilogue);
  return clocks;
}

MatmulClocks fp8::countAttentionClocks(const Chip &chip, const AttentionWork &work,
                                       const TimeCalibration &calibration) {
  // Blocks differ in their rows, and those that end early make room for others.
  auto busy = static_cast<double>(std::min(chip.multiprocessors, work.blocks));
  double scores = static_cast<double>(work.rows * work.stepRows) * static_cast<double>(work.steps);
  auto matmuls = static_cast<double>(work.matmuls);
  double products = scores * matmuls * static_cast<double>(work.headElements);
  double streamed = static_cast<double>(work.stepRows * work.headElements * 2 * 2); // two tensors
  double rate = static_cast<double>(chip.halfRate);
  auto round = [](double clocks) { return static_cast<int64_t>(std::llround(clocks)); };
  MatmulClocks clocks;
  clocks.tensor = round(products / rate / calibration.tensorShare / busy);
  if (chip.l2BytesPerClock > 0)
    clocks.l2 = round(static_cast<double>(work.steps) * streamed / chip.l2BytesPerClock / busy);
  clocks.issue = round(scores * matmuls * calibration.attentionInstructions / kThreadsPerClock / busy);
  clocks.floor = round(products / rate / static_cast<double>(chip.multiprocessors));
  return clocks;
}

KernelTime KernelTime::getLosses() const {
  KernelTime lost;
  double loop = getLoop(), above = std::max(0.0, loop - getFloor());
  lost.latency = latency;
  if (loop == memory) {
    lost.memory = above;
  } else if (loop == l2) {
    lost.l2 = above;
  } else {
    lost.issue = std::min(issue, above);
    lost.tensor = above - lost.issue;
  }
  return lost;
}

StringRef KernelTime::getBound() const {
  KernelTime lost = getLosses();
  std::pair<double, StringRef> terms[] = {{lost.memory, "memory"},
                                          {lost.l2, "L2"},
                                          {lost.tensor, "tensor"},
                                          {lost.issue, "issue"},
                                          {lost.latency, "latency"}};
  return llvm::max_element(terms, llvm::less_first())->second;
}

/// Returns the share of the memory's rate that kernels of `kind` reach.
static double getMemoryShare(StringRef kind, const TimeCalibration &calibration) {
  if (kind == "products" || kind == "attention")
    return calibration.copyShare;
  return kind == "casts" || kind == "history" ? calibration.castShare : calibration.loopShare;
}

std::optional<KernelTime> fp8::predictKernel(const Chip &chip, StringRef kind, const KernelCost &cost,
                                             const TimeCalibration &calibration) {
  if (!cost.read || !cost.written)
    return std::nullopt;
  double perClock = 1 / (static_cast<double>(chip.clockMHz) * 1e6);
  double moved =
      static_cast<double>(*cost.read + *cost.written) / (static_cast<double>(chip.memoryGBs) * 1e9);
  KernelTime time;
  time.memoryFloor = moved;
  time.memory = moved / getMemoryShare(kind, calibration);
  if (cost.matmul) {
    time.l2 = static_cast<double>(cost.matmul->l2) * perClock;
    time.tensor = static_cast<double>(cost.matmul->tensor) * perClock;
    time.issue = static_cast<double>(cost.matmul->issue) * perClock;
    time.latency = static_cast<double>(cost.matmul->latency) * perClock;
    time.matmulFloor = static_cast<double>(cost.matmul->floor) * perClock;
  } else if (cost.operations) {
    auto threads = kThreadsPerClock * static_cast<double>(chip.multiprocessors);
    time.issue = static_cast<double>(*cost.operations) / threads * perClock;
  }
  return time;
}
