// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's C ABI with LLVM errors and owning pointers, and the entry points
// to run: one, or the two functions of a pair.

#ifndef FP8_TOOLS_FP8RUN_PROGRAM_H
#define FP8_TOOLS_FP8RUN_PROGRAM_H

#include "fp8rt/owned.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace fp8run {

/// Returns the runtime's last error if `status` is one.
llvm::Error check(fp8rt_status status);

/// Creates an error with this message.
llvm::Error failure(const llvm::Twine &message);

using namespace fp8rt::owned;

/// One function to run.
struct Function {
  std::string name;
  Session session;
  std::vector<fp8rt_value> arguments;
  std::vector<fp8rt_value> results;
};

/// An argument or result of one of the functions.
struct Place {
  Function *function;
  uint32_t index;

  const fp8rt_value &argument() const { return function->arguments[index]; }
  const fp8rt_value &result() const { return function->results[index]; }
  /// The value of a result after a step, in host memory.
  llvm::Expected<const DLTensor *> getResultValue() const;
};

/// A loaded library, its state, and the functions that make up a step.
class Program {
public:
  /// Loads the library and prepares one entry, or two that are a pair, on a device ("cpu" or one of gpu.h).
  llvm::Error load(const std::string &path, const std::vector<std::string> &entries,
                   const std::string &device);

  /// Performs the collectives of all following steps.
  llvm::Error connect(fp8rt_communicator *communicator);
  /// Checks that all ranks have the same values of what is common to them.
  llvm::Error compareRanks();
  const fp8rt_library *compiled() const { return library.get(); }

  std::vector<Function> &functions() { return steps; }
  fp8rt_state *state() { return fp8State.get(); }
  /// The device's name; empty for the CPU.
  std::string deviceName() const { return gpu ? fp8rt_gpu_name(gpu.get()) : ""; }

  /// Find the argument or result with `key`. In a pair the prefix `B.` selects the
  /// second function; the first is the default, or `F.`.
  llvm::Expected<Place> findArgument(llvm::StringRef key);
  llvm::Expected<Place> findResult(llvm::StringRef key);

  /// Measures the kernels of all following steps.
  llvm::Error startProfile();
  fp8rt_profiler *profiler() { return kernelTimes.get(); }
  llvm::StringRef manifest() const { return fp8rt_library_manifest(library.get()); }

  /// Runs every function once; residuals are passed from the first to the second.
  llvm::Error step();

private:
  llvm::Error createState();
  llvm::Error createSession(Function &function);
  llvm::Error addFunction(const std::string &name);
  llvm::Error checkResiduals() const;
  llvm::Error handOverResiduals();
  Function &select(llvm::StringRef &key);

  Library library;
  GPU gpu; // null for the CPU
  State fp8State;
  Profiler kernelTimes;
  std::vector<Function> steps;
};

} // namespace fp8run

#endif // FP8_TOOLS_FP8RUN_PROGRAM_H
