// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the variables in shared memory lie: a kernel has those that it uses, itself or by the functions
// that it may call, and those of two kernels may overlap.

#ifndef FP8EMU_ISA_SHAREDLAYOUT_H
#define FP8EMU_ISA_SHAREDLAYOUT_H

#include "ptx/Ast.h"

namespace fp8emu {

struct SharedLayout {
  /// The offset in a block's shared memory of each variable of the module, by its index.
  std::vector<uint64_t> ofModule;
  /// The same for the variables of each function, by the function's index in the module.
  std::vector<std::vector<uint64_t>> ofFunctions;
  /// Bytes that the variables of each function take if it is a kernel. In kernels with variables without a
  /// size, the memory that a launch adds begins there.
  std::vector<uint32_t> bytes;
};

/// Lays out `module`. A kernel with more than `most` bytes is an error at one of its variables.
SharedLayout layOutShared(const ptx::Module &module, uint64_t most);

} // namespace fp8emu

#endif // FP8EMU_ISA_SHAREDLAYOUT_H
