// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The error that malformed PTX text gives.

#include "fp8emu/Types.h"

using namespace fp8emu;

static std::string located(Location where, const std::string &message) {
  std::string prefix = std::to_string(where.line);
  if (where.column != 0)
    prefix += ":" + std::to_string(where.column);
  return prefix + ": " + message;
}

PtxError::PtxError(Location where, const std::string &message)
    : std::runtime_error(located(where, message)), where(where), message(message) {}
