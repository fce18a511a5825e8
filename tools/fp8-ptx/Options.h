// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of the command line.

#ifndef FP8_TOOLS_FP8PTX_OPTIONS_H
#define FP8_TOOLS_FP8PTX_OPTIONS_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace fp8ptx {

using Dim3 = std::array<uint32_t, 3>;

/// Empty strings stand for options that were not given.
struct RunOptions {
  std::string file;
  std::string kernel;
  Dim3 grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t shared = 0;
  bool cooperative = false;
  std::vector<std::string> arguments;
  std::string inputs, outputs;
  std::string chip;
  uint64_t seed = 0;
  bool checks = true;
  /// Whether to profile the kernel. The profile is JSON in `profileFile`, or a table on standard output
  /// if that is empty.
  bool profile = false;
  std::string profileFile;
  /// "hardware", "exact" or "korder".
  std::string sums;
};

} // namespace fp8ptx

#endif // FP8_TOOLS_FP8PTX_OPTIONS_H
