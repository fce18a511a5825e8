// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Widening of f16 for processors without an instruction for it.

#ifndef FP8_LIB_TARGET_HOST_CODEGEN_EXPANDHALFS_H
#define FP8_LIB_TARGET_HOST_CODEGEN_EXPANDHALFS_H

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace fp8 {

/// Expands `fpext` from f16, of scalars and vectors, into operations on i32 and f32 where the processor of
/// `machine` cannot widen f16 (x86-64 before F16C), for which LLVM calls a function that need not exist.
/// Exact; a NaN stays a NaN. FP8 is decoded by way of f16, so that no FP8 program needs F16C.
void expandHalfs(llvm::Module &module, const llvm::TargetMachine &machine);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_CODEGEN_EXPANDHALFS_H
