// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parses name stacks. The rules are in the header.

#include "fp8/Analysis/Sites/SiteNames.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp8;

/// The names of a location joined by '/', callers first; empty where it has none.
static std::string joinNames(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto call = dyn_cast<CallSiteLoc>(location)) {
    std::string caller = joinNames(call.getCaller()), callee = joinNames(call.getCallee());
    return caller.empty() || callee.empty() ? caller + callee : caller + "/" + callee;
  }
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string name = joinNames(part); !name.empty())
        return name;
  return "";
}

/// Splits at '/' outside parentheses.
static SmallVector<StringRef> splitComponents(StringRef name) {
  SmallVector<StringRef> components;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '(')
      ++depth;
    else if (name[i] == ')')
      --depth;
    else if (name[i] == '/' && depth <= 0) {
      components.push_back(name.slice(start, i));
      start = i + 1;
    }
  }
  components.push_back(name.substr(start));
  return components;
}

/// Removes one `wrapper(…)` around a component.
static bool unwrap(StringRef &component, StringRef wrapper) {
  StringRef inner = component;
  if (!inner.consume_front(wrapper) || !inner.consume_front("(") || !inner.consume_back(")"))
    return false;
  component = inner;
  return true;
}

/// Components of the tracing machinery, which say nothing about the model.
static bool isMachinery(StringRef component) {
  return component.empty() || (component.starts_with("jit(") && component.ends_with(")")) ||
         component.starts_with("branch_") ||
         llvm::is_contained({"while", "body", "cond", "closed_call", "checkpoint", "rematted_computation"},
                            component);
}

namespace {

/// A component that is kept, and the transformation it was found in (0: none).
struct Component {
  StringRef text;
  unsigned wrapper;
};

} // namespace

/// Drops components that repeat the prefix found in a transformation right before.
static void dropRepeatedPrefixes(SmallVectorImpl<Component> &components) {
  for (size_t begin = 0; begin < components.size();) {
    size_t end = begin + 1;
    while (end < components.size() && components[end].wrapper == components[begin].wrapper)
      ++end;
    size_t size = end - begin;
    bool repeated = components[begin].wrapper != 0 && end + size <= components.size();
    for (size_t i = 0; repeated && i < size; ++i)
      repeated = components[begin + i].text == components[end + i].text;
    if (repeated)
      components.erase(components.begin() + end, components.begin() + end + size);
    begin = end;
  }
}

/// Unwraps transformations, and records in `stack` whether they mark backward or recomputed code.
static bool unwrapTransformations(StringRef &component, NameStack &stack) {
  bool wrapped = false;
  while (true) {
    if (unwrap(component, "transpose"))
      stack.backward = true;
    else if (!unwrap(component, "jvp") && !unwrap(component, "vmap"))
      return wrapped;
    wrapped = true;
  }
}

NameStack fp8::parseNameStack(Location location) {
  NameStack result;
  std::string name = joinNames(location);
  SmallVector<StringRef> stack = splitComponents(name);
  StringRef primitive = stack.pop_back_val();
  result.primitive = stack.empty() ? "" : primitive.str();
  SmallVector<Component> kept;
  for (auto [i, component] : llvm::enumerate(stack)) {
    bool wrapped = unwrapTransformations(component, result);
    if (component == "rematted_computation") {
      result.rematerialized = true;
      result.backward = false;
    }
    result.update |= component.starts_with("update(") && component.ends_with(")");
    for (StringRef part : splitComponents(component))
      if (!isMachinery(part))
        kept.push_back({part, wrapped ? static_cast<unsigned>(i + 1) : 0});
  }
  dropRepeatedPrefixes(kept);

  SmallVector<StringRef> site, full;
  for (const Component &component : kept) {
    full.push_back(component.text);
    if (!component.text.contains("->"))
      site.push_back(component.text);
  }
  full.push_back(primitive);
  result.site = llvm::join(site, "/");
  result.full = llvm::join(full, "/");
  return result;
}
