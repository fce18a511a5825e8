// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The local rewrites of passes as patterns, for other compilers' sets of patterns. Each has the name of its
// pass, whose description says what it does. fp8-crop-pads has no patterns: a driver that visits results
// again would crop its pads for ever where their widths are not known.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PATTERNS_H
#define FP8_DIALECT_FP8_TRANSFORMS_PATTERNS_H

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace fp8 {

/// tensor.bitcast becomes arith.bitcast, which bufferizes (fp8-convert-bitcasts).
void populateConvertBitcastsPatterns(mlir::RewritePatternSet &patterns);

/// Reshapes of tensors without elements become empty tensors, where bufferization rejects them
/// (fp8-fold-empty-reshapes).
void populateFoldEmptyReshapesPatterns(mlir::RewritePatternSet &patterns);

/// fp8.scaled_matmul reads operands in the layout before their transposes (fp8-fold-transposes).
void populateFoldTransposesPatterns(mlir::RewritePatternSet &patterns);

/// Reductions along dimensions of size 1 become elementwise code (fp8-fold-unit-reductions).
void populateFoldUnitReductionsPatterns(mlir::RewritePatternSet &patterns);

/// Reshapes of memrefs to several dynamic sizes, or to sizes in memory, become casts
/// (fp8-reinterpret-reshapes).
void populateReinterpretReshapesPatterns(mlir::RewritePatternSet &patterns);

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_PATTERNS_H
