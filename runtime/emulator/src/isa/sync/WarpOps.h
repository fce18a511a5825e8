// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bar.warp.sync, which shares an opcode with the barriers of a block: Barrier.cpp
// hands it on when it has taken `warp`.

#ifndef FP8EMU_ISA_SYNC_WARPOPS_H
#define FP8EMU_ISA_SYNC_WARPOPS_H

#include "isa/Decoder.h"

namespace fp8emu {

void decodeWarpBarrier(Decoder &decoder);

} // namespace fp8emu

#endif // FP8EMU_ISA_SYNC_WARPOPS_H
