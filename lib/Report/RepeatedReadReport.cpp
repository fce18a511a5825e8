// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Describes what a step still reads more than once after fusion, as JSON and as text.

#include "fp8/Report/RepeatedReadReport.h"
#include "fp8/Analysis/MemoryTraffic.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/RepeatedReads.h"
#include "fp8/Report/Report.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace fp8;

/// The text shows this many kinds of tensors; JSON has all.
static constexpr size_t kShownKinds = 6;

/// Returns the word of attribute `name` of `op`, the site or role of a matmul; empty if it has none.
static std::string getWord(Operation *op, StringRef name) {
  Attribute attr = op->getInherentAttr(name).value_or(Attribute());
  if (auto site = dyn_cast_or_null<StringAttr>(attr))
    return site.str();
  auto role = dyn_cast_or_null<RoleAttr>(attr);
  return role ? stringifyRole(role.getValue()).str() : "";
}

/// Returns "fp8.matmul h0/fc1 fprop", or what of it there is.
static std::string describeOperation(StringRef op, StringRef site, StringRef role) {
  std::string text = op.str();
  for (StringRef word : {site, role})
    if (!word.empty())
      text += (" " + word).str();
  return text;
}

static ReaderRecord describeReader(const TensorReader &reader) {
  return {reader.op->getName().getStringRef().str(),
          getWord(reader.op, "site"),
          getWord(reader.op, "role"),
          describeLocation(reader.op->getLoc()),
          reader.times,
          reader.reason};
}

static std::string describeTensor(Value tensor) {
  Operation *writer = tensor.getDefiningOp();
  if (writer)
    return describeOperation(writer->getName().getStringRef(), getWord(writer, "site"),
                             getWord(writer, "role"));
  auto argument = cast<BlockArgument>(tensor);
  return isa<func::FuncOp>(argument.getOwner()->getParentOp()) ? getArgumentName(argument)
                                                               : "value of a loop";
}

/// Returns "16x64xbf16".
static std::string describeType(Type type) {
  std::string text = debugString(type);
  return StringRef(text).drop_front(StringRef("tensor<").size()).drop_back().str();
}

static RepeatedReadRecord describe(const RepeatedRead &repeated) {
  Value tensor = repeated.tensor;
  RepeatedReadRecord record{describeTensor(tensor),
                            describeType(tensor.getType()),
                            describeLocation(tensor.getLoc()),
                            countBytes(tensor.getType()),
                            /*read=*/0,
                            {}};
  for (const TensorReader &reader : repeated.readers) {
    record.readers.push_back(describeReader(reader));
    record.read += record.bytes * reader.times.value_or(1);
  }
  return record;
}

std::vector<RepeatedReadRecord> fp8::collectRepeatedReads(func::FuncOp function) {
  // Equal keys keep the order of the program.
  std::multimap<int64_t, RepeatedReadRecord, std::greater<>> sorted;
  for (const RepeatedRead &repeated : findRepeatedReads(function)) {
    RepeatedReadRecord record = describe(repeated);
    sorted.emplace(record.readAgain(), std::move(record));
  }
  auto values = llvm::make_second_range(sorted);
  return std::vector<RepeatedReadRecord>(values.begin(), values.end());
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static llvm::json::Array readersToJSON(const std::vector<ReaderRecord> &readers) {
  llvm::json::Array list;
  for (const ReaderRecord &reader : readers)
    list.push_back(llvm::json::Object{{"op", reader.op},
                                      {"site", reader.site},
                                      {"role", reader.role},
                                      {"location", reader.location},
                                      {"times", reader.times},
                                      {"reason", reader.reason}});
  return list;
}

llvm::json::Array fp8::repeatedReadsToJSON(const std::vector<RepeatedReadRecord> &records) {
  llvm::json::Array list;
  for (const RepeatedReadRecord &record : records)
    list.push_back(llvm::json::Object{{"tensor", record.name},
                                      {"type", record.type},
                                      {"location", record.location},
                                      {"bytes", record.bytes},
                                      {"bytes_read", record.read},
                                      {"readers", readersToJSON(record.readers)}});
  return list;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
/// Tensors of one type that are read by operations of the same names for the same reasons.
using Kind = std::vector<const RepeatedReadRecord *>;

/// The reads of one kind of operation for one reason.
struct Reads {
  int64_t times = 0;
  bool isLeast = false; ///< a loop may run more often
};
} // namespace

/// Returns a line for each operation that reads the tensor and each reason: "2 reads by fp8.quantize: …".
static std::vector<std::string> describeReaders(const RepeatedReadRecord &record) {
  llvm::MapVector<std::string, Reads, std::map<std::string, unsigned>> groups;
  for (const ReaderRecord &reader : record.readers) {
    Reads &reads = groups[reader.op + ": " + reader.reason];
    reads.times += reader.times.value_or(1);
    reads.isLeast |= !reader.times;
  }
  std::vector<std::string> lines;
  for (const auto &[text, reads] : groups)
    lines.push_back((reads.isLeast ? "at least " : "") + std::to_string(reads.times) +
                    (reads.times == 1 ? " read by " : " reads by ") + text);
  return lines;
}

static int64_t countReadAgain(ArrayRef<const RepeatedReadRecord *> records) {
  int64_t bytes = 0;
  for (const RepeatedReadRecord *record : records)
    bytes += record->readAgain();
  return bytes;
}

/// Returns the tensors of `records` by their kinds, those first that cost most bytes.
static std::vector<Kind> sortByKind(const std::vector<RepeatedReadRecord> &records) {
  llvm::MapVector<std::string, Kind, std::map<std::string, unsigned>> kinds;
  for (const RepeatedReadRecord &record : records)
    kinds[record.type + "\n" + llvm::join(describeReaders(record), "\n")].push_back(&record);
  std::multimap<int64_t, Kind, std::greater<>> sorted;
  for (const auto &[key, kind] : kinds)
    sorted.emplace(countReadAgain(kind), kind);
  auto values = llvm::make_second_range(sorted);
  return std::vector<Kind>(values.begin(), values.end());
}

static void printKind(const Kind &kind, raw_ostream &os) {
  const RepeatedReadRecord &first = *kind.front();
  os << "  " << (kind.size() > 1 ? std::to_string(kind.size()) + " x " : "") << describeBytes(first.bytes)
     << " (" << first.type << "): " << first.name << "\n";
  if (!first.location.empty() && first.location != first.name)
    os << "    " << (kind.size() > 1 ? "the first at " : "at ") << first.location << "\n";
  for (const std::string &line : describeReaders(first))
    os << "    " << line << "\n";
}

void fp8::printRepeatedReads(const std::vector<RepeatedReadRecord> &records, raw_ostream &os) {
  if (records.empty())
    return;
  std::vector<Kind> kinds = sortByKind(records);
  int64_t bytes = 0, shown = 0;
  for (const Kind &kind : kinds)
    bytes += countReadAgain(kind);
  os << "tensors that it reads more than once: " << records.size() << ", " << describeBytes(bytes)
     << " after their first reads\n";
  for (const Kind &kind : ArrayRef(kinds).take_front(kShownKinds)) {
    printKind(kind, os);
    shown += kind.size();
  }
  if (kinds.size() > kShownKinds)
    os << "  and " << records.size() - shown << " that cost less; --report=json has all\n";
}
