// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicts how long a kernel takes on a GPU, from the bytes that it moves and the clocks that its matmul
// takes:
//
//   time = max(memory, l2, tensor + issue) + latency
//
// `issue` follows `tensor` because a kernel with sums of parts waits for its tensor cores before it adds a
// part. Tiles of the same multiprocessor follow each other, and no kernel computes the next tile during an
// epilogue: `latency` is what epilogues take. The choice of tiles counts the clocks of a stage by the same
// function.

#ifndef FP8_DIALECT_FP8_IR_KERNELTIME_H
#define FP8_DIALECT_FP8_IR_KERNELTIME_H

#include "fp8/Dialect/FP8/IR/Chips.h"
#include "fp8/Dialect/FP8/IR/KernelCost.h"

namespace fp8 {

/// The numbers of the model that no data sheet has. KernelTimeTest.cpp and test_predict.py fit them to the
/// measurements on an H100 (lib/Conversion/FP8ToGPU/FIGURES.md). They hold for the other chips as far as
/// those resemble it.
struct TimeCalibration {
  /// The share of the tensor cores' rate that loops reach, at the clock that is left under their load. From
  /// 36 products, like the next three.
  double tensorShare = 0.821;
  /// Clocks of an epilogue per element of a tile, and those that a scale per row and column adds.
  double epilogueClocks = 0.357, rowScaleClocks = 0.277;
  /// Instructions of a thread per element and part of K that has a scale of its own, on chips of wgmma, whose
  /// waits for the tensor cores are in it. Other chips, of which none was measured, count two: a
  /// multiplication and an addition. Sums of parts without scales take one, an addition.
  double scaledPartInstructions = 4.57;
  /// Instructions of a thread per score and matmul of attention: 9.2 to 17.0 for two to four matmuls, as the
  /// emulator counts on sm_90a (FIGURES.md, "Attention", 4,096 tokens). No time of these kernels was
  /// measured.
  double attentionInstructions = 4.2;
  /// The share of the memory's rate that matmuls reach: a copy's, 2,950 to 3,000 GB/s of 3,350.
  double copyShare = 0.888;
  /// The share that casts reach: the mean of 2,220 to 2,780 and 2,460 to 3,010 GB/s.
  double castShare = 0.776;
  /// The share that code without a kernel of its own reaches, a thread per element or a team of threads per
  /// row: from the four steps of a GPT.
  double loopShare = 0.403;
};

/// Seconds from the end of a kernel to the start of the next one in a graph, assumed for every chip: NVIDIA's
/// "Getting Started with CUDA Graphs" has 3.4 us for each kernel of 2.9 us on a V100.
inline constexpr double kLaunchGap = 0.5e-6;

/// A matmul of static sizes, and its kernel.
struct MatmulWork {
  int64_t batch, m, n, k;      ///< in elements; k is that of one part of K where K is split
  int64_t elementBytes;        ///< of an operand
  bool usesTensorCores;        ///< else fused multiply-adds
  int64_t tileM, tileN;        ///< the part of the result that a block computes at a time
  int64_t tileKBytes;          ///< the bytes along K of a stage
  bool isSwapped = false;      ///< whether the kernel's M is n
  int64_t part = 0;            ///< elements along K whose sums are added apart; 0 for one sum
  bool hasScaledParts = false; ///< whether each part has scales of its own
  bool hasRowScales = false;   ///< whether rows and columns of the result have scales
};

/// A kernel of attention: blocks with own rows, each of which multiplies with the streamed rows that it sees.
struct AttentionWork {
  int64_t blocks;         ///< of threads
  int64_t steps;          ///< in which all blocks together take streamed rows
  int64_t rows, stepRows; ///< own rows of a block, streamed rows of a step
  int64_t matmuls;        ///< that have a multiply-add for each score and element of a head
  int64_t headElements;   ///< of 16 bits
};

/// Clocks of a multiprocessor for one stage of a tile, at the chip's rates.
struct StageClocks {
  double tensor, l2; ///< l2 is 0 where the chip's rate is not known

  double getLongest() const { return std::max(tensor, l2); }
};

/// Returns the clocks of a stage of `rows` x `columns` elements and `bytes` along K, of which the first
/// `loadedRows` and `loadedColumns` exist. `multiplyAdds` is the tensor cores' rate for one byte along K.
StageClocks countStageClocks(const Chip &chip, int64_t rows, int64_t columns, int64_t bytes,
                             int64_t loadedRows, int64_t loadedColumns, double multiplyAdds);

/// Returns the clocks that the busiest multiprocessor takes for a matmul.
MatmulClocks countMatmulClocks(const Chip &chip, const MatmulWork &work,
                               const TimeCalibration &calibration = {});

/// Returns the clocks of each multiprocessor for a kernel of attention.
MatmulClocks countAttentionClocks(const Chip &chip, const AttentionWork &work,
                                  const TimeCalibration &calibration = {});

/// Seconds of one launch, by what bounds it.
struct KernelTime {
  double memory = 0, l2 = 0, tensor = 0, issue = 0, latency = 0;
  /// Seconds that the launch takes at least: of its matmul's multiply-adds at the chip's rate, and of each of
  /// its tensors once at the rate of the memory.
  double matmulFloor = 0, memoryFloor = 0;

  double getLoop() const { return std::max({memory, l2, tensor + issue}); }
  double getTotal() const { return getLoop() + latency; }
  double getFloor() const { return std::max(matmulFloor, memoryFloor); }
  /// Returns the seconds above the floor by the terms that they are lost to: all of `latency`, all of `issue`
  /// behind tensor cores, and the rest to the longest term.
  KernelTime getLosses() const;
  /// Returns the name of the term that most time is lost to: "memory", "L2", "tensor", "issue" or "latency".
  llvm::StringRef getBound() const;
};

/// Predicts a launch of a kernel of `kind`, as fp8-count-kernels names it: "products", "casts",
/// "elementwise", …. Returns nullopt if its bytes depend on dynamic sizes.
std::optional<KernelTime> predictKernel(const Chip &chip, llvm::StringRef kind, const KernelCost &cost,
                                        const TimeCalibration &calibration = {});

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_KERNELTIME_H
