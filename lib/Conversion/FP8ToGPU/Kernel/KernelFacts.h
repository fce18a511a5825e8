// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The facts that the kernels of an operation depend on. Operations with equal facts, as those of the layers
// of a model, share kernels that are built once. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_KERNELFACTS_H
#define FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_KERNELFACTS_H

#include "mlir/IR/Operation.h"
#include <string>

namespace fp8 {

/// Returns all that lowerings look at when they build the kernels of `op`, as bytes that are valid as long as
/// the context: its attributes but for its site, its regions with the constants that they use, and of each
/// buffer the element type, shape, strides, alignment and whether it is read. A lowering that looks at
/// more adds it here; the option check-sharing of convert-fp8-to-gpu finds what is missing.
std::string findKernelFacts(mlir::Operation *op);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_KERNELFACTS_H
