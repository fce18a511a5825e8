// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the files that decode products of warps.

#ifndef FP8EMU_ISA_MATRIX_MMA_H
#define FP8EMU_ISA_MATRIX_MMA_H

#include "Products.h"

namespace fp8emu {

/// {.satfinite}.dtype.atype.btype.ctype, with .and.popc or .xor.popc of bits and {.rn} of
/// doubles before or behind; wmma's .dtype.ctype are of f16.
void takeProductTypes(Decoder &decoder, Product &product);
/// d, a, b and c, into the op's list.
void decodeFragments(Decoder &decoder, const Product &product);
/// Makes the op one that executes the product.
void keepProduct(Decoder &decoder, const Product &product);

/// mma.m8n8k4 of f16; .sync.aligned and the shape are taken.
void decodeMmaQuad(Decoder &decoder, Product &product);

} // namespace fp8emu

#endif // FP8EMU_ISA_MATRIX_MMA_H
