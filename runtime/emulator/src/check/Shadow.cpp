// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stamps, sets of words, and the cells of shared and global memory.

#include "Shadow.h"

#include <cstdlib>
#include <new>
#include <sys/mman.h>

using namespace fp8emu;
using namespace fp8emu::check;

uint32_t Stamps::add(const AccessInfo &access) {
  std::lock_guard<std::mutex> lock(mutex);
  uint32_t stamp = next;
  if (stamp == kEnd)
    return 0;
  uint32_t index = stamp - first;
  auto &chunk = chunks[index / kChunk];
  if (!chunk)
    chunk = std::make_unique<Chunk>();
  (*chunk)[index % kChunk] = access;
  next = stamp + 1;
  return stamp;
}

uint32_t Sets::add(Word first) {
  std::lock_guard<std::mutex> lock(mutex);
  uint32_t number;
  if (unused.empty()) {
    number = ++count;
    auto [chunk, index] = placeOf(number);
    if (index == 0)
      chunks[chunk] = std::make_unique<Set[]>(kFirstChunk << chunk);
  } else {
    number = unused.back();
    unused.pop_back();
  }
  at(number).assign(1, first);
  return number;
}

void Sets::drop(uint32_t number) {
  std::lock_guard<std::mutex> lock(mutex);
  unused.push_back(number);
}

SharedShadow::SharedShadow(uint32_t bytes)
    : cells(static_cast<Cell *>(std::calloc(bytes / 4 + 4, sizeof(Cell)))) {
  if (!cells)
    throw std::bad_alloc();
}

SharedShadow::~SharedShadow() { std::free(cells); }

GlobalShadow::GlobalShadow(uint64_t base, uint64_t bytes) : base(base), bytes(bytes / 4 * sizeof(Cell)) {
  void *memory =
      mmap(nullptr, this->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  cells = static_cast<Cell *>(memory);
}

GlobalShadow::~GlobalShadow() { munmap(cells, bytes); }

uint32_t GlobalShadow::beginLaunch() {
  ++launchCount;
  // Stamps begin anew long before they could run out.
  if (nextStamp > Stamps::kEnd / 2 || launchCount == Stamps::kEnd) {
    madvise(cells, bytes, MADV_DONTNEED);
    nextStamp = launchCount = 1;
  }
  return nextStamp;
}

void GlobalShadow::endLaunch(uint32_t next) { nextStamp = next; }

void GlobalShadow::forget(uint64_t address, uint64_t size) {
  constexpr uint64_t page = 4096;
  uint64_t begin = (address - base) / 4 * sizeof(Cell), end = begin + size / 4 * sizeof(Cell);
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end)
    madvise(reinterpret_cast<uint8_t *>(cells) + begin, end - begin, MADV_DONTNEED);
}
