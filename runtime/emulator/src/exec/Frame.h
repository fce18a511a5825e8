// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of functions by lanes of a warp: their frames, and what callers pass.

#ifndef FP8EMU_EXEC_FRAME_H
#define FP8EMU_EXEC_FRAME_H

#include "Op.h"
#include "Program.h"

#include <array>
#include <memory>
#include <vector>

namespace fp8emu {

/// An argument or result of a call, in the caller: a variable of its frame, or a
/// register or constant.
struct Passed {
  bool inFrame = false;
  uint32_t offset = 0;
  Ref ref;
  unsigned bytes = 0;
};

/// What a call instruction passes. Arguments and results are variables in the frames
/// of caller and callee: entering copies the former, returning the latter.
struct CallSite {
  std::vector<Passed> results, arguments;
};

/// One call of a function by lanes of a warp: their registers, where they return to.
/// Lanes that call together share it until all have returned.
struct Frame {
  const FunctionCode *function = nullptr;
  std::shared_ptr<Frame> caller;
  /// The call that made it; null for the kernel's.
  const CallSite *site = nullptr;
  uint32_t returnPc = 0;
  unsigned depth = 0;
  /// Where its local memory begins in that of each lane, behind what the lane's caller
  /// has, and where it ends: alloca moves the end (isa/memory/Stack.cpp).
  std::array<uint32_t, kLanes> localBase = {}, stackPointer;
  std::unique_ptr<uint8_t[]> registers;

  Frame(const FunctionCode &function, std::shared_ptr<Frame> caller);
  ~Frame();
  uint8_t *constants() const;
};

/// Whether two frames are of one call that lanes entered at different times: of one
/// function, called at the same places all the way out.
bool areOneCall(const Frame &a, const Frame &b);

/// Gives lanes that are in `from` the same registers and local memory in `to`, and in the
/// calls around them, where these are one call.
void moveLanes(Frame &to, const Frame &from, Mask lanes);

} // namespace fp8emu

#endif // FP8EMU_EXEC_FRAME_H
