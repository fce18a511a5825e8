// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks the file of a shared library before dlopen loads it.

#ifndef FP8RT_CORE_ELFFILE_H
#define FP8RT_CORE_ELFFILE_H

#include <string>

namespace fp8rt {

/// Throws an Error unless `path` is a complete 64-bit ELF file. dlopen maps a
/// file without checking its size, so a truncated one would kill the process.
void checkElfFile(const std::string &path);

} // namespace fp8rt

#endif // FP8RT_CORE_ELFFILE_H
