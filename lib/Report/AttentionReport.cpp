// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what fp8-fuse-attention has noted about the places of attention.

#include "fp8/Report/AttentionReport.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Report/Report.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace fp8;

std::vector<AttentionRecord> fp8::takeAttentionSites(ModuleOp module) {
  std::vector<AttentionRecord> records;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto list = dyn_cast_or_null<ArrayAttr>(function->removeAttr(kAttentionSitesAttrName)))
      for (auto attrs : list.getAsRange<DictionaryAttr>()) {
        auto bytes = attrs.getAs<IntegerAttr>("bytes");
        auto hidden = attrs.getAs<FloatAttr>("hidden");
        auto mask = attrs.getAs<StringAttr>("mask");
        records.push_back({function.getName().str(), attrs.getAs<StringAttr>("site").str(),
                           attrs.getAs<StringAttr>("reason").str(),
                           bytes ? std::optional(bytes.getInt()) : std::nullopt, mask ? mask.str() : "",
                           hidden ? std::optional(hidden.getValueAsDouble()) : std::nullopt,
                           attrs.getAs<StringAttr>("location").str()});
      }
  return records;
}

llvm::json::Array fp8::attentionToJSON(const std::vector<AttentionRecord> &records) {
  llvm::json::Array list;
  for (const AttentionRecord &record : records)
    list.push_back(llvm::json::Object{{"entry", record.entry},
                                      {"site", record.site},
                                      {"decision", record.isFused() ? "fused" : "written"},
                                      {"reason", record.reason},
                                      {"mask", record.mask},
                                      {"keys_skipped", record.keysSkipped},
                                      {"score_bytes", record.scoreBytes},
                                      {"location", record.location}});
  return list;
}

/// Returns the bytes of all records; unset if one is not known.
static std::optional<int64_t> sumBytes(ArrayRef<const AttentionRecord *> records) {
  int64_t sum = 0;
  for (const AttentionRecord *record : records) {
    if (!record->scoreBytes)
      return std::nullopt;
    sum += *record->scoreBytes;
  }
  return sum;
}

/// Prints the sites of `records` after `title`.
static void printSites(StringRef title, ArrayRef<const AttentionRecord *> records, raw_ostream &os) {
  std::vector<std::string> parts{title.str()};
  for (const AttentionRecord *record : records)
    parts.push_back(record->site + (record == records.back() ? "" : ","));
  printParts(parts, os);
}

/// Returns what hides keys, from the mask of a record.
static std::string describeMask(StringRef mask) {
  if (mask.consume_front("window "))
    return ("a window of " + mask + " keys").str();
  return mask == "causal" ? "a causal mask" : "a mask of old keys";
}

/// Prints the sites whose masks hide keys, by mask and by the share that it hides.
static void printMasks(ArrayRef<const AttentionRecord *> fused, raw_ostream &os) {
  std::map<std::string, std::vector<const AttentionRecord *>> masked; // by what is said of them
  for (const AttentionRecord *record : fused)
    if (!record->mask.empty())
      masked[describeMask(record->mask) + " hides keys" +
             (record->keysSkipped
                  ? llvm::formatv(" ({0:F0}% of the scores)", 100 * *record->keysSkipped).str()
                  : "")]
          .push_back(record);
  for (const auto &[what, sites] : masked)
    printSites("  " + what + ":", sites, os);
}

void fp8::printAttention(const std::vector<AttentionRecord> &records, raw_ostream &os) {
  if (records.empty())
    return;
  std::vector<const AttentionRecord *> fused;
  llvm::MapVector<StringRef, std::vector<const AttentionRecord *>> written; // by reason
  for (const AttentionRecord &record : records)
    (record.isFused() ? fused : written[record.reason]).push_back(&record);
  os << "attention: " << fused.size() << " of " << records.size() << " fused";
  if (!fused.empty())
    os << "; " << describeBytes(sumBytes(fused))
       << " of scores and their gradients are never in memory together";
  os << "\n";
  if (!fused.empty())
    printSites("  fused:", fused, os);
  printMasks(fused, os);
  for (const auto &[reason, sites] : written)
    printSites(("  written out, " + reason + ":").str(), sites, os);
}
