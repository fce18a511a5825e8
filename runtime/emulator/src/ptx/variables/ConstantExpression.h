// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constant expressions (ISA 4.5.4 to 4.5.6).

#ifndef FP8EMU_PTX_VARIABLES_CONSTANTEXPRESSION_H
#define FP8EMU_PTX_VARIABLES_CONSTANTEXPRESSION_H

#include "../Cursor.h"

namespace fp8emu::ptx {

/// The value of a constant expression.
struct Constant {
  /// Single is a literal 0f..., which takes no operator.
  enum class Kind : uint8_t { Signed, Unsigned, Double, Single };

  Kind kind = Kind::Signed;
  /// Two's complement, or the bits of an f64 or f32.
  uint64_t bits = 0;

  bool isInteger() const { return kind == Kind::Signed || kind == Kind::Unsigned; }
};

/// Whether the current token begins a constant expression.
bool atConstant(const Cursor &cursor);

Constant parseConstant(Cursor &cursor);

/// A constant expression without binary operators below * and /: what is added to
/// an address.
Constant parseTerm(Cursor &cursor);

/// The bytes added to an address, by any number of + and - terms; 0 for none.
int64_t parseOffset(Cursor &cursor);

/// A constant expression that is an integer from 0 to `limit`.
uint64_t parseCount(Cursor &cursor, const char *what, uint64_t limit);

} // namespace fp8emu::ptx

#endif // FP8EMU_PTX_VARIABLES_CONSTANTEXPRESSION_H
