// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contraction that all products on the CPU use: operands with any indexing maps and element
// types are packed into f32 panels, one micro-kernel per module multiplies the panels, and
// the caller's epilogue reads the f32 sums through a view in the shape of the output.
//
//   memref<16x64x128xbf16> --pack--> memref<1x128x128x8xf32>  \
//                                                              @fp8_cpu_gemm_f32 --> sums
//   memref<128x384xbf16>   --pack--> memref<1x12x128x32xf32>  /
//
// Lowering an operation `out = epilogue(sum over K of lhs * rhs)`:
//
//   FailureOr<Value> sums =
//       buildPackedContraction(builder, loc, lhs, rhs, maps, /*split=*/false, marks);
//   if (failed(sums)) return failure();           // the diagnostic is already emitted
//   // *sums: a strided memref of f32 with exactly the shape of the output. Read it in a
//   // linalg.generic whose maps are identities: scale it, add C, apply the epilogue, cast.
//
// Numerics: every sum is one f32 running sum over the reduction dimensions in iteration
// order, last fastest. With `split`, blocks of 128 along the linearized reduction index are
// each summed from zero and added in order. Multiplication and addition are one fused
// multiply-add. Nothing else rounds.

#ifndef FP8_CONVERSION_FP8TOLINALG_PACKEDGEMM_H
#define FP8_CONVERSION_FP8TOLINALG_PACKEDGEMM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

/// The tile of sums, rows x columns, that the micro-kernel keeps in registers; panels of lhs have
/// `rows` elements across K, those of rhs `columns`.
struct PackedGemmTile {
  int64_t rows = 8;
  int64_t columns = 32;
};

/// Returns the private function that multiplies packed panels; creates it on first use:
///
///   @fp8_cpu_gemm_f32(a: memref<?x?x?x{rows}xf32>,      // [batch][ceil(M/rows)][K][rows]
///                     b: memref<?x?x?x{columns}xf32>,   // [batch][ceil(N/columns)][K][columns]
///                     c: memref<?x?x?xf32>)             // [batch][M padded][N padded]
///
/// or, with `split`, `@fp8_cpu_gemm_f32_split`. All of c is overwritten; all three buffers
/// are in identity layout. Runs in parallel over batch and panels.
mlir::func::FuncOp getOrCreatePackedGemm(mlir::ModuleOp module, bool split, const PackedGemmTile &tile = {});

/// Emits the packing of `lhs` and `rhs` and the call of the micro-kernel at the builder's
/// insertion point; returns the sums as a view of type f32 whose shape is that of the
/// output (`maps[2]`'s order). The call carries `products` (ProductMarks.h).
///
/// Preconditions: `lhs` and `rhs` are ranked memrefs of floats of at most 32 bits; `maps`
/// are the indexing maps of lhs, rhs and output over one iteration space, each a projected
/// permutation; every dimension is in two of them at least (batch: all three, M: lhs and
/// output, N: rhs and output, K: lhs and rhs). Sizes may be dynamic, zero, or not multiples
/// of the tile. Anything else is an error at `loc`.
/// The buffers are memref.allocs of the current block; nothing frees them here.
/// Adds a symbol to the enclosing module, so call it from a module pass.
mlir::FailureOr<mlir::Value> buildPackedContraction(mlir::OpBuilder &builder, mlir::Location loc,
                                                    mlir::Value lhs, mlir::Value rhs,
                                                    mlir::ArrayRef<mlir::AffineMap> maps, bool split,
                                                    mlir::ArrayAttr products,
                                                    const PackedGemmTile &tile = {});

} // namespace fp8

#endif // FP8_CONVERSION_FP8TOLINALG_PACKEDGEMM_H
