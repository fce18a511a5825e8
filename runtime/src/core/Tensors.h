// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A named set of tensors, in memory and as a safetensors file.

#ifndef FP8RT_CORE_TENSORS_H
#define FP8RT_CORE_TENSORS_H

#include "Tensor.h"

#include "fp8rt/tensors.h"

#include <map>

/// The C ABI's handle. The maps are sorted, so that equal sets are written as
/// equal bytes.
struct fp8rt_tensors {
  struct Item {
    fp8rt::Tensor tensor;
    DLTensor view; // the tensor for C callers
  };

  /// The path it was read from, as prefix of messages; may be empty.
  std::string source;
  std::map<std::string, Item> items;
  /// The dtypes of a file's tensors that have one that this runtime does not know, by name.
  std::map<std::string, std::string> unsupported;
  std::map<std::string, std::string> metadata;
  /// The memory of the tensors that were read from a file.
  fp8rt::Buffer memory;

  void add(const std::string &name, fp8rt::Tensor tensor);
  /// Returns null if there is none; throws for one of an unsupported dtype.
  const fp8rt::Tensor *find(const std::string &name) const;
};

namespace fp8rt {

/// The key of a safetensors header that is not a tensor.
inline const char *const kMetadataKey = "__metadata__";

/// The metadata that asks the writer for a checksum; its value in a file is the prefix and eight digits,
/// the CRC-32C of the file with kNoChecksum for the digits.
inline const char *const kChecksumKey = "fp8_checksum";
inline const char *const kChecksumPrefix = "crc32c:";
inline const char *const kNoChecksum = "00000000";

/// Returns where the digits of the checksum are in the text of a header; unset if it has none.
std::optional<size_t> findChecksum(const std::string &header);

/// Read and write safetensors files; throw Errors whose text starts with the
/// path.
std::unique_ptr<fp8rt_tensors> readSafetensors(const std::string &path);
void writeSafetensors(const fp8rt_tensors &tensors, const std::string &path);

} // namespace fp8rt

#endif // FP8RT_CORE_TENSORS_H
