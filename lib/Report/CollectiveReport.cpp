// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The collectives of a program: which there are, and how much they move, for the report and the manifest.

#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "fp8/Report/Report.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;

static std::string typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::vector<CollectiveRecord> fp8::collectCollectives(ModuleOp module) {
  std::vector<CollectiveRecord> records;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](CollectiveOpInterface op) {
      auto type = cast<ShapedType>(op.getInput().getType());
      Type element = type.getElementType();
      CollectiveRecord record;
      record.entry = function.getName().str();
      record.kind = op->getName().stripDialect().str();
      record.name = op.getLabelAttr() ? op.getLabelAttr().str() : record.kind;
      if (isa<AllReduceOp, ReduceScatterOp>(op))
        record.reduction = stringifyReduceKind(op.getStep().reduction).str();
      record.axes.assign(op.getAxesAttr().asArrayRef().begin(), op.getAxesAttr().asArrayRef().end());
      record.type = typeName(element);
      if (type.hasStaticShape() && element.isIntOrFloat())
        record.bytes = type.getNumElements() * llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
      if (auto joined = op->getAttrOfType<IntegerAttr>(kJoinedAttrName))
        record.joined = joined.getInt();
      if (auto saved = op->getAttrOfType<IntegerAttr>(kSavedBytesAttrName))
        record.savedBytes = saved.getInt();
      if (auto reason = op->getAttrOfType<StringAttr>(kGatheredWideAttrName))
        record.wideReason = reason.str();
      records.push_back(std::move(record));
    });
  return records;
}

llvm::json::Array fp8::collectivesToJSON(const std::vector<CollectiveRecord> &collectives) {
  llvm::json::Array list;
  for (const CollectiveRecord &record : collectives)
    list.push_back(llvm::json::Object{
        {"entry", record.entry},
        {"name", record.name},
        {"kind", record.kind},
        {"reduction",
         record.reduction.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(record.reduction)},
        {"axes", llvm::json::Array(record.axes)},
        {"type", record.type},
        {"bytes", record.bytes},
        {"joined", record.joined},
        {"saved_bytes", record.savedBytes},
        {"gathered_wide",
         record.wideReason.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(record.wideReason)}});
  return list;
}

void fp8::printCollectives(const std::vector<CollectiveRecord> &collectives, llvm::raw_ostream &os) {
  // One line for the collectives of a kind, type and entry.
  struct Sum {
    int64_t count = 0, joined = 0;
    std::optional<int64_t> bytes = 0;
    int64_t saved = 0;
  };
  llvm::MapVector<std::string, Sum, std::map<std::string, unsigned>> sums;
  for (const CollectiveRecord &record : collectives) {
    Sum &sum = sums[record.entry + ": " + record.kind +
                    (record.reduction.empty() ? "" : " " + record.reduction) + " of " + record.type];
    ++sum.count;
    sum.joined += record.joined;
    sum.saved += record.savedBytes;
    sum.bytes = sum.bytes && record.bytes ? std::optional(*sum.bytes + *record.bytes) : std::nullopt;
  }
  if (!sums.empty())
    os << "\ncollectives\n";
  for (const auto &[what, sum] : sums)
    os << "  " << what << ": " << sum.count
       << (sum.joined > sum.count ? " in place of " + std::to_string(sum.joined) : "") << ", "
       << describeBytes(sum.bytes) << " of each rank"
       << (sum.saved ? ", " + describeBytes(sum.saved) + " less than before the cast" : "") << "\n";
  for (const CollectiveRecord &record : collectives)
    if (!record.wideReason.empty())
      os << "  " << record.entry << ": " << record.name << " of " << describeBytes(record.bytes)
         << " is not cast before: " << record.wideReason << "\n";
}
