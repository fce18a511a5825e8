// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers all of fp8-mlir with MLIR, for tools that run passes by name. Not needed by
// programs that link the libraries and build pipelines in code.

#ifndef FP8_INITALL_H
#define FP8_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fp8 {

/// Registers the fp8 dialect and its implementations of upstream's interfaces. The caller
/// registers upstream's dialects.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers every pass and pipeline of this project under its flag.
void registerAllPasses();

} // namespace fp8

#endif // FP8_INITALL_H
