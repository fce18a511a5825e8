// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// setmaxnreg (PTX ISA 9.7.19.5): warps give registers to their block and take some from
// it. How many are live behind it nobody looks at.

#include "Setmaxnreg.h"

#include "Families.h"
#include "Lanes.h"
#include "exec/Block.h"
#include "exec/Launch.h"

using namespace fp8emu;

namespace {

constexpr unsigned kGroup = 4;
/// op.flags: it asks for more.
constexpr uint8_t Increases = 1;

std::string lineOf(const Warp &warp, uint32_t pc) {
  Fault place;
  warp.block().launch().locate(place, pc);
  return std::to_string(place.line);
}

/// All warps of a group execute the same ones, and none its next one before all have
/// executed the one before: `warp` has come to another one, or has ended.
void checkGroup(const Warp &warp, const RegisterPool &pool) {
  const auto &own = pool.warps[warp.index()].changes;
  const unsigned first = warp.index() / kGroup * kGroup;
  for (unsigned other = first; other < first + kGroup; ++other) {
    const auto &changes = pool.warps[other].changes;
    const std::string name = "warp " + std::to_string(other) + " of its group ";
    for (size_t i = 0; i < std::min(own.size(), changes.size()); ++i)
      if (own[i] != changes[i])
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

void arrive(Warp &warp, RegisterPool &pool) {
  RegisterPool::OfWarp &own = pool.warps[warp.index()];
  if (std::exchange(own.waits, false))
    return;
  if ((warp.index() | (kGroup - 1)) >= pool.warps.size())
    warp.fault(FaultKind::BarrierDivergence, "all four warps of a warpgroup must execute it, the block has " +
                                                 std::to_string(pool.warps.size()) + " warps");
  own.changes.push_back(warp.pc());
  checkGroup(warp, pool);
}

void change(Warp &warp, const Op &op, Mask mask) {
  RegisterPool *pool = warp.block().registers();
  if (!pool || !warp.converged(warp.existing(), mask))
    return;
  arrive(warp, *pool);
  RegisterPool::OfWarp &own = pool->warps[warp.index()];
  const unsigned wanted = unsigned(op.immediate);
  const bool increases = op.flags == Increases;
  if (increases ? own.held > wanted : own.held < wanted)
    warp.fault(FaultKind::IllegalOperand, "a thread has " + std::to_string(own.held) + " registers, " +
                                              (increases ? "more" : "less") + " than the " +
                                              std::to_string(wanted) + " it is to have");
  const unsigned difference = (increases ? wanted - own.held : own.held - wanted) * kLanes;
  if (increases && difference > pool->free) {
    own.waits = true;
    return warp.wait(mask, Wait::Registers, 0, difference, /*repeat=*/true);
  }
  own.held = wanted;
  pool->free = increases ? pool->free - difference : pool->free + difference;
  if (!increases)
    warp.block().wake(Wait::Registers, 0);
  warp.block().cluster().noteProgress();
}

void decodeSetmaxnreg(Decoder &decoder) {
  decoder.op().flags = decoder.needOneOf({"inc", "dec"}) == 0 ? Increases : 0;
  for (const char *modifier : {"sync", "aligned", "u32"})
    decoder.needOneOf({modifier});
  decoder.expectOperands(1);
  const int64_t count = decoder.integer(decoder.operand(0));
  if (count < 24 || count > 256 || count % 8)
    decoder.fail(decoder.operand(0),
                 "24 to 256 registers in steps of 8 are possible, not " + std::to_string(count));
  decoder.op().immediate = count;
  decoder.op().handler = &change;
}

} // namespace

void fp8emu::checkRegistersAtEnd(const Warp &warp) {
  if (const RegisterPool *pool = warp.block().registers())
    if ((warp.index() | (kGroup - 1)) < pool->warps.size())
      checkGroup(warp, *pool);
}

FamilyList fp8emu::setmaxnregInstructions() { return {{"setmaxnreg", decodeSetmaxnreg}}; }
