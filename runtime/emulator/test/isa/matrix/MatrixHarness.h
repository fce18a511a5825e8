// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the tests of matrix instructions: matrices of small integers, which every model
// of the hardware sums exactly, and kernels around one instruction of one warp.

#ifndef FP8EMU_TEST_MATRIXHARNESS_H
#define FP8EMU_TEST_MATRIXHARNESS_H

#include "Harness.h"
#include "num/Format.h"

#include <functional>

namespace fp8emu::test {

/// A matrix of integers, and how its elements are coded.
struct Matrix {
  unsigned rows, columns;
  std::vector<int> values;

  Matrix(unsigned rows, unsigned columns) : rows(rows), columns(columns), values(rows * columns) {}
  /// Numbers from `least` to `most`, without an order.
  Matrix(unsigned rows, unsigned columns, unsigned seed, int least, int most) : Matrix(rows, columns) {
    uint32_t state = seed * 2654435761u + 1;
    for (int &value : values) {
      state = state * 1664525u + 1013904223u;
      value = least + int((state >> 16) % unsigned(most - least + 1));
    }
  }
  int &at(unsigned row, unsigned column) { return values[row * columns + column]; }
  int at(unsigned row, unsigned column) const { return values[row * columns + column]; }
};

using Encode = std::function<uint64_t(int)>;
inline Encode encoding(const num::Format &format, unsigned shift = 0) {
  return
      [&format, shift](int value) { return num::encode(format, value, num::Rounding::NearestEven) << shift; };
}
inline uint64_t asInteger(int value) { return uint64_t(int64_t(value)); }

/// Row by row in a fragment: `index` is that of the element in its lane.
using Layout = std::function<std::pair<unsigned, unsigned>(unsigned lane, unsigned index)>;

/// The registers of all threads, one register after the other, that hold a matrix.
inline std::vector<uint8_t> fragment(const Matrix &matrix, unsigned registers, unsigned registerBytes,
                                     unsigned bits, const Encode &encode, const Layout &layout,
                                     unsigned threads = 32) {
  std::vector<uint8_t> out(registers * threads * registerBytes);
  unsigned per = registerBytes * 8 / bits;
  for (unsigned lane = 0; lane < threads; ++lane)
    for (unsigned i = 0; i < registers * per; ++i) {
      auto [row, column] = layout(lane, i);
      uint64_t code =
          encode(matrix.at(row, column)) & (bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1);
      size_t bit = ((i / per * threads + lane) * registerBytes) * 8 + i % per * bits;
      for (unsigned b = 0; b < bits; ++b)
        if (code >> b & 1)
          out[(bit + b) / 8] |= uint8_t(1u << (bit + b) % 8);
    }
  return out;
}

/// "%a0, %a1, ..."
inline std::string registerList(const std::string &name, unsigned count) {
  std::string out;
  for (unsigned i = 0; i < count; ++i)
    out += (i ? ", %" : "%") + name + std::to_string(i);
  return out;
}

/// Loads (or stores) of `count` registers at `pointer`, as fragment() lays them out.
inline std::string moveRegisters(bool isLoad, const std::string &name, unsigned count, unsigned bytes,
                                 const std::string &pointer, unsigned threads = 32) {
  std::string type = bytes == 8 ? ".b64 " : ".b32 ", out;
  for (unsigned i = 0; i < count; ++i) {
    std::string reg = "%" + name + std::to_string(i);
    std::string at = "[" + pointer + " + " + std::to_string(i * threads * bytes) + "]";
    out +=
        isLoad ? "ld.global" + type + reg + ", " + at + ";\n" : "st.global" + type + at + ", " + reg + ";\n";
  }
  return out;
}

inline LaunchConfig oneBlock(uint32_t threads) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  return config;
}

} // namespace fp8emu::test

#endif // FP8EMU_TEST_MATRIXHARNESS_H
