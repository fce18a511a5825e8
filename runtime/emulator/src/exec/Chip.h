// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The room that a chip has, and the launches that it refuses (fp8emu/Types.h has the chips).

#ifndef FP8EMU_EXEC_CHIP_H
#define FP8EMU_EXEC_CHIP_H

#include "Program.h"

#include "fp8emu/Types.h"

#include <optional>

namespace fp8emu {

/// How many blocks of a kernel a multiprocessor holds at a time, as cuda_occupancy.h of
/// the CUDA toolkit computes it.
int residentBlocks(const Chip &chip, const FunctionCode &kernel, int threads, uint64_t dynamicShared);

/// Why the chip would refuse the launch; nothing where it would not. A cluster size that the
/// kernel declares is put into `config` before.
std::optional<Refusal> refuse(const Chip &chip, const FunctionCode &kernel, const Allowance &allowance,
                              LaunchConfig &config);

} // namespace fp8emu

#endif // FP8EMU_EXEC_CHIP_H
