// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules between the fields of a manifest.

#ifndef FP8RT_PROGRAM_MANIFESTRULES_H
#define FP8RT_PROGRAM_MANIFESTRULES_H

#include "Manifest.h"

namespace fp8rt {

/// Throws an Error that names the first rule that the manifest breaks:
/// - names of entries and of state tensors are unique; state shapes are static;
/// - a carried user argument and its result have the same type and shape;
/// - a result aliases an argument of its type and shape: a state argument of
///   its name, or the argument that carries it; no argument is aliased twice;
/// - exactly the aliased arguments are written;
/// - state arguments and results are tensors of the state, each at most once.
void checkManifest(const Manifest &manifest);

} // namespace fp8rt

#endif // FP8RT_PROGRAM_MANIFESTRULES_H
