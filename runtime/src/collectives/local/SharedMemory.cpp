// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that processes share. A rank holds a lock on a byte of the file, which the system releases when its
// process ends, however it ends: so the others see that it is gone.

#include "SharedMemory.h"
#include "../../core/Status.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <linux/futex.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace fp8rt;
using namespace fp8rt::collectives;

namespace {

constexpr uint64_t kMagic = 0x3474726d6e6b3846; // of this layout
constexpr uint64_t kPieceBytes = 4 << 20;
constexpr uint64_t kPage = 4096;

uint64_t pages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

long futex(std::atomic<uint32_t> &word, int operation, uint32_t value, const timespec *timeout) {
  return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

[[noreturn]] void failSystem(const std::string &what) {
  fp8rt::fail(FP8RT_IO, what + ": " + std::strerror(errno));
}

} // namespace

struct SharedMemory::Header {
  uint64_t magic;
  uint32_t size;
  std::atomic<uint32_t> failed; // 0 no, 1 the reason is being written, 2 it is there
  char reason[4096 - 16];
  Rank ranks[1]; // of `size`, and their pieces behind

  static uint64_t piecesOffset(uint32_t size) { return pages(sizeof(Header) + size * sizeof(Rank)); }
  static uint64_t bytes(uint32_t size) { return piecesOffset(size) + uint64_t(2) * size * pieceBytes(); }
};

uint64_t SharedMemory::pieceBytes() { return kPieceBytes; }

int collectives::createSharedMemory(uint32_t size) {
  if (size < 1 || size > 1024)
    fail(FP8RT_INVALID_ARGUMENT, std::to_string(size) + " ranks: expected 1 to 1024");
  int file = memfd_create("fp8-ranks", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(SharedMemory::bytesFor(size)))) {
    int code = errno;
    close(file);
    errno = code;
    failSystem("memory for " + std::to_string(size) + " ranks");
  }
  uint32_t start[3];
  uint64_t magic = kMagic;
  std::memcpy(start, &magic, 8);
  start[2] = size;
  if (pwrite(file, start, sizeof(start), 0) != sizeof(start)) {
    close(file);
    failSystem("memory for the ranks");
  }
  return file;
}

uint64_t SharedMemory::bytesFor(uint32_t size) { return Header::bytes(size); }

/// Opens the file anew: locks of another description would be this one's too.
static int reopen(int file) {
  std::string path = "/proc/self/fd/" + std::to_string(file);
  return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

SharedMemory::SharedMemory(int given) : file(reopen(given)) {
  struct stat status;
  uint32_t start[3] = {};
  uint64_t magic = 0;
  bool isRead = file >= 0 && fstat(file, &status) == 0 && pread(file, start, 12, 0) == 12;
  std::memcpy(&magic, start, 8);
  bytes = isRead && magic == kMagic ? Header::bytes(start[2]) : 0;
  if (!bytes || static_cast<uint64_t>(status.st_size) != bytes) {
    close(file);
    fp8rt::fail(FP8RT_INVALID_ARGUMENT, "the file is no memory of fp8rt_local_memory_create");
  }
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    close(file);
    failSystem("mapping the ranks' memory");
  }
  header = static_cast<Header *>(mapped); // zeros are the initial values
}

SharedMemory::~SharedMemory() {
  if (entered >= 0) {
    Rank &own = rank(static_cast<uint32_t>(entered));
    own.presence = Presence::Left;
    announce(static_cast<uint32_t>(entered));
  }
  munmap(header, bytes);
  close(file);
}

uint32_t SharedMemory::size() const { return header->size; }

SharedMemory::Rank &SharedMemory::rank(uint32_t rank) const { return header->ranks[rank]; }

char *SharedMemory::piece(uint32_t rank, uint32_t buffer) const {
  char *pieces = reinterpret_cast<char *>(header) + Header::piecesOffset(size());
  return pieces + (uint64_t(2) * rank + buffer) * kPieceBytes;
}

/// Sets or asks for the lock on a rank's byte.
int SharedMemory::lockFile(uint32_t rank, int command, short type) const {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  if (fcntl(file, command, &lock))
    return -1;
  return lock.l_type;
}

void SharedMemory::enter(uint32_t number) {
  if (number >= size())
    fp8rt::fail(FP8RT_INVALID_ARGUMENT,
                "rank " + std::to_string(number) + " of " + std::to_string(size()) + " ranks");
  Rank &own = rank(number);
  if (lockFile(number, F_OFD_SETLK, F_WRLCK) < 0 || own.presence != Presence::Expected)
    fp8rt::fail(FP8RT_INVALID_ARGUMENT, "rank " + std::to_string(number) + " is there already");
  entered = number;
  own.process = getpid();
  own.presence = Presence::Present;
  announce(number);
}

bool SharedMemory::isGone(uint32_t number) const {
  return rank(number).presence == Presence::Present && lockFile(number, F_OFD_GETLK, F_WRLCK) == F_UNLCK;
}

void SharedMemory::announce(uint32_t number) const {
  Rank &own = rank(number);
  own.changes.fetch_add(1);
  if (own.waiters.load())
    futex(own.changes, FUTEX_WAKE, INT_MAX, nullptr);
}

void SharedMemory::sleep(uint32_t number, uint32_t changes, Clock::time_point end) const {
  auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
  if (left <= 0)
    return;
  timespec timeout = {static_cast<time_t>(left / 1000000000), static_cast<long>(left % 1000000000)};
  Rank &other = rank(number);
  other.waiters.fetch_add(1);
  futex(other.changes, FUTEX_WAIT, changes, &timeout);
  other.waiters.fetch_sub(1);
}

void SharedMemory::fail(const std::string &reason) const noexcept {
  uint32_t none = 0;
  if (header->failed.compare_exchange_strong(none, 1)) {
    std::strncpy(header->reason, reason.c_str(), sizeof(header->reason) - 1);
    header->failed = 2;
  }
  for (uint32_t other = 0; other < size(); ++other) {
    rank(other).changes.fetch_add(1);
    futex(rank(other).changes, FUTEX_WAKE, INT_MAX, nullptr);
  }
}

bool SharedMemory::hasFailed() const { return header->failed.load() == 2; }

std::string SharedMemory::failure() const {
  for (int looks = 0; header->failed.load() == 1 && looks < 1000; ++looks)
    usleep(1000); // another rank is writing the reason
  return hasFailed() ? header->reason : "";
}
