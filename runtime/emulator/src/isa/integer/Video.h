// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the video instructions on one number (ScalarVideo.cpp) and on several
// (Video.cpp): parts of a register, types, comparisons.

#ifndef FP8EMU_ISA_INTEGER_VIDEO_H
#define FP8EMU_ISA_INTEGER_VIDEO_H

#include "isa/Decoder.h"

#include <cstdint>

namespace fp8emu {

enum class VideoComparison : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };

/// Takes the modifier of a comparison.
VideoComparison takeVideoComparison(Decoder &decoder);
bool holds(VideoComparison comparison, int64_t a, int64_t b);

/// Takes .u32 or .s32: whether it is signed.
bool takeVideoSign(Decoder &decoder);

/// A part of a register: `bits` of them from `shift` on.
struct VideoPart {
  uint8_t shift = 0, bits = 32;
};

/// The part of a value, extended.
inline int64_t extract(VideoPart part, uint32_t value, bool isSigned) {
  uint32_t field = value >> part.shift;
  if (part.bits == 32)
    return isSigned ? int64_t(int32_t(field)) : int64_t(field);
  field &= (1u << part.bits) - 1;
  return isSigned ? int32_t(field << (32 - part.bits)) >> (32 - part.bits) : int32_t(field);
}

/// A source of 32 bits, or the part of one that its selector names.
Ref videoSource(Decoder &decoder, const ptx::Operand &operand, bool isSigned, VideoPart &part);
/// A register of which all or a part is written.
Ref videoDestination(Decoder &decoder, const ptx::Operand &operand, bool isSigned, VideoPart &part);

} // namespace fp8emu

#endif // FP8EMU_ISA_INTEGER_VIDEO_H
