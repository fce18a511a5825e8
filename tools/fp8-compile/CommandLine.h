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

/// Where a report goes, and as what.
struct ReportRequest {
  bool json = false;
  std::string file; ///< empty: standard output
};

/// What is read, what is written, and what the compiler makes of it.
struct CommandLine {
  std::string input, output, manifestFile;
  std::vector<ReportRequest> reports;
  fp8::CompilerOptions options;
};

/// Says on standard error, in one line, what is wrong with the command line; returns false.
bool rejectCommandLine(const llvm::Twine &message);

/// Parses the arguments. False where they are wrong: one line on standard error says what.
/// Prints and exits for --help and --version.
bool parseCommandLine(int argc, char **argv, CommandLine &out);

#endif // FP8_TOOLS_FP8_COMPILE_COMMANDLINE_H
