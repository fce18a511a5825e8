// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations of variables, registers and parameters (ISA 5.1 to 5.4), shared by
// modules and function bodies.

#ifndef FP8EMU_PTX_VARIABLES_DECLARATION_H
#define FP8EMU_PTX_VARIABLES_DECLARATION_H

#include "../Cursor.h"

#include <functional>
#include <optional>

namespace fp8emu::ptx {

/// The elements of one variable: more than any GPU's memory holds, and few enough
/// for their product with any size in bytes to fit in 64 bits.
constexpr uint64_t kMaxElements = uint64_t(1) << 40;

/// Limits on what a short text could make large, summed over a module.
struct Budget {
  /// Registers that may still be declared, bytes that may still be initialised.
  uint64_t registers, initialBytes;

  /// In proportion to the text, beyond what is enough for any short one.
  explicit Budget(uint64_t textSize)
      : registers((1u << 19) + textSize), initialBytes((1u << 24) + 4 * textSize) {}
};

/// The fundamental type with that name; none for other modifiers.
std::optional<Type> typeNamed(std::string_view name);

/// The state space that `name` declares variables in, as of ".shared".
std::optional<Space> spaceNamed(std::string_view name);

/// .attribute(.managed) and .attribute(.unified(1, 2)): both do not matter where memory
/// is of one kind (ISA 5.4.8).
void skipAttribute(Cursor &cursor);

/// Parses the specifiers before the names of a declaration: .align, .v4, the type,
/// .attribute, and .ptr of parameters, in any order. `space` was taken already.
Variable parseSpecifiers(Cursor &cursor, Space space);

/// The name and dimensions of `variable`, whose specifiers are parsed, and its
/// dimensions; the first is 0 where the text gives none.
std::vector<uint64_t> parseDeclarator(Cursor &cursor, Variable &variable);

/// The whole of a parameter in a list, from .param or .reg.
Variable parseParameter(Cursor &cursor);

/// A list of parameters with its parentheses.
std::vector<Variable> parseParameters(Cursor &cursor);

/// Whether a name is declared and an initialiser may take its address.
using IsDeclared = std::function<bool(std::string_view)>;

/// Parses the values after `=` into variable.init and .relocations. Gives an array without a
/// size its number of elements.
void parseInitializer(Cursor &cursor, Variable &variable, std::vector<uint64_t> dimensions, Budget &budget,
                      const IsDeclared &isDeclared);

/// The names, sizes and initialisers of a declaration of memory up to its `;`.
/// `add` is given one variable after the other.
void parseVariables(Cursor &cursor, Space space, Linkage linkage, Budget &budget,
                    const IsDeclared &isDeclared, const std::function<void(Variable)> &add);

} // namespace fp8emu::ptx

#endif // FP8EMU_PTX_VARIABLES_DECLARATION_H
