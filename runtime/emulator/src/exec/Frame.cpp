// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entering and leaving functions.

#include "Frame.h"

#include "Block.h"
#include "Launch.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;

Frame::Frame(const FunctionCode &code, std::shared_ptr<Frame> outer)
    : function(&code), caller(std::move(outer)), depth(caller ? caller->depth + 1 : 0),
      // Registers without a value read as zero: PTX leaves them undefined.
      registers(std::make_unique<uint8_t[]>(code.registerBytes)) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (caller)
      localBase[lane] = (caller->stackPointer[lane] + 15) / 16 * 16;
    stackPointer[lane] = localBase[lane] + code.frameBytes;
  }
}

/// Of deep recursion one frame after the other, not each by the one before.
Frame::~Frame() {
  while (caller && caller.use_count() == 1)
    caller = std::shared_ptr<Frame>(std::move(caller->caller));
}

uint8_t *Frame::constants() const {
  return const_cast<uint8_t *>(reinterpret_cast<const uint8_t *>(function->constants.data()));
}

bool fp8emu::areOneCall(const Frame &a, const Frame &b) {
  const Frame *x = &a, *y = &b;
  for (; x != y; x = x->caller.get(), y = y->caller.get())
    if (!x || !y || x->function != y->function || x->returnPc != y->returnPc || x->depth != y->depth)
      return false;
  return true;
}

static void moveRegisters(Frame &to, const Frame &from, Mask lanes) {
  for (auto [offset, bytes] : from.function->registerPlaces) {
    uint8_t *target = to.registers.get() + offset;
    const uint8_t *source = from.registers.get() + offset;
    if (bytes == 0) {
      Mask &bits = *reinterpret_cast<Mask *>(target);
      bits = (bits & ~lanes) | (*reinterpret_cast<const Mask *>(source) & lanes);
      continue;
    }
    unsigned size = bytes;
    forLanes(lanes, [=](unsigned lane) { std::memcpy(target + lane * size, source + lane * size, size); });
  }
}

void fp8emu::moveLanes(Frame &to, const Frame &from, Mask lanes) {
  Frame *target = &to;
  for (const Frame *source = &from; source != target; source = source->caller.get()) {
    moveRegisters(*target, *source, lanes);
    forLanes(lanes, [&](unsigned lane) {
      target->localBase[lane] = source->localBase[lane];
      target->stackPointer[lane] = source->stackPointer[lane];
    });
    target = target->caller.get();
  }
}

uint8_t *Warp::frameMemory(const Frame &frame, unsigned lane) const {
  return owner.local(number, lane) + frame.localBase[lane];
}

uint8_t *Warp::passed(const Frame &caller, const Passed &value, unsigned lane) const {
  return value.inFrame ? frameMemory(caller, lane) + value.offset
                       : place(caller, value.ref) + lane * value.bytes;
}

void Warp::call(Mask lanes, const FunctionCode &function, const CallSite &site) {
  auto frame = std::make_shared<Frame>(function, current.frame);
  frame->site = &site;
  frame->returnPc = nextPc;
  forLanes(lanes, [&](unsigned lane) {
    if (frame->stackPointer[lane] > owner.launch().localBytesPerThread())
      fault(FaultKind::StackOverflow,
            "calls " + std::to_string(frame->depth) + " deep need more than the " +
                std::to_string(owner.launch().localBytesPerThread()) +
                " bytes of local memory a thread has (CU_LIMIT_STACK_SIZE)",
            lanes);
  });
  for (size_t i = 0; i < site.arguments.size() && i < function.parameters.size(); ++i) {
    const Passed &from = site.arguments[i];
    const ParameterPlace &to = function.parameters[i];
    forLanes(lanes, [&](unsigned lane) {
      std::memcpy(frameMemory(*frame, lane) + to.offset, passed(*current.frame, from, lane),
                  std::min(to.bytes, from.bytes));
    });
  }
  Fragment inside;
  inside.pc = function.begin;
  inside.lanes = lanes;
  inside.frame = std::move(frame);
  fragments.push_back(std::move(inside));
  current.lanes &= ~lanes;
  watch = 0;
}

void Warp::leave(Mask lanes) {
  const Frame &callee = *current.frame;
  if (!callee.caller)
    return exit(lanes);
  const auto &results = callee.site->results;
  for (size_t i = 0; i < results.size() && i < callee.function->results.size(); ++i) {
    const ParameterPlace &from = callee.function->results[i];
    forLanes(lanes, [&](unsigned lane) {
      std::memcpy(passed(*callee.caller, results[i], lane), frameMemory(callee, lane) + from.offset,
                  std::min(from.bytes, results[i].bytes));
    });
  }
  Fragment back;
  back.pc = callee.returnPc;
  back.lanes = lanes;
  back.frame = callee.caller;
  fragments.push_back(std::move(back));
  current.lanes &= ~lanes;
  watch = 0;
}
