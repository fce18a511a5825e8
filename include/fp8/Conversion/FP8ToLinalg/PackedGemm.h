// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contraction that all matmuls on the CPU use: operands with any indexing maps and element
// types are packed into f32 panels, a micro-kernel multiplies the panels block by block, and the
// epilogue of a block runs as soon as the sums of the block are known, while they are in the cache.
//
//   memref<16x64x128xbf16> --pack--> memref<16x5x128x13xf32>  \
//                                                              @fp8_cpu_gemm_f32_13x32 --> sums --> epilogue
//   memref<128x384xbf16>   --pack--> memref<1x12x128x32xf32>  /
//
// Numerics: every sum is one f32 running sum over the reduction dimensions in iteration
// order, last fastest. With `split`, blocks of 128 along the linearized reduction index are
// each summed from zero and added in order. Multiplication and addition are one fused
// multiply-add. Nothing else rounds.
// With scales of blocks, every block of K is summed from zero to p, and the sum becomes
// y = fma(p · first scale, second scale, y), from y = 0 on. With scales of elements, an element is multiplied
// by its scale when it is packed.
// With an instruction other than `fma`, sums are added as that does (MatrixInstruction), which also takes
// denormals for zero.

#ifndef FP8_CONVERSION_FP8TOLINALG_PACKEDGEMM_H
#define FP8_CONVERSION_FP8TOLINALG_PACKEDGEMM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

/// The instruction that the micro-kernel multiplies with. All but the first take products of bf16 elements.
enum class MatrixInstruction {
  /// Multiply-adds of f32: each product is added to the sum, with one rounding.
  fma,
  /// Dot products of AVX512_BF16 (VDPBF16PS), of two adjacent elements: the odd product is added to the sum,
  /// and
  /// then the even one.
  bf16Dots,
  /// Tiles of AMX-BF16 (TDPBF16PS): of 32 elements, those of even and those of odd index are summed apart,
  /// from
  /// zero, in the order of K; the two sums are added, and the result to the sum. K is filled up with zeros.
  amx,
};

/// The properties of an instruction that plan, panels and micro-kernel ask for.
struct MatrixInstructionTraits {
  llvm::StringLiteral name;     ///< in the attribute fp8.hardware_sums; LLVM's name of its feature
  llvm::StringLiteral products; ///< in reports
  int64_t inElement;            ///< indices of K in one element of a panel: pairs of bf16 are one
  int64_t step;                 ///< elements of a panel, along K, that are one instruction's
};

/// Returns the traits of `instruction`.
const MatrixInstructionTraits &getTraits(MatrixInstruction instruction);

/// Returns the instruction of that name, fma if there is none.
MatrixInstruction findMatrixInstruction(llvm::StringRef name);

/// The registers of a processor: they decide the shape of the micro-kernel.
struct VectorRegisters {
  int64_t lanes = 8;  ///< f32 elements in one vector register
  int64_t count = 16; ///< vector registers that code can name
  /// The instruction that matmuls may use whose operands are exact in bf16.
  MatrixInstruction instruction = MatrixInstruction::fma;

  /// Returns these registers with multiply-adds.
  VectorRegisters withMultiplyAdds() const { return {lanes, count, MatrixInstruction::fma}; }
};

/// A box of the output: an offset and a size per dimension of the output.
struct OutputBox {
  mlir::SmallVector<mlir::OpFoldResult> offsets, sizes;
};

/// Builds the epilogue of one box; `sums` is an f32 memref of the box's sizes.
using EpilogueBuilder =
    llvm::function_ref<void(mlir::OpBuilder &, mlir::Location, const OutputBox &box, mlir::Value sums)>;

/// Scales that differ along K. Each is null or a memref of f32 or f8E8M0FNU with the dimensions of its
/// operand, but one entry for `length` indices of K, the only dimension of K.
struct PanelScales {
  mlir::Value lhs, rhs;
  int64_t length = 0;
  bool ofBlocks = false; ///< of blocks of sums, and then of both operands; else of elements
  bool lhsFirst = true;  ///< whether the sum of a block is multiplied by the scale of lhs first
};

/// How a matmul is computed.
struct PackedMatmulOptions {
  bool split = false;
  /// With an instruction other than `fma` the operands must be of bf16 or FP8, and the number of indices of K
  /// known and even. With `amx`, scales along K are of blocks of a multiple of 32.
  VectorRegisters registers;
  /// The marks (MatmulMarks.h) that the calls of the micro-kernel carry.
  mlir::ArrayAttr marks;
  /// Per dimension of the iteration space: the most that a dynamic size can be, kDynamic if that is not
  /// known; or empty. Buffers of known sizes need no memory from the heap.
  llvm::SmallVector<int64_t> atMost = {};
  PanelScales scales = {};
  /// The sums begin with the elements of this f32 memref of the output's shape, unless it is null; neither
  /// with `split` nor with scales.
  mlir::Value start = {};
  /// Null, or the f32 memref of the output, where that is the sums: they are written there, without a buffer
  /// and an epilogue, if its memory has the form of their buffer. With `start` it is the same memref.
  mlir::Value result = {};
  /// Whether one thread computes the matmul, beside others that compute other ones.
  bool onOneThread = false;

  const MatrixInstructionTraits &traits() const { return getTraits(registers.instruction); }
  /// Whether elements of panels are pairs of bf16 elements.
  bool hasPairs() const { return traits().inElement == 2; }
  /// Whether the operands are multiplied in tile registers.
  bool hasTiles() const { return registers.instruction == MatrixInstruction::amx; }
};

/// Emits the matmul of `lhs` and `rhs` at the builder's insertion point as one kernel, an
/// scf.execute_region, and returns the sums as a view of type f32 whose shape is that of the output
/// (`maps[2]`'s order). If `epilogue` is not null, the kernel calls it for boxes that together cover
/// the output, in parallel.
///
/// Preconditions: `lhs` and `rhs` are ranked memrefs of floats of at most 32 bits; `maps`
/// are the indexing maps of lhs, rhs and output over one iteration space, each a projected
/// permutation; every dimension is in two of them at least (batch: all three, M: lhs and
/// output, N: rhs and output, K: lhs and rhs). Sizes may be dynamic, zero, or not multiples
/// of the tile. Anything else is an error at `loc`.
/// The buffers are memref.allocs of the current block; nothing frees them here.
/// Adds functions to the enclosing module, so call it from a module pass.
mlir::FailureOr<mlir::Value> buildPackedMatmul(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lhs,
                                               mlir::Value rhs, mlir::ArrayRef<mlir::AffineMap> maps,
                                               const PackedMatmulOptions &options,
                                               EpilogueBuilder epilogue = nullptr);

} // namespace fp8

#endif // FP8_CONVERSION_FP8TOLINALG_PACKEDGEMM_H
