// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of the tiling of the dialect's operations.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_TILINGINTERFACEIMPL_H
#define FP8_DIALECT_FP8_TRANSFORMS_TILINGINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fp8 {

/// Attaches upstream's TilingInterface to `fp8.matmul`, `fp8.scaled_matmul`,
/// `fp8.quantize`, `fp8.dequantize`, `fp8.amax` and `fp8.compute_scale`.
void registerTilingInterfaceExternalModels(mlir::DialectRegistry &registry);

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_TILINGINTERFACEIMPL_H
