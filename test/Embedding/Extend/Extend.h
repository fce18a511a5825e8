// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recipe #mean.last_two and the target #toy.target, each an attribute of a dialect of its
// own.

#ifndef EXTEND_H
#define EXTEND_H

#include "mlir/IR/DialectRegistry.h"

/// Registers the dialect "mean" with its recipe.
void registerMeanScaling(mlir::DialectRegistry &registry);

/// Registers the dialect "toy" with its target.
void registerToyTarget(mlir::DialectRegistry &registry);

#endif // EXTEND_H
