// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The machine that code is made for, as LLVM describes it.

#ifndef FP8_LIB_TARGET_HOST_PROCESSOR_H
#define FP8_LIB_TARGET_HOST_PROCESSOR_H

#include "fp8/Target/Host/HostCode.h"

#include "llvm/Target/TargetMachine.h"

namespace fp8 {

/// This machine's operating system and kind of processor, with the processor of `options`.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const HostCodeOptions &options);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_PROCESSOR_H
