// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Workspace.h"

#include <cstdlib>
#include <mutex>
#include <new>
#include <set>

using namespace fp8_jax;

/// A page: at least what libraries ask for on the CPU.
static constexpr uint64_t kAlignment = 4096;
/// Smaller blocks come from memory that malloc keeps.
static constexpr uint64_t kLeastKept = 1 << 20;

namespace {

/// The beginning of a free block.
struct FreeBlock {
  FreeBlock *next;
  uint64_t size;
};

struct Pool {
  std::mutex mutex;
  FreeBlock *first = nullptr;
  std::multiset<uint64_t> needs;
};

} // namespace

static Pool &pool() {
  static Pool *instance = new Pool; // Never destroyed: threads of XLA may outlive main.
  return *instance;
}

static uint64_t wholePages(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Takes the smallest free block of at least `size` bytes out of the pool, else the largest; null if there is
/// none.
static FreeBlock *takeFree(uint64_t size) {
  std::unique_lock lock(pool().mutex);
  FreeBlock **best = nullptr;
  for (FreeBlock **link = &pool().first; *link; link = &(*link)->next) {
    bool fits = (*link)->size >= size;
    if (!best || (fits ? (*best)->size < size || (*link)->size < (*best)->size : (*link)->size > (*best)->size))
      best = link;
  }
  if (!best)
    return nullptr;
  FreeBlock *taken = *best;
  *best = taken->next;
  return taken;
}

Workspace::Workspace(uint64_t bytes) {
  if (bytes == 0)
    return;
  size = wholePages(bytes);
  FreeBlock *known = size >= kLeastKept ? takeFree(size) : nullptr;
  if (known && known->size >= size) {
    size = known->size;
    block = known;
    return;
  }
  std::free(known); // Too small: it grows.
  block = std::aligned_alloc(kAlignment, size);
}

Workspace::~Workspace() {
  if (size < kLeastKept || !block) {
    std::free(block);
    return;
  }
  std::unique_lock lock(pool().mutex);
  pool().first = new (block) FreeBlock{pool().first, size};
}

WorkspaceUser::WorkspaceUser(uint64_t bytes) : bytes(wholePages(bytes)) {
  std::unique_lock lock(pool().mutex);
  pool().needs.insert(this->bytes);
}

WorkspaceUser::~WorkspaceUser() {
  std::unique_lock lock(pool().mutex);
  pool().needs.erase(pool().needs.find(bytes));
  uint64_t most = pool().needs.empty() ? 0 : *pool().needs.rbegin();
  for (FreeBlock **link = &pool().first; *link;) {
    FreeBlock *free = *link;
    if (free->size <= most) {
      link = &free->next;
      continue;
    }
    *link = free->next;
    std::free(free);
  }
}
