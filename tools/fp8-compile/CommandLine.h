// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of fp8-compile.

#ifndef FP8_TOOLS_FP8_COMPILE_COMMANDLINE_H
#define FP8_TOOLS_FP8_COMPILE_COMMANDLINE_H

#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Pipelines/Pipelines.h"
#include <string>
#include <vector>

/// Where a report goes, and as what.
struct ReportRequest {
  bool json = false;
  std::string file; ///< empty: standard output
};

/// One pair of --carry: an argument (index or name) and the result that replaces it.
struct CarryRequest {
  std::string argument;
  unsigned result;
};

struct CommandLine {
  std::string input, output;
  fp8::RecipeOptions recipe;
  /// The recipe as an attribute, empty for none.
  std::string recipeAttribute;
  std::string emit = "lib", target = "cpu", manifestFile;
  std::vector<ReportRequest> reports;
  std::vector<CarryRequest> carry;
  std::optional<fp8::PairRequest> pair;
  /// What was asked for that does not exist yet, as an error message; empty for nothing.
  std::string unavailable;
};

/// Parses the arguments. False where they are wrong: one line on standard error says what.
/// Prints and exits for --help and --version.
bool parseCommandLine(int argc, char **argv, CommandLine &out);

#endif // FP8_TOOLS_FP8_COMPILE_COMMANDLINE_H
