// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparisons: first of hashes, and of the whole text only where those differ.

#include "Compare.h"
#include "../core/Status.h"
#include "../core/Tensors.h"
#include "../program/Library.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

using namespace fp8rt;
using namespace fp8rt::collectives;
using nlohmann::json;

namespace {

/// A hash of 64 bits that reads eight bytes at a time.
uint64_t hashBytes(const void *data, uint64_t bytes) {
  uint64_t hash = 0x9e3779b97f4a7c15 ^ bytes;
  const char *next = static_cast<const char *>(data);
  while (bytes) {
    uint64_t word = 0, size = std::min<uint64_t>(bytes, 8);
    std::memcpy(&word, next, size);
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
    next += size;
    bytes -= size;
  }
  return hash;
}

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// The message that each rank exchanges first.
struct Summary {
  uint64_t hash, bytes;
};

/// Throws an Error with the first line in which another rank differs from rank 0.
void nameDifference(const std::string &what, const std::vector<std::vector<std::string>> &linesOfRanks) {
  const std::vector<std::string> &first = linesOfRanks[0];
  for (size_t line = 0;; ++line)
    for (size_t rank = 1; rank < linesOfRanks.size(); ++rank) {
      const std::vector<std::string> &other = linesOfRanks[rank];
      auto textOf = [&](const std::vector<std::string> &lines) {
        return line < lines.size() ? lines[line] : "nothing more";
      };
      if (line >= std::max(first.size(), other.size()) || textOf(first) == textOf(other))
        continue;
      fail(FP8RT_RANKS,
           what + ": " + textOf(first) + " on rank 0, " + textOf(other) + " on rank " + std::to_string(rank));
    }
}

std::string textOf(const json &object, const char *key) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null())
    return "none";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string describeColumn(const json &column) {
  std::string sites;
  for (const json &site : column.value("sites", json::array()))
    sites += (sites.empty() ? "" : ", ") + site.get<std::string>();
  return "column " + textOf(column, "index") + " (" + sites + ": " + textOf(column, "tensor") + " in " +
         textOf(column, "format") + ")";
}

/// A product of the program: its decision, and what its operands become.
std::string describeProduct(const json &product) {
  std::string text = "site " + textOf(product, "site") + " " + textOf(product, "role") + " in entry " +
                     textOf(product, "entry") + " (" + textOf(product, "decision");
  for (const char *key : {"recipe", "formats", "batch", "m", "n", "k"})
    text += std::string(", ") + key + " " + textOf(product, key);
  return text + ")";
}

void describeEntry(const json &entry, std::vector<std::string> &lines) {
  std::string name = textOf(entry, "name");
  lines.push_back("entry " + name);
  for (const json &collective : entry.value("collectives", json::array()))
    lines.push_back("collective " + textOf(collective, "kind") + " " + textOf(collective, "name") + " over " +
                    textOf(collective, "axes") + " in entry " + name);
}

} // namespace

void collectives::compareLines(Ranks &ranks, const std::string &what, const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  Summary own = {hashBytes(text.data(), text.size()), text.size()};
  std::vector<Summary> summaries(ranks.size());
  ranks.gather(&own, sizeof(own), summaries.data());
  uint64_t longest = 0;
  bool isSame = true;
  for (const Summary &other : summaries) {
    longest = std::max(longest, other.bytes);
    isSame &= other.hash == summaries[0].hash && other.bytes == summaries[0].bytes;
  }
  if (isSame)
    return;
  text.resize(longest);
  std::string texts(longest * ranks.size(), '\0');
  ranks.gather(text.data(), longest, texts.data());
  std::vector<std::vector<std::string>> linesOfRanks;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    linesOfRanks.push_back(split(texts.substr(rank * longest, summaries[rank].bytes)));
  nameDifference(what, linesOfRanks);
}

std::vector<std::string> collectives::describeProgram(const Library &library) {
  json manifest = json::parse(library.manifestText());
  std::vector<std::string> lines = {"recipe " + textOf(manifest, "recipe"),
                                    "target " + textOf(manifest, "target"),
                                    "grid " + textOf(manifest.value("grid", json::object()), "shape")};
  for (const json &entry : manifest.value("entries", json::array()))
    describeEntry(entry, lines);
  json state = manifest.value("state", json::object());
  for (const json &column : state.value("columns", json::array()))
    lines.push_back(describeColumn(column));
  for (const StateTensor &tensor : library.manifest().state)
    lines.push_back("state " + inQuotes(tensor.name) + " " + describe(tensor.shape, *tensor.type));
  for (const json &product : manifest.value("sites", json::array()))
    lines.push_back(describeProduct(product));
  json options = manifest.value("options", json::object());
  for (const auto &[name, value] : options.items())
    lines.push_back("option " + name + " " + textOf(options, name.c_str()));
  lines.push_back("layout " + library.manifest().layoutHash);
  lines.push_back("program " + textOf(manifest, "program_hash"));
  char hash[32];
  std::snprintf(hash, sizeof(hash), "%016llx",
                static_cast<unsigned long long>(
                    hashBytes(library.manifestText().data(), library.manifestText().size())));
  lines.push_back(std::string("manifest ") + hash);
  return lines;
}

std::vector<std::string> collectives::describeTensors(const fp8rt_tensors &tensors) {
  std::vector<std::string> lines;
  for (const auto &[name, item] : tensors.items) {
    const Tensor &tensor = item.tensor;
    char hash[32];
    std::snprintf(hash, sizeof(hash), "%016llx",
                  static_cast<unsigned long long>(hashBytes(tensor.data(), tensor.bytes())));
    lines.push_back("tensor " + inQuotes(name) + " (" + describe(tensor.shape(), tensor.type()) + ", hash " +
                    hash + ")");
  }
  return lines;
}
