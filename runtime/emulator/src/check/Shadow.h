// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shadow of shared and global memory: for each four bytes, which access wrote them last
// and which have read them since, to the byte.

#ifndef FP8EMU_CHECK_SHADOW_H
#define FP8EMU_CHECK_SHADOW_H

#include "exec/Op.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fp8emu::check {

/// The scope of a strong access (PTX ISA 8.5); None for weak ones.
enum class Level : uint8_t { Block, Cluster, Device, None };

/// An access as cells remember it: one instruction of a warp in one epoch, or one side
/// of an operation in flight.
struct AccessInfo {
  /// Number in the grid.
  uint32_t block = 0;
  /// The epoch of the warp at the access; for an operation, its number in its queue.
  uint32_t epoch = 0;
  uint32_t pc = 0;
  /// The warp of the thread; for an operation, of the thread that started it.
  uint16_t warp = 0;
  /// For an operation: the queue of `queueBlock` that says when it is over.
  uint16_t queue = 0;
  uint32_t queueBlock = 0;
  Level strength = Level::None;
  bool isAgent = false, isAsyncProxy = false, isWrite = false, isAtomic = false;
  /// Whether the access is an atom.cas.
  bool isSwap = false;
  /// An update whose thread does not learn of those before it (red).
  bool isBlind = false;
  /// A write that needs no proxy fence before an access of another proxy.
  bool isOfAnyProxy = false;
};

/// The accesses of a launch, by stamps. Stamps of earlier launches are lower than `first`:
/// their accesses are over.
class Stamps {
public:
  explicit Stamps(uint32_t first) : first(first), next(first) {}
  /// The stamp of an access; 0 where no stamps are left: then the access is not remembered.
  uint32_t add(const AccessInfo &access);
  const AccessInfo &at(uint32_t stamp) const {
    uint32_t index = stamp - first;
    return (*chunks[index / kChunk])[index % kChunk];
  }
  bool has(uint32_t stamp) const { return stamp >= first; }
  uint32_t end() const { return next; }

  static constexpr uint32_t kEnd = uint32_t(1) << 28;

private:
  static constexpr uint32_t kChunk = 8192;
  using Chunk = std::array<AccessInfo, kChunk>;
  uint32_t first;
  std::atomic<uint32_t> next;
  std::mutex mutex;
  std::array<std::unique_ptr<Chunk>, kEnd / kChunk> chunks;
};

/// The lanes that accessed some of a granule's four bytes with one stamp: the bytes in bits 60
/// to 63, the stamp in bits 32 to 59, the lanes below. A word without bytes stands for a set of
/// words: the number of the set below, of its launch in bits 32 to 59. 0: no access.
using Word = uint64_t;
inline Word makeWord(unsigned bytes, uint32_t stamp, Mask lanes) {
  return Word(bytes) << 60 | Word(stamp) << 32 | lanes;
}
inline unsigned bytesOf(Word word) { return unsigned(word >> 60); }
inline uint32_t stampOf(Word word) { return uint32_t(word >> 32) & (Stamps::kEnd - 1); }
inline Mask lanesOf(Word word) { return Mask(word); }

struct Cell {
  Word write, read;
};

/// Sets of words, of one shadow.
class Sets {
public:
  using Set = std::vector<Word>;
  /// Makes a set of one word and returns the number of the set, never 0.
  uint32_t add(Word first);
  void drop(uint32_t number);
  /// Without a lock: sets stay where they are.
  Set &at(uint32_t number) {
    auto [chunk, index] = placeOf(number);
    return chunks[chunk][index];
  }

private:
  /// Each chunk is twice as large as the one before.
  static constexpr uint64_t kFirstChunk = 64;
  static std::pair<unsigned, uint64_t> placeOf(uint32_t number) {
    const uint64_t position = number - 1 + kFirstChunk;
    const unsigned chunk = unsigned(__builtin_clzll(kFirstChunk) - __builtin_clzll(position));
    return {chunk, position - (kFirstChunk << chunk)};
  }

  // Where blocks run on several threads.
  std::mutex mutex;
  std::array<std::unique_ptr<Set[]>, 27> chunks;
  uint32_t count = 0;
  std::vector<uint32_t> unused;
};

/// Cells of a block's shared memory.
class SharedShadow {
public:
  explicit SharedShadow(uint32_t bytes);
  ~SharedShadow();
  SharedShadow(const SharedShadow &) = delete;
  SharedShadow &operator=(const SharedShadow &) = delete;
  Cell &cell(uint32_t offset) { return cells[offset / 4]; }
  Sets sets;

private:
  Cell *cells;
};

/// Cells of the device's memory. They take address space only, until accesses touch them.
class GlobalShadow {
public:
  GlobalShadow(uint64_t base, uint64_t bytes);
  ~GlobalShadow();
  GlobalShadow(const GlobalShadow &) = delete;
  GlobalShadow &operator=(const GlobalShadow &) = delete;

  Cell &cell(uint64_t address) { return cells[(address - base) / 4]; }
  /// The first stamp of a new launch.
  uint32_t beginLaunch();
  void endLaunch(uint32_t nextStamp);
  uint32_t launches() const { return launchCount; }
  /// Forgets accesses to memory that is given back.
  void forget(uint64_t address, uint64_t bytes);

private:
  uint64_t base, bytes;
  Cell *cells;
  uint32_t nextStamp = 1, launchCount = 0;
};

} // namespace fp8emu::check

#endif // FP8EMU_CHECK_SHADOW_H
