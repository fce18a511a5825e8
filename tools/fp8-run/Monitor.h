// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The output of --monitor after a step: a reading per quantized tensor, from the state and from what a
// library of fp8-compile --measure-errors measures.

#ifndef FP8_TOOLS_FP8RUN_MONITOR_H
#define FP8_TOOLS_FP8RUN_MONITOR_H

#include "MonitorTable.h"
#include "Options.h"
#include "Program.h"

#include "llvm/Support/raw_ostream.h"

#include <map>
#include <memory>

namespace fp8run {

class Monitor {
public:
  Monitor(const Options &options, Program &program) : options(options), program(program) {}

  /// Finds what there is to read, and opens the file. A program without FP8 tensors is an error.
  llvm::Error start();

  /// Reads and shows everything after step `step`, if it is one to show; `printed` is the value of --print,
  /// or null.
  llvm::Error addStep(uint64_t step, const DLTensor *printed);

private:
  /// Results of the program that measure one cast; any may be missing.
  struct Measured {
    std::optional<Place> error, underflow, overflow, amax;
  };

  llvm::Error readManifest();
  void findMeasured();
  void addRowsWithoutColumn();
  llvm::Error readState();
  void readMeasured(size_t row);
  llvm::Error writeLines(uint64_t step, const DLTensor *printed);

  const Options &options;
  Program &program;
  std::vector<Reading> readings;               // columns of the state, then casts that have none
  std::vector<std::vector<Measured>> measured; // by reading
  std::map<std::pair<std::string, std::string>, std::vector<Measured>> bySite; // and tensor
  std::unique_ptr<llvm::raw_fd_ostream> file;
  llvm::raw_ostream *lines = nullptr; // null if the table is shown
  std::optional<MonitorTable> table;
};

} // namespace fp8run

#endif // FP8_TOOLS_FP8RUN_MONITOR_H
