// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The section of a cubin that holds its PTX.

#include "Cubin.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

using namespace fp8emu::driver;

bool fp8emu::driver::isCubin(const char *image) { return std::strncmp(image, ELFMAG, SELFMAG) == 0; }

std::optional<std::string> fp8emu::driver::ptxOf(const char *cubin) {
  constexpr uint16_t kMachine = 190; // EM_CUDA
  Elf64_Ehdr header;
  std::memcpy(&header, cubin, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum)
    return std::nullopt;
  auto section = [&](unsigned index) {
    Elf64_Shdr out;
    std::memcpy(&out, cubin + header.e_shoff + index * sizeof out, sizeof out);
    return out;
  };
  const char *names = cubin + section(header.e_shstrndx).sh_offset;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr found = section(i);
    if (std::strcmp(names + found.sh_name, ".nv_debug_ptx_txt") != 0)
      continue;
    // Each line ends with a NUL.
    std::string text(cubin + found.sh_offset, found.sh_size);
    std::replace(text.begin(), text.end(), '\0', '\n');
    return text;
  }
  return std::nullopt;
}
