// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who accessed a block's tensor memory: operations in flight alone do, each a rectangle
// of it. They are ordered by waits and fences of their own (PTX ISA 9.7.16.6).

#ifndef FP8EMU_CHECK_TENSORSHADOW_H
#define FP8EMU_CHECK_TENSORSHADOW_H

#include "Clock.h"
#include "Shadow.h"
#include "memory/TensorMemory.h"

#include <optional>
#include <vector>

namespace fp8emu::check {

/// By tcgen05.mma, .cp or .shift, which run in the order in which they are issued, where
/// the threads that issue them are ordered (9.7.16.6.2); by tcgen05.ld; by .st.
enum class TensorPipe : uint8_t { Engine, Loads, Stores };

struct TensorAccess {
  AccessInfo info;
  TensorRange range;
  TensorPipe pipe = TensorPipe::Engine;
  unsigned lane = 0;
  /// Of the engine's: the queue that says what its thread has issued.
  uint16_t issued = 0;
};

/// Whether `before` comes before `now`, which knows `known`.
bool precedes(const TensorAccess &before, const TensorAccess &now, const ClockRef &known);

class TensorShadow {
public:
  /// Compares an access by who knows `known` with those before it, and remembers it. The
  /// one that nothing orders, if there is one.
  std::optional<TensorAccess> access(const TensorAccess &access, const ClockRef &known);
  /// Columns that are allocated anew.
  void forget(unsigned column, unsigned columns);

private:
  std::vector<TensorAccess> accesses;
};

} // namespace fp8emu::check

#endif // FP8EMU_CHECK_TENSORSHADOW_H
