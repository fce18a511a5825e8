// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of sites, from the name stacks that front ends leave in locations.

#ifndef FP8_ANALYSIS_SITES_SITENAMES_H
#define FP8_ANALYSIS_SITES_SITENAMES_H

#include "mlir/IR/Location.h"
#include <string>

namespace fp8 {

/// The names that a location gives the contraction it belongs to.
///
/// The names of nested call sites are joined by `/`, the caller's first, and split
/// at every `/` outside parentheses. The last component, the primitive, is dropped.
/// `jvp(…)`, `transpose(…)` and `vmap(…)` are unwrapped; a prefix found in them
/// that is repeated right after them counts once. Components of the tracing machinery
/// (`jit(…)`, `while`, `body`, `checkpoint`, …) and those with `->` are dropped.
/// `jit(step)/transpose(jvp(h0))/fc1/btd,de->bte/dot_general` is `h0/fc1`.
struct NameStack {
  /// The site's name; empty where nothing is left.
  std::string site;
  /// The name with its `->` components and primitive: tells contractions of one scope apart.
  std::string full;
  /// The primitive that was dropped, as in `dot_general`; empty for a name of one component.
  std::string primitive;
  /// Inside `transpose(…)`, and not in forward code that is computed again there.
  bool backward = false;
  /// Forward code that is computed again for the backward pass.
  bool rematerialized = false;
  /// Inside `update(…)`: part of an optimizer's update, whose matmuls are no layers.
  bool update = false;
};

/// Prefix of the names of sites that the program does not name: matmul0, matmul1, …
inline constexpr llvm::StringLiteral kNamelessSite = "matmul";

NameStack parseNameStack(mlir::Location location);

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_SITENAMES_H
