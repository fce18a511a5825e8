// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code that the command lines of our tools share: they accept only options of their own, report
// an error in one line, and know when two options name one file.

#ifndef FP8_TOOLS_TOOLSUPPORT_H
#define FP8_TOOLS_TOOLSUPPORT_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <optional>
#include <string>

namespace fp8tool {

/// Unregisters all options except those of `ours`: LLVM's libraries have hundreds of their own.
inline void dropForeignOptions(llvm::cl::OptionCategory &ours) {
  llvm::SmallVector<llvm::cl::Option *> foreign;
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (!llvm::is_contained(option->Categories, &ours) && !name.starts_with("help") && name != "version")
      foreign.push_back(option);
  for (llvm::cl::Option *option : foreign)
    option->removeArgument();
}

/// Unregisters the options of `ours`, because LLVM keeps pointers to options that are destroyed, and
/// the linker resets all registered ones.
inline void dropOptions(llvm::cl::OptionCategory &ours) {
  llvm::SmallVector<llvm::cl::Option *> options;
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (llvm::is_contained(option->Categories, &ours))
      options.push_back(option);
  for (llvm::cl::Option *option : options)
    option->removeArgument();
}

/// Returns `text` without line breaks.
inline std::string oneLine(llvm::StringRef text) {
  std::string line = text.trim().str();
  for (char &c : line)
    if (c == '\n')
      c = ' ';
  return line;
}

/// Reports what standard output did not take, where LLVM's stream would end the process with a message of its
/// own. Only for the end of the process.
inline void finishOutput(const std::string &tool) {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return;
  llvm::errs() << tool << ": error: cannot write to standard output: " << llvm::outs().error().message()
               << "\n";
  std::_Exit(1);
}

/// Parses the command line; returns LLVM's error message, without the tool's name before every
/// sentence, if it is wrong. The message is empty if LLVM has printed it already, as for a value that
/// does not parse.
inline std::optional<std::string> parseCommandLine(int argc, char **argv, llvm::cl::OptionCategory &ours,
                                                   const char *overview) {
  static const std::string tool = llvm::sys::path::filename(argv[0]).str();
  llvm::outs(); // these are destroyed after what is registered now has run
  llvm::errs();
  std::atexit([] { finishOutput(tool); });
  dropForeignOptions(ours);
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::cl::ParseCommandLineOptions(argc, argv, overview, &stream))
    return std::nullopt;
  const std::string prefix = tool + ": ";
  for (size_t at; (at = problems.find(prefix)) != std::string::npos;)
    problems.erase(at, prefix.size());
  return problems;
}

/// Whether two names are of one file, which may not be there yet; of devices and pipes none are.
inline bool areSameFile(llvm::StringRef one, llvm::StringRef other) {
  if (one.empty() || other.empty())
    return false;
  llvm::sys::fs::file_status first, second;
  bool exist = !llvm::sys::fs::status(one, first) && !llvm::sys::fs::status(other, second);
  if (exist && one != "-")
    return llvm::sys::fs::is_regular_file(first) && llvm::sys::fs::equivalent(first, second);
  llvm::SmallString<256> places[] = {one, other};
  for (llvm::SmallString<256> &place : places)
    if (place != "-" && !llvm::sys::fs::make_absolute(place))
      llvm::sys::path::remove_dots(place);
  return places[0] == places[1];
}

} // namespace fp8tool

#endif // FP8_TOOLS_TOOLSUPPORT_H
