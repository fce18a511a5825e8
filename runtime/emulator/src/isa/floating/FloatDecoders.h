// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoders of opcodes that several files share. Integer.cpp has the opcodes of integers and
// floats; Float.cpp decodes those of floats, and hands f16 and bf16 on to Half.cpp and
// approximate functions to Approximate.cpp.

#ifndef FP8EMU_ISA_FLOATING_FLOATDECODERS_H
#define FP8EMU_ISA_FLOATING_FLOATDECODERS_H

#include "isa/Decoder.h"

namespace fp8emu {

/// Whether the instruction has a floating-point type.
bool isFloatInstruction(const Decoder &decoder);

void decodeFloatAdd(Decoder &decoder);
void decodeFloatSub(Decoder &decoder);
void decodeFloatMul(Decoder &decoder);
void decodeFloatFma(Decoder &decoder);
void decodeFloatDiv(Decoder &decoder);
void decodeFloatNeg(Decoder &decoder);
void decodeFloatAbs(Decoder &decoder);
void decodeFloatMinMax(Decoder &decoder, bool isMax);

/// f16, bf16 and their pairs.
bool isHalf(ptx::Type type);

enum class HalfOperation : uint8_t { Add, Sub, Mul, Fma, Neg, Abs, Min, Max, Tanh, Ex2 };

/// An instruction on those (Half.cpp), the type taken already.
void decodeHalfArithmetic(Decoder &decoder, ptx::Type type, HalfOperation operation);

/// div.approx, div.full, rcp.approx and sqrt.approx (Approximate.cpp), the modifier
/// that says so taken already.
void decodeApproximateDiv(Decoder &decoder, bool isFull);
void decodeApproximateRcp(Decoder &decoder);
void decodeApproximateSqrt(Decoder &decoder);

} // namespace fp8emu

#endif // FP8EMU_ISA_FLOATING_FLOATDECODERS_H
