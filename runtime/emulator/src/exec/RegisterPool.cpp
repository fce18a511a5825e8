// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The check that the warps of a group execute the same setmaxnreg.

#include "RegisterPool.h"

#include "Block.h"
#include "Launch.h"

#include <algorithm>

using namespace fp8emu;

static std::string lineOf(const Warp &warp, uint32_t pc) {
  Fault place;
  warp.block().launch().locate(place, pc);
  return std::to_string(place.line);
}

/// Whether two setmaxnreg change the registers alike, wherever they stand: compilers give each warp
/// one of its own.
static bool isSame(const Warp &warp, uint32_t one, uint32_t other) {
  const Op &a = warp.program().ops[one], &b = warp.program().ops[other];
  return a.flags == b.flags && a.immediate == b.immediate;
}

/// All warps of a group execute the same ones, and none its next one before all have
/// executed the one before.
void fp8emu::checkRegisters(const Warp &warp) {
  constexpr unsigned kGroup = RegisterPool::kGroup;
  const RegisterPool *pool = warp.block().registers();
  if (!pool || (warp.index() | (kGroup - 1)) >= pool->warps.size())
    return;
  const auto &own = pool->warps[warp.index()].changes;
  const unsigned first = warp.index() / kGroup * kGroup;
  for (unsigned other = first; other < first + kGroup; ++other) {
    const auto &changes = pool->warps[other].changes;
    const std::string name = "warp " + std::to_string(other) + " of its group ";
    for (size_t i = 0; i < std::min(own.size(), changes.size()); ++i)
      if (!isSame(warp, own[i], changes[i]))
        warp.fault(FaultKind::BarrierDivergence, name + "executes another setmaxnreg, at line " +
                                                     lineOf(warp, changes[i]) +
                                                     ": all must execute the same");
    if (warp.done() && own.size() < changes.size())
      warp.fault(FaultKind::BarrierDivergence, "it ends without the setmaxnreg at line " +
                                                   lineOf(warp, changes[own.size()]) + ", which " + name +
                                                   "has executed: all must execute the same");
    if (own.size() > changes.size() && warp.block().warps()[other]->done())
      warp.fault(FaultKind::BarrierDivergence,
                 name + "has ended without this setmaxnreg: all must execute the same");
    if (own.size() > changes.size() + 1)
      warp.fault(FaultKind::BarrierDivergence, name + "has not executed the setmaxnreg at line " +
                                                   lineOf(warp, own[changes.size()]) +
                                                   " yet: they must synchronize between two of them");
  }
}
