// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what fp8-keep-parameters has noted about the casts of weights.

#include "fp8/Report/ParameterReport.h"
#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "fp8/Report/Report.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp8;

std::vector<ParameterRecord> fp8::collectParameters(ModuleOp module) {
  std::vector<ParameterRecord> records;
  auto list = module->getAttrOfType<ArrayAttr>(kParameterCastsAttrName);
  if (!list)
    return records;
  for (auto attrs : list.getAsRange<DictionaryAttr>()) {
    auto getNumber = [&](StringRef name) {
      auto number = attrs.getAs<IntegerAttr>(name);
      return number ? number.getInt() : 0;
    };
    records.push_back({attrs.getAs<StringAttr>("entry").str(), attrs.getAs<StringAttr>("site").str(),
                       attrs.getAs<BoolAttr>("kept").getValue(), attrs.getAs<StringAttr>("reason").str(),
                       getNumber("bytes"), getNumber("copy_bytes")});
  }
  return records;
}

llvm::json::Array fp8::parametersToJSON(const std::vector<ParameterRecord> &records) {
  llvm::json::Array list;
  for (const ParameterRecord &record : records)
    list.push_back(llvm::json::Object{
        {"entry", record.entry}, {"site", record.site}, {"kept", record.isKept}, {"reason", record.reason}});
  return list;
}

void fp8::printParameters(const std::vector<ParameterRecord> &records, raw_ostream &os) {
  if (records.empty())
    return;
  llvm::MapVector<StringRef, std::vector<std::string>> refused; // by reason
  size_t kept = 0;
  for (const ParameterRecord &record : records) {
    kept += record.isKept;
    if (!record.isKept)
      refused[record.reason].push_back(record.site);
  }
  os << "weights kept in FP8: " << kept << " of " << records.size() << " casts\n";
  for (const auto &[reason, sites] : refused)
    printParts({"  not kept,", reason.str() + ":", llvm::join(sites, ", ")}, os);
}
