// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names that a module and the scopes of a function declare (ISA 4.4), and the
// special registers (ISA 10).

#ifndef FP8EMU_PTX_NAMES_H
#define FP8EMU_PTX_NAMES_H

#include "Ast.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fp8emu::ptx {

/// The entity that a name stands for: an index into the list that `kind` says.
struct Name {
  enum class Kind : uint8_t { Register, LocalVariable, ModuleVariable, Function };
  Kind kind = Kind::Register;
  uint32_t index = 0;
};

template <typename Value>
using NameMap = std::map<std::string, Value, std::less<>>;

/// The names of a module or of one pair of braces.
class Scope {
public:
  std::optional<Name> find(std::string_view name) const;
  /// False where the name is taken.
  bool declare(std::string_view name, Name meaning);
  /// prefix0, prefix1, ... as registers from number `first` on, `width` of them each.
  /// False where one of the names is taken.
  bool declareRange(std::string_view prefix, uint32_t count, uint32_t first, uint32_t width);

  /// Labels have names of their own: they are found before they are declared.
  NameMap<uint32_t> labels;
  /// The labels of .branchtargets, .calltargets and .callprototype.
  NameMap<uint32_t> targetLists;

private:
  struct Range {
    uint32_t count, first, width;
  };
  std::optional<Name> findInRanges(std::string_view name) const;

  NameMap<Name> names;
  NameMap<Range> ranges;
};

/// The scopes of a function, one in the other, the module's outermost.
class Scopes {
public:
  explicit Scopes(Scope &module) : module(module) {}

  std::optional<Name> find(std::string_view name) const;
  void open() { inner.emplace_back(); }
  void close() { inner.pop_back(); }
  Scope &innermost() { return inner.back(); }

private:
  Scope &module;
  std::vector<Scope> inner;
};

/// Whether an initialiser may take the address of what was found: that of a function
/// or of a variable in .global or .const.
bool hasConstantAddress(const Module &module, const std::optional<Name> &found);

/// Whether `name`, with its %, is a special register.
bool isSpecialRegister(std::string_view name);
/// Whether it is one with parts .x to .w, as %tid.
bool isSpecialVector(std::string_view name);

} // namespace fp8emu::ptx

#endif // FP8EMU_PTX_NAMES_H
