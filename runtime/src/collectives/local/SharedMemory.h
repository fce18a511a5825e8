// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory that the ranks of one machine share: what each has posted and read, its pieces, and the reason
// of a failure. Ranks wait for each other by futexes.

#ifndef FP8RT_COLLECTIVES_LOCAL_SHAREDMEMORY_H
#define FP8RT_COLLECTIVES_LOCAL_SHAREDMEMORY_H

#include "../Collective.h"

#include <atomic>
#include <chrono>

namespace fp8rt::collectives {

using Clock = std::chrono::steady_clock;

/// Creates the memory for `size` ranks: a file without a name, which closes when a program is executed.
int createSharedMemory(uint32_t size);

/// The memory, mapped into this process.
class SharedMemory {
public:
  enum class Presence : uint32_t { Expected, Present, Left };

  /// One rank. It alone writes here, except the counts of waiters.
  struct alignas(128) Rank {
    std::atomic<uint64_t> posted;         // the stamp of its last piece
    std::atomic<uint64_t> released;       // the stamp of the last piece that it has read from the others
    std::atomic<uint32_t> changes;        // a futex: counts changes of this rank
    std::atomic<uint32_t> waiters;        // ranks that sleep until it changes
    std::atomic<uint32_t> releaseWaiters; // those of them that wait until it has read their pieces
    std::atomic<uint32_t> waits; // whether it waits for others, and is not to blame if they wait for it
    std::atomic<Presence> presence;
    int32_t process;
    /// Of the last collectives, by their number.
    Description descriptions[4];
    /// How far its device is: announced last, with the collectives by their number.
    std::atomic<uint64_t> announced, asks;
    Description announcements[4];
  };

  /// Maps the memory of a file; throws FP8RT_INVALID_ARGUMENT if it is not createSharedMemory's.
  explicit SharedMemory(int file);
  SharedMemory(const SharedMemory &) = delete;
  SharedMemory &operator=(const SharedMemory &) = delete;
  ~SharedMemory();

  uint32_t size() const;
  Rank &rank(uint32_t rank) const;
  /// The memory for a rank's piece in buffer 0 or 1.
  char *piece(uint32_t rank, uint32_t buffer) const;
  static uint64_t pieceBytes();
  /// The size of the whole memory.
  static uint64_t bytesFor(uint32_t size);

  /// Marks a rank as present, as long as this object lives; throws if another process has taken it.
  void enter(uint32_t rank);
  /// Returns whether the process that entered is gone.
  bool isGone(uint32_t rank) const;

  /// Wakes those that wait for `rank`.
  void announce(uint32_t rank) const;
  /// Sleeps until `rank` has announced something since it had announced `changes`, or until `end`.
  void sleep(uint32_t rank, uint32_t changes, Clock::time_point end) const;

  /// Stores the reason why the ranks go no further, unless there is one already, and wakes all.
  void fail(const std::string &reason) const noexcept;
  bool hasFailed() const;
  /// Returns the reason; empty if there is none.
  std::string failure() const;

private:
  struct Header;

  int lockFile(uint32_t rank, int command, short type) const;

  Header *header;
  uint64_t bytes;
  int file = -1; // of this object alone: the lock on a rank's byte is its
  int64_t entered = -1;
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_LOCAL_SHAREDMEMORY_H
