// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls (PTX ISA 9.7.12.5): of functions, through pointers, and of the functions that
// the device provides (Builtins.cpp).

#include "Builtins.h"

#include "exec/Block.h"
#include "isa/Families.h"
#include "isa/Lanes.h"

#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// The callee of a call instruction, besides what it passes.
struct Callee : CallSite {
  /// Of a direct call.
  uint32_t function = 0;
  BuiltinFunction builtin = nullptr;
};

void callDirect(Warp &warp, const Op &op, Mask mask) {
  const auto &site = *static_cast<const Callee *>(op.payload);
  warp.call(mask, warp.program().functions[site.function], site);
}

void callIndirect(Warp &warp, const Op &op, Mask mask) {
  const auto &site = *static_cast<const Callee *>(op.payload);
  const uint64_t *pointers = warp.values<uint64_t>(op.a);
  const auto &functions = warp.program().functions;
  while (mask) {
    unsigned lane = unsigned(__builtin_ctz(mask));
    uint64_t wanted = pointers[lane], index = (wanted - kCodeBase) / 16;
    if (wanted < kCodeBase || (wanted - kCodeBase) % 16 || index >= functions.size() ||
        functions[index].isEntry)
      warp.fault(FaultKind::IllegalOperand, "a call through a pointer that is no function's",
                 Mask(1) << lane);
    Mask same = 0;
    forLanes(mask, [&](unsigned i) { same |= Mask(pointers[i] == wanted) << i; });
    warp.call(same, functions[index], site);
    mask &= ~same;
  }
}

void callBuiltin(Warp &warp, const Op &op, Mask mask) {
  const auto &site = *static_cast<const Callee *>(op.payload);
  const Frame &frame = warp.frame();
  forLanes(mask, [&](unsigned lane) {
    std::vector<uint64_t> arguments;
    for (const Passed &passed : site.arguments) {
      uint64_t value = 0;
      std::memcpy(&value, warp.passed(frame, passed, lane), std::min(passed.bytes, 8u));
      arguments.push_back(value);
    }
    const uint64_t result = site.builtin(warp, lane, arguments);
    for (const Passed &passed : site.results)
      std::memcpy(warp.passed(frame, passed, lane), &result, std::min(passed.bytes, 8u));
  });
}

/// An argument, or a result, which is written.
Passed decodePassed(Decoder &decoder, const Operand &operand, bool isResult) {
  Passed out;
  if (operand.kind == Operand::Kind::Variable && operand.local) {
    const ptx::Function &tree = *decoder.function().tree;
    const ptx::Variable &variable = tree.variables[operand.index];
    bool kernelParameter = decoder.function().isEntry && operand.index < tree.parameters.size();
    if (variable.space != ptx::Space::Param || kernelParameter || operand.value)
      decoder.fail(operand, "a .param variable of the call, a register or a constant is expected");
    out.inFrame = true;
    out.offset = uint32_t(decoder.function().variableOffsets[operand.index]);
    out.bytes = uint32_t(variable.bytes());
    return out;
  }
  Type type = operand.kind == Operand::Kind::Register ? decoder.registerType(operand.index) : Type::B64;
  if (type == Type::Pred)
    decoder.fail(operand, "predicates are not passed");
  out.ref = isResult ? decoder.destination(operand, type) : decoder.source(operand, type);
  out.bytes = laneBytes(type);
  return out;
}

void decodeCall(Decoder &decoder) {
  decoder.take("uni");
  auto site = std::make_shared<Callee>();
  unsigned next = 0;
  const Operand *target = &decoder.operand(0);
  if (target->kind == Operand::Kind::List) {
    for (const Operand &result : target->parts)
      site->results.push_back(decodePassed(decoder, result, /*isResult=*/true));
    target = &decoder.operand(++next);
  }
  if (++next < decoder.operands() && decoder.operand(next).kind == Operand::Kind::List)
    for (const Operand &argument : decoder.operand(next++).parts)
      site->arguments.push_back(decodePassed(decoder, argument, /*isResult=*/false));
  // A prototype or a list of targets follows: they change nothing here.
  Op &op = decoder.op();
  if (target->kind == Operand::Kind::Register) {
    op.a = decoder.source(*target, Type::B64);
    op.handler = &callIndirect;
    decoder.keep<Callee>(site);
    return;
  }
  auto found = decoder.program().functionByName.find(target->text);
  if (found != decoder.program().functionByName.end()) {
    site->function = found->second;
    if (decoder.program().functions[site->function].isEntry)
      decoder.fail(*target, target->text + " is a kernel, functions only are called");
    op.handler = &callDirect;
  } else if (const Builtin *builtin = findBuiltin(target->text)) {
    if (site->arguments.size() != builtin->arguments)
      decoder.fail(*target, target->text + " has " + std::to_string(builtin->arguments) + " arguments");
    site->builtin = builtin->run;
    op.handler = &callBuiltin;
  } else {
    decoder.fail(*target,
                 "function " + target->text + " is neither defined in this module nor the device's own");
  }
  decoder.keep<Callee>(site);
}

} // namespace

FamilyList fp8emu::callInstructions() { return {{"call", decodeCall}}; }
