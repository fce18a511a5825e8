// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The files that a command writes: all of them or none.

#ifndef FP8_TOOLS_FP8_COMPILE_OUTPUTFILES_H
#define FP8_TOOLS_FP8_COMPILE_OUTPUTFILES_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include <string>
#include <vector>

/// Files are written beside their places and renamed when all of them are complete: a failure
/// leaves every place as it was.
class OutputFiles {
public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles &) = delete;
  OutputFiles &operator=(const OutputFiles &) = delete;
  ~OutputFiles();

  /// Writes `bytes` for `path`: at once where that is "-" (standard output), a pipe or a
  /// device, which nothing may replace.
  llvm::Error write(llvm::StringRef path, llvm::StringRef bytes, bool isExecutable = false);

  /// Moves all files to their places.
  llvm::Error keep();

private:
  struct File {
    llvm::sys::fs::TempFile temporary;
    std::string path;
  };
  std::vector<File> files;
};

#endif // FP8_TOOLS_FP8_COMPILE_OUTPUTFILES_H
