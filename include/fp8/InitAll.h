// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers all of fp8-mlir with MLIR, for tools that drive passes by name. Whoever
// links the libraries and builds pipelines in code does not need it.

#ifndef FP8_INITALL_H
#define FP8_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fp8 {

/// Adds the fp8 dialect, with its implementations of upstream's interfaces.
/// Upstream's own dialects are for the caller to add.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers every pass and pipeline of this project under its flag.
void registerAllPasses();

} // namespace fp8

#endif // FP8_INITALL_H
