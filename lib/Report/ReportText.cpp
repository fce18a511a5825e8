// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the report as text: one block per site with its roles below each other, equal layers in
// one row, reasons as footnotes, in 120 columns unless names are too long.

#include "fp8/Analysis/Sites/LayerNumbers.h"
#include "fp8/Report/Report.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>

using namespace mlir;
using namespace fp8;

using Cells = std::vector<std::string>;

/// A map from text that keeps the order of insertion.
template <typename T>
using InOrder = llvm::MapVector<std::string, T, std::map<std::string, unsigned>>;

/// Lines are wrapped at this width, where possible.
static constexpr size_t kWidth = 100;
/// A longer name gets a line of its own.
static constexpr size_t kNameWidth = 36;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Prints cells padded to the width of their column, except for the last one. After a first cell
/// that is too long the others follow on the next line.
static void printTable(ArrayRef<Cells> rows, raw_ostream &os) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const Cells &row : rows)
    for (auto [c, cell] : llvm::enumerate(row))
      if (c != 0 || cell.size() <= kNameWidth)
        widths[c] = std::max(widths[c], cell.size());
  for (const Cells &row : rows) {
    bool isLong = row.front().size() > widths.front();
    if (isLong)
      os << row.front() << "\n";
    std::string line;
    for (auto [c, cell] : llvm::enumerate(row)) {
      line += isLong && c == 0 ? "" : cell;
      size_t begin = line.size() - (isLong && c == 0 ? 0 : cell.size());
      line.resize(begin + widths[c] + 2, ' ');
    }
    os << StringRef(line).rtrim() << "\n";
  }
}

std::string fp8::describeBytes(std::optional<int64_t> bytes) {
  if (!bytes)
    return "?";
  if (*bytes < 1024)
    return std::to_string(*bytes) + " B";
  auto size = static_cast<double>(*bytes);
  StringRef units[] = {"KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (size /= 1024; size >= 1024 && unit + 1 < std::size(units); ++unit)
    size /= 1024;
  return llvm::formatv(size < 10 ? "{0:f1} {1}" : "{0:f0} {1}", size, units[unit]);
}

//===----------------------------------------------------------------------===//
// Sites
//===----------------------------------------------------------------------===//

static std::string shapeOf(const SiteRecord &record) {
  auto text = [](std::optional<int64_t> size) { return size ? std::to_string(*size) : "?"; };
  std::string shape = text(record.m) + " x " + text(record.n) + " x " + text(record.k);
  return record.batch && *record.batch == 1 ? shape : text(record.batch) + " * " + shape;
}

namespace {
/// Matmuls that are equal except for the number of their layer.
struct Row {
  std::string before, after; ///< the site's name around the number
  std::set<int64_t> layers;  ///< empty if the site is in no layer
  Role role;
  Cells cells; ///< the other cells
  unsigned count = 0;

  /// "h{0-3}/attention"; for a single layer "h0/attention".
  std::string name() const {
    if (layers.empty())
      return before;
    if (layers.size() == 1)
      return before + std::to_string(*layers.begin()) + after;
    return before + "{" + range() + "}" + after;
  }

private:
  /// "0-3" or "0,2,5".
  std::string range() const {
    if (*layers.rbegin() - *layers.begin() + 1 == int64_t(layers.size()))
      return std::to_string(*layers.begin()) + "-" + std::to_string(*layers.rbegin());
    return llvm::join(llvm::map_range(layers, [](int64_t layer) { return std::to_string(layer); }), ",");
  }
};

/// The reasons and their numbers.
using Footnotes = InOrder<unsigned>;
} // namespace

/// Splits a site's name at the number of its layer.
static void splitName(Row &row, StringRef site, const llvm::StringMap<int64_t> &layers) {
  row.before = site.str();
  auto found = layers.find(site);
  if (found == layers.end())
    return;
  for (size_t begin = site.find_first_of("0123456789"); begin != StringRef::npos;) {
    size_t end = std::min(site.find_first_not_of("0123456789", begin), site.size());
    int64_t number;
    if (!site.slice(begin, end).getAsInteger(10, number) && number == found->second) {
      row.before = site.take_front(begin).str();
      row.after = site.drop_front(end).str();
      row.layers.insert(number);
      return;
    }
    begin = site.find_first_of("0123456789", end);
  }
}

/// Returns the rows of one entry point, equal layers together, in the order of the program.
static std::vector<Row> collectRows(ArrayRef<const SiteRecord *> sites, Footnotes &reasons) {
  std::vector<StringRef> names;
  for (const SiteRecord *record : sites)
    names.push_back(record->site);
  llvm::StringMap<int64_t> layers = findLayers(names);
  InOrder<Row> rows;
  for (const SiteRecord *record : sites) {
    Row row;
    splitName(row, record->site, layers);
    row.role = record->role;
    std::string decision = "FP8, " + record->recipe;
    if (!record->isFP8) {
      reasons.try_emplace(record->reason, reasons.size() + 1);
      decision = "high [" + std::to_string(reasons.lookup(record->reason)) + "]";
    }
    row.cells = {shapeOf(*record), record->formats[0] + " x " + record->formats[1],
                 describeBytes(record->operandBytes), decision};
    std::string key = row.before + "\n" + (row.layers.empty() ? "" : "#") + row.after + "\n" +
                      stringifyRole(row.role).str() + "\n" + llvm::join(row.cells, "\n");
    Row &merged = rows.try_emplace(key, row).first->second;
    merged.layers.insert(row.layers.begin(), row.layers.end());
    ++merged.count;
  }
  std::vector<Row> list;
  for (auto &[key, row] : rows)
    list.push_back(std::move(row));
  return list;
}

/// Prints one block per site, with its roles in the order fprop, dgrad, wgrad, other.
static void printSites(ArrayRef<const SiteRecord *> sites, Footnotes &reasons, raw_ostream &os) {
  InOrder<std::vector<Row>> blocks;
  bool repeats = false;
  for (Row &row : collectRows(sites, reasons)) {
    repeats |= row.count > 1;
    blocks[row.name()].push_back(std::move(row));
  }
  std::vector<Cells> table{{"site", "role", "M x N x K", "formats", "operands", "decision"}};
  if (repeats)
    table.front().insert(table.front().begin() + 2, "times");
  for (const auto &[name, rows] : blocks) {
    std::string shown = name;
    for (Role role : {Role::fprop, Role::dgrad, Role::wgrad, Role::other})
      for (const Row &row : rows) {
        if (row.role != role)
          continue;
        table.push_back({shown, stringifyRole(role).str()});
        if (repeats)
          table.back().push_back(row.count > 1 ? std::to_string(row.count) : "");
        llvm::append_range(table.back(), row.cells);
        shown.clear();
      }
  }
  printTable(table, os);
}

/// Prints how many matmuls became FP8, and why the others did not.
static void printSummary(ArrayRef<SiteRecord> sites, const Footnotes &reasons, raw_ostream &os) {
  auto inFP8 = llvm::count_if(sites, [](const SiteRecord &record) { return record.isFP8; });
  os << sites.size() << " contractions: " << inFP8 << " in FP8, " << sites.size() - inFP8
     << " in high precision\n";
  for (const auto &entry : reasons) {
    auto count = llvm::count_if(
        sites, [&](const SiteRecord &record) { return !record.isFP8 && record.reason == entry.first; });
    os << "  [" << entry.second << "] " << count << " kept: " << entry.first << "\n";
  }
}

/// Prints the kinds of code that compute the matmuls, with the number of matmuls of each; then what else
/// is said of them, as which operands are copied.
static void printCode(ArrayRef<SiteRecord> sites, raw_ostream &os) {
  InOrder<unsigned> counts, notes;
  for (const SiteRecord &record : sites) {
    if (StringRef(record.code).starts_with(kComputedOnce)) {
      ++counts[kComputedOnce.str()];
    } else if (!record.code.empty()) {
      SmallVector<StringRef> parts;
      StringRef(record.code).split(parts, "; ");
      ++counts[parts.front().str()];
      for (StringRef note : ArrayRef(parts).drop_front())
        ++notes[note.str()];
    }
  }
  if (!counts.empty())
    os << "code\n";
  for (const auto &[code, count] : counts)
    os << "  " << count << ": " << code << "\n";
  for (const auto &[note, count] : notes)
    os << "  " << count << " of them: " << note << "\n";
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

/// Prints the operations that resemble a matmul of floats but are not one.
static void printLookAlikes(ArrayRef<LookAlikeRecord> records, raw_ostream &os) {
  if (records.empty())
    return;
  std::vector<Cells> rows{{"not a matmul of floats", "why", "where"}};
  for (const LookAlikeRecord &record : records)
    rows.push_back({record.op, record.reason, record.location});
  os << "\n";
  printTable(rows, os);
}

/// Prints one line per figure, except for those of 0 bytes, with aligned numbers.
static void printMemory(ArrayRef<MemoryFigure> all, raw_ostream &os) {
  std::vector<MemoryFigure> figures;
  llvm::copy_if(all, std::back_inserter(figures),
                [](const MemoryFigure &figure) { return figure.bytes != 0; });
  size_t width = 0;
  for (const MemoryFigure &figure : figures)
    width = std::max(width, figure.title.size());
  if (!figures.empty())
    os << "memory\n";
  for (const MemoryFigure &figure : figures)
    os << "  " << llvm::left_justify(figure.title, width + 2)
       << llvm::right_justify(figure.bytes ? describeBytes(figure.bytes) : "known at run time", 9) << "\n";
}

void fp8::printParts(ArrayRef<std::string> parts, raw_ostream &os) {
  std::string line = parts.front();
  for (const std::string &part : parts.drop_front()) {
    if (line.size() + part.size() + 1 > kWidth) {
      os << line << "\n";
      line = " ";
    }
    line += " " + part;
  }
  os << line << "\n";
}

/// Prints "name=value" for each option, in lines of moderate length.
static void printOptions(const OptionValues &options, raw_ostream &os) {
  std::vector<std::string> parts{"options:"};
  for (const auto &[name, value] : options) {
    std::string text;
    if (auto string = value.getAsString())
      text = string->str();
    else if (value != llvm::json::Value(nullptr))
      llvm::raw_string_ostream(text) << value;
    else
      text = "-";
    parts.push_back(name + "=" + text);
  }
  printParts(parts, os);
}

void fp8::printReport(const Report &report, raw_ostream &os) {
  // One table per entry point, in the order of the program.
  llvm::MapVector<StringRef, std::vector<const SiteRecord *>> entries;
  for (const SiteRecord &record : report.sites)
    entries[record.entry].push_back(&record);
  Footnotes reasons;
  for (const auto &[entry, sites] : entries) {
    if (entries.size() > 1)
      os << "function " << entry << "\n";
    printSites(sites, reasons, os);
    os << "\n";
  }
  printSummary(report.sites, reasons, os);
  for (const UnusedOption &unused : report.unusedOptions)
    os << "  " << unused.message << "\n";
  printCode(report.sites, os);
  printMemory(report.memory, os);
  printAttention(report.attention, os);
  printCollectives(report.collectives, os);
  printParameters(report.parameters, os);
  printTraffic(report.traffic, os);
  printOptions(report.options, os);
  if (!report.weighedRecipes.empty())
    os << "--recipe=auto weighed:\n  " << llvm::join(report.weighedRecipes, "\n  ") << "\n";
  printLookAlikes(report.others, os);
}
