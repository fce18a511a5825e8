// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counting what accesses cost. The model of banks is that of the CUDA C++ Programming
// Guide ("Shared Memory"): 32 banks of 4 bytes; lanes that read the same word share it.

#include "Profile.h"

#include "../Block.h"

#include <algorithm>
#include <array>

using namespace fp8emu;

const std::array<CountName, kCountNames> &fp8emu::countNames() {
  // Nothing to destroy: profiles are written when the process ends.
  static constexpr std::array<CountName, kCountNames> names = {{
      {"warp_instructions", &Counts::warpInstructions},
      {"thread_instructions", &Counts::threadInstructions},
      {"global_read_bytes", &Counts::globalRead},
      {"global_written_bytes", &Counts::globalWritten},
      {"shared_read_bytes", &Counts::sharedRead},
      {"shared_written_bytes", &Counts::sharedWritten},
      {"local_read_bytes", &Counts::localRead},
      {"local_written_bytes", &Counts::localWritten},
      {"constant_read_bytes", &Counts::constantRead},
      {"global_sectors", &Counts::globalSectors},
      {"bank_conflicts", &Counts::bankConflicts},
      {"tensor_operations", &Counts::tensorOperations},
      {"waits", &Counts::waits},
  }};
  return names;
}

void Counts::add(const Counts &other) {
  for (const CountName &name : countNames())
    this->*name.member += other.*name.member;
}

void Profile::add(const Profile &other) {
  for (size_t i = 0; i < counts.size(); ++i)
    counts[i].add(other.counts[i]);
}

void fp8emu::countProduct(Warp &warp, uint64_t m, uint64_t n, uint64_t k) {
  Cluster &cluster = warp.block().cluster();
  if (Profile *profile = cluster.profile())
    profile->tensor(cluster.countedPc(warp), m, n, k);
}

static void addBytes(Counts &counts, MemorySpace space, AccessKind kind, uint64_t bytes) {
  bool reads = kind != AccessKind::Store, writes = kind != AccessKind::Load;
  switch (space) {
  case MemorySpace::Shared:
  case MemorySpace::SharedCluster:
    counts.sharedRead += reads * bytes;
    counts.sharedWritten += writes * bytes;
    break;
  case MemorySpace::Local:
    counts.localRead += reads * bytes;
    counts.localWritten += writes * bytes;
    break;
  case MemorySpace::Const:
  case MemorySpace::Parameter:
    counts.constantRead += bytes;
    break;
  default:
    counts.globalRead += reads * bytes;
    counts.globalWritten += writes * bytes;
  }
}

void Profile::access(uint32_t pc, MemorySpace space, Mask mask, const uint64_t *addresses, unsigned bytes,
                     AccessKind kind) {
  Counts &own = counts[pc];
  addBytes(own, space, kind, uint64_t(bytes) * unsigned(__builtin_popcount(mask)));
  if (space == MemorySpace::Global)
    own.globalSectors += countSectors(mask, addresses, bytes);
  else if (space == MemorySpace::Shared || space == MemorySpace::SharedCluster)
    own.bankConflicts += countBankConflicts(mask, addresses, bytes);
}

void Profile::copy(uint32_t pc, MemorySpace space, uint64_t address, uint64_t bytes, AccessKind kind) {
  addBytes(counts[pc], space, kind, bytes);
  if (space == MemorySpace::Global && bytes)
    counts[pc].globalSectors += (address + bytes - 1) / 32 - address / 32 + 1;
}

unsigned fp8emu::countSectors(Mask mask, const uint64_t *addresses, unsigned bytes) {
  std::vector<uint64_t> sectors;
  sectors.reserve(2 * kLanes);
  for (; mask; mask &= mask - 1) {
    uint64_t address = addresses[__builtin_ctz(mask)];
    for (uint64_t sector = address / 32; sector <= (address + bytes - 1) / 32; ++sector)
      sectors.push_back(sector);
  }
  std::sort(sectors.begin(), sectors.end());
  return unsigned(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
}

/// Passes that some lanes' words need: as many as the bank with the most has words.
static unsigned countPasses(Mask mask, const uint64_t *addresses, unsigned bytes) {
  // Words by bank and number, so that equal ones stand together.
  std::array<uint64_t, 4 * kLanes> words;
  size_t count = 0;
  for (; mask; mask &= mask - 1) {
    uint64_t first = addresses[__builtin_ctz(mask)] / 4;
    for (unsigned i = 0; i < (bytes + 3) / 4; ++i)
      words[count++] = (first + i) % 32 << 58 | (first + i) / 32;
  }
  std::sort(words.begin(), words.begin() + count);
  size_t distinct = size_t(std::unique(words.begin(), words.begin() + count) - words.begin());
  std::array<uint8_t, 32> inBank{};
  for (size_t i = 0; i < distinct; ++i)
    ++inBank[words[i] >> 58];
  return *std::max_element(inBank.begin(), inBank.end());
}

unsigned fp8emu::countBankConflicts(Mask mask, const uint64_t *addresses, unsigned bytes) {
  unsigned lanes = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  Mask group = lanes == 32 ? kAllLanes : (Mask(1) << lanes) - 1;
  unsigned conflicts = 0;
  for (unsigned first = 0; first < kLanes; first += lanes)
    if (Mask here = mask & group << first)
      conflicts += countPasses(here, addresses, std::min(bytes, 16u)) - 1;
  return conflicts;
}
