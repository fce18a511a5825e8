// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes files that appear complete or not at all.

#ifndef FP8RT_CORE_ATOMICFILE_H
#define FP8RT_CORE_ATOMICFILE_H

#include <cstddef>
#include <string>

namespace fp8rt {

/// A file that is written under a temporary name in the folder of `path`.
/// `commit` gives it its final name; the destructor deletes it otherwise. An
/// existing path that is not a regular file (/dev/stdout, a pipe) is written
/// directly. Temporary files that killed processes left for `path` are deleted first.
class AtomicFile {
public:
  explicit AtomicFile(const std::string &path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(const void *data, size_t bytes);
  /// Waits until the file and its name are on the disk.
  void commit();

private:
  [[noreturn]] void failWith(const char *what, int error) const;

  std::string path;
  std::string target;    // path with symbolic links followed
  std::string temporary; // empty when written directly or committed
  int descriptor = -1;
};

/// Waits until the names in the folder of `path` are on the disk.
void syncFolder(const std::string &path);

} // namespace fp8rt

#endif // FP8RT_CORE_ATOMICFILE_H
