// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads safetensors files. A file is 8 bytes of header length, a JSON header
// `{name: {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__":
// {…}}` and the data. Everything is checked before it is used, because files
// come from other programs, and from interrupted ones.

#include "Checksum.h"
#include "Status.h"
#include "Tensors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

using namespace fp8rt;
using nlohmann::json;

namespace {

/// The format's own limit on headers.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

[[noreturn]] void corrupt(const std::string &what) { fail(FP8RT_CORRUPT, what); }

class InputFile {
public:
  explicit InputFile(const std::string &path)
      : descriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    struct stat info = {};
    if (descriptor < 0)
      fail(errno == ENOENT ? FP8RT_NOT_FOUND : FP8RT_IO, std::strerror(errno));
    if (fstat(descriptor, &info) || !S_ISREG(info.st_mode)) {
      close(descriptor);
      fail(FP8RT_IO, "not a regular file");
    }
    size = static_cast<uint64_t>(info.st_size);
  }
  ~InputFile() { close(descriptor); }
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  void read(void *data, uint64_t bytes) {
    char *next = static_cast<char *>(data);
    while (bytes > 0) {
      ssize_t got = ::read(descriptor, next, bytes);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        fail(FP8RT_IO, std::strerror(errno));
      if (got == 0)
        corrupt("it shrank while it was read");
      next += got;
      bytes -= static_cast<uint64_t>(got);
    }
  }

  uint64_t size = 0;

private:
  int descriptor;
};

uint64_t headerBytes(InputFile &file) {
  unsigned char raw[8];
  if (file.size < sizeof(raw))
    corrupt("it ends before its header");
  file.read(raw, sizeof(raw));
  uint64_t bytes = 0;
  for (int i = 7; i >= 0; --i)
    bytes = bytes << 8 | raw[i];
  if (bytes > kMaxHeaderBytes)
    corrupt("its header length is " + std::to_string(bytes));
  if (bytes > file.size - sizeof(raw))
    corrupt("it ends within its header");
  return bytes;
}

/// Parses the header. A key that occurs twice is an error, because JSON parsers
/// differ on which of the two counts.
json parseHeader(const std::string &text) {
  std::set<std::string> keys;
  std::optional<std::string> twice;
  auto watch = [&](int depth, json::parse_event_t event, json &parsed) {
    if (event == json::parse_event_t::key && depth == 1 &&
        !keys.insert(parsed.get_ref<const std::string &>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  json header = json::parse(text, watch, /*allow_exceptions=*/false);
  if (!header.is_object())
    corrupt("its header is not a JSON object");
  if (twice)
    corrupt("two tensors " + inQuotes(*twice));
  return header;
}

/// Parses a list of non-negative numbers below 2^63.
Shape parseNumbers(const json &list) {
  if (!list.is_array())
    corrupt("a shape or data_offsets is not a list");
  Shape numbers;
  for (const json &number : list) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > INT64_MAX)
      corrupt("a dimension or offset is not a natural number");
    numbers.push_back(number.get<int64_t>());
  }
  return numbers;
}

const json &field(const json &object, const char *key) {
  auto found = object.find(key);
  if (found == object.end())
    corrupt(std::string("it has no ") + key);
  return *found;
}

const std::string &parseTypeName(const json &name) {
  if (!name.is_string())
    corrupt("its dtype is not a string");
  return name.get_ref<const std::string &>();
}

struct Extent {
  int64_t begin, end;
};

/// Adds one tensor of the header to `tensors`, of an unknown type its name; returns the extent of its bytes.
Extent parseTensor(const std::string &name, const json &entry, uint64_t dataBytes, fp8rt_tensors &tensors) {
  if (!entry.is_object())
    corrupt("it is not described by a JSON object");
  const std::string &typeName = parseTypeName(field(entry, "dtype"));
  Shape shape = parseNumbers(field(entry, "shape"));
  Shape offsets = parseNumbers(field(entry, "data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    corrupt("its data_offsets are not a range");
  if (static_cast<uint64_t>(offsets[1]) > dataBytes)
    corrupt("its bytes lie beyond the end of the file; is it truncated?");
  const DType *type = findSafetensorsType(typeName);
  if (!type) {
    tensors.unsupported[name] = typeName;
    return {offsets[0], offsets[1]};
  }
  std::optional<uint64_t> bytes = byteSize(shape, *type);
  if (!bytes || *bytes != static_cast<uint64_t>(offsets[1] - offsets[0]))
    corrupt("its data_offsets do not fit its shape");
  char *base = static_cast<char *>(tensors.memory.get());
  tensors.add(name, Tensor(*type, std::move(shape), *bytes ? base + offsets[0] : nullptr));
  return {offsets[0], offsets[1]};
}

void parseMetadata(const json &object, fp8rt_tensors &tensors) {
  if (!object.is_object())
    corrupt("its metadata is not a JSON object");
  for (const auto &[key, value] : object.items()) {
    if (!value.is_string())
      corrupt("its metadata " + inQuotes(key) + " is not a string");
    tensors.metadata[key] = value;
  }
}

/// Checks that every byte of the data belongs to exactly one tensor.
void checkCoverage(std::vector<Extent> extents, uint64_t dataBytes) {
  std::sort(extents.begin(), extents.end(),
            [](Extent a, Extent b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  int64_t end = 0;
  for (Extent extent : extents) {
    if (extent.begin != end)
      corrupt("its tensors overlap or leave bytes unused");
    end = extent.end;
  }
  if (static_cast<uint64_t>(end) != dataBytes)
    corrupt("there are bytes behind its last tensor");
}

void checkBooleans(const Tensor &tensor) {
  if (tensor.type().dlpack.code != kDLBool)
    return;
  const char *bytes = static_cast<const char *>(tensor.data());
  for (uint64_t i = 0; i < tensor.bytes(); ++i)
    if (bytes[i] != 0 && bytes[i] != 1)
      corrupt("a BOOL is neither 0 nor 1");
}

/// Whether the metadata has, or had before it was damaged, a checksum.
bool hasChecksum(const fp8rt_tensors &tensors) {
  for (const auto &[key, value] : tensors.metadata)
    if (key == kChecksumKey || value.rfind(kChecksumPrefix, 0) == 0)
      return true;
  return false;
}

/// Checks the file's own checksum, if it has one: a flipped bit anywhere, the checksum's included, is
/// noticed.
void checkChecksum(std::string header, const fp8rt_tensors &tensors, uint64_t dataBytes) {
  if (!hasChecksum(tensors))
    return;
  const std::string wrong = "its checksum is wrong: it is damaged, or another program changed it and left "
                            "its metadata 'fp8_checksum'";
  std::optional<size_t> place = findChecksum(header);
  if (!place)
    corrupt(wrong);
  Checksum checksum;
  unsigned char length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<unsigned char>(uint64_t(header.size()) >> (8 * i));
  checksum.add(length, sizeof(length));
  std::string found = header.substr(*place, std::strlen(kNoChecksum));
  header.replace(*place, found.size(), kNoChecksum);
  checksum.add(header.data(), header.size());
  checksum.add(tensors.memory.get(), dataBytes);
  if (found != checksum.text())
    corrupt(wrong);
}

std::unique_ptr<fp8rt_tensors> read(const std::string &path) {
  InputFile file(path);
  std::string text(headerBytes(file), '\0');
  file.read(text.data(), text.size());
  json header = parseHeader(text);

  auto tensors = std::make_unique<fp8rt_tensors>();
  tensors->source = path;
  uint64_t dataBytes = file.size - 8 - text.size();
  tensors->memory = allocateBuffer(hostMemory(), dataBytes);
  std::vector<Extent> extents;
  for (const auto &[name, entry] : header.items()) {
    if (name == kMetadataKey) {
      parseMetadata(entry, *tensors);
      continue;
    }
    if (name.find('\0') != std::string::npos)
      corrupt("a tensor's name contains a NUL");
    within("tensor " + inQuotes(name), [&, &name = name, &entry = entry] {
      extents.push_back(parseTensor(name, entry, dataBytes, *tensors));
    });
  }
  checkCoverage(std::move(extents), dataBytes);
  file.read(tensors->memory.get(), dataBytes);
  checkChecksum(text, *tensors, dataBytes);
  for (const auto &[name, item] : tensors->items)
    within("tensor " + inQuotes(name), [&item = item] { checkBooleans(item.tensor); });
  return tensors;
}

} // namespace

std::optional<size_t> fp8rt::findChecksum(const std::string &header) {
  // A quotation mark in a name would have a backslash before it.
  std::string field = std::string("\"") + kChecksumKey + "\":\"" + kChecksumPrefix;
  size_t at = header.find(field);
  size_t digits = at + field.size();
  if (at == std::string::npos || header.size() < digits + std::strlen(kNoChecksum))
    return std::nullopt;
  return digits;
}

std::unique_ptr<fp8rt_tensors> fp8rt::readSafetensors(const std::string &path) {
  try {
    return read(path);
  } catch (const Error &error) {
    bool corrupt = error.status == FP8RT_CORRUPT;
    fail(error.status, path + (corrupt ? ": not a valid safetensors file: " : ": ") + error.message);
  }
}
