// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sums of tensor cores: d = c + a[0] b[0] + ... + a[k-1] b[k-1], for one element
// of one mma, wgmma or tcgen05.mma instruction. PTX leaves order and precision of
// the sum open ("at least single precision"), so there is a choice of models.
//
// The behaviour of hardware was found by probing it. Products are exact; they and the addend
// are aligned to the largest exponent among them, cut off (towards zero) a few bits
// below it, added as integers without normalising in between, and the sum is cut to
// the result. Sources:
//   M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, Numerical behavior of NVIDIA
//     tensor cores, PeerJ Computer Science 7 (2021): V100, T4, A100.
//   X. Li, A. Li, B. Fang, K. Swirydowicz, I. Laguna, G. Gopalakrishnan, FTTN:
//     Feature-targeted testing for numerical properties of NVIDIA and AMD matrix
//     accelerators, CCGrid 2024: extra bits, up to H100.
//   DeepSeek-AI, DeepSeek-V3 technical report, arXiv:2412.19437, 3.3.2: about 14 bits
//     in the FP8 accumulation of Hopper.
//   P. Xie, Y. Wang, F. Yang, M. Yang, MMA-Sim: bit-accurate reference model of tensor
//     cores and matrix cores, arXiv:2511.10909 (2025): Volta to RTX Blackwell, block
//     scales.
//   F. A. Khattak, M. Mikaitis, Accurate models of NVIDIA tensor cores,
//     arXiv:2512.07004 (2025): V100 to B200, least exponents; with data of A2, A100,
//     RTX 1000 Ada, L40S, H100, H200 and B200, all of which this model reproduces, FP8
//     by mma.sync included (Truncation::viaHalf, the code that ptxas makes of it).

#ifndef FP8EMU_NUM_DOTPRODUCT_H
#define FP8EMU_NUM_DOTPRODUCT_H

#include "Format.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace fp8emu::num {

enum class SumModel : uint8_t {
  /// In f32, to nearest even, one product after the other in the order of K.
  KOrderF32,
  /// Exactly, with one rounding to nearest even at the end.
  ExactOnce,
  /// As hardware does it.
  Truncating
};

/// How a tensor core truncates.
struct Truncation {
  /// Bits kept below that of the largest exponent.
  int fractionBits = 25;
  /// Products added at once; each group's sum, cut to the result, is the addend of
  /// the next one.
  unsigned group = 16;
  /// The largest exponent counts as this one at least.
  int leastExponent = -133;
  /// Mantissa bits of an f32 result, the others being 0.
  int resultBits = 23;
  /// FP8 where the tensor core has none: the compiler makes two f16 instructions of one,
  /// that of the products with k % 4 < 2 first, and adds the addend to their sum in the
  /// result's format, to nearest even.
  bool viaHalf = false;
};

/// Kinds of tensor cores, with the instructions that reach them.
enum class TensorUnit : uint8_t {
  /// mma.sync on sm_80 and sm_86.
  Ampere,
  /// mma.sync on sm_89.
  Ada,
  /// mma.sync on sm_90 and sm_100, which have wgmma and tcgen05.mma for FP8 instead.
  HopperWarp,
  /// wgmma on sm_90a.
  HopperWarpgroup,
  /// tcgen05.mma on sm_100a, mma.sync on sm_120.
  Blackwell
};

/// How the unit truncates products of numbers of that format, and results in f32 or f16.
Truncation truncation(TensorUnit unit, const Format &input, bool halfResult);

/// How the unit truncates with block scales, in instructions of that K: 32 for those of
/// 8 bits (mxf8f6f4), 64 or more for those of 4 (mxf4 and mxf4nvf4).
Truncation scaledTruncation(unsigned k);

/// The sum that an instruction makes; a and b may differ in format.
struct Sum {
  SumModel model = SumModel::KOrderF32;
  /// Format::minExponent() of the operands: subnormal ones count as of that exponent.
  int leastExponentA = 0;
  int leastExponentB = 0;
  /// Likewise of block scales.
  int leastExponentScale = UE8M0.minExponent();
  /// For SumModel::Truncating.
  Truncation truncation = {};
};

/// With the operands as f32, which holds values of all formats up to TF32. Infinities
/// and NaNs give what f32 arithmetic gives, NaNs being 0x7fffffff.
float dot(const Sum &sum, float c, const float *a, const float *b, unsigned k);

/// With an f16 addend and result (bits), rounded to nearest even in all models: by
/// KOrderF32 once, after the sum.
uint16_t dotHalf(const Sum &sum, uint16_t c, const float *a, const float *b, unsigned k);

/// With block scales, values of UE8M0 or UE4M3: each `block` products in turn are
/// multiplied by one of `scaleA` and one of `scaleB`.
float dotScaled(const Sum &sum, float c, const float *a, const float *b, unsigned k, const float *scaleA,
                const float *scaleB, unsigned block);

/// Of integers of up to 8 bits; the sum wraps, or is clamped once with `satfinite`.
template <typename A, typename B>
int32_t dotInteger(int32_t c, const A *a, const B *b, unsigned k, bool satfinite) {
  int64_t sum = c;
  for (unsigned i = 0; i < k; ++i)
    sum += int64_t(a[i]) * b[i];
  using Limits = std::numeric_limits<int32_t>;
  if (satfinite)
    return static_cast<int32_t>(std::clamp<int64_t>(sum, Limits::min(), Limits::max()));
  return static_cast<int32_t>(static_cast<uint32_t>(sum));
}

} // namespace fp8emu::num

#endif // FP8EMU_NUM_DOTPRODUCT_H
