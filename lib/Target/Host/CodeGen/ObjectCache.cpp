// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cache of objects. A file holds an object and a hash of it; it is written under another name and
// then renamed. LLVM's localCache is not used because it ends the process when the disk is full, and
// takes any file for an object.

#include "ObjectCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA1.h"
#include "llvm/Support/xxhash.h"

using namespace fp8;
using llvm::StringRef;

static constexpr uint64_t kMostBytes = uint64_t(2) << 30;

/// The bytes of the hash that ends a file.
static constexpr size_t kHashSize = 8;

static void writeHash(StringRef object, char *bytes) {
  llvm::support::endian::write64le(bytes, llvm::xxh3_64bits(object));
}

std::string ObjectCache::getKey(llvm::ArrayRef<StringRef> inputs) {
  llvm::SHA1 hash;
  for (StringRef input : inputs) {
    char size[8]; // so that no two lists of inputs are the same bytes
    llvm::support::endian::write64le(size, input.size());
    hash.update(StringRef(size, sizeof(size)));
    hash.update(input);
  }
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

std::string ObjectCache::getPath(StringRef key) const {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, "llvmcache-" + key); // the name that pruneCache expects
  return path.str().str();
}

/// Marks a file as used now: systems seldom do so themselves when a file is read.
static void touch(const std::string &path) {
  llvm::Expected<llvm::sys::fs::file_t> file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file)
    return llvm::consumeError(file.takeError());
  // Without the right to do so the file merely looks older than it is.
  (void)llvm::sys::fs::setLastAccessAndModificationTime(*file, std::chrono::system_clock::now());
  llvm::sys::fs::closeFile(*file);
}

bool ObjectCache::find(StringRef key, llvm::SmallVectorImpl<char> &object) const {
  if (!isEnabled())
    return false;
  std::string path = getPath(key);
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file || (*file)->getBufferSize() < kHashSize)
    return false;
  StringRef content = (*file)->getBuffer().drop_back(kHashSize);
  char hash[kHashSize];
  writeHash(content, hash);
  if ((*file)->getBuffer().take_back(kHashSize) != StringRef(hash, kHashSize))
    return false;
  object.assign(content.begin(), content.end());
  touch(path);
  return true;
}

void ObjectCache::add(StringRef key, StringRef object) const {
  if (!isEnabled() || llvm::sys::fs::create_directories(folder))
    return;
  llvm::Expected<llvm::sys::fs::TempFile> file = llvm::sys::fs::TempFile::create(
      folder + "/%%%%%%%%%%%%.tmp", llvm::sys::fs::owner_read | llvm::sys::fs::owner_write);
  if (!file)
    return llvm::consumeError(file.takeError());
  char hash[kHashSize];
  writeHash(object, hash);
  llvm::raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
  stream << object << StringRef(hash, kHashSize);
  stream.flush();
  bool isWritten = !stream.has_error();
  stream.clear_error();
  llvm::consumeError(isWritten ? file->keep(getPath(key)) : file->discard());
}

void ObjectCache::prune() const {
  if (!isEnabled())
    return;
  llvm::CachePruningPolicy policy;
  policy.Expiration = std::chrono::seconds(0);
  policy.MaxSizePercentageOfAvailableSpace = 0;
  policy.MaxSizeBytes = kMostBytes;
  policy.MaxSizeFiles = 0;
  llvm::pruneCache(folder, policy);
}
