// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of stages 1 to 5, in the order in which a program meets them. Each
// states what it needs, what it leaves, and IR before and after.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Stage 1: ingest
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Stage 2: recipe
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Stage 3: fusion
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Stage 4: batching
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Stage 5: bufferization
//===----------------------------------------------------------------------===//

#endif // FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
