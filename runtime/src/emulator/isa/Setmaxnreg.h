// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What warps ask of setmaxnreg.

#ifndef FP8EMU_ISA_SETMAXNREG_H
#define FP8EMU_ISA_SETMAXNREG_H

namespace fp8emu {

class Warp;

/// To be called when a warp has ended: a fault where others of its group have executed a
/// setmaxnreg that it has not.
void checkRegistersAtEnd(const Warp &warp);

} // namespace fp8emu

#endif // FP8EMU_ISA_SETMAXNREG_H
