// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lists of opcodes, with their decoders, that the files of instruction families offer.
// Table.cpp joins them.

#ifndef FP8EMU_ISA_FAMILIES_H
#define FP8EMU_ISA_FAMILIES_H

#include "Decoder.h"

namespace fp8emu {

struct Family {
  const char *opcode;
  DecodeFunction decode;
};
using FamilyList = std::vector<Family>;

FamilyList integerInstructions();
FamilyList wideIntegerInstructions();
FamilyList logicInstructions();
FamilyList bitInstructions();
FamilyList floatInstructions();
FamilyList halfInstructions();
FamilyList approximateInstructions();
FamilyList compareInstructions();
FamilyList selectInstructions();
FamilyList convertInstructions();
FamilyList moveInstructions();
FamilyList memoryInstructions();
FamilyList atomicInstructions();
FamilyList controlInstructions();
FamilyList callInstructions();
FamilyList stackInstructions();
FamilyList barrierInstructions();
FamilyList warpInstructions();
FamilyList mbarrierInstructions();
FamilyList copyInstructions();
FamilyList matrixMoveInstructions();
FamilyList mmaInstructions();
FamilyList wmmaInstructions();
FamilyList wgmmaInstructions();
FamilyList tensorMapInstructions();
FamilyList videoInstructions();
FamilyList scalarVideoInstructions();
FamilyList videoMadInstructions();
FamilyList multicastInstructions();
FamilyList launchControlInstructions();
FamilyList tensorInstructions();
FamilyList setmaxnregInstructions();

/// The handler that leaves the function, or ends the thread.
Handler returnHandler();

} // namespace fp8emu

#endif // FP8EMU_ISA_FAMILIES_H
