// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects kept in a folder from one compilation to the next.

#ifndef FP8_LIB_TARGET_HOST_CODEGEN_OBJECTCACHE_H
#define FP8_LIB_TARGET_HOST_CODEGEN_OBJECTCACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallString.h"

namespace fp8 {

/// A folder of objects, each found by a hash of all that it was made of. Safe in several threads and
/// processes at once. The cache is only there for speed: a folder that cannot be read or written
/// gives no error, and a file that is not complete is not found.
class ObjectCache {
public:
  /// An empty `folder` keeps nothing. The folder is created when the first object is added.
  explicit ObjectCache(llvm::StringRef folder) : folder(folder) {}

  bool isEnabled() const { return !folder.empty(); }

  /// The key of an object that is made of `inputs`.
  static std::string getKey(llvm::ArrayRef<llvm::StringRef> inputs);

  /// Sets `object` to the object of `key`; false if there is none.
  bool find(llvm::StringRef key, llvm::SmallVectorImpl<char> &object) const;

  void add(llvm::StringRef key, llvm::StringRef object) const;

  /// Removes the objects used longest ago beyond 2 GiB, at most every 20 minutes.
  void prune() const;

private:
  std::string getPath(llvm::StringRef key) const;

  std::string folder;
};

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_CODEGEN_OBJECTCACHE_H
