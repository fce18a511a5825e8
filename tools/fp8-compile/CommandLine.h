// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of fp8-compile.

#ifndef FP8_TOOLS_FP8_COMPILE_COMMANDLINE_H
#define FP8_TOOLS_FP8_COMPILE_COMMANDLINE_H

#include "fp8/Compiler/Options.h"
#include <string>
#include <vector>

/// A report to write: its form, and its file.
struct ReportRequest {
  bool json = false;
  std::string file; ///< empty: standard output
};

/// The files to read and write, and the compiler's options.
struct CommandLine {
  std::string input, output, manifestFile;
  std::vector<ReportRequest> reports;
  fp8::CompilerOptions options;
  unsigned threads = 0; ///< 0: one per core
  /// text or json: only print what targets support; empty: compile.
  std::string printSupport;
  bool remarks = false; ///< print optimization remarks
};

/// Prints an error in the command line, one line on standard error; returns false.
bool rejectCommandLine(const llvm::Twine &message);

/// Parses the arguments. Returns false after an error, which is one line on standard error.
/// Prints and exits for --help and --version.
bool parseCommandLine(int argc, char **argv, CommandLine &out);

#endif // FP8_TOOLS_FP8_COMPILE_COMMANDLINE_H
