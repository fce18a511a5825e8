// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The conversions of CUDA's own headers, which compute on the host what the device
// instructions do, against ours: every f16, bf16 and code of 8 bits and fewer, and
// floats on all points where a result changes. Built where a toolkit is.

#include "NumReference.h"
#include "num/Format.h"

#include <gtest/gtest.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <cmath>

using namespace fp8emu::num;
using namespace fp8emu::num::test;

namespace {

constexpr Rounding kEven = Rounding::NearestEven;

/// Floats whose upper 20 bits take all values, with lower ones about each half.
template <typename Check>
void forFloats(Check check) {
  for (uint64_t top = 0; top < (uint64_t(1) << 32); top += 1 << 12)
    for (uint32_t low : {0x000U, 0x001U, 0x7ffU, 0x800U, 0x801U, 0xfffU}) {
      check(floatOf(static_cast<uint32_t>(top) | low));
      if (testing::Test::HasFatalFailure())
        return;
    }
}

void checkFp8(double value, unsigned e4m3, unsigned e5m2, unsigned e3m2, unsigned e2m3, unsigned e2m1) {
  ASSERT_EQ(encode(E4M3, value, kEven, true), e4m3) << std::hexfloat << value;
  ASSERT_EQ(encode(E5M2, value, kEven, true), e5m2) << std::hexfloat << value;
  ASSERT_EQ(encode(E3M2, value, kEven, true), e3m2) << std::hexfloat << value;
  ASSERT_EQ(encode(E2M3, value, kEven, true), e2m3) << std::hexfloat << value;
  ASSERT_EQ(encode(E2M1, value, kEven, true), e2m1) << std::hexfloat << value;
}

TEST(NumCudaTest, FloatsToSmallFormats) {
  forFloats([](float x) {
    checkFp8(x, __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3),
             __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2),
             __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest),
             __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest),
             __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest));
  });
}

TEST(NumCudaTest, DoublesToSmallFormats) {
  RandomDoubles random(41, -20, 18);
  for (int i = 0; i < 300000 && !HasFatalFailure(); ++i) {
    double x = random();
    checkFp8(x, __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E4M3),
             __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E5M2),
             __nv_cvt_double_to_fp6(x, __NV_E3M2, cudaRoundNearest),
             __nv_cvt_double_to_fp6(x, __NV_E2M3, cudaRoundNearest),
             __nv_cvt_double_to_fp4(x, __NV_E2M1, cudaRoundNearest));
  }
}

TEST(NumCudaTest, HalvesToSmallFormats) {
  for (uint32_t code = 0; code < 0x10000 && !HasFatalFailure(); ++code) {
    __half_raw half;
    __nv_bfloat16_raw brain;
    half.x = brain.x = static_cast<unsigned short>(code);
    checkFp8(decode(F16, code), __nv_cvt_halfraw_to_fp8(half, __NV_SATFINITE, __NV_E4M3),
             __nv_cvt_halfraw_to_fp8(half, __NV_SATFINITE, __NV_E5M2),
             __nv_cvt_halfraw_to_fp6(half, __NV_E3M2, cudaRoundNearest),
             __nv_cvt_halfraw_to_fp6(half, __NV_E2M3, cudaRoundNearest),
             __nv_cvt_halfraw_to_fp4(half, __NV_E2M1, cudaRoundNearest));
    checkFp8(decode(BF16, code), __nv_cvt_bfloat16raw_to_fp8(brain, __NV_SATFINITE, __NV_E4M3),
             __nv_cvt_bfloat16raw_to_fp8(brain, __NV_SATFINITE, __NV_E5M2),
             __nv_cvt_bfloat16raw_to_fp6(brain, __NV_E3M2, cudaRoundNearest),
             __nv_cvt_bfloat16raw_to_fp6(brain, __NV_E2M3, cudaRoundNearest),
             __nv_cvt_bfloat16raw_to_fp4(brain, __NV_E2M1, cudaRoundNearest));
  }
}

TEST(NumCudaTest, SmallFormatsToHalf) {
  for (unsigned code = 0; code < 256; ++code) {
    auto bits = static_cast<__nv_fp8_storage_t>(code);
    auto half = [](const Format &format, unsigned code) { return encode(F16, decode(format, code), kEven); };
    EXPECT_EQ(half(E4M3, code), __nv_cvt_fp8_to_halfraw(bits, __NV_E4M3).x);
    EXPECT_EQ(half(E5M2, code), __nv_cvt_fp8_to_halfraw(bits, __NV_E5M2).x);
    if (code < 64) {
      EXPECT_EQ(half(E3M2, code), __nv_cvt_fp6_to_halfraw(bits, __NV_E3M2).x);
      EXPECT_EQ(half(E2M3, code), __nv_cvt_fp6_to_halfraw(bits, __NV_E2M3).x);
    }
    if (code < 16) {
      EXPECT_EQ(half(E2M1, code), __nv_cvt_fp4_to_halfraw(bits, __NV_E2M1).x);
    }
    EXPECT_EQ(encode(BF16, decode(UE8M0, code), kEven), __nv_cvt_e8m0_to_bf16raw(bits).x);
  }
}

TEST(NumCudaTest, Scales) {
  auto check = [](float x) {
    for (auto [rounding, cuda] :
         {std::pair{Rounding::Zero, cudaRoundZero}, {Rounding::Up, cudaRoundPosInf}}) {
      ASSERT_EQ(encode(UE8M0, x, rounding, true), __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cuda)) << x;
      ASSERT_EQ(encode(UE8M0, x, rounding, false), __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cuda)) << x;
    }
  };
  forFloats(check);
}

TEST(NumCudaTest, FloatsToHalfAndBFloat) {
  forFloats([](float x) {
    auto half = [](__half value) { return uint64_t(static_cast<__half_raw>(value).x); };
    auto brain = [](__nv_bfloat16 value) { return uint64_t(static_cast<__nv_bfloat16_raw>(value).x); };
    ASSERT_EQ(encode(F16, x, kEven), half(__float2half_rn(x))) << std::hexfloat << x;
    ASSERT_EQ(encode(F16, x, Rounding::Zero), half(__float2half_rz(x))) << std::hexfloat << x;
    ASSERT_EQ(encode(F16, x, Rounding::Down), half(__float2half_rd(x))) << std::hexfloat << x;
    ASSERT_EQ(encode(F16, x, Rounding::Up), half(__float2half_ru(x))) << std::hexfloat << x;
    ASSERT_EQ(encode(BF16, x, kEven), brain(__float2bfloat16_rn(x))) << std::hexfloat << x;
    ASSERT_EQ(encode(BF16, x, Rounding::Zero), brain(__float2bfloat16_rz(x))) << std::hexfloat << x;
    ASSERT_EQ(encode(BF16, x, Rounding::Down), brain(__float2bfloat16_rd(x))) << std::hexfloat << x;
    ASSERT_EQ(encode(BF16, x, Rounding::Up), brain(__float2bfloat16_ru(x))) << std::hexfloat << x;
  });
  for (uint32_t code = 0; code < 0x10000; ++code) {
    __half_raw half;
    half.x = static_cast<unsigned short>(code);
    ASSERT_EQ(bitsOf(halfToFloat(half.x)), bitsOf(__half2float(__half(half)))) << code;
  }
}

} // namespace
