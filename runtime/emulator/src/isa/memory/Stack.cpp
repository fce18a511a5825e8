// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Local memory whose size is known when it is needed: alloca, stacksave, stackrestore
// (PTX ISA 9.7.17). Each lane has a stack pointer, that grows upwards from the end of its
// frame's variables and is gone with the frame.

#include "exec/Block.h"
#include "exec/Launch.h"
#include "isa/Families.h"
#include "isa/Lanes.h"

#include <algorithm>

using namespace fp8emu;
using ptx::Type;

namespace {

/// op.immediate is the alignment.
template <class T>
void allocate(Warp &warp, const Op &op, Mask mask) {
  const uint64_t most = warp.block().launch().localBytesPerThread();
  const uint64_t alignment = uint64_t(op.immediate);
  const T *sizes = warp.values<T>(op.a);
  T *d = warp.values<T>(op.d);
  auto &pointers = warp.sharedFrame()->stackPointer;
  forLanes(mask, [&](unsigned lane) {
    const uint64_t size = sizes[lane];
    const uint64_t begin = (pointers[lane] + alignment - 1) / alignment * alignment;
    if (begin > most || size > most - begin)
      warp.fault(FaultKind::StackOverflow,
                 "alloca of " + std::to_string(size) + " bytes behind " + std::to_string(pointers[lane]) +
                     " others needs more than the " + std::to_string(most) +
                     " bytes of local memory a thread has (CU_LIMIT_STACK_SIZE)",
                 Mask(1) << lane);
    pointers[lane] = uint32_t(begin + size);
    d[lane] = T(begin);
  });
}

template <class T>
void save(Warp &warp, const Op &op, Mask mask) {
  T *d = warp.values<T>(op.d);
  const auto &pointers = warp.frame().stackPointer;
  forLanes(mask, [&](unsigned lane) { d[lane] = pointers[lane]; });
}

template <class T>
void restore(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.values<T>(op.a);
  Frame &frame = *warp.sharedFrame();
  forLanes(mask, [&](unsigned lane) {
    if (a[lane] < frame.localBase[lane] + frame.function->frameBytes || a[lane] > frame.stackPointer[lane])
      warp.fault(FaultKind::IllegalOperand,
                 "the stack pointer " + std::to_string(a[lane]) + " is none that stacksave gave",
                 Mask(1) << lane);
    frame.stackPointer[lane] = uint32_t(a[lane]);
  });
}

Type takePointerType(Decoder &decoder) {
  Type type = decoder.takeType();
  if (type != Type::U32 && type != Type::U64)
    decoder.fail(".u32 or .u64 is expected");
  return type;
}

void decodeAllocate(Decoder &decoder) {
  constexpr int64_t kDefaultAlignment = 8, kMostAlignment = 1 << 23;
  Type type = takePointerType(decoder);
  decoder.expectOperands(2, 3);
  int64_t alignment = decoder.operands() > 2 ? decoder.integer(decoder.operand(2)) : kDefaultAlignment;
  if (alignment < 1 || alignment > kMostAlignment || (alignment & (alignment - 1)))
    decoder.fail(decoder.operand(2), "the alignment must be a power of two up to 2^23");
  Op &op = decoder.op();
  op.d = decoder.destination(0, type);
  op.a = decoder.source(1, type);
  // At least what is guaranteed without one.
  op.immediate = std::max(alignment, kDefaultAlignment);
  op.handler = type == Type::U64 ? &allocate<uint64_t> : &allocate<uint32_t>;
  decoder.function().allocatesOnStack = true;
}

void decodeSave(Decoder &decoder) {
  Type type = takePointerType(decoder);
  decoder.expectOperands(1);
  decoder.op().d = decoder.destination(0, type);
  decoder.op().handler = type == Type::U64 ? &save<uint64_t> : &save<uint32_t>;
}

void decodeRestore(Decoder &decoder) {
  Type type = takePointerType(decoder);
  decoder.expectOperands(1);
  if (decoder.isImmediate(decoder.operand(0)))
    decoder.fail(decoder.operand(0), "a register that stacksave wrote is expected");
  decoder.op().a = decoder.source(0, type);
  decoder.op().handler = type == Type::U64 ? &restore<uint64_t> : &restore<uint32_t>;
}

} // namespace

FamilyList fp8emu::stackInstructions() {
  return {{"alloca", decodeAllocate}, {"stacksave", decodeSave}, {"stackrestore", decodeRestore}};
}
