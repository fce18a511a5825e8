// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of functions by lanes of a warp: the frames of the calls, and what callers pass.

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

/// The arguments and results that a call instruction passes: variables in the frames of
/// caller and callee. Entering copies the arguments, returning the results.
struct CallSite {
  std::vector<Passed> results, arguments;
};

/// One call of a function by lanes of a warp: the lanes' registers, and where they return to.
/// Lanes that call together share a frame until all of them have returned.
struct Frame {
  const FunctionCode *function = nullptr;
  std::shared_ptr<Frame> caller;
  /// The call instruction that made the frame; null for the kernel's frame.
  const CallSite *site = nullptr;
  uint32_t returnPc = 0;
  unsigned depth = 0;
  /// Where the frame's local memory begins in each lane's, behind that of the caller, and
  /// where it ends. alloca moves the end (isa/memory/Stack.cpp).
  std::array<uint32_t, kLanes> localBase = {}, stackPointer;
  std::unique_ptr<uint8_t[]> registers;

  Frame(const FunctionCode &function, std::shared_ptr<Frame> caller);
  ~Frame();
  uint8_t *constants() const;
};

/// Whether two frames belong to one call that lanes entered at different times: they are of
/// one function, called at the same places all the way out.
bool areOneCall(const Frame &a, const Frame &b);

/// Moves lanes from one frame of a call to another: `to`, and the frames of its callers, get
/// the lanes' registers and local memory.
void moveLanes(Frame &to, const Frame &from, Mask lanes);

} // namespace fp8emu

#endif // FP8EMU_EXEC_FRAME_H
