// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Branches and ends (PTX ISA 9.7.12), and instructions that change no value
// (9.7.20): trap, nanosleep and the like.

#include "exec/Block.h"
#include "isa/Families.h"
#include "isa/Lanes.h"

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

void branch(Warp &warp, const Op &op, Mask mask) { warp.branch(mask, uint32_t(op.immediate)); }

void decodeBranch(Decoder &decoder) {
  // .uni promises that all lanes take it: nothing depends on that here.
  decoder.take("uni");
  decoder.expectOperands(1);
  if (decoder.operand(0).kind != Operand::Kind::Label)
    decoder.fail(decoder.operand(0), "a label is expected");
  decoder.op().immediate = decoder.target(decoder.operand(0).index);
  decoder.op().handler = &branch;
}

struct Targets {
  std::vector<uint32_t> pcs;
};

/// brx.idx: to the label of the list that the index names.
void branchIndexed(Warp &warp, const Op &op, Mask mask) {
  const auto &pcs = static_cast<const Targets *>(op.payload)->pcs;
  const uint32_t *index = warp.values<uint32_t>(op.a);
  while (mask) {
    unsigned lane = unsigned(__builtin_ctz(mask));
    uint32_t wanted = index[lane];
    if (wanted >= pcs.size())
      warp.fault(FaultKind::IllegalOperand,
                 "branch target " + std::to_string(wanted) + " is asked for, there are " +
                     std::to_string(pcs.size()),
                 Mask(1) << lane);
    Mask same = 0;
    forLanes(mask, [&](unsigned i) { same |= Mask(index[i] == wanted) << i; });
    warp.branch(same, pcs[wanted]);
    mask &= ~same;
  }
}

void decodeBranchIndexed(Decoder &decoder) {
  decoder.take("idx");
  decoder.take("uni");
  decoder.expectOperands(2);
  auto targets = std::make_shared<Targets>();
  const Operand &labels = decoder.operand(1);
  if (labels.kind == Operand::Kind::Symbol && labels.local)
    for (uint32_t label : decoder.function().tree->targetLists[labels.index].labels)
      targets->pcs.push_back(decoder.target(label));
  if (targets->pcs.empty())
    decoder.fail(decoder.operand(1), "a list of .branchtargets is expected");
  decoder.op().a = decoder.source(0, Type::U32);
  decoder.keep<Targets>(targets);
  decoder.op().handler = &branchIndexed;
}

void leave(Warp &warp, const Op &, Mask mask) { warp.leave(mask); }
void endThread(Warp &warp, const Op &, Mask mask) { warp.exit(mask); }

void decodeReturn(Decoder &decoder) {
  decoder.take("uni");
  decoder.expectOperands(0);
  decoder.op().handler = &leave;
}
void decodeExit(Decoder &decoder) {
  decoder.expectOperands(0);
  decoder.op().handler = &endThread;
}

void trap(Warp &warp, const Op &, Mask mask) { warp.fault(FaultKind::Trap, "the kernel gave up", mask); }

void decodeTrap(Decoder &decoder) {
  decoder.expectOperands(0);
  decoder.op().handler = &trap;
}

void nothing(Warp &, const Op &, Mask) {}
void sleep(Warp &warp, const Op &, Mask) { warp.yield(); }

void decodeSleep(Decoder &decoder) {
  decoder.take("u32");
  decoder.expectOperands(1);
  decoder.source(0, Type::U32);
  decoder.op().handler = &sleep;
}

/// pmevent and its mask: events of a profiler, of which there is none.
void decodeEvent(Decoder &decoder) {
  const bool isMask = decoder.take("mask");
  decoder.expectOperands(1);
  const int64_t most = isMask ? 0xFFFF : 15, value = decoder.integer(decoder.operand(0));
  if (value < 0 || value > most)
    decoder.fail(decoder.operand(0), "a number from 0 to " + std::to_string(most) + " is expected");
  decoder.op().handler = &nothing;
}

/// Instructions that guide hardware and change no value. A device without a debugger ignores
/// brkpt.
void decodeNothing(Decoder &decoder) {
  while (!decoder.takeAny().empty()) {
  }
  decoder.op().handler = &nothing;
}

void decodeGridDependency(Decoder &decoder) {
  decoder.needOneOf({"launch_dependents", "wait"});
  // Kernels of a stream run one after the other: the kernel that is waited for has ended.
  decoder.op().handler = &nothing;
}

} // namespace

Handler fp8emu::returnHandler() { return &leave; }

FamilyList fp8emu::controlInstructions() {
  return {{"bra", decodeBranch},      {"brx", decodeBranchIndexed}, {"ret", decodeReturn},
          {"exit", decodeExit},       {"trap", decodeTrap},         {"brkpt", decodeNothing},
          {"nanosleep", decodeSleep}, {"pmevent", decodeEvent},     {"griddepcontrol", decodeGridDependency}};
}
