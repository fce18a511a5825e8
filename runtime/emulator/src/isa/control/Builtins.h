// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that the device provides to kernels: printf, malloc, assertions.

#ifndef FP8EMU_ISA_CONTROL_BUILTINS_H
#define FP8EMU_ISA_CONTROL_BUILTINS_H

#include "exec/Warp.h"

#include <string>
#include <vector>

namespace fp8emu {

/// Runs the function for one thread. Arguments and the result are zero-extended.
using BuiltinFunction = uint64_t (*)(Warp &warp, unsigned lane, const std::vector<uint64_t> &arguments);

struct Builtin {
  const char *name;
  unsigned arguments;
  BuiltinFunction run;
};

/// The function of that name; null where the device has none.
const Builtin *findBuiltin(const std::string &name);

} // namespace fp8emu

#endif // FP8EMU_ISA_CONTROL_BUILTINS_H
