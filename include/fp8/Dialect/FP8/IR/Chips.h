// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The properties of each GPU architecture. Chips.cpp is the only place that tells one from
// another: passes ask for a property, never for a name.

#ifndef FP8_DIALECT_FP8_IR_CHIPS_H
#define FP8_DIALECT_FP8_IR_CHIPS_H

#include "fp8/Dialect/FP8/IR/FP8.h"

namespace fp8 {

/// A GPU architecture.
struct Chip {
  llvm::StringLiteral name;
  /// The version of PTX that all kernels need, times ten: the lowest that has their instructions.
  unsigned ptxVersion;
  MatmulFamily family; ///< of its matmuls of FP8 and 16-bit operands
  /// Whether tensors are copied to shared memory by the tensor memory accelerator (TMA) rather than by
  /// cp.async.
  bool hasTensorMaps;
  /// Whether FP8 matmuls are `mma.block_scale` with scales of 1: the dense form runs at half the rate.
  bool hasBlockScaledMma;
  /// Whether FP8 matmuls multiply by E8M0 scales of 32 elements, in the order of fp8.pack_scales.
  bool hasMXScales;
  /// Whether FP8 operands may have the contracted dimension as rows, so that no transposed copy is needed.
  bool readsTransposedFP8;
  /// Shared memory that a block can have, in bytes.
  int64_t sharedBytes;
  /// 32-bit registers of a multiprocessor.
  int64_t registers;
  /// Threads that a multiprocessor can hold.
  int64_t threads;
  /// Multiprocessors of the largest matmul with this architecture.
  int64_t multiprocessors;
  /// Its clock in MHz when tensor cores are busy, and its memory's GB/s.
  int64_t clockMHz, memoryGBs;
  /// The multiply-adds of FP8 operands, and of 16-bit operands, that the tensor cores of a multiprocessor
  /// start per clock.
  int64_t fp8Rate, halfRate;
  /// The bytes that a multiprocessor gets from the L2 cache per clock while all of them read; 0 for chips of
  /// the mma family, where no choice depends on it.
  double l2BytesPerClock;
};

/// Returns all chips, sorted by capability.
llvm::ArrayRef<Chip> listChips();

/// Returns what is known about the chip of `attribute`.
const Chip &getChip(ChipAttr attribute);

/// Kernels of attention have heads of a multiple of this many elements, what a thread copies at a time, and
/// of at most that many, for which there are registers.
inline constexpr int64_t kHeadMultiple = 8, kMostHeadElements = 256;

/// Scales of f32 are those of a multiple of this many FP8 elements along K: what an instruction multiplies.
inline constexpr int64_t kSmallestBlock = 32;

/// Returns the instructions that multiply FP8 operands with an f32 scale for each `extent` elements along K:
/// kernels of wgmma and tcgen05 have those of 128, which is what they load at a time.
MatmulFamily getBlockFamily(const Chip &chip, int64_t extent);

/// Returns the most columns that a tile of a matmul by kernels of `family` has: half as many where sums of
/// parts take as many registers as the sums, or where tensor memory holds scales along K too.
int64_t getWidestTile(MatmulFamily family, bool hasParts, bool hasScalesAlongK);

/// Returns the name of the instruction that kernels of `family` multiply the two element types with on
/// `chip`, as reports show it; `m` and `n` are the rows and columns that it computes, for families in which
/// they vary. With `hasMXScales` it multiplies by E8M0 scales too.
std::string nameInstruction(const Chip &chip, MatmulFamily family, mlir::Type lhs, mlir::Type rhs,
                            const llvm::Twine &m, const llvm::Twine &n, bool hasMXScales = false);

/// Words of the report after the instruction where the recipe asks for split sums: the kernel sums parts of K
/// from zero, or takes one sum because the tensor core adds in f32.
inline constexpr llvm::StringLiteral kSplitSums = ", split sums", kOneSum = ", one f32 sum for split ones";

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_CHIPS_H
