// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mbarrier objects: the meaning of their bits, and the end of a phase.

#include "Mbarrier.h"

#include "check/Races.h"
#include "exec/Block.h"
#include "exec/Launch.h"

#include <cstring>

using namespace fp8emu;

namespace {
constexpr unsigned kCountBits = 20;
constexpr uint64_t kCountMask = (uint64_t(1) << kCountBits) - 1;
/// Set in every object that was initialised: memory that was not, or that was
/// overwritten with small values, is told from one.
constexpr uint64_t kAlive = 1;

[[noreturn]] void misuse(std::string message) {
  Fault fault;
  fault.kind = FaultKind::BarrierMisuse;
  fault.message = std::move(message);
  throw fault;
}
} // namespace

// Bit 0: alive; 1: parity; 2 to 21: pending; 22 to 41: expected; 42 to 63: bytes.
MbarrierState MbarrierState::decode(uint64_t bits) {
  MbarrierState state;
  state.parity = bits >> 1 & 1;
  state.pending = uint32_t(bits >> 2 & kCountMask);
  state.expected = uint32_t(bits >> 22 & kCountMask);
  state.bytes = int32_t(int64_t(bits) >> 42);
  return state;
}

uint64_t MbarrierState::encode() const {
  return kAlive | uint64_t(parity) << 1 | uint64_t(pending) << 2 | uint64_t(expected) << 22 |
         uint64_t(int64_t(bytes)) << 42;
}

std::string Mbarrier::name() const { return "the mbarrier at shared address " + std::to_string(offset); }

MbarrierState Mbarrier::load() const {
  uint64_t bits;
  std::memcpy(&bits, block.shared() + offset, 8);
  if (!block.isMbarrier(offset) || !(bits & kAlive))
    misuse(name() + " was not initialised, or its memory was overwritten since");
  return MbarrierState::decode(bits);
}

void Mbarrier::store(const MbarrierState &state) {
  uint64_t bits = state.encode();
  std::memcpy(block.shared() + offset, &bits, 8);
  std::memset(block.sharedInitialized() + offset, 1, 8);
}

void Mbarrier::initialize(uint32_t count) {
  if (count == 0 || count > kMbarrierMaxCount)
    misuse(name() + " is initialised with count " + std::to_string(count) + ", it must be 1 to " +
           std::to_string(kMbarrierMaxCount));
  if (block.isMbarrier(offset))
    misuse(name() + " is initialised again without mbarrier.inval");
  block.setMbarrier(offset, true);
  check::initializeMbarrier(block, offset);
  MbarrierState state;
  state.pending = state.expected = count;
  store(state);
}

void Mbarrier::invalidate() {
  load();
  block.setMbarrier(offset, false);
  std::memset(block.sharedInitialized() + offset, 0, 8);
}

void Mbarrier::settle(MbarrierState state) {
  if (state.pending == 0 && state.bytes == 0) {
    state.parity = !state.parity;
    state.pending = state.expected;
    store(state);
    check::flipMbarrier(block, offset);
    block.wake(Wait::Mbarrier, offset);
  } else {
    store(state);
  }
  block.cluster().noteProgress();
}

uint64_t Mbarrier::arrive(uint32_t count, bool drop) {
  MbarrierState state = load();
  uint64_t token = state.encode();
  if (count == 0 || count > state.pending)
    misuse(std::to_string(count) + " arrivals at " + name() + ", whose phase waits for " +
           std::to_string(state.pending));
  state.pending -= count;
  if (drop)
    state.expected -= std::min(count, state.expected);
  settle(state);
  return token;
}

void Mbarrier::expectBytes(uint32_t bytes) {
  MbarrierState state = load();
  if (bytes > uint32_t(kMbarrierMaxBytes) || state.bytes + int32_t(bytes) > kMbarrierMaxBytes)
    misuse(std::to_string(bytes) + " more bytes are expected at " + name() + ", it counts up to " +
           std::to_string(kMbarrierMaxBytes));
  state.bytes += int32_t(bytes);
  store(state);
  block.cluster().noteProgress();
}

void Mbarrier::completeBytes(uint32_t bytes) {
  MbarrierState state = load();
  if (state.bytes - int64_t(bytes) < -int64_t(kMbarrierMaxBytes))
    misuse(std::to_string(bytes) + " bytes arrive at " + name() + ", which has got " +
           std::to_string(-state.bytes) + " more than were expected already");
  state.bytes -= int32_t(bytes);
  settle(state);
}

void Mbarrier::incrementPending() {
  MbarrierState state = load();
  if (state.pending == kMbarrierMaxCount)
    misuse(name() + " counts no more than " + std::to_string(kMbarrierMaxCount) + " arrivals");
  ++state.pending;
  store(state);
}

bool Mbarrier::tokenIsComplete(uint64_t token) const {
  return load().parity != MbarrierState::decode(token).parity;
}

bool Mbarrier::parityIsComplete(bool parity) const { return load().parity != parity; }
