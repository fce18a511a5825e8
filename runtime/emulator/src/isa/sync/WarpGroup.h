// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lanes that execute a warp-wide instruction together. Some may stand at a copy of the
// instruction, with operands of its own: each lane's values are read and written by the
// operands of its own instruction.

#ifndef FP8EMU_ISA_SYNC_WARPGROUP_H
#define FP8EMU_ISA_SYNC_WARPGROUP_H

#include "exec/Warp.h"

#include <array>

namespace fp8emu {

template <class T>
using LaneValues = std::array<T, kLanes>;

class WarpGroup {
public:
  /// Of Warp::gather: valid until that is called again.
  WarpGroup(Warp &warp, const std::vector<Part> &parts) : warp(warp), parts(parts) {
    for (const Part &part : parts)
      all |= part.lanes;
  }

  Mask lanes() const { return all; }
  unsigned first() const { return unsigned(__builtin_ctz(all)); }

  /// Operand `operand` (as &Op::a); zero of lanes that are not of the group.
  template <class T>
  LaneValues<T> read(Ref Op::*operand) const {
    LaneValues<T> out{};
    for (const Part &part : parts) {
      const T *values = at<T>(part, part.op->*operand);
      forIndependentLanes(part.lanes, [&](unsigned lane) { out[lane] = values[lane]; });
    }
    return out;
  }
  template <class T>
  void write(Ref Op::*operand, const LaneValues<T> &in) const {
    for (const Part &part : parts) {
      T *values = at<T>(part, part.op->*operand);
      forIndependentLanes(part.lanes, [&](unsigned lane) { values[lane] = in[lane]; });
    }
  }
  template <class T>
  void writeAll(Ref Op::*operand, T value) const {
    LaneValues<T> values;
    values.fill(value);
    write(operand, values);
  }

  /// Predicates; a copy's may be negated where the instruction's is not: `negated(op)`.
  template <class Negated>
  Mask readPredicate(Ref Op::*operand, Negated negated) const {
    Mask out = 0;
    for (const Part &part : parts)
      out |= (*at<Mask>(part, part.op->*operand) ^ (negated(*part.op) ? kAllLanes : 0)) & part.lanes;
    return out;
  }
  void writePredicate(Ref Op::*operand, Mask value) const {
    for (const Part &part : parts)
      assign(*at<Mask>(part, part.op->*operand), part.lanes, value);
  }
  /// The p of d|p: the op's list holds it where it is asked for.
  void writeSecond(Mask value) const {
    for (const Part &part : parts)
      if (part.op->count)
        assign(*at<Mask>(part, part.frame->function->refs[part.op->list]), part.lanes, value);
  }

private:
  template <class T>
  T *at(const Part &part, Ref ref) const {
    return reinterpret_cast<T *>(warp.place(*part.frame, ref));
  }
  static void assign(Mask &target, Mask lanes, Mask value) { target = (target & ~lanes) | (value & lanes); }

  Warp &warp;
  const std::vector<Part> &parts;
  Mask all = 0;
};

} // namespace fp8emu

#endif // FP8EMU_ISA_SYNC_WARPGROUP_H
