// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A PTX file loaded on an emulated chip: its exceptions as LLVM errors that begin
// with the place, FILE:LINE:COLUMN.

#ifndef FP8_TOOLS_FP8PTX_MACHINE_H
#define FP8_TOOLS_FP8PTX_MACHINE_H

#include "Options.h"

#include "exec/Chip.h"
#include "memory/DeviceMemory.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace fp8ptx {

/// An error at a line of a file; line 0 means all of it.
llvm::Error failureAt(llvm::StringRef file, fp8emu::ptx::Location where, const llvm::Twine &message);

/// The text of a file.
llvm::Expected<std::string> readText(llvm::StringRef path);

class Machine {
public:
  /// Parses and decodes the file for the chip that the options name, or for one that
  /// runs it, and finds the kernel.
  static llvm::Expected<std::unique_ptr<Machine>> load(const RunOptions &options);
  ~Machine();

  /// Memory of a device, never empty, zeroed and counted as written.
  llvm::Expected<uint64_t> allocate(uint64_t bytes, const std::string &what);
  const fp8emu::FunctionCode &kernel() const { return *entry; }
  const fp8emu::Chip &chip() const { return *standsFor; }

  /// Runs the kernel with these bytes for each parameter; a profile of it goes to where
  /// the options say, also of one that failed.
  llvm::Error launch(llvm::ArrayRef<std::vector<uint8_t>> parameters);

private:
  explicit Machine(const RunOptions &options) : options(options) {}
  llvm::Error choose(const fp8emu::ptx::Module &module);
  llvm::Error findKernel();
  llvm::Expected<fp8emu::LaunchConfig> configure(llvm::ArrayRef<std::vector<uint8_t>> parameters) const;
  llvm::Error report(const fp8emu::Profile &profile) const;
  llvm::Error describe(const fp8emu::Fault &fault) const;

  const RunOptions &options;
  fp8emu::DeviceMemory memory;
  const fp8emu::Chip *standsFor = nullptr;
  std::unique_ptr<fp8emu::Program> program;
  const fp8emu::FunctionCode *entry = nullptr;
};

} // namespace fp8ptx

#endif // FP8_TOOLS_FP8PTX_MACHINE_H
