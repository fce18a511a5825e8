// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Helpers of the fuzzers: the input as a file in memory, and what must be true of every error.

#ifndef FP8RT_FUZZ_FUZZSUPPORT_H
#define FP8RT_FUZZ_FUZZSUPPORT_H

#include "fp8rt/status.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace fp8rt_fuzz {

/// Ends the process, as a crash does, if `condition` is false.
inline void require(bool condition, const char *what) {
  if (condition)
    return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

/// A file with the input's bytes that lies in memory.
class MemoryFile {
public:
  MemoryFile(const uint8_t *data, size_t size) : descriptor(memfd_create("input", MFD_CLOEXEC)) {
    require(descriptor >= 0 && write(descriptor, data, size) == static_cast<ssize_t>(size),
            "a file in memory");
    name = "/proc/self/fd/" + std::to_string(descriptor);
  }
  ~MemoryFile() { close(descriptor); }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;

  const char *path() const { return name.c_str(); }

private:
  int descriptor;
  std::string name;
};

/// Every error has one line of text, and none is a bug of the runtime.
inline void checkError(fp8rt_status status) {
  require(status != FP8RT_INTERNAL, "no input gives an internal error");
  if (status != FP8RT_OK)
    require(*fp8rt_last_error() && !std::strchr(fp8rt_last_error(), '\n'), "an error is one line");
}

} // namespace fp8rt_fuzz

#endif // FP8RT_FUZZ_FUZZSUPPORT_H
