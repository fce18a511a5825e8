// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores and reductions of boxes of tensors, against a formula of their own: element by element.

#include "TensorCopyHarness.h"

#include <gtest/gtest.h>

#include <functional>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// Stores, or reduces, the tile into the tensor: its bytes afterwards.
struct Stored {
  std::vector<uint8_t> bytes;
  std::optional<Fault> fault;
};

Stored store(Tensor &tensor, const std::vector<uint8_t> &tile, const Coordinates &at,
             const std::string &modifiers = "cp.async.bulk.tensor", const std::string &operation = "",
             const std::string &after = "@%p0 cp.async.bulk.wait_group 0;\n",
             const std::string &mode = "tile") {
  TestMachine machine(copyKernel(copyIn() + "@%p0 " + modifiers + "." + std::to_string(tensor.map.rank) +
                                 "d.global.shared::cta" + operation + "." + mode + ".bulk_group [%map, " +
                                 list(at) + "], [tile];\n@%p0 cp.async.bulk.commit_group;\n" + after));
  tensor.map.address = machine.upload(tensor.bytes);
  uint64_t in = machine.upload(tile);
  Stored stored;
  stored.fault = machine.launch("k", copyConfig(), MapParameter(tensor.map), in, in, uint32_t(0));
  stored.bytes = machine.download<uint8_t>(tensor.map.address, tensor.bytes.size());
  return stored;
}

std::vector<uint8_t> randomTile() {
  std::vector<uint8_t> tile(kTileBytes);
  std::mt19937 random(7);
  for (uint8_t &byte : tile)
    byte = uint8_t(random());
  return tile;
}

void expectStore(Tensor &tensor, const Coordinates &at) {
  std::vector<uint8_t> tile = randomTile();
  Stored stored = store(tensor, tile, at);
  ASSERT_FALSE(stored.fault) << stored.fault->text();
  std::vector<uint8_t> expected = tensor.bytes;
  const unsigned bytes = unitOf(tensor.map.type).sharedBytes;
  tensor.each(at, [&](uint32_t index, int64_t target) {
    for (unsigned i = 0; i < bytes && target >= 0; ++i)
      expected[size_t(target) + i] = tile[place(tensor.map, index * bytes + i)];
  });
  ASSERT_EQ(stored.bytes, expected);
}

TEST(TensorCopy, Stores) {
  Tensor one(TensorType::U16, {500}, {64}), two(TensorType::U32, {48, 20}, {32, 8}),
      five(TensorType::F16, {16, 5, 4, 3, 2}, {8, 3, 2, 2, 2});
  expectStore(one, {8});
  expectStore(one, {472});
  for (Swizzle swizzle : {Swizzle::None, Swizzle::B128}) {
    two.map.swizzle = swizzle;
    expectStore(two, {8, 5});
    expectStore(two, {0, 19});
    expectStore(two, {40, 15});
  }
  expectStore(five, {8, 1, 2, 1, 0});
  expectStore(five, {0, 4, 3, 2, 1});
}

TEST(TensorCopy, BoxesThatBeginWhereNoneMay) {
  // Within 16 bytes of a row, or, of a store, before the tensor.
  Tensor one(TensorType::U16, {500}, {64}), two(TensorType::U32, {48, 20}, {32, 8});
  for (int32_t x : {-1, 1, 100, 499})
    EXPECT_TRUE(load(one, {x}).fault) << x;
  for (const Coordinates &at : {Coordinates{1, 0}, {-4, 0}, {0, -1}, {-8, -2}})
    EXPECT_TRUE(store(two, randomTile(), at).fault) << at[0] << ", " << at[1];
}

TEST(TensorCopy, StoresOfSixBits) {
  Tensor tensor(TensorType::B6x16, {256, 4}, {128, 2});
  std::vector<uint8_t> tile = randomTile();
  Stored stored = store(tensor, tile, {128, 1});
  ASSERT_FALSE(stored.fault) << stored.fault->text();
  for (unsigned row = 0; row < 2; ++row)
    for (unsigned i = 0; i < 128; ++i) {
      unsigned bit = 6 * i;
      const uint8_t *at = &stored.bytes[(1 + row) * tensor.map.stride[0] + 96 + bit / 8];
      unsigned value = (at[0] | at[1] << 8) >> bit % 8 & 0x3F;
      ASSERT_EQ(value, tile[row * 128 + i] & 0x3F) << row << " " << i;
    }
}

TEST(TensorCopy, Scatters) {
  Tensor tensor(TensorType::U32, {32, 20}, {16, 1});
  std::vector<uint8_t> tile = randomTile(), expected = tensor.bytes;
  Stored stored = store(tensor, tile, {8, 3, 19, 20, 0}, "cp.async.bulk.tensor", "",
                        "@%p0 cp.async.bulk.wait_group 0;\n", "tile::scatter4");
  ASSERT_FALSE(stored.fault) << stored.fault->text();
  const int rows[] = {3, 19, 20, 0};
  for (unsigned r = 0; r < 4; ++r)
    for (unsigned i = 0; i < 64 && rows[r] < 20; ++i)
      expected[unsigned(rows[r]) * tensor.map.stride[0] + 32 + i] = tile[r * 64 + i];
  EXPECT_EQ(stored.bytes, expected);
}

TEST(TensorCopy, Reductions) {
  const struct {
    const char *name;
    std::function<uint32_t(uint32_t, uint32_t)> f;
  } operations[] = {{".add", [](uint32_t a, uint32_t b) { return a + b; }},
                    {".min", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
                    {".max", [](uint32_t a, uint32_t b) { return std::max(a, b); }},
                    {".inc", [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; }},
                    {".dec", [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; }},
                    {".and", [](uint32_t a, uint32_t b) { return a & b; }},
                    {".or", [](uint32_t a, uint32_t b) { return a | b; }},
                    {".xor", [](uint32_t a, uint32_t b) { return a ^ b; }}};
  for (const auto &operation : operations) {
    Tensor tensor(TensorType::U32, {40, 12}, {32, 8});
    tensor.map.swizzle = Swizzle::B128;
    const Coordinates at{12, 6};
    std::vector<uint8_t> tile = randomTile(), expected = tensor.bytes;
    Stored stored = store(tensor, tile, at, "cp.reduce.async.bulk.tensor", operation.name);
    ASSERT_FALSE(stored.fault) << stored.fault->text();
    tensor.each(at, [&](uint32_t index, int64_t target) {
      if (target < 0)
        return;
      uint32_t a, b;
      std::memcpy(&a, &expected[size_t(target)], 4);
      std::memcpy(&b, &tile[place(tensor.map, index * 4)], 4);
      a = operation.f(a, b);
      std::memcpy(&expected[size_t(target)], &a, 4);
    });
    EXPECT_EQ(stored.bytes, expected) << operation.name;
  }
}

TEST(TensorCopy, ReductionsThatDoNotExist) {
  Tensor bytes(TensorType::U8, {64}, {32}), single(TensorType::F32, {64}, {32});
  EXPECT_EQ(store(bytes, randomTile(), {0}, "cp.reduce.async.bulk.tensor", ".add").fault->kind,
            FaultKind::IllegalOperand);
  EXPECT_EQ(store(single, randomTile(), {0}, "cp.reduce.async.bulk.tensor", ".min").fault->kind,
            FaultKind::IllegalOperand);
}

TEST(TensorCopy, NobodyWaitsForAStore) {
  Tensor tensor(TensorType::U32, {32, 40}, {32, 8});
  unsigned seen = 0;
  // The block is gone before its memory was read, sooner or later.
  for (unsigned i = 0; i < 4; ++i)
    seen += store(tensor, randomTile(), {0, 0}, "cp.async.bulk.tensor", "", "").fault.has_value();
  EXPECT_GT(seen, 0u);
  EXPECT_FALSE(store(tensor, randomTile(), {0, 0}, "cp.async.bulk.tensor", "",
                     "@%p0 cp.async.bulk.wait_group.read 0;\n")
                   .fault);
}

} // namespace
