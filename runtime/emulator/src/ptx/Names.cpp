// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and scopes.

#include "Names.h"

#include <algorithm>
#include <string>

using namespace fp8emu::ptx;

namespace {

/// A decimal number as a range's names end in: without leading zeros.
std::optional<uint32_t> number(std::string_view digits) {
  if (digits.size() > 9 || (digits.size() > 1 && digits[0] == '0'))
    return std::nullopt;
  uint32_t value = 0;
  for (char c : digits)
    value = value * 10 + static_cast<uint32_t>(c - '0');
  return value;
}

/// %envreg7 is one of 32 that begin with "%envreg".
bool isNumbered(std::string_view name, std::string_view prefix, std::string_view suffix, uint32_t count) {
  if (name.size() <= prefix.size() + suffix.size() || name.substr(0, prefix.size()) != prefix ||
      name.substr(name.size() - suffix.size()) != suffix)
    return false;
  std::string_view digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  bool allDigits = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  std::optional<uint32_t> value = allDigits ? number(digits) : std::nullopt;
  return value && *value < count;
}

template <size_t N>
bool isOneOf(std::string_view name, const std::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

} // namespace

std::optional<Name> Scope::findInRanges(std::string_view name) const {
  if (ranges.empty())
    return std::nullopt;
  // %r12 may be one of %r<100> or of %r1<5>.
  for (size_t split = name.size(); split > 1 && name[split - 1] >= '0' && name[split - 1] <= '9'; --split) {
    auto range = ranges.find(name.substr(0, split - 1));
    if (range == ranges.end())
      continue;
    std::optional<uint32_t> index = number(name.substr(split - 1));
    if (index && *index < range->second.count)
      return Name{Name::Kind::Register, range->second.first + *index * range->second.width};
  }
  return std::nullopt;
}

std::optional<Name> Scope::find(std::string_view name) const {
  auto found = names.find(name);
  return found != names.end() ? found->second : findInRanges(name);
}

bool Scope::declare(std::string_view name, Name meaning) {
  return !findInRanges(name) && names.emplace(name, meaning).second;
}

bool Scope::declareRange(std::string_view prefix, uint32_t count, uint32_t first, uint32_t width) {
  for (uint32_t i = 0; i < count; ++i)
    if (find(std::string(prefix) + std::to_string(i)))
      return false;
  return ranges.emplace(prefix, Range{count, first, width}).second;
}

std::optional<Name> Scopes::find(std::string_view name) const {
  for (size_t i = inner.size(); i > 0; --i)
    if (std::optional<Name> found = inner[i - 1].find(name))
      return found;
  return module.find(name);
}

bool fp8emu::ptx::hasConstantAddress(const Module &module, const std::optional<Name> &found) {
  if (!found || found->kind != Name::Kind::ModuleVariable)
    return found && found->kind == Name::Kind::Function;
  Space space = module.variables[found->index].space;
  return space == Space::Global || space == Space::Const;
}

bool fp8emu::ptx::isSpecialVector(std::string_view name) {
  static constexpr std::string_view kVectors[] = {
      "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"};
  return isOneOf(name, kVectors);
}

bool fp8emu::ptx::isSpecialRegister(std::string_view name) {
  static constexpr std::string_view kScalars[] = {"%laneid",
                                                  "%warpid",
                                                  "%nwarpid",
                                                  "%smid",
                                                  "%nsmid",
                                                  "%gridid",
                                                  "%is_explicit_cluster",
                                                  "%cluster_ctarank",
                                                  "%cluster_nctarank",
                                                  "%lanemask_eq",
                                                  "%lanemask_le",
                                                  "%lanemask_lt",
                                                  "%lanemask_ge",
                                                  "%lanemask_gt",
                                                  "%clock",
                                                  "%clock_hi",
                                                  "%clock64",
                                                  "%globaltimer",
                                                  "%globaltimer_lo",
                                                  "%globaltimer_hi",
                                                  "%reserved_smem_offset_begin",
                                                  "%reserved_smem_offset_end",
                                                  "%reserved_smem_offset_cap",
                                                  "%reserved_smem_offset_0",
                                                  "%reserved_smem_offset_1",
                                                  "%total_smem_size",
                                                  "%aggr_smem_size",
                                                  "%dynamic_smem_size",
                                                  "%current_graph_exec"};
  return isSpecialVector(name) || isOneOf(name, kScalars) || isNumbered(name, "%envreg", "", 32) ||
         isNumbered(name, "%pm", "", 8) || isNumbered(name, "%pm", "_64", 8);
}
