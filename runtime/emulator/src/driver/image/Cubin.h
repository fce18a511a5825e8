// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cubins: files of machine code, which may carry the PTX that they were made from.

#ifndef FP8EMU_DRIVER_IMAGE_CUBIN_H
#define FP8EMU_DRIVER_IMAGE_CUBIN_H

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace fp8emu::driver {

/// An image that cannot be read. what() says why, and what to do.
struct ImageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Cubin {
  /// The PTX that the cubin carries for debuggers (`ptxas -lineinfo` keeps it): one text for each
  /// file that was linked.
  std::vector<std::string> ptx;
  /// The kernels of the machine code, and the bytes of their parameters.
  std::map<std::string, unsigned> kernels;
};

/// The size of an image that is given without one.
constexpr size_t kUnknownSize = size_t(1) << 47;

/// Whether an image is a cubin.
bool isCubin(const char *image);
/// Reads a cubin of so many bytes; one of unknown size is trusted to be as long as its header says.
/// Throws ImageError.
Cubin readCubin(const char *image, size_t bytes);

} // namespace fp8emu::driver

#endif // FP8EMU_DRIVER_IMAGE_CUBIN_H
