// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How matrices are spread over the registers of a warp, for mma, wmma, wgmma and the
// matrix moves: all layouts of PTX are one of these.
//
// A lane is number t of the four in its group g: lane = 4 g + t.
//
//   Multiplicands (PTX ISA 9.7.14.5.2 to 9.7.14.5.13, 9.7.15.5.1.1): a register holds
//   neighbours along K, as many as fit. The group's registers hold a row of A, or a
//   column of B, from 4 x that many on; the next register is that of row + 8, where the
//   matrix has 16 rows, then come the next elements along K. B is its transpose here,
//   with columns for rows; mma has 8 of them, so that its registers go along K alone.
//
//   Accumulators: two neighbours in a row, then those of row + 8, where there are 16
//   rows, then 8 columns further on.
//
// wmma leaves its layouts open (9.7.14.4.1): with 32 rows there, the first 16 come
// first; where a fragment has more registers than the matrix fills they hold it again.

#ifndef FP8EMU_ISA_MATRIX_FRAGMENTS_H
#define FP8EMU_ISA_MATRIX_FRAGMENTS_H

#include <algorithm>

namespace fp8emu {

struct Place {
  unsigned row, column;
};

/// Where the first element of a multiplicand's register `index` lies, in a matrix of
/// `rows` by `k`; the other ones of the `per` that it holds follow along K.
inline Place multiplicandPlace(unsigned rows, unsigned k, unsigned per, unsigned lane, unsigned index) {
  unsigned halves = rows >= 16 ? 2 : 1, steps = k / (4 * per), blocks = std::max(1U, rows / 16);
  unsigned half = index % halves, step = index / halves % steps, block = index / halves / steps % blocks;
  return {lane / 4 + 8 * half + 16 * block, lane % 4 * per + 4 * per * step};
}

/// Where element `index` of an accumulator lies, in a matrix of `rows` by `columns`.
inline Place accumulatorPlace(unsigned rows, unsigned columns, unsigned lane, unsigned index) {
  unsigned halves = rows >= 16 ? 2 : 1, steps = columns / 8;
  unsigned half = index / 2 % halves, step = index / 2 / halves % steps, block = index / 2 / halves / steps;
  return {lane / 4 + 8 * half + 16 * block, lane % 4 * 2 + index % 2 + 8 * step};
}

/// mma.m8n8k4 of f16 is four products at once (9.7.14.5.1): product q is that of lanes
/// 4 q to 4 q + 3 and those 16 further on, which hold the upper four rows or columns.
namespace quad {
inline unsigned product(unsigned lane) { return lane / 4 % 4; }
inline unsigned upper(unsigned lane) { return lane / 16 * 4; }

/// Of A and of the transpose of B, by rows of K: the element `index` of 4. `alongK`: A by
/// rows, B by columns.
inline Place multiplicandPlace(bool alongK, unsigned lane, unsigned index) {
  return alongK ? Place{lane % 4 + upper(lane), index} : Place{index + upper(lane), lane % 4};
}

/// Of accumulators, the element `index` of 8.
inline Place accumulatorPlace(bool f32, unsigned lane, unsigned index) {
  if (!f32)
    return {lane % 4 + upper(lane), index};
  return {(lane & 1) + (index & 2) + upper(lane), (index & 4) + (lane & 2) + (index & 1)};
}
} // namespace quad

} // namespace fp8emu

#endif // FP8EMU_ISA_MATRIX_FRAGMENTS_H
