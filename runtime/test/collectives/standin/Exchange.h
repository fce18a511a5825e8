// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How processes that use the stand-in for NCCL pass bytes to each other: memory that they share, with a box
// for each pair of ranks.

#ifndef FP8RT_TEST_STANDIN_EXCHANGE_H
#define FP8RT_TEST_STANDIN_EXCHANGE_H

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace fp8rt_test {

/// A file without a name: others open it as long as the process that made it has it open.
struct Place {
  int32_t process = 0, file = -1;

  static Place create() { return {getpid(), memfd_create("standin-nccl", MFD_CLOEXEC)}; }
  int open() const {
    std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
    return ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  /// Of the process that made it.
  void close() { ::close(std::exchange(file, -1)); }
};

/// Bytes on their way from one rank to another: sent so far, and read so far.
struct Box {
  static constexpr uint64_t kBytes = 64 << 10;
  std::atomic<uint64_t> written, read;
  char data[kBytes];
};

/// The boxes of all pairs, mapped.
class Exchange {
public:
  Exchange() = default;
  Exchange(const Exchange &) = delete;
  Exchange &operator=(const Exchange &) = delete;
  ~Exchange() {
    if (header)
      munmap(header, bytes());
  }

  bool open(const Place &place, uint32_t size) {
    ranks = size;
    int file = place.open();
    bool isOpen = file >= 0 && !ftruncate(file, static_cast<off_t>(bytes()));
    void *mapped = isOpen ? mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    ::close(file);
    header = mapped == MAP_FAILED ? nullptr : static_cast<Header *>(mapped);
    return header;
  }
  std::atomic<uint32_t> &joined() const { return header->joined; }
  Box &box(uint32_t from, uint32_t to) const { return header->boxes[from * ranks + to]; }

private:
  struct Header {
    alignas(64) std::atomic<uint32_t> joined;
    Box boxes[1];
  };
  uint64_t bytes() const { return sizeof(Header) + uint64_t(ranks) * ranks * sizeof(Box); }

  Header *header = nullptr;
  uint32_t ranks = 0;
};

/// A message that one rank sends to or receives from another; `data` is host memory.
struct Transfer {
  bool sends;
  uint32_t peer;
  char *data;
  uint64_t bytes;
  uint64_t moved = 0;

  bool isDone() const { return moved == bytes; }
};

/// Moves as much as the boxes allow, in the order of transfers for each pair; returns whether all is done.
inline bool progress(const Exchange &exchange, uint32_t self, std::vector<Transfer> &transfers) {
  bool all = true;
  std::vector<std::pair<bool, uint32_t>> open;
  for (Transfer &one : transfers) {
    bool isBehind = false;
    for (auto [sends, peer] : open)
      isBehind |= sends == one.sends && peer == one.peer;
    Box &box = one.sends ? exchange.box(self, one.peer) : exchange.box(one.peer, self);
    uint64_t written = box.written.load(), read = box.read.load();
    uint64_t at = (one.sends ? written : read) % Box::kBytes;
    uint64_t room = one.sends ? Box::kBytes - (written - read) : written - read;
    uint64_t now = std::min({one.bytes - one.moved, room, Box::kBytes - at});
    if (!isBehind && now) {
      if (one.sends)
        std::memcpy(box.data + at, one.data + one.moved, now);
      else
        std::memcpy(one.data + one.moved, box.data + at, now);
      (one.sends ? box.written : box.read).fetch_add(now);
      one.moved += now;
    }
    if (!one.isDone())
      open.push_back({one.sends, one.peer});
    all &= one.isDone();
  }
  return all;
}

} // namespace fp8rt_test

#endif // FP8RT_TEST_STANDIN_EXCHANGE_H
