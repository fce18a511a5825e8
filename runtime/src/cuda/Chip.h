// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chips and the drivers that run an image.

#ifndef FP8RT_CUDA_CHIP_H
#define FP8RT_CUDA_CHIP_H

#include "fp8rt/device.h"

#include <string>

namespace fp8rt::cuda {

/// A device's compute capability.
struct Capability {
  int major = 0, minor = 0;
};

/// Returns "sm_89", without the letter that a program for it may have.
std::string chipName(Capability device);

/// Returns whether a device runs code that was compiled for `chip`: "sm_89" runs on later chips too,
/// "sm_100f" on later ones of its family, "sm_90a" on none.
bool runs(Capability device, const std::string &chip);

/// Returns whether `chip` is of exactly this capability.
bool isExactly(Capability device, const std::string &chip);

/// Returns the best image for a device: that of its own chip, else the newest that it runs; null if it
/// runs none.
const fp8rt_device_image *chooseImage(const fp8rt_device_code &code, Capability device);

/// Returns the version of the first CUDA driver that knows a version of PTX, as in 12040 for 84; 0 if that
/// is not known.
int driverForPtx(uint32_t ptxVersion);

} // namespace fp8rt::cuda

#endif // FP8RT_CUDA_CHIP_H
