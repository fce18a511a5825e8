// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// add, sub and mad with .cc, which share opcodes with those of Integer.cpp: it hands
// them on when it has taken the modifier.

#ifndef FP8EMU_ISA_INTEGER_WIDEINTEGER_H
#define FP8EMU_ISA_INTEGER_WIDEINTEGER_H

#include "isa/Decoder.h"

namespace fp8emu {

void decodeAddCarryOut(Decoder &decoder);
void decodeSubCarryOut(Decoder &decoder);
void decodeMadCarryOut(Decoder &decoder);

} // namespace fp8emu

#endif // FP8EMU_ISA_INTEGER_WIDEINTEGER_H
