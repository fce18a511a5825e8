// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Workspace.h"

#include <cstdlib>
#include <map>
#include <mutex>

using namespace fp8_jax;

/// A page, and a multiple of what libraries ask for.
static constexpr uint64_t kAlignment = 4096;

namespace {
struct Pool {
  std::mutex mutex;
  std::multimap<uint64_t, void *> free; ///< by size
  uint64_t users = 0;
};
} // namespace

static Pool &pool() {
  static Pool *instance = new Pool; // Never destroyed: threads of XLA may outlive main.
  return *instance;
}

Workspace::Workspace(uint64_t bytes) {
  if (bytes == 0)
    return;
  void *tooSmall = nullptr;
  {
    std::unique_lock lock(pool().mutex);
    auto &free = pool().free;
    auto found = free.lower_bound(bytes);
    if (found == free.end() && !free.empty()) {
      --found;
      tooSmall = found->second;
      free.erase(found);
    } else if (found != free.end()) {
      size = found->first;
      block = found->second;
      free.erase(found);
      return;
    }
  }
  std::free(tooSmall);
  size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  block = std::aligned_alloc(kAlignment, size);
}

Workspace::~Workspace() {
  if (!block)
    return;
  std::unique_lock lock(pool().mutex);
  pool().free.emplace(size, block);
}

WorkspaceUser::WorkspaceUser() {
  std::unique_lock lock(pool().mutex);
  ++pool().users;
}

WorkspaceUser::~WorkspaceUser() {
  std::unique_lock lock(pool().mutex);
  if (--pool().users != 0)
    return;
  for (auto [size, block] : pool().free)
    std::free(block);
  pool().free.clear();
}
