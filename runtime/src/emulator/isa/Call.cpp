// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls (PTX ISA 9.7.12.5): of functions, through pointers, and of the functions that
// the device provides (Builtins.cpp). Arguments and results are variables in the
// frames of caller and callee; entering copies the former, returning the latter.

#include "Builtins.h"
#include "Families.h"
#include "Lanes.h"
#include "exec/Block.h"

#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// An argument or result of a call, in the caller: a variable of its frame, or a
/// register or constant.
struct Passed {
  bool inFrame = false;
  uint32_t offset = 0;
  Ref ref;
  unsigned bytes = 0;
};

struct Callsite {
  std::vector<Passed> results, arguments;
  /// Of a direct call.
  uint32_t function = 0;
  BuiltinFunction builtin = nullptr;
};

uint8_t *frameMemory(Warp &warp, const Frame &frame, unsigned lane) {
  return warp.block().local(warp.index(), lane) + frame.localBase;
}

void passArguments(Warp &warp, const Callsite &site, const Frame &caller, Frame &callee, Mask lanes) {
  const FunctionCode &function = *callee.function;
  for (size_t i = 0; i < site.arguments.size() && i < function.parameters.size(); ++i) {
    const Passed &from = site.arguments[i];
    const ParameterPlace &to = function.parameters[i];
    const uint8_t *values = from.inFrame ? nullptr : warp.values<uint8_t>(from.ref);
    forLanes(lanes, [&](unsigned lane) {
      const uint8_t *source =
          from.inFrame ? frameMemory(warp, caller, lane) + from.offset : values + lane * from.bytes;
      std::memcpy(frameMemory(warp, callee, lane) + to.offset, source, std::min(to.bytes, from.bytes));
    });
  }
}

void enter(Warp &warp, const Callsite &site, const FunctionCode &function, Mask lanes) {
  const Frame &caller = warp.frame();
  Frame &callee = warp.call(lanes, function);
  callee.site = &site;
  passArguments(warp, site, caller, callee, lanes);
}

void callDirect(Warp &warp, const Op &op, Mask mask) {
  const auto &site = *static_cast<const Callsite *>(op.payload);
  enter(warp, site, warp.program().functions[site.function], mask);
}

void callIndirect(Warp &warp, const Op &op, Mask mask) {
  const auto &site = *static_cast<const Callsite *>(op.payload);
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
    enter(warp, site, functions[index], same);
    mask &= ~same;
  }
}

void callBuiltin(Warp &warp, const Op &op, Mask mask) {
  const auto &site = *static_cast<const Callsite *>(op.payload);
  const Frame &frame = warp.frame();
  forLanes(mask, [&](unsigned lane) {
    std::vector<uint64_t> arguments;
    for (const Passed &passed : site.arguments) {
      uint64_t value = 0;
      const uint8_t *from = passed.inFrame ? frameMemory(warp, frame, lane) + passed.offset
                                           : warp.values<uint8_t>(passed.ref) + lane * passed.bytes;
      std::memcpy(&value, from, std::min(passed.bytes, 8u));
      arguments.push_back(value);
    }
    uint64_t result = site.builtin(warp, lane, arguments);
    for (const Passed &passed : site.results) {
      uint8_t *to = passed.inFrame ? frameMemory(warp, frame, lane) + passed.offset
                                   : warp.values<uint8_t>(passed.ref) + lane * passed.bytes;
      std::memcpy(to, &result, std::min(passed.bytes, 8u));
    }
  });
}

Passed decodePassed(Decoder &decoder, const Operand &operand) {
  Passed out;
  if (operand.kind == Operand::Kind::Variable && operand.local) {
    const ptx::Variable &variable = decoder.function().tree->variables[operand.index];
    out.inFrame = true;
    out.offset = uint32_t(decoder.function().variableOffsets[operand.index]);
    out.bytes = uint32_t(variable.bytes());
    return out;
  }
  Type type = operand.kind == Operand::Kind::Register ? decoder.registerType(operand.index) : Type::B64;
  out.ref = decoder.source(operand, type);
  out.bytes = laneBytes(type);
  return out;
}

void decodeCall(Decoder &decoder) {
  decoder.take("uni");
  auto site = std::make_shared<Callsite>();
  unsigned next = 0;
  const Operand *target = &decoder.operand(0);
  if (target->kind == Operand::Kind::List) {
    for (const Operand &result : target->parts)
      site->results.push_back(decodePassed(decoder, result));
    target = &decoder.operand(++next);
  }
  if (++next < decoder.operands() && decoder.operand(next).kind == Operand::Kind::List)
    for (const Operand &argument : decoder.operand(next++).parts)
      site->arguments.push_back(decodePassed(decoder, argument));
  // What follows is a prototype or a list of targets: they change nothing here.
  Op &op = decoder.op();
  if (target->kind == Operand::Kind::Register) {
    op.a = decoder.source(*target, Type::B64);
    op.handler = &callIndirect;
    decoder.keep<Callsite>(site);
    return;
  }
  auto found = decoder.program().functionByName.find(target->text);
  if (found != decoder.program().functionByName.end()) {
    site->function = found->second;
    op.handler = &callDirect;
  } else if ((site->builtin = findBuiltin(target->text))) {
    op.handler = &callBuiltin;
  } else {
    decoder.fail(*target,
                 "function " + target->text + " is neither defined in this module nor the device's own");
  }
  decoder.keep<Callsite>(site);
}

} // namespace

void fp8emu::passResults(Warp &warp, const Frame &callee, Mask lanes) {
  const auto &site = *static_cast<const Callsite *>(callee.site);
  const Frame &caller = *callee.caller;
  for (size_t i = 0; i < site.results.size() && i < callee.function->results.size(); ++i) {
    const Passed &to = site.results[i];
    const ParameterPlace &from = callee.function->results[i];
    uint8_t *values = to.inFrame ? nullptr : caller.registers.get() + to.ref.offset;
    forLanes(lanes, [&](unsigned lane) {
      uint8_t *target = to.inFrame ? frameMemory(warp, caller, lane) + to.offset : values + lane * to.bytes;
      std::memcpy(target, frameMemory(warp, callee, lane) + from.offset, std::min(from.bytes, to.bytes));
    });
  }
}

FamilyList fp8emu::callInstructions() { return {{"call", decodeCall}}; }
