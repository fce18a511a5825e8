// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks that all parts of an ELF file lie within the file.

#include "ElfFile.h"
#include "Status.h"

#include <cerrno>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>

using namespace fp8rt;

/// Returns whether `count` records of `size` bytes at `offset` are in the file.
static bool lieWithin(uint64_t fileBytes, uint64_t offset, uint64_t count, uint64_t size) {
  uint64_t bytes;
  return !__builtin_mul_overflow(count, size, &bytes) && bytes <= fileBytes && offset <= fileBytes - bytes;
}

static bool isComplete(std::ifstream &file, uint64_t bytes, const Elf64_Ehdr &header) {
  if (!lieWithin(bytes, header.e_shoff, header.e_shnum, header.e_shentsize) ||
      !lieWithin(bytes, header.e_phoff, header.e_phnum, header.e_phentsize) ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return false;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!file.read(reinterpret_cast<char *>(&segment), sizeof(segment)) ||
        !lieWithin(bytes, segment.p_offset, 1, segment.p_filesz))
      return false;
  }
  return true;
}

void fp8rt::checkElfFile(const std::string &path) {
  std::error_code error;
  uint64_t bytes = std::filesystem::file_size(path, error);
  if (error)
    fail(error == std::errc::no_such_file_or_directory ? FP8RT_NOT_FOUND : FP8RT_IO, error.message());
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail(FP8RT_IO, std::strerror(errno));
  Elf64_Ehdr header;
  if (!file.read(reinterpret_cast<char *>(&header), sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64)
    fail(FP8RT_CORRUPT, "not a shared library");
  if (!isComplete(file, bytes, header))
    fail(FP8RT_CORRUPT, "the file is truncated");
}
