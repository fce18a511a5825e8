// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules between the fields of a manifest.

#ifndef FP8RT_CORE_MANIFESTRULES_H
#define FP8RT_CORE_MANIFESTRULES_H

#include "Manifest.h"

namespace fp8rt {

/// Throws an Error naming the first rule that the manifest breaks:
/// - entries and state tensors have different names; state shapes are static;
/// - a carried user argument and its result have one type and shape;
/// - a result aliases an argument of its type and shape, each argument once,
/// and
///   only a state argument of its name or the argument it is carried into;
/// - exactly the aliased arguments are written;
/// - state arguments and results are tensors of the state, each once.
void checkManifest(const Manifest &manifest);

} // namespace fp8rt

#endif // FP8RT_CORE_MANIFESTRULES_H
