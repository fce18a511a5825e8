// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the files that decode mov.

#ifndef FP8EMU_ISA_LOGIC_MOVE_H
#define FP8EMU_ISA_LOGIC_MOVE_H

#include "isa/Decoder.h"

namespace fp8emu {

/// mov of a special register, of all of its type and width; whether the source is one.
bool decodeSpecialMove(Decoder &decoder, ptx::Type type);

/// mov.v2 and mov.v4: `width` registers from as many registers, or from a special register
/// with four parts.
void decodeVectorMove(Decoder &decoder, ptx::Type type, unsigned width);

} // namespace fp8emu

#endif // FP8EMU_ISA_LOGIC_MOVE_H
