// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps (PTX ISA 5.5): what a tensor in global memory looks like and which box
// of it a copy moves. CUDA leaves the 128 bytes opaque; this emulator has a layout of its
// own, with a magic word by which maps are told from other bytes.

#ifndef FP8EMU_ASYNC_TENSORMAP_H
#define FP8EMU_ASYNC_TENSORMAP_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace fp8emu {

constexpr unsigned kTensorMapBytes = 128, kTensorMapAlignment = 64, kMaxTensorRank = 5;

/// Types of elements, by the numbers that tensormap.replace has for them.
enum class TensorType : uint8_t {
  U8,
  U16,
  U32,
  S32,
  U64,
  S64,
  F16,
  F32,
  F32Ftz,
  F64,
  BF16,
  TF32,
  TF32Ftz,
  /// 16 of 4 bits in 8 bytes; the same with 8 bytes of padding in shared memory.
  B4x16,
  B4x16P64,
  /// 16 of 6 bits in 12 bytes; in shared memory each has 4 bytes of padding behind
  /// it (loads), or each element is a byte (stores: .b6p2x16).
  B6x16,
  Count
};

/// The smallest piece of a row that is copied as a whole.
struct TensorUnit {
  unsigned elements, globalBytes, sharedBytes;
};
TensorUnit unitOf(TensorType type);
bool isPadded(TensorType type);
const char *name(TensorType type);

enum class Swizzle : uint8_t { None, B32, B64, B128, B96, Count };
/// The atom of a 128-byte swizzle: the bytes that it keeps together.
enum class SwizzleAtom : uint8_t { B16, B32, B32Flip8, B64, Count };

/// A piece of a row that lies in the tensor, and where its row begins in the box as
/// shared memory has it, before swizzling.
struct TensorRow {
  uint64_t address = 0;
  uint32_t offset = 0;
  /// Units of the row before the piece, and in it; none where all is outside.
  uint32_t skipped = 0, units = 0;
};

struct TensorMap {
  uint64_t address = 0;
  TensorType type = TensorType::U8;
  uint8_t rank = 1;
  uint8_t interleave = 0;
  Swizzle swizzle = Swizzle::None;
  SwizzleAtom atom = SwizzleAtom::B16;
  bool fillNaN = false;
  /// Sizes, strides, box and steps of each dimension, the fastest first. Strides are in bytes;
  /// that of dimension i + 1 stands at i.
  std::array<uint64_t, kMaxTensorRank> size{};
  std::array<uint64_t, kMaxTensorRank - 1> stride{};
  std::array<uint32_t, kMaxTensorRank> box{}, step{};

  /// Reads a map from its 128 bytes; false where the bytes are no map.
  static bool decode(const uint8_t *bytes, TensorMap &map);
  void encode(uint8_t *bytes) const;
  /// The rule of the documentation of cuTensorMapEncodeTiled that the map breaks, in words;
  /// empty where everything is allowed.
  std::string problem() const;

  /// Bytes of a row of the box and of all of it in shared memory: what an mbarrier
  /// is told, whatever part lies in the tensor.
  uint32_t rowBytes() const;
  uint32_t boxBytes() const;
  /// The rows of the box at these coordinates, or of four boxes of one row
  /// (.tile::gather4): a column and the rows' coordinates.
  std::vector<TensorRow> rows(const int32_t *coordinates) const;
  std::vector<TensorRow> fourRows(const int32_t *coordinates) const;
  /// Where in shared memory the byte goes that would lie at `offset` without
  /// swizzle. 8 or 16 bytes, a granule, stay together.
  uint32_t swizzled(uint32_t offset) const;
  uint32_t granule() const { return atom == SwizzleAtom::B32Flip8 ? 8 : 16; }
  /// The bytes that stand for elements outside of the tensor, repeated over a row.
  std::array<uint8_t, 8> filling() const;

private:
  TensorRow row(int64_t column, const int64_t *others) const;
};

} // namespace fp8emu

#endif // FP8EMU_ASYNC_TENSORMAP_H
