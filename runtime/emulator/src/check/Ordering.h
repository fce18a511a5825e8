// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How an instruction's accesses to memory are ordered, as its decoder tells the checks.

#ifndef FP8EMU_CHECK_ORDERING_H
#define FP8EMU_CHECK_ORDERING_H

#include "Shadow.h"

namespace fp8emu::check {

/// Op::ordering: the level at which it is strong, and flags. 0 is a weak access.
namespace ordering {
constexpr uint8_t kLevel = 3, kStrong = 4, kAcquire = 8, kRelease = 16;
/// The instruction starts operations in flight, which tell their accesses themselves
/// (Agent.h).
constexpr uint8_t kInFlight = 32;
/// The handler asks `confirm` whether a store that races changes anything.
constexpr uint8_t kConfirms = 64;
/// The access is strong, but not a read that a fence makes an acquire (red, PTX ISA 8.8).
constexpr uint8_t kNoPattern = 128;
/// Of a weak write: it is ordered with accesses by other proxies to the same address as with
/// those by its own (tcgen05.alloc, PTX ISA 9.7.16.6.1).
constexpr uint8_t kAnyProxy = 128;

inline uint8_t strong(Level level, bool acquires = false, bool releases = false) {
  return uint8_t(uint8_t(level) | kStrong | (acquires ? kAcquire : 0) | (releases ? kRelease : 0));
}
inline Level level(uint8_t bits) { return bits & kStrong ? Level(bits & kLevel) : Level::None; }
} // namespace ordering

} // namespace fp8emu::check

#endif // FP8EMU_CHECK_ORDERING_H
