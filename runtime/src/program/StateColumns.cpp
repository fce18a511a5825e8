// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matching columns by site and tensor, and renaming sites.

#include "StateColumns.h"
#include "../core/Status.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

using namespace fp8rt;
using nlohmann::json;

[[noreturn]] static void reject(const std::string &what) {
  fail(FP8RT_CORRUPT, "not a state file: its metadata 'columns' " + what);
}

static json parseList(const std::string &text) {
  json list = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array())
    reject("is not a JSON list");
  return list;
}

static const json &field(const json &object, const char *key) {
  if (!object.is_object() || !object.contains(key))
    reject(std::string("has a column without ") + key);
  return object[key];
}

static std::string textField(const json &object, const char *key) {
  const json &value = field(object, key);
  if (!value.is_string())
    reject(std::string("has a column whose ") + key + " is not a string");
  return value;
}

static const json &sitesOf(const json &column) {
  const json &sites = field(column, "sites");
  bool areTexts = sites.is_array() && !sites.empty() &&
                  std::all_of(sites.begin(), sites.end(), [](const json &site) { return site.is_string(); });
  if (!areTexts)
    reject("has a column whose sites are not a list of names");
  return sites;
}

std::vector<Column> fp8rt::parseColumns(const std::string &text) {
  std::vector<Column> columns;
  for (const json &each : parseList(text)) {
    Column column;
    for (const json &site : sitesOf(each))
      column.sites.push_back(site);
    column.tensor = textField(each, "tensor");
    column.format = textField(each, "format");
    const json &max = field(each, "fp8_max");
    if (!max.is_number() || !(max.get<double>() > 0))
      reject("has a column whose fp8_max is not a positive number");
    column.fp8Max = max;
    columns.push_back(std::move(column));
  }
  return columns;
}

std::string fp8rt::describe(const Column &column) {
  return "column " + inQuotes(column.sites.front()) + " " + column.tensor;
}

bool ColumnMatch::isEmpty() const {
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [](const auto &found) { return found.empty(); });
}

/// The columns of a file by what they can be found by.
using Index = std::multimap<std::pair<std::string, std::string>, size_t>; // by site and tensor

/// Returns the columns of the file that share a site with `column` and are of the same tensor, in order;
/// if some have the same format, only those.
static std::vector<size_t> findSources(const Column &column, const std::vector<Column> &file,
                                       const Index &index) {
  std::vector<size_t> found;
  for (const std::string &site : column.sites) {
    auto [begin, end] = index.equal_range({site, column.tensor});
    for (auto entry = begin; entry != end; ++entry)
      found.push_back(entry->second);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  auto hasFormat = [&](size_t source) { return file[source].format == column.format; };
  if (std::any_of(found.begin(), found.end(), hasFormat))
    found.erase(std::remove_if(found.begin(), found.end(), [&](size_t source) { return !hasFormat(source); }),
                found.end());
  return found;
}

/// Returns what is not the same about a column that was found; empty if nothing.
static std::string compare(const Column &column, const std::vector<size_t> &sources,
                           const std::vector<Column> &file) {
  const Column &first = file[sources.front()];
  if (sources.size() > 1)
    return describe(column) + ": the file has " + std::to_string(sources.size()) +
           " columns for its sites: their largest amaxes and smallest scale";
  if (first.format != column.format)
    return describe(column) + ": was " + first.format + ", is " + column.format + ": its scale is adapted";
  if (first.sites != column.sites)
    return describe(column) + ": its sites are not the same in the file";
  return "";
}

ColumnMatch fp8rt::matchColumns(const std::vector<Column> &program, const std::vector<Column> &file) {
  Index index;
  for (size_t i = 0; i < file.size(); ++i)
    for (const std::string &site : file[i].sites)
      index.emplace(std::make_pair(site, file[i].tensor), i);
  ColumnMatch match;
  std::vector<bool> used(file.size());
  for (const Column &column : program) {
    std::vector<size_t> sources = findSources(column, file, index);
    std::string difference = sources.empty() ? describe(column) + ": not in the file, it starts anew"
                                             : compare(column, sources, file);
    if (!difference.empty())
      match.differences.push_back(std::move(difference));
    for (size_t source : sources)
      used[source] = true;
    match.sources.push_back(std::move(sources));
  }
  for (size_t i = 0; i < file.size(); ++i)
    if (!used[i])
      match.differences.push_back(describe(file[i]) + " " + file[i].format +
                                  " of the file: not in the program, it is left out");
  return match;
}

std::string fp8rt::renameSite(const std::string &site, const Renames &renames, std::vector<bool> &used) {
  for (size_t i = 0; i < renames.size(); ++i) {
    const auto &[from, to] = renames[i];
    if (site.compare(0, from.size(), from) != 0)
      continue;
    if (site.size() > from.size() && std::string("/.#").find(site[from.size()]) == std::string::npos)
      continue;
    used[i] = true;
    return to + site.substr(from.size());
  }
  return site;
}

std::string fp8rt::renameColumns(const std::string &text, const Renames &renames, std::vector<bool> &used) {
  json columns = parseList(text);
  for (json &column : columns) {
    sitesOf(column); // checks them
    for (json &site : column["sites"])
      site = renameSite(site, renames, used);
  }
  return columns.dump();
}
