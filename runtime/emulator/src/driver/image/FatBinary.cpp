// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading fat binaries. NVIDIA does not document their format; that of CUDA 11 to 13 is read here.

#include "FatBinary.h"

#include "Cubin.h"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>

using namespace fp8emu::driver;

namespace {

constexpr uint32_t kMagic = 0xBA55ED50, kWrapperMagic = 0x466243B1;

struct Header {
  uint32_t magic;
  uint16_t version, headerBytes;
  uint64_t bytes; ///< behind the header
};

struct EntryHeader {
  uint16_t kind, version;
  uint32_t headerBytes;
  /// With padding; without, where it is compressed.
  uint64_t bytes;
  uint32_t compressedBytes, options;
  uint16_t minor, major;
  uint32_t arch, nameOffset, nameBytes;
  uint64_t flags, zero, uncompressedBytes;
};

enum Kind : uint16_t { Ptx = 1, Elf = 2 };
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;

[[noreturn]] void damaged() { throw ImageError("the fat binary is damaged"); }

template <class T>
T load(const char *from) {
  T out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

/// Bytes that are read one after the other.
struct Cursor {
  const char *next, *end;

  uint8_t byte() {
    if (next == end)
      damaged();
    return uint8_t(*next++);
  }
  /// A length of LZ4: one nibble, and bytes that are added while they are 255.
  size_t length(unsigned nibble) {
    size_t out = nibble;
    for (uint8_t more = nibble == 15 ? 255 : 0; more == 255; out += more)
      more = byte();
    return out;
  }
};

/// The last `distance` bytes again, and again from there, `count` in all.
void repeat(std::string &out, size_t distance, size_t count) {
  if (distance == 0 || distance > out.size())
    damaged();
  for (; count; --count)
    out.push_back(out[out.size() - distance]);
}

/// A block of LZ4: literals and matches in turn, literals at the end.
std::string decodeLz4(Cursor from, size_t bytes) {
  std::string out;
  while (true) {
    const uint8_t token = from.byte();
    const size_t literals = from.length(token >> 4);
    if (size_t(from.end - from.next) < literals || bytes - out.size() < literals)
      damaged();
    out.append(from.next, literals);
    from.next += literals;
    if (from.next == from.end)
      break;
    const size_t low = from.byte(), distance = low | size_t(from.byte()) << 8;
    const size_t match = from.length(token & 15) + 4;
    if (bytes - out.size() < match)
      damaged();
    repeat(out, distance, match);
  }
  if (out.size() != bytes)
    damaged();
  return out;
}

std::string decodeZstd(const Cursor &from, size_t bytes) {
  static void *const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  using Decompress = size_t (*)(void *, size_t, const void *, size_t);
  const auto decompress = library ? reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress")) : nullptr;
  if (!decompress)
    throw ImageError(
        "the fat binary is compressed by zstd, and there is no libzstd.so.1: install it (package "
        "libzstd1), or compile with nvcc -compress-mode=speed");
  std::string out(bytes, '\0');
  // An error is a number that is too large.
  if (decompress(out.data(), bytes, from.next, size_t(from.end - from.next)) != bytes)
    damaged();
  return out;
}

std::string contentOf(const EntryHeader &entry, const char *from) {
  // No PTX or cubin comes near to that.
  constexpr uint64_t kMost = uint64_t(1) << 30;
  if (!(entry.flags & (kLz4 | kZstd)))
    return std::string(from, entry.bytes);
  if (entry.compressedBytes > entry.bytes || entry.uncompressedBytes > kMost)
    damaged();
  const Cursor compressed{from, from + entry.compressedBytes};
  return entry.flags & kLz4 ? decodeLz4(compressed, entry.uncompressedBytes)
                            : decodeZstd(compressed, entry.uncompressedBytes);
}

} // namespace

bool fp8emu::driver::isFatBinary(const char *image) {
  // Text ends with a NUL, and may be shorter than four bytes.
  const uint32_t magic = std::memchr(image, 0, 4) ? 0 : load<uint32_t>(image);
  return magic == kMagic || magic == kWrapperMagic;
}

std::vector<FatEntry> fp8emu::driver::readFatBinary(const char *image) {
  // A wrapper has its version behind the magic number, and then the address.
  if (load<uint32_t>(image) == kWrapperMagic)
    image = load<const char *>(image + 8);
  const auto header = load<Header>(image);
  if (header.magic != kMagic || header.version != 1 || header.headerBytes < sizeof header)
    throw ImageError("the fat binary has a format that the emulator does not know");
  std::vector<FatEntry> out;
  const char *at = image + header.headerBytes;
  for (const char *end = at + header.bytes; at != end;) {
    if (size_t(end - at) < sizeof(EntryHeader))
      damaged();
    const auto entry = load<EntryHeader>(at);
    if (entry.headerBytes < sizeof entry || size_t(end - at) < entry.headerBytes ||
        size_t(end - at) - entry.headerBytes < entry.bytes)
      damaged();
    if (entry.kind == Ptx || entry.kind == Elf)
      out.push_back({entry.kind == Ptx, entry.arch, contentOf(entry, at + entry.headerBytes)});
    at += entry.headerBytes + entry.bytes;
  }
  return out;
}
