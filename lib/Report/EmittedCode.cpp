// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds out which code computes the matmuls of the report, from attributes on the generated code.

#include "fp8/Conversion/CallingConvention.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Report/Report.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace fp8;

namespace {
/// A matmul in the generated code.
struct EmittedMatmul {
  std::string location, code;
  bool isTaken = false;
};

/// The matmuls in the generated code, by entry point, site and role: matmuls that differ in one of
/// these are never merged.
class EmittedMatmuls {
public:
  explicit EmittedMatmuls(ModuleOp module);

  /// Returns a matmul of the record's site that no other record has taken; with `atPlace` only one
  /// at the record's own location. Returns null if there is none.
  EmittedMatmul *take(const SiteRecord &record, bool atPlace);
  /// Returns any matmul of the record's site, or null.
  const EmittedMatmul *find(const SiteRecord &record) const;

private:
  static std::string key(StringRef entry, StringRef site, StringRef role) {
    return (entry + "\n" + site + "\n" + role).str();
  }
  static std::string key(const SiteRecord &record) {
    return key(record.entry, record.site, stringifyRole(record.role));
  }
  llvm::StringMap<std::vector<EmittedMatmul>> matmuls;
};
} // namespace

/// Returns the name, in the program, of the entry point that contains `op`.
static StringRef findEntry(Operation *op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (!function)
    return "";
  StringRef name = function.getName();
  name.consume_front(kEntryPrefix);
  return name;
}

EmittedMatmuls::EmittedMatmuls(ModuleOp module) {
  auto text = [](DictionaryAttr mark, StringRef name) {
    auto field = mark.getAs<StringAttr>(name);
    return field ? field.getValue() : StringRef();
  };
  module.walk([&](Operation *op) {
    auto marks = op->getAttrOfType<ArrayAttr>(kMatmulsAttrName);
    if (!marks)
      return;
    for (auto mark : marks.getAsRange<DictionaryAttr>()) {
      StringRef given = text(mark, "location"); // of one of several launches
      matmuls[key(findEntry(op), text(mark, "site"), text(mark, "role"))].push_back(
          {given.empty() ? describeLocation(op->getLoc()) : given.str(), text(mark, "code").str()});
    }
  });
}

EmittedMatmul *EmittedMatmuls::take(const SiteRecord &record, bool atPlace) {
  auto found = matmuls.find(key(record));
  if (found == matmuls.end())
    return nullptr;
  for (EmittedMatmul &matmul : found->second)
    if (!matmul.isTaken && (!atPlace || matmul.location == record.location)) {
      matmul.isTaken = true;
      return &matmul;
    }
  return nullptr;
}

const EmittedMatmul *EmittedMatmuls::find(const SiteRecord &record) const {
  auto found = matmuls.find(key(record));
  return found == matmuls.end() ? nullptr : &found->second.front();
}

void fp8::readEmittedCode(ModuleOp module, std::vector<SiteRecord> &sites) {
  EmittedMatmuls matmuls(module);
  for (SiteRecord &record : sites)
    record.code.clear();
  // Assign code first to records with its location, and to records that results depend on.
  for (auto [isNeeded, atPlace] : {std::pair(true, true), {true, false}, {false, true}, {false, false}})
    for (SiteRecord &record : sites)
      if (record.code.empty() && record.isNeeded == isNeeded)
        if (EmittedMatmul *matmul = matmuls.take(record, atPlace))
          record.code = matmul->code;
  for (SiteRecord &record : sites) {
    if (!record.code.empty())
      continue;
    const EmittedMatmul *equal = matmuls.find(record);
    if (!record.isNeeded)
      record.code = "none: no result depends on it";
    else if (equal)
      record.code = (kComputedOnce + " at " + equal->location + ": " + equal->code).str();
    else
      record.code = "none: it never runs, or its result is known without it";
  }
}
