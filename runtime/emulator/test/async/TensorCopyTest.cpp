// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads of boxes of tensors, against a formula of their own: element by element; multicast, and maps.

#include "TensorCopyHarness.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

void expectLoad(Tensor &tensor, const Coordinates &at, unsigned offset = 0, uint64_t seed = 0) {
  Loaded loaded = load(tensor, at, offset, seed);
  ASSERT_FALSE(loaded.fault) << loaded.fault->text();
  const TensorUnit unit = unitOf(tensor.map.type);
  std::vector<uint8_t> expected(kTileBytes, 0xCC);
  tensor.each(at, [&](uint32_t index, int64_t source) {
    for (unsigned i = 0; i < unit.globalBytes; ++i)
      expected[place(tensor.map, offset + index * unit.sharedBytes + i)] =
          source < 0 ? 0 : tensor.bytes[size_t(source) + i];
  });
  ASSERT_EQ(loaded.tile, expected);
}

TEST(TensorCopy, BoxesOfOneToFiveDimensions) {
  Tensor one(TensorType::U16, {500}, {64}), two(TensorType::U8, {48, 20}, {32, 8}),
      three(TensorType::U32, {12, 9, 6}, {8, 4, 2}), four(TensorType::U64, {6, 5, 4, 3}, {4, 4, 3, 2}),
      five(TensorType::F16, {16, 5, 4, 3, 2}, {8, 3, 2, 2, 2});
  for (uint64_t seed = 0; seed < 3; ++seed) {
    expectLoad(one, {104}, 128, seed);
    expectLoad(two, {16, 5}, 0, seed);
    expectLoad(three, {4, 2, 3}, 0, seed);
    expectLoad(four, {2, 0, 1, 1}, 0, seed);
    expectLoad(five, {8, 1, 2, 1, 0}, 0, seed);
  }
}

TEST(TensorCopy, BoxesThatLeaveTheTensor) {
  Tensor one(TensorType::U16, {500}, {64}), two(TensorType::U8, {48, 20}, {32, 8}),
      five(TensorType::F16, {16, 5, 4, 3, 2}, {8, 3, 2, 2, 2});
  for (int32_t x : {-64, -56, -8, 440, 496, 504, 2147483640, -2147483640})
    expectLoad(one, {x});
  for (int32_t x : {-32, -16, 0, 16, 32, 48})
    for (int32_t y : {-8, -7, 13, 19, 20})
      expectLoad(two, {x, y});
  for (const Coordinates &at :
       {Coordinates{-8, -1, -1, -1, -1}, {8, 4, 3, 2, 1}, {0, 0, 0, 0, 2}, {16, 0, 0, 0, 0}})
    expectLoad(five, at);
}

TEST(TensorCopy, Swizzles) {
  struct Case {
    Swizzle swizzle;
    SwizzleAtom atom;
    uint32_t bytes;
  };
  for (const Case &one : {Case{Swizzle::B32, SwizzleAtom::B16, 32},
                          {Swizzle::B64, SwizzleAtom::B16, 64},
                          {Swizzle::B96, SwizzleAtom::B16, 96},
                          {Swizzle::B128, SwizzleAtom::B16, 128},
                          {Swizzle::B128, SwizzleAtom::B32, 128},
                          {Swizzle::B128, SwizzleAtom::B32Flip8, 128},
                          {Swizzle::B128, SwizzleAtom::B64, 128}}) {
    Tensor tensor(TensorType::BF16, {200, 60}, {one.bytes / 2, 40});
    tensor.map.swizzle = one.swizzle;
    tensor.map.atom = one.atom;
    expectLoad(tensor, {64, 8});
    // The pattern is that of addresses: also where the box begins within it.
    expectLoad(tensor, {-8, 30}, 384);
  }
}

TEST(TensorCopy, StepsOverRows) {
  Tensor tensor(TensorType::U32, {32, 40, 9}, {16, 21, 6});
  tensor.map.step = {1, 4, 3, 1, 1};
  ASSERT_EQ(tensor.map.boxBytes(), 16u * 4 * 6 * 2);
  expectLoad(tensor, {8, 3, 1});
  expectLoad(tensor, {8, -6, 7});
}

TEST(TensorCopy, PackedElements) {
  Tensor four(TensorType::B4x16, {96, 20}, {64, 8}), padded(TensorType::B4x16P64, {256, 20}, {128, 8}),
      six(TensorType::B6x16, {384, 20}, {128, 8});
  expectLoad(four, {32, 5});
  expectLoad(four, {-32, 15});
  for (SwizzleAtom atom : {SwizzleAtom::B16, SwizzleAtom::B32}) {
    expectLoad(padded, {128, 3});
    expectLoad(padded, {-128, 3});
    expectLoad(six, {256, 17});
    padded.map.swizzle = six.map.swizzle = Swizzle::B128;
    padded.map.atom = six.map.atom = atom;
  }
}

TEST(TensorCopy, FillWithNaN) {
  Tensor half(TensorType::F16, {32, 4}, {16, 4}), single(TensorType::F32, {32, 4}, {16, 4});
  half.map.fillNaN = single.map.fillNaN = true;
  Loaded loaded = load(half, {24, 0});
  ASSERT_FALSE(loaded.fault);
  for (unsigned i = 0; i < 16; ++i) {
    uint16_t bits;
    std::memcpy(&bits, &loaded.tile[2 * i], 2);
    uint16_t source;
    std::memcpy(&source, &half.bytes[2 * (24 + i % 8)], 2);
    EXPECT_EQ(bits, i < 8 ? source : 0x7FFE) << i;
  }
  loaded = load(single, {24, 0});
  for (unsigned i = 8; i < 16; ++i) {
    float value;
    std::memcpy(&value, &loaded.tile[4 * i], 4);
    EXPECT_TRUE(value != value) << i;
  }
}

TEST(TensorCopy, SinglesAreRoundedAndFlushed) {
  const uint32_t values[] = {0x3F800FFF, 0x3F801000, 0x3F803000, 0xBF801001,
                             0x00000001, 0x807FFFFF, 0x7F7FFFFF, 0x7F800001};
  const uint32_t rounded[] = {0x3F800000, 0x3F800000, 0x3F804000, 0xBF802000,
                              0x00000000, 0x80800000, 0x7F800000, 0x7F800001};
  const uint32_t flushed[] = {0x3F800FFF, 0x3F801000, 0x3F803000, 0xBF801001,
                              0x00000000, 0x80000000, 0x7F7FFFFF, 0x7F800001};
  for (TensorType type : {TensorType::TF32, TensorType::F32Ftz, TensorType::F32}) {
    Tensor tensor(type, {8}, {8});
    std::memcpy(tensor.bytes.data(), values, sizeof values);
    Loaded loaded = load(tensor, {0});
    ASSERT_FALSE(loaded.fault);
    const uint32_t *expected = type == TensorType::TF32     ? rounded
                               : type == TensorType::F32Ftz ? flushed
                                                            : values;
    EXPECT_EQ(std::memcmp(loaded.tile.data(), expected, sizeof values), 0) << name(type);
  }
}

TEST(TensorCopy, GathersRows) {
  Tensor tensor(TensorType::U32, {32, 20}, {16, 1});
  tensor.map.swizzle = Swizzle::B64;
  Loaded loaded = load(tensor, {8, 3, 19, 20, 0}, 0, 0, "tile::gather4", 4 * 64);
  ASSERT_FALSE(loaded.fault) << loaded.fault->text();
  std::vector<uint8_t> expected(kTileBytes, 0xCC);
  const int rows[] = {3, 19, 20, 0};
  for (unsigned r = 0; r < 4; ++r)
    for (unsigned i = 0; i < 64; ++i)
      expected[place(tensor.map, r * 64 + i)] =
          rows[r] == 20 ? 0 : tensor.bytes[unsigned(rows[r]) * tensor.map.stride[0] + 32 + i];
  EXPECT_EQ(loaded.tile, expected);
}

/// Each block of a cluster loads a share of the box for all of them.
TEST(TensorCopy, Multicast) {
  for (unsigned cluster : {2u, 4u})
    for (uint64_t seed = 0; seed < 4; ++seed) {
      Tensor tensor(TensorType::U32, {32, 40}, {32, 8});
      tensor.map.swizzle = Swizzle::B128;
      std::string mask = std::to_string((1u << cluster) - 1);
      Settings settings;
      settings.seed = seed;
      TestMachine machine(
          copyKernel(expect(cluster * 1024) + clusterBarrier() +
                     "mul.lo.u32 %c1, %rank, 8;\nmov.u32 %r5, tile;\n"
                     "mad.lo.u32 %r5, %rank, 1024, %r5;\nmov.u16 %rs0, " +
                     mask +
                     ";\nmov.u64 %rd5, 0;\n@%p0 "
                     "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster.L2::cache_hint [%r5], [%map, {0, %c1}], [bar], %rs0, %rd5;\n" +
                     await() + copyOut() + clusterBarrier()),
          settings);
      tensor.map.address = machine.upload(tensor.bytes);
      uint64_t out = machine.allocate(cluster * kTileBytes);
      auto fault =
          machine.launch("k", copyConfig(cluster, cluster), MapParameter(tensor.map), out, out, uint32_t(0));
      ASSERT_FALSE(fault) << fault->text();
      auto tiles = machine.download<uint8_t>(out, cluster * kTileBytes);
      for (unsigned block = 0; block < cluster; ++block)
        for (unsigned i = 0; i < cluster * 1024; ++i)
          ASSERT_EQ(tiles[block * kTileBytes + place(tensor.map, i)],
                    tensor.bytes[i / 128 * tensor.map.stride[0] + i % 128])
              << block << " " << i;
    }
}

/// Two blocks load each for themselves; the first one's mbarrier is told of both.
TEST(TensorCopy, MbarrierOfThePeer) {
  Tensor tensor(TensorType::U32, {32, 40}, {32, 8});
  for (const char *group : {".cta_group::2", ""}) {
    TestMachine machine(
        copyKernel(expect(2048) + clusterBarrier() +
                   "mul.lo.u32 %c1, %rank, 8;\nmov.u32 %r5, bar;\nmapa.shared::cluster.u32 %r5, %r5, 0;\n"
                   "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes" +
                   group + " [tile], [%map, {0, %c1}], [%r5];\nsetp.ne.u32 %p2, %rank, 0;\n@%p2 bra DONE;\n" +
                   await() + "DONE:\n" + clusterBarrier() + copyOut() + clusterBarrier()));
    tensor.map.address = machine.upload(tensor.bytes);
    uint64_t out = machine.allocate(2 * kTileBytes);
    auto fault = machine.launch("k", copyConfig(2, 2), MapParameter(tensor.map), out, out, uint32_t(0));
    if (!*group) {
      ASSERT_TRUE(fault);
      EXPECT_EQ(fault->kind, FaultKind::IllegalOperand);
      continue;
    }
    ASSERT_FALSE(fault) << fault->text();
    auto tiles = machine.download<uint8_t>(out, 2 * kTileBytes);
    for (unsigned i = 0; i < 2048; ++i)
      ASSERT_EQ(tiles[i / 1024 * kTileBytes + i % 1024],
                tensor.bytes[i / 128 * tensor.map.stride[0] + i % 128]);
  }
}

TEST(TensorCopy, MapsThatAreNone) {
  TestMachine machine(copyKernel(expect(1024) + loadText(2, {0, 0}, 0) + await()));
  auto fault = machine.launch("k", copyConfig(), MapParameter(), uint64_t(0), uint64_t(0), uint32_t(0));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::IllegalOperand);
  EXPECT_NE(fault->message.find("not a tensor map"), std::string::npos);
}

TEST(TensorCopy, Mistakes) {
  Tensor tensor(TensorType::U32, {32, 40}, {32, 8}), packed(TensorType::B6x16, {384, 20}, {128, 8});
  // Another rank than the map's.
  tensor.map.rank = 1;
  TestMachine machine(copyKernel(expect(128) + loadText(2, {0, 0}, 0) + await()));
  auto fault =
      machine.launch("k", copyConfig(), MapParameter(tensor.map), uint64_t(0), uint64_t(0), uint32_t(0));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::IllegalOperand);
  tensor.map.rank = 2;
  EXPECT_EQ(load(tensor, {0, 0}, 64).fault->kind, FaultKind::Misaligned);
  EXPECT_EQ(load(tensor, {0, 0}, kTileBytes).fault->kind, FaultKind::OutOfBounds);
  EXPECT_EQ(load(packed, {64, 0}).fault->kind, FaultKind::IllegalOperand);
  // Fewer bytes are expected than come, or more.
  EXPECT_EQ(load(tensor, {0, 0}, 0, 0, "tile", 2048).fault->kind, FaultKind::Deadlock);
  // The tensor is larger than its memory.
  tensor.map.size[1] = 400;
  auto outside = load(tensor, {0, 41}).fault;
  ASSERT_TRUE(outside);
  EXPECT_EQ(outside->kind, FaultKind::OutOfBounds);
  EXPECT_NE(outside->instruction.find("cp.async.bulk.tensor.2d"), std::string::npos);
  EXPECT_GT(outside->line, 0u);
}

/// A map is copied to shared memory, changed in every field, and used from global.
TEST(TensorCopy, MapsThatKernelsChange) {
  Tensor tensor(TensorType::BF16, {64, 30, 4}, {64, 4, 2});
  tensor.map.swizzle = Swizzle::B128;
  tensor.map.atom = SwizzleAtom::B32;
  tensor.map.step = {1, 2, 1, 1, 1};
  std::string change = "tensormap.replace.tile.";
  auto field = [&](const std::string &text) { return "@%p0 tensormap.replace.tile." + text + ";\n"; };
  std::string body =
      "shl.b32 %r1, %t, 2;\nsetp.lt.u32 %p2, %t, 32;\nmov.u32 %r3, copy;\nadd.u32 %r3, %r3, %r1;\n"
      "cvt.u64.u32 %rd3, %r1;\nadd.u64 %rd3, %rd3, %map;\n@%p2 ld.u32 %r4, [%rd3];\n"
      "@%p2 st.shared.u32 [%r3], %r4;\nbar.sync 0;\n" +
      field("global_address.shared::cta.b1024.b64 [copy], %in") +
      field("rank.shared::cta.b1024.b32 [copy], 2") + field("box_dim.shared::cta.b1024.b32 [copy], 0, 64") +
      field("box_dim.shared::cta.b1024.b32 [copy], 1, 4") +
      field("box_dim.shared::cta.b1024.b32 [copy], 2, 2") +
      field("global_dim.shared::cta.b1024.b32 [copy], 0, 64") +
      field("global_dim.shared::cta.b1024.b32 [copy], 1, 30") +
      field("global_dim.shared::cta.b1024.b32 [copy], 2, 4") +
      field("global_stride.shared::cta.b1024.b64 [copy], 0, " + std::to_string(tensor.map.stride[0])) +
      field("global_stride.shared::cta.b1024.b64 [copy], 1, " + std::to_string(tensor.map.stride[1])) +
      field("element_stride.shared::cta.b1024.b32 [copy], 0, 1") +
      field("element_stride.shared::cta.b1024.b32 [copy], 1, 2") +
      field("element_stride.shared::cta.b1024.b32 [copy], 2, 1") +
      field("elemtype.shared::cta.b1024.b32 [copy], 10") +
      field("interleave_layout.shared::cta.b1024.b32 [copy], 0") +
      field("swizzle_mode.shared::cta.b1024.b32 [copy], 3") +
      field("swizzle_atomicity.shared::cta.b1024.b32 [copy], 1") +
      field("fill_mode.shared::cta.b1024.b32 [copy], 0") +
      "bar.sync 0;\nadd.u64 %rd4, %out, 32768;\n@!%p2 bra USE;\n"
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%rd4], [copy], 128;\nUSE:\nbar.sync 0;\n"
      "fence.proxy.tensormap::generic.acquire.gpu [%rd4], 128;\n" +
      expect(tensor.map.boxBytes()) +
      "@%p0 cp.async.bulk.tensor.3d.shared::cta.global.mbarrier::complete_tx::bytes [tile], "
      "[%rd4, {0, 3, 1}], [bar];\n" +
      await() + copyOut();
  TestMachine machine(copyKernel(body));
  Tensor other(TensorType::U8, {16}, {16});
  other.map.address = machine.upload(other.bytes);
  uint64_t in = machine.upload(tensor.bytes), out = machine.allocate(kTileBytes + 128);
  auto fault = machine.launch("k", copyConfig(), MapParameter(other.map), out, in, uint32_t(0));
  ASSERT_FALSE(fault) << fault->text();
  std::vector<uint8_t> expected(kTileBytes, 0xCC);
  tensor.each({0, 3, 1}, [&](uint32_t index, int64_t source) {
    for (unsigned i = 0; i < 2; ++i)
      expected[place(tensor.map, index * 2 + i)] = source < 0 ? 0 : tensor.bytes[size_t(source) + i];
  });
  EXPECT_EQ(machine.download<uint8_t>(out, kTileBytes), expected);
}

TEST(TensorCopy, WhatIsNotSupported) {
  auto fails = [](const std::string &line, const std::string &why) {
    try {
      TestMachine machine(copyKernel(line));
      ADD_FAILURE() << line;
    } catch (const PtxError &error) {
      EXPECT_NE(error.message.find(why), std::string::npos) << error.message;
    }
  };
  const std::string load = "cp.async.bulk.tensor.3d.shared::cta.global.",
                    tell = "mbarrier::complete_tx::bytes ";
  fails(load + "im2col." + tell + "[tile], [%map, {0, 0, 0}], [bar], {%rs0};", "im2col");
  fails(load + "tile." + tell + "[tile], [%map, {0, 0}], [bar];", "3 coordinates");
  fails(load + "tile [tile], [%map, {0, 0, 0}], [bar];", "mbarrier::complete_tx::bytes");
  fails(load + "tile.multicast::cluster." + tell + "[tile], [%map, {0, 0, 0}], [bar], 3;", "multicast");
  fails("cp.async.bulk.tensor.1d.shared::cta.global.tile::gather4." + tell + "[tile], [%map, {0}], [bar];",
        "2d");
  fails("multimem.st.global.u32 [%in], %r0;", "multicast objects");
  fails("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [copy], 5;", "0 to 4");
  fails("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [copy], 4, %in;", "no such dimension");
  fails("fence.proxy.tensormap::generic.acquire.gpu [%in], 64;", "128");
}

} // namespace
