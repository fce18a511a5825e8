// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The accesses to a block's tensor memory. Only operations in flight access it, each a
// rectangle. They are ordered by waits and fences of their own (PTX ISA 9.7.16.6).

#ifndef FP8EMU_CHECK_TENSORSHADOW_H
#define FP8EMU_CHECK_TENSORSHADOW_H

#include "Clock.h"
#include "Shadow.h"
#include "memory/TensorMemory.h"

#include <optional>
#include <vector>

namespace fp8emu::check {

/// The pipes that access tensor memory: tcgen05.mma, .cp and .shift, which run in the order in which
/// they are issued where the threads that issue them are ordered (9.7.16.6.2); tcgen05.ld;
/// tcgen05.st.
enum class TensorPipe : uint8_t { Engine, Loads, Stores };

struct TensorAccess {
  AccessInfo info;
  TensorRange range;
  TensorPipe pipe = TensorPipe::Engine;
  unsigned lane = 0;
  /// For accesses of the engine: the queue that says what its thread has issued.
  uint16_t issued = 0;
};

/// Whether `before` comes before `now`, which knows `known`.
bool precedes(const TensorAccess &before, const TensorAccess &now, const ClockRef &known);

class TensorShadow {
public:
  /// Compares an access of an operation that knows `known` with those before it, and remembers
  /// it. Returns an earlier access that nothing orders with it, if there is one.
  std::optional<TensorAccess> access(const TensorAccess &access, const ClockRef &known);
  /// Forgets accesses to columns that are allocated anew.
  void forget(unsigned column, unsigned columns);

private:
  std::vector<TensorAccess> accesses;
};

} // namespace fp8emu::check

#endif // FP8EMU_CHECK_TENSORSHADOW_H
