// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef FP8_LIB_TARGET_PTX_CODE_JOINPTX_H
#define FP8_LIB_TARGET_PTX_CODE_JOINPTX_H

#include "mlir/Support/LLVM.h"

#include <string>

namespace fp8 {

/// Returns one PTX text of several that LLVM wrote for the same chip, of one kernel each: directives of the
/// module and variables that several have stand in it once, and files are numbered anew.
std::string joinPTX(llvm::ArrayRef<std::string> texts);

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_CODE_JOINPTX_H
