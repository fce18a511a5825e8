// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that appear whole or not at all.

#ifndef FP8RT_CORE_ATOMICFILE_H
#define FP8RT_CORE_ATOMICFILE_H

#include <cstddef>
#include <string>

namespace fp8rt {

/// A file being written under a temporary name in the folder of `path`, which
/// `commit` gives its final name; gone if it is destroyed before. A path that
/// is there and not a regular file (/dev/stdout, a pipe) is written directly.
class AtomicFile {
public:
  explicit AtomicFile(const std::string &path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(const void *data, size_t bytes);
  void commit();

private:
  [[noreturn]] void failWith(const char *what, int error);

  std::string path;
  std::string target;    // path with symbolic links followed
  std::string temporary; // empty when written directly or committed
  int descriptor = -1;
};

} // namespace fp8rt

#endif // FP8RT_CORE_ATOMICFILE_H
