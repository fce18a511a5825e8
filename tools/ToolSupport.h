// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the command lines of our tools have in common: only options of their own, and what
// is wrong in one line.

#ifndef FP8_TOOLS_TOOLSUPPORT_H
#define FP8_TOOLS_TOOLSUPPORT_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>
#include <string>

namespace fp8tool {

/// LLVM's library brings hundreds of options of its own; only those of `ours` are valid.
inline void dropForeignOptions(llvm::cl::OptionCategory &ours) {
  llvm::SmallVector<llvm::cl::Option *> foreign;
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (!llvm::is_contained(option->Categories, &ours) && !name.starts_with("help") && name != "version")
      foreign.push_back(option);
  for (llvm::cl::Option *option : foreign)
    option->removeArgument();
}

/// Those of `ours` are valid no more: LLVM keeps pointers to options that are gone, and the
/// linker resets all that it knows.
inline void dropOptions(llvm::cl::OptionCategory &ours) {
  llvm::SmallVector<llvm::cl::Option *> options;
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (llvm::is_contained(option->Categories, &ours))
      options.push_back(option);
  for (llvm::cl::Option *option : options)
    option->removeArgument();
}

/// Without line breaks.
inline std::string oneLine(llvm::StringRef text) {
  std::string line = text.trim().str();
  for (char &c : line)
    if (c == '\n')
      c = ' ';
  return line;
}

/// Reads the command line; what is wrong with it, if anything, in LLVM's words without the
/// tool's name before every sentence. It is empty where LLVM has complained itself: of a
/// value that does not parse.
inline std::optional<std::string> parseCommandLine(int argc, char **argv, llvm::cl::OptionCategory &ours,
                                                   const char *overview) {
  dropForeignOptions(ours);
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::cl::ParseCommandLineOptions(argc, argv, overview, &stream))
    return std::nullopt;
  const std::string prefix = llvm::sys::path::filename(argv[0]).str() + ": ";
  for (size_t at; (at = problems.find(prefix)) != std::string::npos;)
    problems.erase(at, prefix.size());
  return problems;
}

} // namespace fp8tool

#endif // FP8_TOOLS_TOOLSUPPORT_H
