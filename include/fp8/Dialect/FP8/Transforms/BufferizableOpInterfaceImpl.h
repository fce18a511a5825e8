// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of the bufferization of the dialect's operations.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define FP8_DIALECT_FP8_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fp8 {

/// Attaches upstream's BufferizableOpInterface to the operations of the fp8 dialect.
void registerBufferizableOpInterfaceExternalModels(mlir::DialectRegistry &registry);

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
