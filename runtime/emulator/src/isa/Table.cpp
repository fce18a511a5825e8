// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All opcodes.

#include "Families.h"

#include <unordered_map>

using namespace fp8emu;

// clang-format off
static FamilyList (*const kFamilies[])() = {
    integerInstructions,
    wideIntegerInstructions,
    logicInstructions,
    bitInstructions,
    floatInstructions,
    halfInstructions,
    approximateInstructions,
    compareInstructions,
    selectInstructions,
    convertInstructions,
    moveInstructions,
    memoryInstructions,
    atomicInstructions,
    controlInstructions,
    callInstructions,
    stackInstructions,
    barrierInstructions,
    warpInstructions,
    mbarrierInstructions,
    copyInstructions,
    tensorMapInstructions,
    multicastInstructions,
    launchControlInstructions,
    matrixMoveInstructions,
    mmaInstructions,
    videoInstructions,
    scalarVideoInstructions,
    videoMadInstructions,
    wmmaInstructions,
    wgmmaInstructions,
    tensorInstructions,
    setmaxnregInstructions,
};
// clang-format on

static std::unordered_map<std::string, DecodeFunction> makeTable() {
  std::unordered_map<std::string, DecodeFunction> table;
  for (FamilyList (*family)() : kFamilies)
    for (const Family &entry : family())
      table.emplace(entry.opcode, entry.decode);
  return table;
}

DecodeFunction fp8emu::findDecoder(const std::string &opcode) {
  // Never destroyed: programs load modules from their own destructors.
  static const auto &table = *new std::unordered_map<std::string, DecodeFunction>(makeTable());
  auto found = table.find(opcode);
  return found == table.end() ? nullptr : found->second;
}
