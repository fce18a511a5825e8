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
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fp8rt;

/// Returns `path` with symbolic links resolved, so that a link is not replaced. The file may not be there
/// yet. Of links in a circle one is returned.
static std::string followLinks(const std::string &path) {
  std::filesystem::path target = path;
  std::error_code isNoLink;
  for (int links = 0; links < 40; ++links) { // as many as Linux follows
    std::filesystem::path next = std::filesystem::read_symlink(target, isNoLink);
    if (isNoLink)
      return target.string();
    target = target.parent_path() / next;
  }
  return target.string();
}

/// Returns the folder of `target` with the slash at its end; empty for the current one.
static std::string folderOf(const std::string &target) { return target.substr(0, target.rfind('/') + 1); }

/// Returns what the names of all temporary files for `target` begin with.
static std::string temporaryPrefix(const std::string &target) {
  return "." + target.substr(target.rfind('/') + 1) + ".";
}

static constexpr const char *kTemporarySuffix = ".tmp";

/// Returns a name beside `target` for attempt `attempt` of this process.
static std::string temporaryName(const std::string &target, unsigned attempt) {
  return folderOf(target) + temporaryPrefix(target) + std::to_string(getpid()) + "." +
         std::to_string(attempt) + kTemporarySuffix;
}

/// Creates a file that is not there yet, and locks it as long as it is open, so that others see that
/// it is written. Returns a negative number, and sets errno, where that fails; EEXIST if another
/// process has the name.
static int createLocked(const std::string &path) {
  int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return descriptor;
  struct stat info = {};
  bool isTaken = flock(descriptor, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
  if (isTaken || (fstat(descriptor, &info) == 0 && info.st_nlink == 0)) {
    close(descriptor); // another process took it for one that was left
    errno = EEXIST;
    return -1;
  }
  return descriptor;
}

/// Returns whether `text` is a process and an attempt, as in "123.0", and there is no such process here.
static bool isOfDeadProcess(const std::string &text) {
  char *end = nullptr;
  bool isNumber = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  long process = isNumber ? std::strtol(text.c_str(), &end, 10) : 0;
  bool hasAttempt = process > 0 && *end == '.' && end[1];
  return hasAttempt && process <= INT_MAX && kill(static_cast<pid_t>(process), 0) && errno == ESRCH;
}

/// Deletes a temporary file unless a process of another machine has locked it, which writes it.
static void deleteUnlocked(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0)
    return;
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    unlink(path.c_str());
  close(descriptor);
}

/// Deletes the temporary files for `target` that killed processes left.
static void deleteLeftFiles(const std::string &target) {
  const std::string folder = folderOf(target), prefix = temporaryPrefix(target), suffix = kTemporarySuffix;
  DIR *listing = opendir(folder.empty() ? "." : folder.c_str());
  if (!listing)
    return;
  while (const dirent *entry = readdir(listing)) {
    std::string name = entry->d_name;
    if (name.size() > prefix.size() + suffix.size() && name.compare(0, prefix.size(), prefix) == 0 &&
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0 &&
        isOfDeadProcess(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size())))
      deleteUnlocked(folder + name);
  }
  closedir(listing);
}

void fp8rt::syncFolder(const std::string &path) {
  std::string folder = folderOf(path);
  int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return; // a folder that cannot be read can be written
  // Some file systems sync no folders and say EINVAL.
  bool failed = fsync(descriptor) && errno != EINVAL;
  int error = errno;
  close(descriptor);
  if (failed)
    fail(FP8RT_IO, path + ": cannot write its folder: " + std::strerror(error));
}

AtomicFile::AtomicFile(const std::string &path) : path(path), target(followLinks(path)) {
  struct stat info;
  if (lstat(target.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
    failWith("cannot write", ELOOP);
  if (stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode))
      failWith("cannot write", EISDIR);
    descriptor = open(target.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    deleteLeftFiles(target);
    // A name that another thread or process uses is skipped for the next one.
    for (unsigned attempt = 0; attempt < 10000; ++attempt) {
      temporary = temporaryName(target, attempt);
      descriptor = createLocked(temporary);
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

void AtomicFile::failWith(const char *what, int error) const {
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
  // The file stays open, and locked, until it has its name.
  if (!temporary.empty()) {
    if (std::rename(temporary.c_str(), target.c_str()))
      failWith("cannot rename the finished file to it", errno);
    temporary.clear();
    syncFolder(target);
  }
  int open = descriptor;
  descriptor = -1;
  if (close(open))
    failWith("cannot write", errno);
}
