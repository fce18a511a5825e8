// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The machine that code is made for, as LLVM describes it.

#ifndef FP8_LIB_TARGET_HOST_CODEGEN_PROCESSOR_H
#define FP8_LIB_TARGET_HOST_CODEGEN_PROCESSOR_H

#include "fp8/Target/Host/HostCode.h"

#include "llvm/Target/TargetMachine.h"

namespace fp8 {

/// LLVM's name of the feature with dot products of bf16 pairs.
inline constexpr llvm::StringLiteral kBF16DotFeature = "avx512bf16";

/// LLVM's name of the feature with products of bf16 tiles.
inline constexpr llvm::StringLiteral kTileFeature = "amx-bf16";

/// This machine's operating system and kind of processor, with the processor of `options`. `level`
/// says how much effort the code generator makes; 0 to 3.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const HostCodeOptions &options,
                                                                         unsigned level);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_CODEGEN_PROCESSOR_H
