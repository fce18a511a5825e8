// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that every compiled library contains for the C ABI: MLIR files of this folder, which the
// build turns into string literals.

#include "EntryPointHelpers.h"

std::string fp8::getEntryPointHelpers(bool onDevice, bool communicates) {
  static constexpr llvm::StringLiteral kHostHelpers =
#include "AllocationHelpers.mlir.inc"
#include "CallChecks.mlir.inc"
#include "EntryPointHelpers.mlir.inc"
      ;
  static constexpr llvm::StringLiteral kDeviceHelpers =
#include "CallChecks.mlir.inc"
#include "DeviceHelpers.mlir.inc"
#include "EntryPointHelpers.mlir.inc"
#include "LaunchHelpers.mlir.inc"
      ;
  static constexpr llvm::StringLiteral kCommunicatorHelpers =
#include "CommunicatorHelpers.mlir.inc"
      ;
  std::string helpers = (onDevice ? kDeviceHelpers : kHostHelpers).str();
  return communicates ? helpers + kCommunicatorHelpers.str() : helpers;
}
