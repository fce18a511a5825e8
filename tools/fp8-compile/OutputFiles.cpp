// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The files that a command writes: all of them or none.

#include "OutputFiles.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>

using namespace llvm;

static Error cannotWrite(StringRef path, const Twine &reason) {
  return createStringError("cannot write '" + path + "': " + reason);
}

/// True for standard output, a pipe, a device or a directory: nothing that a rename may replace.
static bool isSpecial(StringRef path) {
  sys::fs::file_status status;
  return path == "-" || (!sys::fs::status(path, status) && !sys::fs::is_regular_file(status));
}

/// Returns `path` with symbolic links resolved, so that the file is replaced and not the link. The file may
/// not be there yet. Of links in a circle one is returned.
static std::string followLinks(StringRef path) {
  std::filesystem::path target = path.str();
  std::error_code isNoLink;
  for (int links = 0; links < 40; ++links) { // as many as Linux follows
    std::filesystem::path next = std::filesystem::read_symlink(target, isNoLink);
    if (isNoLink)
      return target.string();
    target = target.parent_path() / next;
  }
  return target.string();
}

/// Writes all bytes; an error names the path and the reason.
static Error writeAll(raw_fd_ostream &stream, StringRef path, StringRef bytes) {
  stream << bytes;
  stream.flush();
  if (!stream.has_error())
    return Error::success();
  std::error_code error = stream.error();
  stream.clear_error();
  return cannotWrite(path, error.message());
}

static Error writeAtOnce(StringRef path, StringRef bytes) {
  std::error_code error;
  raw_fd_ostream stream(path, error);
  return error ? cannotWrite(path, error.message()) : writeAll(stream, path, bytes);
}

OutputFiles::~OutputFiles() {
  for (File &file : files)
    consumeError(file.temporary.discard());
}

Error OutputFiles::write(StringRef path, StringRef bytes, bool isExecutable) {
  if (isSpecial(path))
    return writeAtOnce(path, bytes);
  unsigned mode = sys::fs::all_read | sys::fs::all_write | (isExecutable ? sys::fs::all_exe : 0);
  std::string target = followLinks(path);
  if (sys::fs::is_symlink_file(target))
    return cannotWrite(path, std::make_error_code(std::errc::too_many_symbolic_link_levels).message());
  Expected<sys::fs::TempFile> temporary = sys::fs::TempFile::create(target + "-%%%%%%%%", mode);
  if (!temporary)
    return cannotWrite(path, toString(temporary.takeError()));
  files.push_back({std::move(*temporary), target});
  raw_fd_ostream stream(files.back().temporary.FD, /*shouldClose=*/false);
  return writeAll(stream, path, bytes);
}

Error OutputFiles::keep() {
  Error all = Error::success();
  for (File &file : files)
    if (Error error = file.temporary.keep(file.path))
      all = joinErrors(std::move(all), cannotWrite(file.path, toString(std::move(error))));
  files.clear();
  return all;
}
