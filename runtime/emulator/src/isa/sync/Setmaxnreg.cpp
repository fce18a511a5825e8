// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// setmaxnreg (PTX ISA 9.7.19.5): warps give registers to their block and take some from
// it. The emulator does not check that the warp then has as many registers as are live.

#include "exec/Block.h"
#include "exec/Launch.h"
#include "isa/Families.h"
#include "isa/Lanes.h"

using namespace fp8emu;

namespace {

/// op.flags: it asks for more.
constexpr uint8_t kIncreases = 1;

void arrive(Warp &warp, RegisterPool &pool) {
  RegisterPool::OfWarp &own = pool.warps[warp.index()];
  if (std::exchange(own.waits, false))
    return;
  if ((warp.index() | (RegisterPool::kGroup - 1)) >= pool.warps.size())
    warp.fault(FaultKind::BarrierDivergence, "all four warps of a warpgroup must execute it, the block has " +
                                                 std::to_string(pool.warps.size()) + " warps");
  own.changes.push_back(warp.pc());
  checkRegisters(warp);
}

void change(Warp &warp, const Op &op, Mask mask) {
  RegisterPool *pool = warp.block().registers();
  if (!pool || !warp.converged(warp.existing(), mask))
    return;
  arrive(warp, *pool);
  RegisterPool::OfWarp &own = pool->warps[warp.index()];
  const unsigned wanted = unsigned(op.immediate);
  const bool increases = op.flags == kIncreases;
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
  decoder.op().flags = decoder.needOneOf({"inc", "dec"}) == 0 ? kIncreases : 0;
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

FamilyList fp8emu::setmaxnregInstructions() { return {{"setmaxnreg", decodeSetmaxnreg}}; }
