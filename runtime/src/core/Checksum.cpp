// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CRC-32C: reflected polynomial 0x82f63b78, all ones at the start, inverted at the end.

#include "Checksum.h"

#include <array>
#include <cstring>

using namespace fp8rt;

static constexpr std::array<uint32_t, 256> makeTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = value >> 1 ^ (value & 1 ? 0x82f63b78 : 0);
    table[i] = value;
  }
  return table;
}

uint32_t fp8rt::crc32cByTable(uint32_t state, const void *data, uint64_t bytes) {
  static constexpr std::array<uint32_t, 256> table = makeTable();
  const unsigned char *next = static_cast<const unsigned char *>(data);
  for (; bytes > 0; --bytes)
    state = state >> 8 ^ table[(state ^ *next++) & 0xff];
  return state;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32cByInstruction(uint32_t state, const void *data,
                                                                      uint64_t bytes) {
  const char *next = static_cast<const char *>(data);
  uint64_t wide = state;
  for (; bytes >= 8; bytes -= 8, next += 8) {
    uint64_t word;
    std::memcpy(&word, next, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return crc32cByTable(static_cast<uint32_t>(wide), next, bytes);
}
#endif

void Checksum::add(const void *data, uint64_t bytes) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2")) {
    state = crc32cByInstruction(state, data, bytes);
    return;
  }
#endif
  state = crc32cByTable(state, data, bytes);
}

std::string Checksum::text() const {
  std::string digits;
  for (int shift = 28; shift >= 0; shift -= 4)
    digits += "0123456789abcdef"[~state >> shift & 15];
  return digits;
}
