// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the layer of a model that a site belongs to, from the numbers in site names.

#ifndef FP8_ANALYSIS_SITES_LAYERNUMBERS_H
#define FP8_ANALYSIS_SITES_LAYERNUMBERS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace fp8 {

/// Layers are the numbers of the first name component whose number varies while the rest
/// of the name repeats: of h0/fc1, h0/fc2, h1/fc1 and head, the sites of h0 are in layer
/// 0, that of h1 in layer 1, and head is in none (fc1 and fc2 vary as well, but later).
/// Sites without a name of the program (kNamelessSite) are in none.
/// Returns the layer of each site that is in one; empty where nothing varies.
llvm::StringMap<int64_t> findLayers(llvm::ArrayRef<llvm::StringRef> sites);

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_LAYERNUMBERS_H
