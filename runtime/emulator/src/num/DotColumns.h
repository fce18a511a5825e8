// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sums of one row with many columns, by vectors of the host: bit for bit what
// DotProduct.h gives for each column. A launch spends most of its time in these sums.

#ifndef FP8EMU_NUM_DOTCOLUMNS_H
#define FP8EMU_NUM_DOTCOLUMNS_H

#include "DotProduct.h"

#include <array>

namespace fp8emu::num {

/// The columns of B, laid out for vectors.
class DotColumns {
public:
  /// Whether there are vectors for these sums; otherwise dot() and dotScaled() are called.
  static bool has(const Sum &sum, unsigned k, bool scaled) {
    bool truncating = sum.model == SumModel::Truncating && !sum.truncation.viaHalf;
    return (truncating || (sum.model == SumModel::KOrderF32 && !scaled)) && k <= kMaxK;
  }

  /// `count` columns of k values each, one after the other; they are read as long as this lives.
  DotColumns(const Sum &sum, const float *columns, unsigned count, unsigned k);

  /// sums[i] = dot(sum, sums[i], row, column i, k); with scales dotScaled(sum, sums[i], row, column i, k,
  /// scale, &scales[i], k), which is one block along K.
  void dot(const float *row, float *sums, const float *scale = nullptr, const float *scales = nullptr) const;

private:
  static constexpr unsigned kMaxK = 32, kMaxCount = 256, kWidth = 8;

  template <class T>
  using Vector = T __attribute__((vector_size(kWidth * sizeof(T))));
  using Floats = Vector<float>;
  using Integers = Vector<int32_t>;
  using Longs = Vector<int64_t>;
  using Doubles = Vector<double>;
  struct Row;

  float one(const Row &row, unsigned column, float c) const;
  void inOrder(const Row &row, float *sums) const;
  void truncated(const Row &row, float *sums) const;
  void truncatedWithAvx2(const Row &row, float *sums) const;
  template <class F>
  void forBlocks(const Row &row, float *sums, F f) const;

  Sum sum;
  const float *columns;
  unsigned count, k;
  /// Whether products are normal numbers of f32, which holds all their bits then.
  bool narrow = true;
  /// Eight columns side by side, k by k; then the next eight.
  std::array<Floats, kMaxCount / kWidth * kMaxK> values;
  std::array<Integers, kMaxCount / kWidth * kMaxK> exponents;
};

} // namespace fp8emu::num

#endif // FP8EMU_NUM_DOTCOLUMNS_H
