// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes safetensors files; SafetensorsReader.cpp describes the format.

#include "AtomicFile.h"
#include "Checksum.h"
#include "Status.h"
#include "Tensors.h"

#include <cstring>
#include <nlohmann/json.hpp>

using namespace fp8rt;
using nlohmann::json;

using Item = std::pair<const std::string, fp8rt_tensors::Item>;

/// Returns the tensors with wide elements first, so that every tensor is aligned
/// to its element; then by name.
static std::vector<const Item *> inFileOrder(const fp8rt_tensors &tensors) {
  std::vector<const Item *> order;
  for (size_t bytes : {8, 4, 2, 1})
    for (const Item &item : tensors.items)
      if (item.second.tensor.type().bytes() == bytes)
        order.push_back(&item);
  return order;
}

static std::string makeHeader(const fp8rt_tensors &tensors, const std::vector<const Item *> &order) {
  json header = json::object();
  if (!tensors.metadata.empty())
    header[kMetadataKey] = tensors.metadata;
  if (tensors.metadata.count(kChecksumKey))
    header[kMetadataKey][kChecksumKey] = std::string(kChecksumPrefix) + kNoChecksum;
  uint64_t offset = 0;
  for (const Item *item : order) {
    const Tensor &tensor = item->second.tensor;
    header[item->first] = {{"dtype", tensor.type().safetensors},
                           {"shape", tensor.shape()},
                           {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception &) {
    fail(FP8RT_INVALID_ARGUMENT, "a tensor's name or metadata is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

/// Puts the checksum of the whole file in its place in the header.
static void insertChecksum(std::string &header, const unsigned char (&length)[8],
                           const std::vector<const Item *> &order) {
  Checksum checksum;
  checksum.add(length, sizeof(length));
  checksum.add(header.data(), header.size());
  for (const Item *item : order)
    checksum.add(item->second.tensor.data(), item->second.tensor.bytes());
  header.replace(*findChecksum(header), std::strlen(kNoChecksum), checksum.text());
}

void fp8rt::writeSafetensors(const fp8rt_tensors &tensors, const std::string &path) {
  if (!tensors.unsupported.empty()) // it would be lost
    tensors.find(tensors.unsupported.begin()->first);
  std::vector<const Item *> order = inFileOrder(tensors);
  std::string header = makeHeader(tensors, order);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<unsigned char>(uint64_t(header.size()) >> (8 * i));
  if (tensors.metadata.count(kChecksumKey))
    insertChecksum(header, length, order);

  AtomicFile file(path);
  file.write(length, sizeof(length));
  file.write(header.data(), header.size());
  for (const Item *item : order)
    file.write(item->second.tensor.data(), item->second.tensor.bytes());
  file.commit();
}
