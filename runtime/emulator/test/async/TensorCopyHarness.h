// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the tests of copies of boxes of tensors: a tensor, where its elements go, and a load.

#ifndef FP8EMU_TEST_TENSORCOPYHARNESS_H
#define FP8EMU_TEST_TENSORCOPYHARNESS_H

#include "CopyKernels.h"

#include <random>

namespace fp8emu::test {

using Coordinates = std::vector<int32_t>;

/// A tensor of random bytes with room between its rows.
struct Tensor {
  TensorMap map;
  std::vector<uint8_t> bytes;

  Tensor(TensorType type, std::vector<uint64_t> size, std::vector<uint32_t> box, unsigned gap = 16) {
    map.type = type;
    map.rank = uint8_t(size.size());
    map.step.fill(1);
    const TensorUnit unit = unitOf(type);
    uint64_t stride = size[0] / unit.elements * unit.globalBytes;
    for (size_t i = 0; i < size.size(); ++i) {
      map.size[i] = size[i];
      map.box[i] = box[i];
      if (i == 0)
        continue;
      stride = (stride + 31) / 32 * 32 + 2 * gap;
      map.stride[i - 1] = stride;
      stride *= size[i];
    }
    bytes.resize(stride + 64);
    std::mt19937 random{unsigned(stride)};
    for (uint8_t &byte : bytes)
      byte = uint8_t(1 + random() % 255);
  }

  /// Calls `f(place in the box, offset in the tensor or -1)` for every unit of the box.
  template <class F>
  void each(const Coordinates &at, F f) const {
    const TensorUnit unit = unitOf(map.type);
    uint32_t count[5] = {1, 1, 1, 1, 1}, k[5];
    for (unsigned i = 0; i < map.rank; ++i)
      count[i] = i ? (map.box[i] + map.step[i] - 1) / map.step[i] : map.box[0] / unit.elements;
    uint32_t place = 0;
    for (k[4] = 0; k[4] < count[4]; ++k[4])
      for (k[3] = 0; k[3] < count[3]; ++k[3])
        for (k[2] = 0; k[2] < count[2]; ++k[2])
          for (k[1] = 0; k[1] < count[1]; ++k[1])
            for (k[0] = 0; k[0] < count[0]; ++k[0], ++place) {
              int64_t offset = 0;
              for (unsigned i = 0; i < map.rank; ++i) {
                int64_t x =
                    i ? at[i] + int64_t(k[i]) * map.step[i] : at[0] / int(unit.elements) + int64_t(k[0]);
                bool inside = x >= 0 && x < int64_t(i ? map.size[i] : map.size[0] / unit.elements);
                if (!inside || offset < 0)
                  offset = -1;
                else
                  offset += x * int64_t(i ? map.stride[i - 1] : unit.globalBytes);
              }
              f(place, offset);
            }
  }
};

/// The instruction's coordinates as immediates.
inline std::string list(const Coordinates &at) {
  std::string out;
  for (int32_t x : at)
    out += (out.empty() ? "{" : ", ") + std::to_string(x);
  return out + "}";
}

inline std::string loadText(unsigned rank, const Coordinates &at, unsigned offset,
                            const std::string &mode = "tile") {
  return "@%p0 cp.async.bulk.tensor." + std::to_string(rank) + "d.shared::cta.global." + mode +
         ".mbarrier::complete_tx::bytes [tile+" + std::to_string(offset) + "], [%map, " + list(at) +
         "], [bar];\n";
}

struct Loaded {
  std::vector<uint8_t> tile;
  std::optional<Fault> fault;
};

inline Loaded load(Tensor &tensor, const Coordinates &at, unsigned offset = 0, uint64_t seed = 0,
                   const std::string &mode = "tile", unsigned bytes = 0) {
  Settings settings;
  settings.seed = seed;
  TestMachine machine(copyKernel(expect(bytes ? bytes : tensor.map.boxBytes()) +
                                 loadText(tensor.map.rank, at, offset, mode) + await() + copyOut()),
                      settings);
  tensor.map.address = machine.upload(tensor.bytes);
  uint64_t out = machine.allocate(kTileBytes);
  Loaded loaded;
  loaded.fault = machine.launch("k", copyConfig(), MapParameter(tensor.map), out, out, uint32_t(0));
  loaded.tile = machine.download<uint8_t>(out, kTileBytes);
  return loaded;
}

/// Where a byte goes (PTX ISA 5.5.7), by address bits.
inline uint32_t place(const TensorMap &map, uint32_t at) {
  uint32_t line = at >> 7;
  switch (map.swizzle) {
  case Swizzle::B32:
  case Swizzle::B96:
    return at ^ ((line % 2) * 16);
  case Swizzle::B64:
    return at ^ ((line % 4) * 16);
  case Swizzle::B128:
    break;
  default:
    return at;
  }
  if (map.atom == SwizzleAtom::B16)
    return at ^ ((line % 8) * 16);
  if (map.atom == SwizzleAtom::B64)
    return at ^ ((line % 2) * 64);
  return at ^ ((line % 4) * 32) ^ (map.atom == SwizzleAtom::B32Flip8 ? (line % 2) * 8 : 0);
}

} // namespace fp8emu::test

#endif // FP8EMU_TEST_TENSORCOPYHARNESS_H
