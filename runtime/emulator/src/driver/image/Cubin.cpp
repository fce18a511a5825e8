// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sections of a cubin: its PTX, the names of its kernels, the sizes of their parameters.

#include "Cubin.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <elf.h>

using namespace fp8emu::driver;

namespace {

constexpr uint16_t kMachine = 190; // EM_CUDA
/// The bit of a symbol's st_other that tells kernels from other functions.
constexpr unsigned char kEntry = 0x10;
/// The attribute in .nv.info.KERNEL that is the size of the kernel's parameters; formats of
/// attributes whose value lies in the two bytes behind them, and whose size does.
constexpr uint8_t kParameterBytes = 0x19, kValue = 3, kSized = 4;

class Reader {
public:
  Reader(const char *image, size_t bytes) : image(image), size(bytes) {
    header = at<Elf64_Ehdr>(0);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine ||
        header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum)
      throw ImageError("the image is an ELF file, but no cubin");
  }

  unsigned sections() const { return header.e_shnum; }
  Elf64_Shdr section(unsigned index) const {
    return at<Elf64_Shdr>(header.e_shoff + index * sizeof(Elf64_Shdr));
  }
  std::string name(const Elf64_Shdr &section) const {
    return text(this->section(header.e_shstrndx), section.sh_name);
  }
  std::string content(const Elf64_Shdr &section) const {
    check(section.sh_offset, section.sh_size);
    return std::string(image + section.sh_offset, section.sh_size);
  }

  /// Calls f(name) for each kernel of a table of symbols.
  template <class F>
  void forKernels(const Elf64_Shdr &symbols, F f) const {
    if (symbols.sh_link >= sections())
      return;
    const Elf64_Shdr names = section(symbols.sh_link);
    for (uint64_t i = 0; (i + 1) * sizeof(Elf64_Sym) <= symbols.sh_size; ++i) {
      const auto symbol = at<Elf64_Sym>(symbols.sh_offset + i * sizeof(Elf64_Sym));
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_other & kEntry && symbol.st_shndx)
        f(text(names, symbol.st_name));
    }
  }

private:
  void check(uint64_t offset, uint64_t bytes) const {
    if (offset > size || bytes > size - offset)
      throw ImageError("the cubin is damaged: a part of it lies behind its end");
  }
  template <class T>
  T at(uint64_t offset) const {
    check(offset, sizeof(T));
    T out;
    std::memcpy(&out, image + offset, sizeof out);
    return out;
  }
  std::string text(const Elf64_Shdr &names, uint64_t offset) const {
    const std::string all = content(names);
    return offset < all.size() ? std::string(all.c_str() + offset) : "";
  }

  const char *image;
  size_t size;
  Elf64_Ehdr header;
};

bool startsWith(const std::string &text, const char *start) { return text.rfind(start, 0) == 0; }

/// The size of the parameters in a section .nv.info.KERNEL; 0 where it says none.
unsigned parameterBytes(const std::string &info) {
  for (size_t at = 0; at + 4 <= info.size();) {
    const auto format = uint8_t(info[at]), attribute = uint8_t(info[at + 1]);
    const unsigned value = uint8_t(info[at + 2]) | uint8_t(info[at + 3]) << 8;
    if (format == kValue && attribute == kParameterBytes)
      return value;
    at += 4 + (format == kSized ? value : 0);
  }
  return 0;
}

} // namespace

bool fp8emu::driver::isCubin(const char *image) { return std::strncmp(image, ELFMAG, SELFMAG) == 0; }

Cubin fp8emu::driver::readCubin(const char *image, size_t bytes) {
  const Reader reader(image, bytes);
  Cubin out;
  std::map<std::string, unsigned> parameters;
  for (unsigned i = 0; i < reader.sections(); ++i) {
    const Elf64_Shdr section = reader.section(i);
    const std::string name = reader.name(section), info = ".nv.info.";
    if (startsWith(name, ".nv_debug_ptx_txt")) {
      // Each line ends with a NUL.
      out.ptx.push_back(reader.content(section));
      std::replace(out.ptx.back().begin(), out.ptx.back().end(), '\0', '\n');
    } else if (startsWith(name, info.c_str())) {
      parameters[name.substr(info.size())] = parameterBytes(reader.content(section));
    } else if (section.sh_type == SHT_SYMTAB) {
      reader.forKernels(section, [&](const std::string &kernel) { out.kernels[kernel] = 0; });
    }
  }
  for (auto &[kernel, size] : out.kernels)
    size = parameters[kernel];
  return out;
}
