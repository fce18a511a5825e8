// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cubins: files of machine code, which may carry the PTX that they were made from.

#ifndef FP8EMU_DRIVER_CUBIN_H
#define FP8EMU_DRIVER_CUBIN_H

#include <optional>
#include <string>

namespace fp8emu::driver {

/// Whether an image is a cubin.
bool isCubin(const char *image);

/// The PTX that a cubin carries for debuggers: `ptxas -lineinfo` keeps it. Nothing where there is
/// none. The image is trusted to be as long as its header says.
std::optional<std::string> ptxOf(const char *cubin);

} // namespace fp8emu::driver

#endif // FP8EMU_DRIVER_CUBIN_H
