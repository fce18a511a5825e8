// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state in files: read before the first step, saved while steps run.

#ifndef FP8_TOOLS_FP8RUN_STATEFILES_H
#define FP8_TOOLS_FP8RUN_STATEFILES_H

#include "Options.h"
#include "Program.h"

namespace fp8run {

class StateFiles {
public:
  StateFiles(const Options &options, Program &program) : options(options), program(program) {}

  /// Reads the state of --state; warns of everything in it that does not fit exactly.
  llvm::Error load();

  /// Saves the state after `finished` steps if --save-every asks for it, while the next steps run. Reports
  /// the error of an earlier one.
  llvm::Error saveEvery(uint64_t finished);

  /// Saves the state after the last step and waits until all files are complete.
  llvm::Error saveLast(uint64_t finished);

private:
  llvm::Error rename(fp8rt_tensors *tensors);
  llvm::Error importCarried(fp8rt_tensors *tensors);
  void warnOfCarried(fp8rt_tensors *tensors);
  void warn(llvm::StringRef difference) const;
  llvm::Error start();
  llvm::Error save(uint64_t finished);

  const Options &options;
  Program &program;
  Checkpoints checkpoints;
};

} // namespace fp8run

#endif // FP8_TOOLS_FP8RUN_STATEFILES_H
