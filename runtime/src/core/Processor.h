// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks whether this machine can run the instructions of compiled code.

#ifndef FP8RT_CORE_PROCESSOR_H
#define FP8RT_CORE_PROCESSOR_H

#include <string>
#include <vector>

namespace fp8rt {

/// The processor that compiled code needs.
struct RequiredProcessor {
  std::string name; // for messages
  /// Names of features in LLVM.
  std::vector<std::string> features;
};

/// Throws an Error that names the features which this machine, or the operating system,
/// lacks, or which this runtime does not know. Asks the kernel for tile registers where they are among the
/// features. Only x86-64's are checked.
void checkProcessor(const RequiredProcessor &required);

} // namespace fp8rt

#endif // FP8RT_CORE_PROCESSOR_H
