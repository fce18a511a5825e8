// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel of the command line, loaded on the emulator's machine. The machine's exceptions
// and faults become LLVM errors that begin with the place, FILE:LINE:COLUMN.

#ifndef FP8_TOOLS_FP8PTX_LOADEDKERNEL_H
#define FP8_TOOLS_FP8PTX_LOADEDKERNEL_H

#include "Options.h"

#include "fp8emu/Machine.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace fp8ptx {

/// An error at a place of a file.
llvm::Error failureAt(llvm::StringRef file, fp8emu::Location where, const llvm::Twine &message);

/// The text of a file.
llvm::Expected<std::string> readText(llvm::StringRef path);

class LoadedKernel {
public:
  /// Reads and decodes the file for the chip that the options name, or for one that runs it,
  /// and finds the kernel.
  static llvm::Expected<std::unique_ptr<LoadedKernel>> load(const RunOptions &options);

  /// Memory of the machine, never empty, zeroed and counted as written.
  llvm::Expected<uint64_t> allocate(uint64_t bytes, const std::string &what);
  const fp8emu::Kernel &kernel() const { return *entry; }

  /// Runs the kernel with these bytes for each parameter; a profile of the launch goes to
  /// where the options say, also of one that failed.
  llvm::Error launch(llvm::ArrayRef<std::vector<uint8_t>> parameters);

private:
  explicit LoadedKernel(const RunOptions &options) : options(options) {}
  llvm::Error choose(const std::string &target);
  llvm::Error findKernel();
  llvm::Expected<fp8emu::LaunchConfig> configure(llvm::ArrayRef<std::vector<uint8_t>> parameters) const;
  fp8emu::Settings settings() const;
  llvm::Error report(const fp8emu::ProfileReport &profile) const;
  llvm::Error describe(const fp8emu::Fault &fault) const;

  const RunOptions &options;
  fp8emu::Machine machine;
  const fp8emu::Chip *chip = nullptr;
  std::unique_ptr<fp8emu::Module> module;
  const fp8emu::Kernel *entry = nullptr;
};

} // namespace fp8ptx

#endif // FP8_TOOLS_FP8PTX_LOADEDKERNEL_H
