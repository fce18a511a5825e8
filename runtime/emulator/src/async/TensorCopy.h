// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of boxes of tensors while they are in flight.

#ifndef FP8EMU_ASYNC_TENSORCOPY_H
#define FP8EMU_ASYNC_TENSORCOPY_H

#include "TensorMap.h"
#include "Transfer.h"

namespace fp8emu {

/// From a tensor to shared memory.
class BoxToShared : public TransferToShared {
public:
  BoxToShared(Block &block, const TensorMap &map, std::vector<TensorRow> rows)
      : block(block), map(map), rows(std::move(rows)) {}

  /// Tells the checks what the copy reads and writes. The source of a multicast is attributed
  /// to none of its destinations.
  void announce() const;

private:
  /// Calls `f(offset in the box, bytes)` for what is written in one piece.
  template <class F>
  void eachPiece(F f) const;
  uint32_t read() override;
  void write(const SharedPlace &to) override;

  Block &block;
  TensorMap map;
  std::vector<TensorRow> rows;
  /// The box, not swizzled yet.
  std::vector<uint8_t> box;
};

/// From shared memory to a tensor, or combined with what is there.
class BoxToGlobal : public TransferToGlobal {
public:
  BoxToGlobal(const SharedPlace &from, const TensorMap &map, std::vector<TensorRow> rows)
      : from(from), map(map), rows(std::move(rows)) {}
  void (*reduction)(uint8_t *to, const uint8_t *from, unsigned bytes) = nullptr;

  /// Tells the checks what the copy reads and writes.
  void announce(const check::Agent &agent) const;

private:
  /// Calls `f(offset in the box, where that lies, bytes)` for what goes into the tensor. The
  /// rest of the box is not read and may hold anything.
  template <class F>
  void eachPiece(F f) const;
  void read() override;
  void write() override;

  SharedPlace from;
  TensorMap map;
  std::vector<TensorRow> rows;
  std::vector<uint8_t> box;
};

} // namespace fp8emu

#endif // FP8EMU_ASYNC_TENSORCOPY_H
