// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the component of site names that counts layers.

#include "fp8/Analysis/Sites/LayerNumbers.h"
#include "fp8/Analysis/Sites/SiteNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

using namespace llvm;

namespace {

/// One number in a name: the text around it, and in which component it stands.
struct NumberInName {
  StringRef before, after;
  size_t component;
  int64_t value;
};

} // namespace

/// All numbers of `site`, without the #2 that tells sites of one name apart. The numbers of
/// sites that the program gave no name count matmuls, not layers.
static SmallVector<NumberInName> findNumbers(StringRef site) {
  site = site.take_until([](char c) { return c == '#'; });
  SmallVector<NumberInName> numbers;
  StringRef rest = site;
  if (rest.consume_front(fp8::kNamelessSite) && llvm::all_of(rest, [](char c) { return llvm::isDigit(c); }))
    return numbers;
  for (size_t begin = site.find_first_of("0123456789"); begin != StringRef::npos;) {
    size_t end = std::min(site.find_first_not_of("0123456789", begin), site.size());
    StringRef before = site.take_front(begin);
    int64_t value;
    if (!site.slice(begin, end).getAsInteger(10, value))
      numbers.push_back({before, site.drop_front(end), before.count('/'), value});
    begin = site.find_first_of("0123456789", end);
  }
  return numbers;
}

StringMap<int64_t> fp8::findLayers(ArrayRef<StringRef> sites) {
  std::map<std::pair<StringRef, StringRef>, std::set<int64_t>> values;
  for (StringRef site : sites)
    for (const NumberInName &number : findNumbers(site))
      values[{number.before, number.after}].insert(number.value);

  // The first component in which some number varies, and the texts before such numbers in it.
  size_t first = StringRef::npos;
  std::set<StringRef> counters;
  for (const auto &[around, found] : values) {
    size_t component = around.first.count('/');
    if (found.size() < 2 || component > first)
      continue;
    if (component < first)
      counters.clear();
    first = component;
    counters.insert(around.first);
  }

  StringMap<int64_t> layers;
  for (StringRef site : sites)
    for (const NumberInName &number : findNumbers(site))
      if (number.component == first && counters.count(number.before)) {
        layers[site] = number.value;
        break;
      }
  return layers;
}
