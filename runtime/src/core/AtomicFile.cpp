// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Atomic replacement of files by rename.

#include "AtomicFile.h"
#include "Status.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fp8rt;

/// Returns `path` with symbolic links resolved, so that a link is not replaced.
static std::string followLinks(const std::string &path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) ? resolved : path;
}

/// Returns a name beside `target` for attempt `attempt` of this process.
static std::string temporaryName(const std::string &target, unsigned attempt) {
  size_t slash = target.rfind('/');
  size_t base = slash == std::string::npos ? 0 : slash + 1;
  return target.substr(0, base) + "." + target.substr(base) + "." + std::to_string(getpid()) + "." +
         std::to_string(attempt) + ".tmp";
}

AtomicFile::AtomicFile(const std::string &path) : path(path), target(followLinks(path)) {
  struct stat info;
  if (stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode))
      failWith("cannot write", EISDIR);
    descriptor = open(target.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    // O_EXCL: a name that another thread uses, or that a killed process left, is
    // skipped for the next one.
    for (unsigned attempt = 0; attempt < 10000; ++attempt) {
      temporary = temporaryName(target, attempt);
      descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor >= 0 || errno != EEXIST)
        break;
    }
  }
  if (descriptor < 0) {
    temporary.clear();
    failWith("cannot write", errno);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0)
    close(descriptor);
  if (!temporary.empty())
    unlink(temporary.c_str());
}

void AtomicFile::failWith(const char *what, int error) {
  fail(FP8RT_IO, path + ": " + what + ": " + std::strerror(error));
}

void AtomicFile::write(const void *data, size_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = ::write(descriptor, next, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      failWith("cannot write", errno);
    next += written;
    bytes -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  // Without it, a power cut after the rename could leave an empty file.
  if (!temporary.empty() && fsync(descriptor))
    failWith("cannot write", errno);
  int open = descriptor;
  descriptor = -1;
  if (close(open))
    failWith("cannot write", errno);
  if (temporary.empty())
    return;
  if (std::rename(temporary.c_str(), target.c_str()))
    failWith("cannot rename the finished file to it", errno);
  temporary.clear();
}
