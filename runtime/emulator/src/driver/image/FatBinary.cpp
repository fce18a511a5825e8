// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading fat binaries. NVIDIA does not document their format; that of CUDA 11 to 13 is read here.

#include "FatBinary.h"

#include "Cubin.h"

#include <algorithm>
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

/// Returns the function `name` of a library of the system; throws what to install if it is not there.
void *findDecompressor(const char *library, const char *name, const char *package) {
  void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void *const function = handle ? dlsym(handle, name) : nullptr;
  if (!function)
    throw ImageError(std::string("the fat binary is compressed, and there is no ") + library +
                     ": install it (package " + package + "), or compile with nvcc -no-compress");
  return function;
}

std::string decodeLz4(const char *from, size_t compressedBytes, size_t bytes) {
  using Decompress = int (*)(const char *, char *, int, int);
  static const auto decompress =
      reinterpret_cast<Decompress>(findDecompressor("liblz4.so.1", "LZ4_decompress_safe", "liblz4-1"));
  std::string out(bytes, '\0');
  if (decompress(from, out.data(), int(compressedBytes), int(bytes)) != int(bytes))
    damaged();
  return out;
}

std::string decodeZstd(const char *from, size_t compressedBytes, size_t bytes) {
  using Decompress = size_t (*)(void *, size_t, const void *, size_t);
  static const auto decompress =
      reinterpret_cast<Decompress>(findDecompressor("libzstd.so.1", "ZSTD_decompress", "libzstd1"));
  std::string out(bytes, '\0');
  // An error is a number that is too large.
  if (decompress(out.data(), bytes, from, compressedBytes) != bytes)
    damaged();
  return out;
}

std::string contentOf(const EntryHeader &entry, const char *from) {
  // No PTX or cubin comes near to that.
  constexpr uint64_t kMost = uint64_t(1) << 30;
  if (!(entry.flags & (kLz4 | kZstd)))
    return std::string(from, entry.bytes);
  if (entry.compressedBytes > std::min(entry.bytes, kMost) || entry.uncompressedBytes > kMost)
    damaged();
  return (entry.flags & kLz4 ? decodeLz4 : decodeZstd)(from, entry.compressedBytes, entry.uncompressedBytes);
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
