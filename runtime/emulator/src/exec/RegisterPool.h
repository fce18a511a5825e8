// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registers of a block whose warps hand them to each other by setmaxnreg (PTX ISA
// 9.7.19.5): what each warp holds, and what is free. When a block begins, its warps hold all
// registers that the launch reserved. A warp that ends keeps what it holds.

#ifndef FP8EMU_EXEC_REGISTERPOOL_H
#define FP8EMU_EXEC_REGISTERPOOL_H

#include "Op.h"

#include <cstdint>
#include <vector>

namespace fp8emu {

class Warp;

struct RegisterPool {
  /// Warps of a warpgroup, which must execute the same setmaxnreg instructions.
  static constexpr unsigned kGroup = 4;

  struct OfWarp {
    /// Registers of each of its threads.
    unsigned held;
    /// The ops of the setmaxnreg instructions that the warp has come to, in order. Where
    /// `waits`, the warp waits at the last one.
    std::vector<uint32_t> changes;
    bool waits = false;
  };

  RegisterPool(unsigned warps, unsigned registersOfThread)
      : warps(warps, OfWarp{registersOfThread, {}}), all(warps * registersOfThread * kLanes) {}

  std::vector<OfWarp> warps;
  /// Registers of 32 bits: the block's, and those that no warp holds.
  unsigned all, free = 0;
};

/// To be called when a warp has come to a setmaxnreg, or has ended. Faults where other warps of
/// its group execute different ones, or where it runs ahead of them.
void checkRegisters(const Warp &warp);

} // namespace fp8emu

#endif // FP8EMU_EXEC_REGISTERPOOL_H
