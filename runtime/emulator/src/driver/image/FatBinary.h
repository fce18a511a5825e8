// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fat binaries: PTX and machine code for several chips in one image, compressed or not.

#ifndef FP8EMU_DRIVER_IMAGE_FATBINARY_H
#define FP8EMU_DRIVER_IMAGE_FATBINARY_H

#include <string>
#include <vector>

namespace fp8emu::driver {

struct FatEntry {
  bool isPtx;
  /// As in sm_90.
  unsigned arch;
  /// PTX text, or a cubin.
  std::string bytes;
};

/// Whether an image is a fat binary, or the wrapper around one that nvcc puts into programs.
bool isFatBinary(const char *image);
/// The entries, decompressed by liblz4.so.1 or libzstd.so.1 of the system. Entries of other kinds are
/// left out. Throws ImageError (Cubin.h).
std::vector<FatEntry> readFatBinary(const char *image);

} // namespace fp8emu::driver

#endif // FP8EMU_DRIVER_IMAGE_FATBINARY_H
