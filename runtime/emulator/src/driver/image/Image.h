// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The images that programs load: PTX text, cubins that carry their PTX, fat binaries, what cuLinkComplete
// gave.

#ifndef FP8EMU_DRIVER_IMAGE_IMAGE_H
#define FP8EMU_DRIVER_IMAGE_IMAGE_H

#include "Cubin.h"

#include <functional>
#include <map>
#include <string>

namespace fp8emu {
struct Kernel;
} // namespace fp8emu

namespace fp8emu::driver {

struct Image {
  /// PTX text, or what ptx::join makes of several.
  std::string ptx;
  /// Of PTX out of a cubin: the kernels of the machine code, and the bytes of their parameters.
  std::map<std::string, unsigned> kernels;
};

/// Reads an image of so many bytes. Of a fat binary it takes the PTX for the latest chip among those
/// whose target `runs`, before that of a cubin for the same. Throws ImageError where the image has machine
/// code alone, is damaged, or has no PTX that `runs`.
Image readImage(const char *bytes, size_t size, const std::function<bool(const std::string &)> &runs);

/// Throws ImageError where the PTX out of a cubin cannot be what its machine code was made from: a kernel
/// is missing, or has other parameters. `find` gives a kernel of the PTX, null for none.
void checkIsCurrent(const Image &image, const std::function<const Kernel *(const std::string &)> &find);

} // namespace fp8emu::driver

#endif // FP8EMU_DRIVER_IMAGE_IMAGE_H
