// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps: what they may say, that their bytes keep it.

#include "async/TensorMap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

using namespace fp8emu;

namespace {

/// 40 x 64 floats in rows of 256 bytes, a box of 8 x 32.
TensorMap plain() {
  TensorMap map;
  map.address = 0x10000;
  map.type = TensorType::F32;
  map.rank = 2;
  map.size = {64, 40};
  map.stride = {256};
  map.box = {32, 8};
  map.step = {1, 1};
  return map;
}

TensorMap packed(TensorType type) {
  TensorMap map = plain();
  map.type = type;
  map.size[0] = 256;
  map.box[0] = 128;
  return map;
}

TEST(TensorMap, BytesKeepWhatItSays) {
  TensorMap map = plain(), back;
  map.rank = 5;
  map.size = {uint64_t(1) << 32, 1, 7, 255, 65536};
  map.stride = {16, (uint64_t(1) << 40) - 16, 32, 48};
  map.box = {256, 1, 2, 3, 4};
  map.step = {1, 8, 2, 3, 4};
  map.swizzle = Swizzle::B128;
  map.atom = SwizzleAtom::B64;
  map.fillNaN = true;
  uint8_t bytes[kTensorMapBytes];
  map.encode(bytes);
  ASSERT_TRUE(TensorMap::decode(bytes, back));
  EXPECT_EQ(back.address, map.address);
  EXPECT_EQ(back.type, map.type);
  EXPECT_EQ(back.rank, map.rank);
  EXPECT_EQ(back.size, map.size);
  EXPECT_EQ(back.stride, map.stride);
  EXPECT_EQ(back.box, map.box);
  EXPECT_EQ(back.step, map.step);
  EXPECT_EQ(back.swizzle, map.swizzle);
  EXPECT_EQ(back.atom, map.atom);
  EXPECT_TRUE(back.fillNaN);
}

/// Triton and CUTLASS clear a bit for older drivers: nothing lies there.
TEST(TensorMap, Bit21OfTheSecondWordIsFree) {
  for (uint64_t address : {0x7f0000200000, 0x7f0000000000}) {
    TensorMap map = plain(), back;
    map.address = address;
    uint8_t bytes[kTensorMapBytes];
    map.encode(bytes);
    bytes[8 + 2] &= uint8_t(~(1 << 5));
    ASSERT_TRUE(TensorMap::decode(bytes, back));
    EXPECT_EQ(back.address, address);
    EXPECT_EQ(back.stride, map.stride);
    EXPECT_EQ(back.size[0], map.size[0]);
    EXPECT_EQ(back.size[1], map.size[1]);
  }
}

TEST(TensorMap, OtherBytesAreNone) {
  uint8_t bytes[kTensorMapBytes] = {};
  TensorMap map;
  EXPECT_FALSE(TensorMap::decode(bytes, map));
  std::memset(bytes, 0xFF, sizeof bytes);
  EXPECT_FALSE(TensorMap::decode(bytes, map));
  plain().encode(bytes);
  bytes[8] ^= 1;
  EXPECT_FALSE(TensorMap::decode(bytes, map));
}

struct Change {
  const char *what;
  std::function<void(TensorMap &)> change;
};

TEST(TensorMap, WhatIsAllowed) {
  const Change allowed[] = {
      {"nothing", [](TensorMap &) {}},
      {"the largest size", [](TensorMap &map) { map.size[1] = uint64_t(1) << 32; }},
      {"the largest stride", [](TensorMap &map) { map.stride[0] = (uint64_t(1) << 40) - 16; }},
      {"the largest box", [](TensorMap &map) { map.box = {256, 256}; }},
      {"the least row", [](TensorMap &map) { map.box[0] = 4; }},
      {"the largest step", [](TensorMap &map) { map.step[1] = 8; }},
      {"rows as wide as the swizzle", [](TensorMap &map) { map.swizzle = Swizzle::B128; }},
      {"NaN of floats", [](TensorMap &map) { map.fillNaN = true; }},
      {"b4x16_p64", [](TensorMap &map) { map = packed(TensorType::B4x16P64); }},
      {"b6x16_p32 in 64 bytes",
       [](TensorMap &map) {
         map = packed(TensorType::B6x16);
         map.swizzle = Swizzle::B128;
         map.atom = SwizzleAtom::B64;
       }},
      {"b4x16",
       [](TensorMap &map) {
         map = packed(TensorType::B4x16);
         map.size[0] = 62;
         map.box[0] = 32;
       }},
  };
  for (const Change &one : allowed) {
    TensorMap map = plain();
    one.change(map);
    EXPECT_EQ(map.problem(), "") << one.what;
  }
}

TEST(TensorMap, WhatIsNot) {
  const Change refused[] = {
      {"no dimension", [](TensorMap &map) { map.rank = 0; }},
      {"six dimensions", [](TensorMap &map) { map.rank = 6; }},
      {"address", [](TensorMap &map) { map.address += 8; }},
      {"no element", [](TensorMap &map) { map.size[1] = 0; }},
      {"size", [](TensorMap &map) { map.size[0] = (uint64_t(1) << 32) + 1; }},
      {"stride of 8", [](TensorMap &map) { map.stride[0] += 8; }},
      {"stride of 2^40", [](TensorMap &map) { map.stride[0] = uint64_t(1) << 40; }},
      {"no box", [](TensorMap &map) { map.box[1] = 0; }},
      {"box of 257", [](TensorMap &map) { map.box[1] = 257; }},
      {"row of 12 bytes", [](TensorMap &map) { map.box[0] = 3; }},
      {"no step", [](TensorMap &map) { map.step[1] = 0; }},
      {"step of 9", [](TensorMap &map) { map.step[1] = 9; }},
      {"rows wider than the swizzle", [](TensorMap &map) { map.swizzle = Swizzle::B64; }},
      {"atomicity of 64 bytes",
       [](TensorMap &map) {
         map.swizzle = Swizzle::B64;
         map.box[0] = 16;
         map.atom = SwizzleAtom::B32;
       }},
      {"NaN of integers",
       [](TensorMap &map) {
         map.type = TensorType::S32;
         map.fillNaN = true;
       }},
      {"NaN of packed elements",
       [](TensorMap &map) {
         map = packed(TensorType::B6x16);
         map.fillNaN = true;
       }},
      {"interleaved plane", [](TensorMap &map) { map.interleave = 1; }},
      {"packed address",
       [](TensorMap &map) {
         map = packed(TensorType::B4x16P64);
         map.address += 16;
       }},
      {"packed stride",
       [](TensorMap &map) {
         map = packed(TensorType::B4x16P64);
         map.stride[0] += 16;
       }},
      {"packed row",
       [](TensorMap &map) {
         map = packed(TensorType::B6x16);
         map.size[0] = 192;
       }},
      {"packed box",
       [](TensorMap &map) {
         map = packed(TensorType::B6x16);
         map.box[0] = 64;
       }},
      {"packed and flipped",
       [](TensorMap &map) {
         map = packed(TensorType::B6x16);
         map.swizzle = Swizzle::B128;
         map.atom = SwizzleAtom::B32Flip8;
       }},
      {"packed with padding, in 64 bytes",
       [](TensorMap &map) {
         map = packed(TensorType::B4x16P64);
         map.swizzle = Swizzle::B128;
         map.atom = SwizzleAtom::B64;
       }},
      {"half a byte",
       [](TensorMap &map) {
         map = packed(TensorType::B4x16);
         map.size[0] = 63;
       }},
  };
  for (const Change &one : refused) {
    TensorMap map = plain();
    one.change(map);
    EXPECT_NE(map.problem(), "") << one.what;
  }
}

TEST(TensorMap, BytesOfABox) {
  TensorMap map = plain();
  EXPECT_EQ(map.boxBytes(), 8u * 32 * 4);
  // Every third of eight rows: three of them.
  map.step[1] = 3;
  EXPECT_EQ(map.boxBytes(), 3u * 32 * 4);
  EXPECT_EQ(packed(TensorType::B4x16).boxBytes(), 8u * 64);
  EXPECT_EQ(packed(TensorType::B4x16P64).boxBytes(), 8u * 128);
  EXPECT_EQ(packed(TensorType::B6x16).boxBytes(), 8u * 128);
}

/// The places of the 16 bytes of a line, line by line: the tables of PTX ISA 5.5.7.
struct Table {
  Swizzle swizzle;
  SwizzleAtom atom;
  std::vector<std::string> lines;
};
const Table kTables[] = {
    {Swizzle::None, SwizzleAtom::B16, {"01234567"}},
    {Swizzle::B32, SwizzleAtom::B16, {"01234567", "10325476"}},
    {Swizzle::B96, SwizzleAtom::B16, {"01234567", "10325476"}},
    {Swizzle::B64, SwizzleAtom::B16, {"01234567", "10325476", "23016745", "32107654"}},
    {Swizzle::B128,
     SwizzleAtom::B16,
     {"01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"}},
    {Swizzle::B128, SwizzleAtom::B32, {"01234567", "23016745", "45670123", "67452301"}},
    {Swizzle::B128, SwizzleAtom::B64, {"01234567", "45670123"}},
};

TEST(TensorMap, SwizzlesAreThoseOfTheTables) {
  for (const Table &table : kTables)
    for (uint32_t line = 0; line < 40; ++line)
      for (uint32_t place = 0; place < 8; ++place) {
        TensorMap map = plain();
        map.swizzle = table.swizzle;
        map.atom = table.atom;
        uint32_t piece = uint32_t(table.lines[line % table.lines.size()][place] - '0');
        for (uint32_t byte : {0u, 7u, 8u, 15u})
          ASSERT_EQ(map.swizzled(line * 128 + piece * 16 + byte), line * 128 + place * 16 + byte)
              << int(table.swizzle) << " " << int(table.atom);
      }
}

TEST(TensorMap, SwizzleThatFlipsHalves) {
  TensorMap map = plain(), straight = plain();
  map.swizzle = straight.swizzle = Swizzle::B128;
  map.atom = SwizzleAtom::B32Flip8;
  straight.atom = SwizzleAtom::B32;
  for (uint32_t offset = 0; offset < 4096; ++offset)
    ASSERT_EQ(map.swizzled(offset), straight.swizzled(offset) ^ (offset / 128 % 2 ? 8 : 0));
}

} // namespace
