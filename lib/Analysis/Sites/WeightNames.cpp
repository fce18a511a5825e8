// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Splits the names of arguments and joins the parts that distinguish weights. The rules are in the header.

#include "fp8/Analysis/Sites/WeightNames.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Parts of a name
//===----------------------------------------------------------------------===//

/// Removes `[key]` from the start of `rest` and returns the key; a quoted key may contain brackets.
static std::string takeKey(StringRef &rest) {
  rest = rest.drop_front();
  StringRef key;
  if (char quote = rest.empty() ? 0 : rest.front(); quote == '\'' || quote == '"') {
    rest = rest.drop_front();
    std::tie(key, rest) = rest.split(quote);
    rest = rest.drop_until([](char c) { return c == ']'; });
  } else {
    key = rest.take_until([](char c) { return c == ']'; });
    rest = rest.drop_front(key.size());
  }
  rest.consume_front("]");
  return key.str();
}

std::vector<std::string> fp8::splitArgumentName(StringRef name) {
  auto isSeparator = [](char c) { return c == '.' || c == '['; };
  StringRef word = name.take_until(isSeparator);
  std::vector<std::string> parts{word.str()};
  for (StringRef rest = name.drop_front(word.size()); !rest.empty();) {
    std::string part;
    if (rest.front() == '[') {
      part = takeKey(rest);
    } else {
      rest.consume_front(".");
      part = rest.take_until(isSeparator).str();
      rest = rest.drop_front(part.size());
    }
    if (!part.empty())
      parts.push_back(std::move(part));
  }
  return parts;
}

static bool isNumber(StringRef part) { return !part.empty() && llvm::all_of(part, llvm::isDigit); }

/// The number right after the own word, if more parts follow; else empty.
static StringRef getLeadingNumber(ArrayRef<std::string> parts) {
  return parts.size() > 2 && isNumber(parts[1]) ? StringRef(parts[1]) : StringRef();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

static int64_t countElements(Value argument) {
  auto type = cast<ShapedType>(argument.getType());
  return type.hasStaticShape() ? type.getNumElements() : 0;
}

/// The parts that all the arguments begin with, where one of them is a word; else those of the largest
/// argument.
WeightNames::Parts WeightNames::getParts(const ContractionRole &leader) const {
  Value largest;
  std::vector<Parts> all;
  for (Value argument : leader.weightArguments) {
    StringRef name = getGivenName(argument);
    if (name.empty())
      continue;
    all.push_back(splitArgumentName(name));
    if (!largest || countElements(argument) > countElements(largest))
      largest = argument;
  }
  if (all.empty())
    return {};
  Parts common = all.front();
  for (const Parts &parts : all) {
    auto ends = llvm::mismatch(common, parts);
    common.erase(ends.first, common.end());
  }
  bool tells = llvm::any_of(llvm::drop_begin(common, !common.empty()),
                            [](const std::string &part) { return !isNumber(part); });
  return all.size() == 1 || tells ? common : splitArgumentName(getGivenName(largest));
}

/// Joins `parts` without the own word (unless `withWord` or if nothing else is left), without the number
/// after it if all weights share that, and without last parts such as `kernel`, which every layer has.
std::string WeightNames::joinParts(Parts parts, bool withWord) const {
  if (!getLeadingNumber(parts).empty() && !numbered.contains(parts.front()))
    parts.erase(parts.begin() + 1);
  if (parts.front().empty() || (!withWord && parts.size() > 1))
    parts.erase(parts.begin());
  while (parts.size() > 1 && llvm::is_contained({"value", "kernel", "weight", "w"}, parts.back()))
    parts.pop_back();
  return llvm::join(parts, "/");
}

std::string WeightNames::getName(const ContractionRole &leader) const {
  Parts parts = getParts(leader);
  if (parts.empty())
    return "";
  std::string name = joinParts(parts, /*withWord=*/false);
  return clashes.contains(name) ? joinParts(std::move(parts), /*withWord=*/true) : name;
}

//===----------------------------------------------------------------------===//
// Properties of all weights of a function
//===----------------------------------------------------------------------===//

void WeightNames::findShared(ArrayRef<ContractionRole> roles) {
  std::map<StringRef, std::set<std::string>> weights;
  for (const ContractionRole &entry : roles)
    if (entry.weight)
      if (Parts parts = getParts(entry); !parts.empty())
        weights[entry.contraction.name.site].insert(llvm::join(parts, "\n"));
  for (const auto &[site, names] : weights)
    if (names.size() > 1)
      shared.insert(site);
}

/// Notes the words of a function's weights if their leading numbers differ.
void WeightNames::findNumbers(ArrayRef<ContractionRole> roles) {
  std::set<std::string> numbers, words;
  for (const ContractionRole &entry : roles)
    if (Parts parts = getParts(entry); entry.weight && !parts.empty()) {
      numbers.insert(getLeadingNumber(parts).str());
      words.insert(parts.front());
    }
  if (numbers.size() > 1)
    for (const std::string &word : words)
      numbered.insert(word);
}

void WeightNames::findClashes(ArrayRef<ContractionRole> roles) {
  std::map<std::string, std::set<Parts>> weights;
  for (const ContractionRole &entry : roles)
    if (Parts parts = getParts(entry); entry.weight && !parts.empty())
      weights[joinParts(parts, /*withWord=*/false)].insert(parts);
  for (const auto &[name, parts] : weights)
    if (parts.size() > 1)
      clashes.insert(name);
}

WeightNames::WeightNames(ArrayRef<std::vector<ContractionRole>> functions) {
  for (ArrayRef<ContractionRole> roles : functions) {
    findShared(roles);
    findNumbers(roles);
  }
  for (ArrayRef<ContractionRole> roles : functions)
    findClashes(roles);
}
