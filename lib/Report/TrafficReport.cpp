// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts memory traffic with the cost model of fusion.

#include "fp8/Report/TrafficReport.h"
#include "fp8/Report/Report.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace fp8;

std::vector<TrafficRecord> fp8::collectTrafficBefore(ModuleOp module) {
  std::vector<TrafficRecord> records;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      records.push_back({function.getName().str(), countTraffic(function.getBody()), MemoryTraffic(), {}});
  return records;
}

void fp8::collectTrafficAfter(ModuleOp module, std::vector<TrafficRecord> &records) {
  for (TrafficRecord &record : records)
    if (auto function = module.lookupSymbol<func::FuncOp>(record.entry)) {
      record.after = countTraffic(function.getBody());
      record.repeated = collectRepeatedReads(function);
    }
}

llvm::json::Array fp8::trafficToJSON(const std::vector<TrafficRecord> &records) {
  auto bytes = [](const MemoryTraffic &traffic) {
    return llvm::json::Object{{"read", traffic.read}, {"written", traffic.written}};
  };
  llvm::json::Array list;
  for (const TrafficRecord &record : records)
    list.push_back(llvm::json::Object{{"entry", record.entry},
                                      {"before_fusion", bytes(record.before)},
                                      {"after_fusion", bytes(record.after)},
                                      {"estimated", record.after.estimated},
                                      {"read_again", repeatedReadsToJSON(record.repeated)}});
  return list;
}

void fp8::printTraffic(const std::vector<TrafficRecord> &records, raw_ostream &os) {
  auto describe = [](const MemoryTraffic &traffic) {
    return describeBytes(traffic.read) + " read, " + describeBytes(traffic.written) + " written";
  };
  for (const TrafficRecord &record : records) {
    if (record.before.total() == 0)
      continue;
    std::vector<std::string> parts{"memory traffic of a step"};
    if (records.size() > 1)
      parts.back() += " of " + record.entry;
    parts.back() += ":";
    parts.push_back(describe(record.after));
    parts.push_back("(before fusion: " + describe(record.before) + ")");
    if (record.after.estimated)
      parts.push_back("with assumed sizes or loop counts where they are not known");
    printParts(parts, os);
    printRepeatedReads(record.repeated, os);
  }
}
