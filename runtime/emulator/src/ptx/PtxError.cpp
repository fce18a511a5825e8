// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The error that malformed PTX text gives.

#include "Parser.h"

using namespace fp8emu;

static std::string located(ptx::Location where, const std::string &message) {
  std::string prefix = std::to_string(where.line);
  if (where.column != 0)
    prefix += ":" + std::to_string(where.column);
  return prefix + ": " + message;
}

PtxError::PtxError(ptx::Location where, const std::string &message)
    : std::runtime_error(located(where, message)), where(where), message(message) {}
